//! Answers taken apart for delivery: the rows of an `eth_getLogs` answer, a block as `newHeads` shows it.
//!
//! Invariant: what goes in was opened for the viewer by the views of those methods; nothing is added here, so that a
//! stream shows what the same viewer would read, and never more (HD18 WS-3).

use super::{
    scan::{Malformed, Scan},
    shape,
};
use crate::sealed::Disclosed;
use alloy_primitives::B256;

/// One row of a log answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The block it is in.
    pub block_hash: B256,
    /// That block's number.
    pub block_number: u64,
    /// Its place there.
    pub log_index: u64,
    /// The row.
    pub row: Disclosed,
}

impl Item {
    /// The row as it reads once its block has left the chain (WS-4).
    pub fn removed(&self) -> Disclosed {
        let row = self.row.as_str();
        // Bytes and names of a row hold no such text, and its flag stands once.
        let flagged = row.replace("\"removed\":false", "\"removed\":true");
        Disclosed::text(match flagged.strip_suffix('}') {
            Some(open) if !flagged.contains("\"removed\":") => format!("{open},\"removed\":true}}"),
            Some(_) | None => flagged,
        })
    }
}

/// The rows of an `eth_getLogs` answer; none of an answer that has none.
pub fn rows(answer: &Disclosed) -> Vec<Item> {
    let mut items = Vec::new();
    let read = Scan::new(answer.as_str()).list(|scan| {
        items.push(item(scan.value()?)?);
        Ok(())
    });
    if read.is_ok() { items } else { Vec::new() }
}

fn item(row: &str) -> Result<Item, Malformed> {
    let (mut hash, mut number, mut index) = (None, None, None);
    Scan::new(row).object(|scan| {
        let name = scan.key()?;
        let value = scan.value()?;
        match name {
            "blockHash" => hash = Some(shape::word(value)?),
            "blockNumber" => number = Some(shape::number(value)?),
            "logIndex" => index = Some(shape::number(value)?),
            _ => {}
        }
        Ok(())
    })?;
    let (block_hash, block_number, log_index) = (
        hash.ok_or(Malformed)?,
        number.ok_or(Malformed)?,
        index.ok_or(Malformed)?,
    );
    Ok(Item {
        block_hash,
        block_number,
        log_index,
        row: Disclosed::text(row.to_owned()),
    })
}

/// Several rows as one answer.
pub fn listed<'a>(rows: impl IntoIterator<Item = &'a Disclosed>) -> Disclosed {
    let rows: Vec<&str> = rows.into_iter().map(Disclosed::as_str).collect();
    Disclosed::text(format!("[{}]", rows.join(",")))
}

/// A block answer as `newHeads` has it: without what a header does not hold. `None` for no block.
pub fn header(block: &Disclosed) -> Option<Disclosed> {
    let mut out = String::with_capacity(block.as_str().len());
    let read = Scan::new(block.as_str()).object(|scan| {
        let name = scan.key()?;
        let value = scan.value()?;
        if !matches!(
            name,
            "transactions" | "uncles" | "withdrawals" | "size" | "totalDifficulty"
        ) {
            out.push(if out.is_empty() { '{' } else { ',' });
            out.push('"');
            out.push_str(name);
            out.push_str("\":");
            out.push_str(value);
        }
        Ok(())
    });
    out.push('}');
    (read.is_ok() && out.len() > 1).then(|| Disclosed::text(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(flag: &str) -> String {
        format!(
            r#"{{"address":"0x11","data":"0x","blockNumber":"0x1f","blockHash":"0x{}","logIndex":"0x2"{flag}}}"#,
            "ab".repeat(32)
        )
    }

    #[test]
    fn ws4_a_row_of_a_lost_block_says_so_and_is_the_same_row() {
        for flag in ["", r#","removed":false"#] {
            let answer = Disclosed::text(format!("[{},{}]", row(flag), row(flag)));
            let items = rows(&answer);
            assert_eq!(items.len(), 2);
            let item = &items[0];
            assert_eq!(
                (item.block_hash, item.block_number, item.log_index),
                (B256::repeat_byte(0xab), 31, 2)
            );
            assert_eq!(item.row.as_str(), row(flag));
            assert_eq!(item.removed().as_str(), row(r#","removed":true"#));
        }
        assert!(rows(&Disclosed::EMPTY_LIST).is_empty() && rows(&Disclosed::NULL).is_empty());
    }

    #[test]
    fn a_header_is_the_block_without_its_lists() {
        let block = r#"{"number":"0x1","transactions":["0x1",{"a":[]}],"uncles":[],"gasUsed":"0x0","withdrawals":[]}"#;
        let shown = header(&Disclosed::text(block.to_owned())).unwrap();
        assert_eq!(shown.as_str(), r#"{"number":"0x1","gasUsed":"0x0"}"#);
        assert_eq!(header(&Disclosed::NULL), None);
    }
}

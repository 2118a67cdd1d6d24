//! Splits results for the delivery of subscriptions: the rows of an `eth_getLogs` result, a block as `newHeads` shows
//! it.
//!
//! Invariant: the input was opened for the viewer by the views of these methods, and this module adds nothing, so that
//! a subscription shows exactly what the viewer would read (HD18 WS-3).

use super::{
    scan::{Malformed, Scan},
    shape,
};
use crate::sealed::Disclosed;
use alloy_primitives::B256;

/// One row of a log result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveredLog {
    /// Hash of its block.
    pub block_hash: B256,
    /// Number of its block.
    pub block_number: u64,
    /// Index of the log in the block.
    pub log_index: u64,
    /// The row.
    pub row: Disclosed,
}

impl DeliveredLog {
    /// The row with `removed: true`, after its block left the chain (WS-4).
    pub fn removed(&self) -> Disclosed {
        let row = self.row.as_str();
        // No other member of a row contains this text, and a row has at most one flag.
        let flagged = row.replace("\"removed\":false", "\"removed\":true");
        Disclosed::text(match flagged.strip_suffix('}') {
            Some(open) if !flagged.contains("\"removed\":") => format!("{open},\"removed\":true}}"),
            Some(_) | None => flagged,
        })
    }
}

/// The rows of an `eth_getLogs` result; empty if the result is not a list of rows.
pub fn log_rows(answer: &Disclosed) -> Vec<DeliveredLog> {
    let mut items = Vec::new();
    let read = Scan::new(answer.as_str()).list(|scan| {
        items.push(parse_row(scan.value()?)?);
        Ok(())
    });
    if read.is_ok() { items } else { Vec::new() }
}

fn parse_row(row: &str) -> Result<DeliveredLog, Malformed> {
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
    Ok(DeliveredLog {
        block_hash,
        block_number,
        log_index,
        row: Disclosed::text(row.to_owned()),
    })
}

/// Combines rows to one result.
pub fn log_array<'a>(log_rows: impl IntoIterator<Item = &'a Disclosed>) -> Disclosed {
    let log_rows: Vec<&str> = log_rows.into_iter().map(Disclosed::as_str).collect();
    Disclosed::text(format!("[{}]", log_rows.join(",")))
}

/// A block result as `newHeads` shows it, without members that a header does not have. `None` if it is not a block.
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
    fn ws4_a_row_of_a_removed_block_differs_only_in_its_flag() {
        for flag in ["", r#","removed":false"#] {
            let answer = Disclosed::text(format!("[{},{}]", row(flag), row(flag)));
            let items = log_rows(&answer);
            assert_eq!(items.len(), 2);
            let item = &items[0];
            assert_eq!(
                (item.block_hash, item.block_number, item.log_index),
                (B256::repeat_byte(0xab), 31, 2)
            );
            assert_eq!(item.row.as_str(), row(flag));
            assert_eq!(item.removed().as_str(), row(r#","removed":true"#));
        }
        assert!(log_rows(&Disclosed::EMPTY_LIST).is_empty() && log_rows(&Disclosed::NULL).is_empty());
    }

    #[test]
    fn a_header_is_a_block_without_its_lists() {
        let block = r#"{"number":"0x1","transactions":["0x1",{"a":[]}],"uncles":[],"gasUsed":"0x0","withdrawals":[]}"#;
        let shown = header(&Disclosed::text(block.to_owned())).unwrap();
        assert_eq!(shown.as_str(), r#"{"number":"0x1","gasUsed":"0x0"}"#);
        assert_eq!(header(&Disclosed::NULL), None);
    }
}

//! Blocks (spec/30 sections 5.1, 5.2, 8; decision 43, K9, HD11).

use super::{
    local, malformed_as,
    receipt::ZERO_BLOOM,
    scan::{Malformed, Scan},
    shape::{Field, Object, Shape, ZERO_WORD},
    transaction::Transaction,
};
use crate::{
    sealed::{Disclosed, Parts, RawJson, Sealed},
    visibility::{TransactionAccess, TransactionRow, Viewer},
};
use alloy_primitives::{B256, U256};

/// HD11: the members of a block that may be disclosed.
const BLOCK: [Field; 27] = [
    Field("number", Shape::Quantity),
    Field("hash", Shape::Fixed(32)),
    Field("parentHash", Shape::Fixed(32)),
    Field("nonce", Shape::Fixed(8)),
    Field("mixHash", Shape::Fixed(32)),
    Field("sha3Uncles", Shape::Fixed(32)),
    Field("logsBloom", Shape::Unchecked),
    Field("stateRoot", Shape::Fixed(32)),
    Field("miner", Shape::Fixed(20)),
    Field("difficulty", Shape::Quantity),
    Field("totalDifficulty", Shape::Quantity),
    Field("extraData", Shape::Bytes),
    Field("size", Shape::Unchecked),
    Field("gasLimit", Shape::Quantity),
    Field("gasUsed", Shape::Unchecked),
    Field("timestamp", Shape::Quantity),
    Field("transactionsRoot", Shape::Fixed(32)),
    Field("receiptsRoot", Shape::Fixed(32)),
    Field("uncles", Shape::Unchecked),
    Field("transactions", Shape::Unchecked),
    Field("baseFeePerGas", Shape::Quantity),
    Field("withdrawalsRoot", Shape::Fixed(32)),
    Field("withdrawals", Shape::Unchecked),
    Field("blobGasUsed", Shape::Unchecked),
    Field("excessBlobGas", Shape::Unchecked),
    Field("parentBeaconBlockRoot", Shape::Fixed(32)),
    Field("requestsHash", Shape::Fixed(32)),
];

/// How a block result shows its transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockTransactions {
    /// Their hashes.
    Hashes,
    /// Whole objects.
    Full,
}

/// Opens a result of `eth_getBlockBy…`. The upstream request must be for full transactions, even if the caller's is for
/// hashes.
///
/// Transactions that the viewer does not see are left out; aggregates over all transactions are zero. `published_fee`
/// replaces the base fee under `HIDE_BASE_FEE`; if it is `None`, the base fee is then `null`.
pub fn block(
    viewer: &Viewer<'_>,
    transactions: BlockTransactions,
    published_fee: Option<U256>,
    answer: Sealed<RawJson>,
) -> Disclosed {
    malformed_as(Disclosed::NULL, || {
        let raw = answer.open();
        let text = Scan::whole(raw.text().ok_or(Malformed)?)?;
        if text == "null" {
            return Ok(Disclosed::NULL);
        }
        let block = Object::read(&mut Scan::new(text), &BLOCK)?;
        let mut list = String::from("[");
        each_visible(viewer, block.get("transactions")?, |transaction| {
            if list.len() > 1 {
                list.push(',');
            }
            match transactions {
                BlockTransactions::Hashes => list.push_str(transaction.hash_text()?),
                BlockTransactions::Full => transaction.write(viewer, &mut list)?,
            }
            Ok(())
        })?;
        list.push(']');
        let fee = published_fee.map(local::quantity);
        let fee = fee.as_ref().map_or("null", Disclosed::as_str);
        let mut out = String::with_capacity(list.len().saturating_add(2048));
        let render = |name| match name {
            "transactions" => Some(list.as_str()),
            "logsBloom" => Some(ZERO_BLOOM),
            "gasUsed" | "blobGasUsed" | "excessBlobGas" | "size" => Some("\"0x0\""),
            "withdrawals" | "uncles" => Some("[]"),
            "transactionsRoot" | "receiptsRoot" | "stateRoot" | "withdrawalsRoot" | "requestsHash" => {
                viewer.policy_settings().hide_block_roots.then_some(ZERO_WORD)
            }
            "baseFeePerGas" => viewer.policy_settings().hide_base_fee.then_some(fee),
            _ => None,
        };
        // The start of each member, and whether the header has it.
        let mut members: Vec<(usize, bool)> = Vec::with_capacity(BLOCK.len());
        block.write_with(&mut out, |name, out| {
            // The name is written already, in quotes and with a colon.
            members.push((
                out.len().saturating_sub(name.len().saturating_add(3)),
                is_in_header(name),
            ));
            render(name).inspect(|text| out.push_str(text)).is_some()
        });
        // A comma or the closing brace follows each member.
        let ends = members.iter().skip(1).map(|(start, _)| *start).chain([out.len()]);
        let header = members.iter().zip(ends).filter(|((_, is_in_header), _)| *is_in_header);
        let header = header.map(|((start, _), end)| *start..end.saturating_sub(1)).collect();
        Ok(Disclosed::text(out).with_parts(Parts::Header(header)))
    })
}

/// Whether the header of a block, as `newHeads` shows it, has this member of the block.
fn is_in_header(name: &str) -> bool {
    !matches!(
        name,
        "transactions" | "uncles" | "withdrawals" | "size" | "totalDifficulty"
    )
}

/// The result of `eth_getBlockTransactionCountBy…`, from a block with full transactions: the number of those that the
/// viewer sees. `null` for a block that does not exist.
pub fn block_transaction_count(viewer: &Viewer<'_>, answer: Sealed<RawJson>) -> Disclosed {
    malformed_as(Disclosed::ZERO, || {
        let raw = answer.open();
        let text = Scan::whole(raw.text().ok_or(Malformed)?)?;
        if text == "null" {
            return Ok(Disclosed::NULL);
        }
        let block = Object::read(&mut Scan::new(text), &BLOCK)?;
        let mut count = U256::ZERO;
        each_visible(viewer, block.get("transactions")?, |_| {
            count = count.saturating_add(U256::ONE);
            Ok(())
        })?;
        Ok(local::quantity(count))
    })
}

/// Calls `each` for every transaction of a block that the viewer sees.
fn each_visible<'a>(
    viewer: &Viewer<'_>,
    transactions: &'a str,
    mut each: impl FnMut(&Transaction<'a>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    Scan::new(transactions).list(|scan| {
        let transaction = Transaction::read(scan)?;
        match transaction.access(viewer)? {
            TransactionAccess::None => Ok(()),
            TransactionAccess::OrgAdmin
            | TransactionAccess::Granted
            | TransactionAccess::Shared
            | TransactionAccess::Participant => each(&transaction),
        }
    })
}

/// Calls `each` with the row of every transaction of the block with this hash.
pub(super) fn each_row(text: &str, hash: B256, mut each: impl FnMut(TransactionRow)) -> Result<(), Malformed> {
    const MEMBERS: [Field; 2] = [Field("hash", Shape::Fixed(32)), Field("transactions", Shape::Unchecked)];
    let block = Object::read(&mut Scan::new(Scan::whole(text)?), &MEMBERS)?;
    if block.word("hash")? != hash {
        return Err(Malformed);
    }
    Scan::new(block.get("transactions")?).list(|scan| {
        let transaction = Transaction::read(scan)?;
        if transaction.block_hash()? != hash {
            return Err(Malformed);
        }
        each(transaction.row()?);
        Ok(())
    })
}

//! Blocks (spec/30 sections 5.1, 5.2, 8; decision 43, K9, HD11).

use super::{
    local, malformed_as,
    receipt::ZERO_BLOOM,
    scan::{Malformed, Scan},
    shape::{Field, Object, Shape, ZERO_WORD},
    transaction::Transaction,
};
use crate::{
    sealed::{Disclosed, RawJson, Sealed},
    visibility::{Admission, Viewer},
};
use alloy_primitives::U256;

/// HD11: what of a block may leave.
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

/// What a block answer shows of its transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockTransactions {
    /// Their hashes.
    Hashes,
    /// Whole objects.
    Full,
}

/// `eth_getBlockBy…`. The node must have been asked for full transactions, whatever the caller asked for.
///
/// Transactions the viewer is not admitted to are gone; what sums up all transactions is zero. `published_fee`
/// replaces the base fee under `HIDE_BASE_FEE`; without one the header is served without a base fee then.
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
        admitted(viewer, block.get("transactions")?, |transaction| {
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
        let fee = published_fee.map(local::figure);
        let fee = fee.as_ref().map_or("null", Disclosed::as_str);
        let mut out = String::with_capacity(list.len().saturating_add(2048));
        block.write(&mut out, |name| match name {
            "transactions" => Some(&list),
            "logsBloom" => Some(ZERO_BLOOM),
            "gasUsed" | "blobGasUsed" | "excessBlobGas" | "size" => Some("\"0x0\""),
            "withdrawals" | "uncles" => Some("[]"),
            "transactionsRoot" | "receiptsRoot" | "stateRoot" | "withdrawalsRoot" | "requestsHash" => {
                viewer.knobs().hide_block_roots.then_some(ZERO_WORD)
            }
            "baseFeePerGas" => viewer.knobs().hide_base_fee.then_some(fee),
            _ => None,
        });
        Ok(Disclosed::text(out))
    })
}

/// `eth_getBlockTransactionCountBy…`, from a block with full transactions: how many are admitted. `null` for a block
/// that does not exist.
pub fn block_transaction_count(viewer: &Viewer<'_>, answer: Sealed<RawJson>) -> Disclosed {
    malformed_as(Disclosed::ZERO, || {
        let raw = answer.open();
        let text = Scan::whole(raw.text().ok_or(Malformed)?)?;
        if text == "null" {
            return Ok(Disclosed::NULL);
        }
        let block = Object::read(&mut Scan::new(text), &BLOCK)?;
        let mut count = U256::ZERO;
        admitted(viewer, block.get("transactions")?, |_| {
            count = count.saturating_add(U256::ONE);
            Ok(())
        })?;
        Ok(local::figure(count))
    })
}

/// Calls `each` for the transactions of a block this viewer is admitted to.
fn admitted<'a>(
    viewer: &Viewer<'_>,
    transactions: &'a str,
    mut each: impl FnMut(&Transaction<'a>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    Scan::new(transactions).list(|scan| {
        let transaction = Transaction::read(scan)?;
        match transaction.admission(viewer)? {
            Admission::None => Ok(()),
            Admission::OrgAdmin | Admission::Shared | Admission::Participant => each(&transaction),
        }
    })
}

/// Reads the parties of every transaction of a block, or of one transaction.
pub(super) fn parties(text: &str, mut each: impl FnMut(super::Parties)) -> Result<(), Malformed> {
    const TRANSACTIONS: [Field; 1] = [Field("transactions", Shape::Unchecked)];
    let text = Scan::whole(text)?;
    match Object::read(&mut Scan::new(text), &TRANSACTIONS)?.find("transactions") {
        Some(list) => Scan::new(list).list(|scan| {
            each(Transaction::read(scan)?.parties()?);
            Ok(())
        }),
        None => {
            each(Transaction::read(&mut Scan::new(text))?.parties()?);
            Ok(())
        }
    }
}

//! Receipts (spec/30 sections 5.1, 5.2, 8).

use super::{
    Parties,
    log::LogReader,
    malformed_as,
    scan::{Malformed, Scan},
    shape::{Field, Object, Shape},
    transaction::NOBODY,
};
use crate::{
    knobs::AdminTx,
    sealed::{Disclosed, RawJson, Sealed},
    visibility::{Admission, Viewer},
};

/// 256 zero bytes.
pub(super) const ZERO_BLOOM: &str = concat!(
    "\"0x",
    "00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
    "00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
    "00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
    "00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
    "\""
);

/// HD11: what of a receipt may leave. Not `blockTimestamp`, which is no member of receipts: the one node that adds it
/// writes a JSON number there, and clients read quantities.
const RECEIPT: [Field; 16] = [
    Field("blockHash", Shape::Fixed(32)),
    Field("blockNumber", Shape::Quantity),
    Field("contractAddress", Shape::Fixed(20)),
    Field("cumulativeGasUsed", Shape::Quantity),
    Field("effectiveGasPrice", Shape::Quantity),
    Field("from", Shape::Fixed(20)),
    Field("gasUsed", Shape::Quantity),
    Field("blobGasUsed", Shape::Quantity),
    Field("blobGasPrice", Shape::Quantity),
    Field("logs", Shape::Unchecked),
    Field("logsBloom", Shape::Unchecked),
    Field("status", Shape::Quantity),
    Field("to", Shape::Fixed(20)),
    Field("transactionHash", Shape::Fixed(32)),
    Field("transactionIndex", Shape::Quantity),
    Field("type", Shape::Quantity),
];

/// `eth_getTransactionReceipt`: the receipt with its logs filtered, or `null`. Somebody who is not admitted but sees
/// at least one of its logs gets it too, unless it is a deployment's.
pub fn receipt(viewer: &Viewer<'_>, answer: Sealed<RawJson>) -> Disclosed {
    malformed_as(Disclosed::NULL, || {
        let raw = answer.open();
        let text = Scan::whole(raw.text().ok_or(Malformed)?)?;
        if text == "null" {
            return Ok(Disclosed::NULL);
        }
        let mut reader = LogReader::new(viewer);
        let mut out = String::with_capacity(text.len());
        let receipt = Receipt::read(&mut Scan::new(text))?;
        let shown = receipt.write(&mut reader, Entitlement::AdmissionOrLog, &mut out)?;
        Ok(if shown { Disclosed::text(out) } else { Disclosed::NULL })
    })
}

/// `eth_getBlockReceipts`: the receipts of admitted transactions, each as [`receipt`] shows it.
pub fn block_receipts(viewer: &Viewer<'_>, answer: Sealed<RawJson>) -> Disclosed {
    malformed_as(Disclosed::EMPTY_LIST, || {
        let raw = answer.open();
        let text = Scan::whole(raw.text().ok_or(Malformed)?)?;
        if text == "null" {
            return Ok(Disclosed::NULL);
        }
        let mut reader = LogReader::new(viewer);
        let mut out = String::from("[");
        Scan::new(text).list(|scan| {
            let before = out.len();
            if before > 1 {
                out.push(',');
            }
            let receipt = Receipt::read(scan)?;
            if !receipt.write(&mut reader, Entitlement::Admission, &mut out)? {
                out.truncate(before);
            }
            Ok(())
        })?;
        out.push(']');
        Ok(Disclosed::text(out))
    })
}

/// What earns a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entitlement {
    Admission,
    AdmissionOrLog,
}

struct Receipt<'a>(Object<'a, 'static, { RECEIPT.len() }>);

impl<'a> Receipt<'a> {
    fn read(scan: &mut Scan<'a>) -> Result<Self, Malformed> {
        Object::read(scan, &RECEIPT).map(Self)
    }

    /// Appends the receipt and says whether there was anything to show; if not, `out` ends as it began or holds a
    /// part to be cut off by the caller.
    fn write(
        &self,
        reader: &mut LogReader<'_, '_>,
        entitlement: Entitlement,
        out: &mut String,
    ) -> Result<bool, Malformed> {
        let viewer = reader.viewer();
        let parties = Parties {
            tx_hash: self.0.word("transactionHash")?,
            from: self.0.address("from")?,
            to: self.0.optional_address("to")?,
        };
        let admission = parties.admission(viewer);
        let by_log = entitlement == Entitlement::AdmissionOrLog && parties.to.is_some() && !viewer.is_own_only();
        if admission == Admission::None && !by_log {
            return Ok(false);
        }
        let (logs, count) = reader.logs_of(&parties, self.0.get("logs")?)?;
        let masks = match admission {
            Admission::Participant | Admission::Shared => false,
            Admission::OrgAdmin => viewer.knobs().admin_tx == AdminTx::Masked,
            Admission::None if count == 0 => return Ok(false),
            Admission::None => true,
        };
        let shows_from = !masks || viewer.sees(parties.from);
        let shows_to = !masks || parties.to.is_none_or(|to| viewer.sees(to));
        let gas_used = self.0.get("gasUsed")?;
        self.0.write(out, |name| match name {
            "from" => (!shows_from).then_some(NOBODY),
            "to" => (!shows_to).then_some(NOBODY),
            // Only a deployment has one, and its receipt is for its sender and those it was shared with.
            "contractAddress" => masks.then_some("null"),
            // The sum counts the gas of earlier, hidden transactions (section 8).
            "cumulativeGasUsed" => Some(gas_used),
            "logsBloom" => Some(ZERO_BLOOM),
            "logs" => Some(&logs),
            _ => None,
        });
        Ok(true)
    }
}

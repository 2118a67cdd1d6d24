//! Receipts (spec/30 sections 5.1, 5.2, 8).

use super::{
    Parties, in_place,
    log::LogReader,
    malformed_as,
    scan::{Malformed, Scan},
    shape::{self, Field, Object, Shape},
    transaction::{NOBODY, is_of_fixed_price},
};
use crate::{
    sealed::{Disclosed, RawJson, Sealed},
    visibility::{Admission, Person, Viewer},
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
        let shows = receipt.write(&mut reader, Entitlement::AdmissionOrLog, &mut out)?;
        Ok(if shows { Disclosed::text(out) } else { Disclosed::NULL })
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

    /// Appends the receipt and says whether there was anything to show; if not, `out` ends as it began.
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
            moment: shape::moment(self.0.find("blockNumber"))?,
        };
        let by_log = entitlement == Entitlement::AdmissionOrLog && parties.to.is_some() && !viewer.is_own_only();
        if parties.admission_of(viewer.person()) == Admission::None && !by_log {
            return Ok(false);
        }
        let shown = reader.logs_of(&parties, self.0.get("logs")?)?;
        let entitled = |person: &Person<'_>, any| parties.admission_of(person) != Admission::None || (by_log && any);
        let to_operator = viewer
            .operator()
            .is_none_or(|operator| entitled(operator, shown.any_beside));
        if !(entitled(viewer.person(), shown.any_to_person) && to_operator) {
            return Ok(false);
        }
        let in_place = in_place(viewer, &parties);
        let logs = shown.text;
        let gas_used = self.0.get("gasUsed")?;
        let hides_fee = viewer.knobs().hide_base_fee;
        let hides_price = hides_fee && !self.0.find("type").is_some_and(is_of_fixed_price);
        self.0.write(out, |name| match name {
            "from" => in_place(|open| open.from, NOBODY),
            "to" => in_place(|open| open.to, NOBODY),
            // Only a deployment has one, and its receipt is for its sender and those it was shared with.
            "contractAddress" => in_place(|open| open.rest, "null"),
            // The sum counts the gas of earlier, hidden transactions (section 8).
            "cumulativeGasUsed" => Some(gas_used),
            "effectiveGasPrice" => hides_price.then_some("\"0x0\""),
            "blobGasPrice" => hides_fee.then_some("\"0x1\""),
            "logsBloom" => Some(ZERO_BLOOM),
            "logs" => Some(&logs),
            _ => None,
        });
        Ok(true)
    }
}

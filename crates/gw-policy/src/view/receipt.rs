//! Views of receipts (spec/30 sections 5.1, 5.2, 8).

use super::{
    log::receipt_logs,
    malformed_as,
    scan::{Malformed, Scan},
    shape::{self, Field, Object, Shape},
    transaction::{NOBODY, gas_pricing},
};
use crate::{
    sealed::{Disclosed, RawJson, Sealed},
    visibility::{LogViewer, SeesAnyLog, TransactionAccess, TransactionRow, Viewer},
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

/// HD11: the members of a receipt that may be disclosed. `blockTimestamp` is not among them: it is no standard member
/// of receipts, and the one node that adds it writes a JSON number, where clients expect a quantity.
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

/// The result of `eth_getTransactionReceipt`: the receipt with filtered logs, or `null`. A viewer who does not see the
/// transaction but at least one of its logs gets the receipt too, unless the transaction is a deployment.
pub fn receipt(viewer: &Viewer<'_>, answer: Sealed<RawJson>) -> Disclosed {
    malformed_as(Disclosed::NULL, || {
        let raw = answer.open();
        let text = Scan::whole(raw.text().ok_or(Malformed)?)?;
        if text == "null" {
            return Ok(Disclosed::NULL);
        }
        let mut log_viewer = LogViewer::new(viewer);
        let mut out = String::with_capacity(text.len());
        let receipt = Receipt::read(&mut Scan::new(text))?;
        let shows = receipt.write(&mut log_viewer, Entitlement::AccessOrLog, &mut out)?;
        Ok(if shows { Disclosed::text(out) } else { Disclosed::NULL })
    })
}

/// The result of `eth_getBlockReceipts`: the receipts of transactions that the viewer sees, each as [`receipt`] shows
/// it.
pub fn block_receipts(viewer: &Viewer<'_>, answer: Sealed<RawJson>) -> Disclosed {
    malformed_as(Disclosed::EMPTY_LIST, || {
        let raw = answer.open();
        let text = Scan::whole(raw.text().ok_or(Malformed)?)?;
        if text == "null" {
            return Ok(Disclosed::NULL);
        }
        let mut log_viewer = LogViewer::new(viewer);
        let mut out = String::from("[");
        Scan::new(text).list(|scan| {
            let previous_len = out.len();
            if previous_len > 1 {
                out.push(',');
            }
            let receipt = Receipt::read(scan)?;
            if !receipt.write(&mut log_viewer, Entitlement::Access, &mut out)? {
                out.truncate(previous_len);
            }
            Ok(())
        })?;
        out.push(']');
        Ok(Disclosed::text(out))
    })
}

/// What makes a receipt visible to a viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entitlement {
    /// Access to the transaction.
    Access,
    /// Access to the transaction, or a visible log of it.
    AccessOrLog,
}

struct Receipt<'a>(Object<'a, 'static, { RECEIPT.len() }>);

impl<'a> Receipt<'a> {
    fn read(scan: &mut Scan<'a>) -> Result<Self, Malformed> {
        Object::read(scan, &RECEIPT).map(Self)
    }

    /// Appends the receipt if the viewer may see it. Returns whether it did; if not, `out` is unchanged.
    fn write(
        &self,
        log_viewer: &mut LogViewer<'_, '_>,
        entitlement: Entitlement,
        out: &mut String,
    ) -> Result<bool, Malformed> {
        let viewer = log_viewer.viewer();
        let row = TransactionRow {
            hash: self.0.word("transactionHash")?,
            from: self.0.address("from")?,
            to: self.0.optional_address("to")?,
            moment: shape::moment(self.0.find("blockNumber"))?,
            time: None,
        };
        let shown = viewer.transaction(&row);
        let log_suffices = entitlement == Entitlement::AccessOrLog && viewer.log_reveals_receipt(&row);
        if shown.access == TransactionAccess::None && !log_suffices {
            return Ok(false);
        }
        let (logs, sees_any) = receipt_logs(log_viewer, &row, self.0.get("logs")?)?;
        if !viewer.shows_receipt(&row, if log_suffices { sees_any } else { SeesAnyLog::default() }) {
            return Ok(false);
        }
        let gas_used = self.0.get("gasUsed")?;
        let shows_price = viewer.shows_gas_price(gas_pricing(self.0.find("type")));
        self.0.write(out, |name| match name {
            "from" => (!shown.from).then_some(NOBODY),
            "to" => (!shown.to).then_some(NOBODY),
            // Only a deployment has a contract address; its sender and the recipients of a share see it.
            "contractAddress" => (!shown.details).then_some("null"),
            // The cumulative gas would include that of earlier, hidden transactions (section 8).
            "cumulativeGasUsed" => Some(gas_used),
            "effectiveGasPrice" => (!shows_price).then_some("\"0x0\""),
            "blobGasPrice" => (!viewer.shows_blob_price()).then_some("\"0x1\""),
            "logsBloom" => Some(ZERO_BLOOM),
            "logs" => Some(&logs),
            _ => None,
        });
        Ok(true)
    }
}

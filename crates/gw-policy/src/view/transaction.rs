//! One transaction (spec/30 sections 5.1, 5.2; K7).

use super::{
    in_place, malformed_as,
    scan::{Malformed, Scan},
    shape::{self, Field, Object, Shape},
};
use crate::{
    sealed::{Disclosed, RawJson, Sealed},
    visibility::{Admission, Viewer},
};

/// The zero address where a hidden one stood: clients require an address there (section 5.2).
pub(super) const NOBODY: &str = "\"0x0000000000000000000000000000000000000000\"";

/// HD11: what of a transaction may leave. In the order of geth's own object.
pub(super) const TRANSACTION: [Field; 24] = [
    Field("blockHash", Shape::Fixed(32)),
    Field("blockNumber", Shape::Quantity),
    Field("blockTimestamp", Shape::Quantity),
    Field("from", Shape::Fixed(20)),
    Field("gas", Shape::Quantity),
    Field("gasPrice", Shape::Quantity),
    Field("maxFeePerGas", Shape::Quantity),
    Field("maxPriorityFeePerGas", Shape::Quantity),
    Field("maxFeePerBlobGas", Shape::Quantity),
    Field("hash", Shape::Fixed(32)),
    Field("input", Shape::Bytes),
    Field("nonce", Shape::Quantity),
    Field("to", Shape::Fixed(20)),
    Field("transactionIndex", Shape::Quantity),
    Field("value", Shape::Quantity),
    Field("type", Shape::Quantity),
    Field("accessList", Shape::AccessList),
    Field("chainId", Shape::Quantity),
    Field("blobVersionedHashes", Shape::Words),
    Field("authorizationList", Shape::Authorizations),
    Field("v", Shape::Quantity),
    Field("r", Shape::Quantity),
    Field("s", Shape::Quantity),
    Field("yParity", Shape::Quantity),
];

/// `eth_getTransactionBy…`: the object, masked for administrators (K7), or `null`.
pub fn transaction(viewer: &Viewer<'_>, answer: Sealed<RawJson>) -> Disclosed {
    malformed_as(Disclosed::NULL, || {
        let raw = answer.open();
        let text = Scan::whole(raw.text().ok_or(Malformed)?)?;
        if text == "null" {
            return Ok(Disclosed::NULL);
        }
        let transaction = Transaction::read(&mut Scan::new(text))?;
        let parties = transaction.parties()?;
        Ok(match parties.admission(viewer) {
            Admission::None => Disclosed::NULL,
            Admission::OrgAdmin | Admission::Shared | Admission::Participant => {
                let mut out = String::with_capacity(text.len());
                transaction.write(viewer, &mut out)?;
                Disclosed::text(out)
            }
        })
    })
}

/// Whether a transaction of this type pays the price it names, whatever the base fee is.
pub(super) fn is_of_fixed_price(kind: &str) -> bool {
    matches!(kind, "\"0x0\"" | "\"0x1\"")
}

/// A transaction object, inside a block or alone.
#[derive(Debug)]
pub(super) struct Transaction<'a>(Object<'a, 'static, { TRANSACTION.len() }>);

impl<'a> Transaction<'a> {
    pub(super) fn read(scan: &mut Scan<'a>) -> Result<Self, Malformed> {
        Object::read(scan, &TRANSACTION).map(Self)
    }

    /// Its hash, as the node wrote it.
    pub(super) fn hash_text(&self) -> Result<&'a str, Malformed> {
        self.0.word("hash")?;
        self.0.get("hash")
    }

    /// The block that holds it; none while it is pending.
    pub(super) fn block_number(&self) -> Result<Option<u64>, Malformed> {
        match self.0.get("blockNumber")? {
            "null" => Ok(None),
            number => shape::number(number).map(Some),
        }
    }

    pub(super) fn parties(&self) -> Result<super::Parties, Malformed> {
        Ok(super::Parties {
            tx_hash: self.0.word("hash")?,
            from: self.0.address("from")?,
            to: self.0.optional_address("to")?,
            moment: shape::moment(self.0.find("blockNumber"))?,
        })
    }

    pub(super) fn admission(&self, viewer: &Viewer<'_>) -> Result<Admission, Malformed> {
        self.parties().map(|parties| parties.admission(viewer))
    }

    /// Writes it for somebody admitted.
    pub(super) fn write(&self, viewer: &Viewer<'_>, out: &mut String) -> Result<(), Malformed> {
        let parties = self.parties()?;
        let in_place = in_place(viewer, &parties);
        // Of a mined transaction that names a limit it is what was paid: base fee and tip. Its limit is what it reads
        // while it is pending.
        let limit = self.0.find("maxFeePerGas").unwrap_or("\"0x0\"");
        let hides_price = viewer.knobs().hide_base_fee && !self.0.find("type").is_some_and(is_of_fixed_price);
        self.0.write(out, |name| match name {
            "from" => in_place(|open| open.from, NOBODY),
            "to" => in_place(|open| open.to, NOBODY),
            "value" | "nonce" | "v" | "r" | "s" | "yParity" => in_place(|open| open.rest, "\"0x0\""),
            "gasPrice" => hides_price.then_some(limit),
            "input" => in_place(|open| open.rest, "\"0x\""),
            "accessList" | "authorizationList" => in_place(|open| open.rest, "[]"),
            _ => None,
        });
        Ok(())
    }
}

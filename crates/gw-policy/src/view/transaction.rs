//! One transaction (spec/30 sections 5.1, 5.2; K7).

use super::{
    malformed_as,
    scan::{Malformed, Scan},
    shape::{self, Field, Object, Shape},
};
use crate::{
    knobs::AdminTx,
    sealed::{Disclosed, RawJson, Sealed},
    visibility::{Admission, Viewer},
};
use alloy_primitives::U256;

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
        Ok(match transaction.admission(viewer)? {
            Admission::None => Disclosed::NULL,
            admission @ (Admission::OrgAdmin | Admission::Shared | Admission::Participant) => {
                let mut out = String::with_capacity(text.len());
                transaction.write(viewer, admission, &mut out)?;
                Disclosed::text(out)
            }
        })
    })
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
            number => U256::from_str_radix(shape::byte_digits(number)?, 16)
                .ok()
                .and_then(|number| number.try_into().ok())
                .map(Some)
                .ok_or(Malformed),
        }
    }

    pub(super) fn parties(&self) -> Result<super::Parties, Malformed> {
        Ok(super::Parties {
            tx_hash: self.0.word("hash")?,
            from: self.0.address("from")?,
            to: self.0.optional_address("to")?,
        })
    }

    pub(super) fn admission(&self, viewer: &Viewer<'_>) -> Result<Admission, Malformed> {
        self.parties().map(|parties| parties.admission(viewer))
    }

    /// Writes it for somebody admitted. Participants and those it was shared with see both sides (section 2.4);
    /// for an administrator everything is masked that names or gives back the sender (K7, section 5.2).
    pub(super) fn write(&self, viewer: &Viewer<'_>, admission: Admission, out: &mut String) -> Result<(), Malformed> {
        let masks = match admission {
            Admission::Participant | Admission::Shared => false,
            Admission::OrgAdmin => viewer.knobs().admin_tx == AdminTx::Masked,
            Admission::None => return Err(Malformed),
        };
        let shows_from = !masks || viewer.sees(self.0.address("from")?);
        let shows_to = !masks || self.0.optional_address("to")?.is_none_or(|to| viewer.sees(to));
        self.0.write(out, |name| match name {
            "from" => (!shows_from).then_some(NOBODY),
            "to" => (!shows_to).then_some(NOBODY),
            "value" | "nonce" | "v" | "r" | "s" | "yParity" => masks.then_some("\"0x0\""),
            "input" => masks.then_some("\"0x\""),
            "accessList" | "authorizationList" => masks.then_some("[]"),
            _ => None,
        });
        Ok(())
    }
}

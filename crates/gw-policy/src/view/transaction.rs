//! The view of one transaction (spec/30 sections 5.1, 5.2; K7).

use super::{
    malformed_as,
    scan::{Malformed, Scan},
    shape::{self, Field, Object, Shape},
};
use crate::{
    sealed::{Disclosed, RawJson, Sealed},
    visibility::{GasPricing, TransactionAccess, TransactionRow, Viewer},
};
use alloy_primitives::B256;

/// The zero address as a placeholder for a hidden one, since clients require an address (section 5.2).
pub(super) const NOBODY: &str = "\"0x0000000000000000000000000000000000000000\"";

/// HD11: the members of a transaction that may be disclosed, in geth's order.
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

/// The result of `eth_getTransactionBy…`: the object, masked for administrators (K7), or `null`.
pub fn transaction(viewer: &Viewer<'_>, answer: Sealed<RawJson>) -> Disclosed {
    malformed_as(Disclosed::NULL, || {
        let raw = answer.open();
        let text = Scan::whole(raw.text().ok_or(Malformed)?)?;
        if text == "null" {
            return Ok(Disclosed::NULL);
        }
        let transaction = Transaction::read(&mut Scan::new(text))?;
        Ok(match transaction.access(viewer)? {
            TransactionAccess::None => Disclosed::NULL,
            TransactionAccess::OrgAdmin
            | TransactionAccess::Granted
            | TransactionAccess::Shared
            | TransactionAccess::Participant => {
                let mut out = String::with_capacity(text.len());
                transaction.write(viewer, &mut out)?;
                Disclosed::text(out)
            }
        })
    })
}

/// The row of a single transaction.
pub(super) fn row(text: &str) -> Result<TransactionRow, Malformed> {
    Transaction::read(&mut Scan::new(Scan::whole(text)?))?.row()
}

/// The pricing of a transaction with this `type` member.
pub(super) fn gas_pricing(kind: Option<&str>) -> GasPricing {
    match kind {
        Some("\"0x0\"" | "\"0x1\"") => GasPricing::Fixed,
        Some(_) | None => GasPricing::BaseFee,
    }
}

/// A transaction object, inside a block or alone.
#[derive(Debug)]
pub(super) struct Transaction<'a>(Object<'a, 'static, { TRANSACTION.len() }>);

impl<'a> Transaction<'a> {
    pub(super) fn read(scan: &mut Scan<'a>) -> Result<Self, Malformed> {
        Object::read(scan, &TRANSACTION).map(Self)
    }

    /// The hash, as the node wrote it.
    pub(super) fn hash_text(&self) -> Result<&'a str, Malformed> {
        self.0.word("hash")?;
        self.0.get("hash")
    }

    /// Hash of its block.
    pub(super) fn block_hash(&self) -> Result<B256, Malformed> {
        self.0.word("blockHash")
    }

    /// Number of its block; `None` while it is pending.
    pub(super) fn block_number(&self) -> Result<Option<u64>, Malformed> {
        match self.0.get("blockNumber")? {
            "null" => Ok(None),
            number => shape::number(number).map(Some),
        }
    }

    /// The row of the transaction.
    pub(super) fn row(&self) -> Result<TransactionRow, Malformed> {
        Ok(TransactionRow {
            hash: self.0.word("hash")?,
            from: self.0.address("from")?,
            to: self.0.optional_address("to")?,
            moment: shape::moment(self.0.find("blockNumber"))?,
            time: None,
        })
    }

    /// The right by which the viewer sees it.
    pub(super) fn access(&self, viewer: &Viewer<'_>) -> Result<TransactionAccess, Malformed> {
        self.row().map(|row| viewer.transaction_access(&row))
    }

    /// Writes the object for a viewer who sees the transaction.
    pub(super) fn write(&self, viewer: &Viewer<'_>, out: &mut String) -> Result<(), Malformed> {
        let shown = viewer.transaction(&self.row()?);
        let unless = |is_shown: bool, placeholder| (!is_shown).then_some(placeholder);
        // The `gasPrice` of a mined EIP-1559 transaction is the price paid: base fee and tip. While it is pending,
        // `gasPrice` is its `maxFeePerGas`, which replaces the price paid if the base fee is hidden.
        let limit = self.0.find("maxFeePerGas").unwrap_or("\"0x0\"");
        let shows_price = viewer.shows_gas_price(gas_pricing(self.0.find("type")));
        self.0.write(out, |name| match name {
            "from" => unless(shown.from, NOBODY),
            "to" => unless(shown.to, NOBODY),
            "value" | "nonce" | "v" | "r" | "s" | "yParity" => unless(shown.details, "\"0x0\""),
            "gasPrice" => unless(shows_price, limit),
            "input" => unless(shown.details, "\"0x\""),
            "accessList" | "authorizationList" => unless(shown.details, "[]"),
            _ => None,
        });
        Ok(())
    }
}

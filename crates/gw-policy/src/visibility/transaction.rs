//! Visibility of one transaction or receipt, evaluated on a typed row (spec/30 §2.4, §5; K7). JSON results and lists
//! are both written from it, so that they cannot disagree.

use super::{RowContext, SingleViewer, Viewer};
use crate::{settings::AdminTx, snapshot::Moment};
use gw_types::{Address, B256, Level, Timestamp};
use std::sync::Arc;

/// The facts that the visibility of a transaction depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionRow {
    /// Hash of the transaction.
    pub hash: B256,
    /// Its sender.
    pub from: Address,
    /// Its receiver; `None` for a deployment.
    pub to: Option<Address>,
    /// When it was executed, by its block.
    pub moment: Moment,
    /// The time of its block; `None` if the node did not report it. Then no grant of disclosure with dates covers the
    /// transaction.
    pub time: Option<Timestamp>,
}

impl TransactionRow {
    /// The row as context of its sides.
    pub(crate) const fn context(&self) -> RowContext {
        RowContext {
            moment: self.moment,
            time: self.time,
            sides: Some((self.from, self.to)),
        }
    }
}

/// The right by which a viewer sees a transaction, from the weakest to the strongest. The strongest applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TransactionAccess {
    /// No right: the transaction does not exist for this viewer, but single logs of it may be visible.
    None,
    /// The viewer administers the contract that the transaction was sent to. The transaction is masked (K7).
    OrgAdmin,
    /// A grant of disclosure of level Full on a side covers the transaction (spec/30 section 5). Both sides are Full.
    Granted,
    /// The viewer is listed in `visibleTo`. Both sides are Full.
    Shared,
    /// The viewer owns the sender or receiver. Everything is visible.
    Participant,
}

/// Which members of a transaction or receipt are shown, besides those that every viewer with access sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionVisibility {
    /// The right by which the transaction is seen.
    pub access: TransactionAccess,
    /// Whether the sender is shown.
    pub from: bool,
    /// Whether the receiver is shown.
    pub to: bool,
    /// Whether all other members are shown that could identify the sender: payload, value, nonce, signature (K7).
    pub details: bool,
}

impl TransactionVisibility {
    /// The intersection of two visibilities: a member is shown only if both viewers may see it.
    fn intersect(self, other: Self) -> Self {
        Self {
            access: self.access.min(other.access),
            from: self.from && other.from,
            to: self.to && other.to,
            details: self.details && other.details,
        }
    }
}

/// How the price of a transaction's gas is determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GasPricing {
    /// By the transaction alone: types 0 and 1.
    Fixed,
    /// By the base fee of its block, too: all other types, and an unknown one.
    BaseFee,
}

impl GasPricing {
    /// The pricing of transactions of this type (EIP-2718).
    #[must_use]
    pub const fn from_type(transaction_type: u8) -> Self {
        match transaction_type {
            0 | 1 => Self::Fixed,
            _ => Self::BaseFee,
        }
    }
}

/// Which viewers see at least one log of a receipt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeesAnyLog {
    /// The user.
    pub user: bool,
    /// The impersonating administrator, if there is one.
    pub impersonator: bool,
}

impl Viewer<'_> {
    /// The visibility of the transaction for this viewer; under impersonation, the intersection of the user's and the
    /// administrator's (HD7).
    #[must_use]
    pub fn transaction(&self, row: &TransactionRow) -> TransactionVisibility {
        let own = self.user.transaction(row);
        self.impersonator()
            .map_or(own, |impersonator| own.intersect(impersonator.transaction(row)))
    }

    /// The right by which this viewer sees the transaction.
    #[must_use]
    pub fn transaction_access(&self, row: &TransactionRow) -> TransactionAccess {
        let own = self.user.transaction_access(row);
        self.impersonator()
            .map_or(own, |impersonator| impersonator.transaction_access(row).min(own))
    }

    /// Whether the price that a mined transaction pays for its gas is shown. `HIDE_BASE_FEE` hides a price that follows
    /// the base fee.
    #[must_use]
    pub fn shows_gas_price(&self, pricing: GasPricing) -> bool {
        match pricing {
            GasPricing::Fixed => true,
            GasPricing::BaseFee => !self.policy_settings().hide_base_fee,
        }
    }

    /// Whether the price that a mined transaction pays for its blobs is shown.
    #[must_use]
    pub fn shows_blob_price(&self) -> bool {
        !self.policy_settings().hide_base_fee
    }

    /// Whether a visible log of the transaction makes its receipt visible. It does not for a deployment, and not if
    /// only own transactions are shown (§5.1, HD17).
    #[must_use]
    pub fn log_reveals_receipt(&self, row: &TransactionRow) -> bool {
        row.to.is_some() && !self.is_own_transactions_only()
    }

    /// Whether the receipt is shown: to a viewer who sees the transaction, or one of its logs if
    /// [`Self::log_reveals_receipt`] is `true`.
    #[must_use]
    pub fn shows_receipt(&self, row: &TransactionRow, logs: SeesAnyLog) -> bool {
        let log_suffices = self.log_reveals_receipt(row);
        let shows = |viewer: &SingleViewer<'_>, any_log: bool| {
            viewer.transaction_access(row) != TransactionAccess::None || (log_suffices && any_log)
        };
        shows(&self.user, logs.user)
            && self
                .impersonator()
                .is_none_or(|impersonator| shows(impersonator, logs.impersonator))
    }
}

impl SingleViewer<'_> {
    /// Participants and recipients see both sides (§2.4). For an administrator everything is masked that names or could
    /// identify the sender (K7, §5.2), and also for a viewer who sees only a log of the transaction.
    fn transaction(&self, row: &TransactionRow) -> TransactionVisibility {
        let access = self.transaction_access(row);
        let masks = match access {
            TransactionAccess::Participant | TransactionAccess::Shared | TransactionAccess::Granted => false,
            TransactionAccess::OrgAdmin => self.policy_settings.admin_tx == AdminTx::Masked,
            TransactionAccess::None => true,
        };
        TransactionVisibility {
            access,
            from: !masks || self.sees(row.from),
            to: !masks || row.to.is_none_or(|to| self.sees(to) || self.sees_at(to, row.moment)),
            details: !masks,
        }
    }

    /// The right by which the transaction is seen.
    pub(crate) fn transaction_access(&self, row: &TransactionRow) -> TransactionAccess {
        if self.withholds(row.hash) {
            TransactionAccess::None
        } else if self.is_participant(row.from, row.to) {
            TransactionAccess::Participant
        } else if self.own_transactions_only {
            TransactionAccess::None
        } else if self.is_recipient(row.hash) {
            TransactionAccess::Shared
        } else if self.is_granted(row) {
            TransactionAccess::Granted
        } else if row.to.is_some_and(|to| self.administers_contract(to, row.moment)) {
            TransactionAccess::OrgAdmin
        } else {
            TransactionAccess::None
        }
    }

    /// Whether a grant of disclosure of level Full on a side covers the transaction (spec/50 rules 23 to 28).
    fn is_granted(&self, row: &TransactionRow) -> bool {
        let is_full = |side| {
            let disclosure = self.disclosure_at(side, &row.context());
            let disclosure = disclosure.filter(|(level, _)| *level == Level::Full);
            if let Some((_, grant)) = disclosure {
                self.needs_grant(grant, side);
            }
            disclosure.is_some()
        };
        is_full(row.from) || row.to.is_some_and(is_full)
    }

    /// Whether the user owns the transaction's sender or receiver (HD10). A contract is not a wallet: an address that
    /// was linked before it was registered as a contract, or by its own code (ERC-1271), does not make its owner a
    /// receiver. Under impersonation the administrator must see the owned side (HD7).
    pub(crate) fn is_participant(&self, from: Address, to: Option<Address>) -> bool {
        self.owns_openly(from) || to.is_some_and(|to| self.receives_at(to))
    }

    /// Whether the user is a participant of transactions to this address (HD10).
    pub(super) fn receives_at(&self, to: Address) -> bool {
        let is_linked_by_code = |user| {
            self.snapshot
                .links_at(to)
                .iter()
                .any(|link| link.user == user && link.contract_wallet)
        };
        self.snapshot.owner(to).is_none()
            && self.owns_openly(to)
            && !self.user.is_some_and(|user| is_linked_by_code(user.id))
    }

    /// Whether the transaction was shared with the user and the node accepted it (R27, W5). Under impersonation it must
    /// be shared with the administrator, too (HD7).
    pub(crate) fn is_recipient(&self, tx_hash: B256) -> bool {
        let is_open = |impersonator: &Arc<Self>| impersonator.is_recipient(tx_hash);
        !self.withholds(tx_hash)
            && self.impersonator.as_ref().is_none_or(is_open)
            && self.user.is_some_and(|user| {
                let rows = self.snapshot.visibility(tx_hash);
                rows.iter()
                    .any(|row| row.active && row.recipients.contains(&user.external_id))
            })
    }

    /// HD41: whether the user administers the organization that owned the contract at this moment.
    pub(super) fn administers_contract(&self, address: Address, moment: Moment) -> bool {
        self.snapshot
            .contract_at(address, moment)
            .is_some_and(|contract| self.administers(contract.org))
    }
}

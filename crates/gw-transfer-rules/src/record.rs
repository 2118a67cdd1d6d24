//! Travel-rule records: their states, the choice of a record for a transfer, and the claim of one (spec/60 section 11).
//!
//! Times are arguments: a record that is past its end counts as expired, whether a sweeper has written so or not.

use crate::token::Token;
use alloy_primitives::map::HashMap;
use gw_types::{Address, B256, Seconds, Timestamp, U256, UserId};
use std::fmt;
use uuid::Uuid;

/// How long a claim lasts without an outcome.
pub const CLAIM_LEASE: Seconds = Seconds(600);

/// A travel-rule record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TravelRecordId(pub Uuid);

/// What names a transaction before the node has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TransactionKey {
    /// The hash of a signed transaction.
    Hash(B256),
    /// Sender and nonce of a transaction that the node signs: its hash is not known before.
    SenderNonce(Address, u64),
}

/// The stored state of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordState {
    /// No transaction has claimed it.
    Unused {
        /// When it expires.
        expires_at: Timestamp,
    },
    /// A transaction has claimed it, and its outcome is not known.
    Reserved {
        /// When it expires if the claim ends without a use.
        expires_at: Timestamp,
        /// The transaction.
        transaction: TransactionKey,
        /// When the claim may end, if the transaction can no longer be mined.
        lease_until: Timestamp,
    },
    /// A transaction has used it.
    Used {
        /// When the node accepted the transaction.
        used_at: Timestamp,
        /// The transaction.
        tx_hash: B256,
        /// What claimed the record.
        transaction: TransactionKey,
    },
    /// It expired without a use. The row is kept.
    Expired {
        /// When it expired.
        expires_at: Timestamp,
    },
}

/// The status in answers and filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RecordStatus {
    /// It can be claimed.
    Unused,
    /// It is claimed.
    Reserved,
    /// It is used.
    Used,
    /// It has expired.
    Expired,
}

/// What the node says about a claim without a known outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeReply {
    /// It knows the transaction.
    Known {
        /// The hash.
        tx_hash: B256,
    },
    /// It does not know the transaction, and the nonce is free: the transaction may still be mined.
    Unknown,
    /// Another transaction has used the nonce, so the transaction can no longer be mined.
    NonceUsed,
}

/// What happens to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordEvent {
    /// A transaction claims it.
    Claim {
        /// The transaction.
        transaction: TransactionKey,
    },
    /// The node accepted the transaction, or knew it already.
    Accepted {
        /// The transaction.
        transaction: TransactionKey,
        /// Its hash.
        tx_hash: B256,
    },
    /// The node definitely refused the transaction.
    Refused {
        /// The transaction.
        transaction: TransactionKey,
    },
    /// The outcome is unknown: a timeout or a crash.
    OutcomeUnknown {
        /// The transaction.
        transaction: TransactionKey,
    },
    /// The reconciler asked the node.
    Reconciled {
        /// The transaction.
        transaction: TransactionKey,
        /// The answer.
        reply: NodeReply,
    },
    /// The end of its life may have passed.
    Expire,
    /// An administrator deletes it.
    Delete,
}

/// A permitted change of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordChange {
    /// It gets this state.
    To(RecordState),
    /// Nothing changes, and that is no error.
    Keep,
    /// The row is removed.
    Remove,
}

/// Why a change is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum RecordError {
    /// Another transaction has claimed or used it.
    #[error("the record belongs to another transaction")]
    Taken,
    /// It has expired.
    #[error("the record has expired")]
    Expired,
    /// The transaction has not claimed it.
    #[error("the transaction has no claim on the record")]
    NotClaimed,
    /// 409: a claimed or used record stays.
    #[error("cannot delete used travel rule record")]
    DeleteUsed,
}

impl RecordStatus {
    /// Every status.
    pub const ALL: [Self; 4] = [Self::Unused, Self::Reserved, Self::Used, Self::Expired];

    /// The text in answers and filters.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unused => "unused",
            Self::Reserved => "reserved",
            Self::Used => "used",
            Self::Expired => "expired",
        }
    }

    /// The status with this text.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

impl RecordState {
    /// The state of a new record. `lifetime` is `TRAVEL_RECORD_EXPIRY`.
    pub const fn new(now: Timestamp, lifetime: Seconds) -> Self {
        Self::Unused {
            expires_at: now.plus(lifetime),
        }
    }

    /// The status at `now`.
    pub fn status_at(self, now: Timestamp) -> RecordStatus {
        match self {
            Self::Unused { expires_at } if expires_at <= now => RecordStatus::Expired,
            Self::Unused { .. } => RecordStatus::Unused,
            Self::Reserved { .. } => RecordStatus::Reserved,
            Self::Used { .. } => RecordStatus::Used,
            Self::Expired { .. } => RecordStatus::Expired,
        }
    }

    /// When it expires, or would expire if it were not used.
    pub const fn expires_at(self) -> Option<Timestamp> {
        match self {
            Self::Unused { expires_at } | Self::Reserved { expires_at, .. } | Self::Expired { expires_at } => {
                Some(expires_at)
            }
            Self::Used { .. } => None,
        }
    }

    /// The transaction that claimed or used it.
    pub const fn transaction(self) -> Option<TransactionKey> {
        match self {
            Self::Reserved { transaction, .. } | Self::Used { transaction, .. } => Some(transaction),
            Self::Unused { .. } | Self::Expired { .. } => None,
        }
    }

    /// What an event does to the record (the table of spec/60 section 11).
    ///
    /// A claim does not end with its lease alone: as long as the nonce is free, the transaction may be mined, and the
    /// record would be used twice. A claim that ends after the record's end leaves an expired record.
    ///
    /// [`RecordEvent::Refused`] must be certain. If the transaction was sent before with an unknown outcome, a node
    /// that refuses it for its nonce may have mined it: that is [`RecordEvent::OutcomeUnknown`].
    ///
    /// # Errors
    /// [`RecordError`] if the state does not allow the event.
    pub fn apply(self, event: RecordEvent, now: Timestamp) -> Result<RecordChange, RecordError> {
        match event {
            RecordEvent::Claim { transaction } => self.claim(transaction, now),
            RecordEvent::Accepted { transaction, tx_hash } => self.accept(transaction, tx_hash, now),
            RecordEvent::Refused { transaction } => self.release(transaction),
            RecordEvent::OutcomeUnknown { transaction } => self.require_claim(transaction).map(|()| RecordChange::Keep),
            RecordEvent::Reconciled { transaction, reply } => self.reconcile(transaction, reply, now),
            RecordEvent::Expire => Ok(self.expire(now)),
            RecordEvent::Delete => match self {
                Self::Unused { .. } | Self::Expired { .. } => Ok(RecordChange::Remove),
                Self::Reserved { .. } | Self::Used { .. } => Err(RecordError::DeleteUsed),
            },
        }
    }

    /// A transaction that is sent again keeps its claim (CO-41).
    fn claim(self, transaction: TransactionKey, now: Timestamp) -> Result<RecordChange, RecordError> {
        match self {
            Self::Unused { expires_at } if now < expires_at => Ok(RecordChange::To(Self::Reserved {
                expires_at,
                transaction,
                lease_until: now.plus(CLAIM_LEASE),
            })),
            Self::Unused { .. } | Self::Expired { .. } => Err(RecordError::Expired),
            Self::Reserved { .. } | Self::Used { .. } if self.transaction() == Some(transaction) => {
                Ok(RecordChange::Keep)
            }
            Self::Reserved { .. } | Self::Used { .. } => Err(RecordError::Taken),
        }
    }

    fn accept(self, transaction: TransactionKey, tx_hash: B256, now: Timestamp) -> Result<RecordChange, RecordError> {
        self.require_claim(transaction)?;
        match self {
            Self::Reserved { .. } => Ok(RecordChange::To(Self::Used {
                used_at: now,
                tx_hash,
                transaction,
            })),
            // The outcome was recorded before.
            Self::Used { .. } => Ok(RecordChange::Keep),
            Self::Unused { .. } | Self::Expired { .. } => Err(RecordError::NotClaimed),
        }
    }

    /// A used record stays used: the node knew the transaction once.
    fn release(self, transaction: TransactionKey) -> Result<RecordChange, RecordError> {
        self.require_claim(transaction)?;
        match self {
            Self::Reserved { expires_at, .. } => Ok(RecordChange::To(Self::Unused { expires_at })),
            Self::Used { .. } => Ok(RecordChange::Keep),
            Self::Unused { .. } | Self::Expired { .. } => Err(RecordError::NotClaimed),
        }
    }

    fn reconcile(
        self,
        transaction: TransactionKey,
        reply: NodeReply,
        now: Timestamp,
    ) -> Result<RecordChange, RecordError> {
        self.require_claim(transaction)?;
        match (self, reply) {
            (_, NodeReply::Known { tx_hash }) => self.accept(transaction, tx_hash, now),
            (Self::Reserved { lease_until, .. }, NodeReply::NonceUsed) if lease_until <= now => {
                self.release(transaction)
            }
            (_, NodeReply::NonceUsed | NodeReply::Unknown) => Ok(RecordChange::Keep),
        }
    }

    fn expire(self, now: Timestamp) -> RecordChange {
        match self {
            Self::Unused { expires_at } if expires_at <= now => RecordChange::To(Self::Expired { expires_at }),
            Self::Unused { .. } | Self::Reserved { .. } | Self::Used { .. } | Self::Expired { .. } => {
                RecordChange::Keep
            }
        }
    }

    fn require_claim(self, transaction: TransactionKey) -> Result<(), RecordError> {
        match self.transaction() {
            Some(claimed) if claimed == transaction => Ok(()),
            Some(_) => Err(RecordError::Taken),
            None => Err(RecordError::NotClaimed),
        }
    }
}

/// Whom and what a record covers (CO-39). All members must match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordKey {
    /// The member of the organization that sends.
    pub originator: UserId,
    /// The recipient.
    pub beneficiary: Address,
    /// The token.
    pub token: Token,
}

/// What a decision needs of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordSummary {
    /// The record.
    pub id: TravelRecordId,
    /// The amount in the token's smallest unit.
    pub amount: U256,
    /// Its state.
    pub state: RecordState,
}

/// The records of one organization that can cover a transfer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordIndex(HashMap<RecordKey, Records>);

/// The records of one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Records {
    /// In the order of choice.
    unused: Vec<RecordSummary>,
    /// Claimed and used records.
    claimed: Vec<RecordSummary>,
}

impl RecordIndex {
    /// An index. Expired and deleted records may be left out, and so may records whose transaction is mined.
    pub fn new(records: impl IntoIterator<Item = (RecordKey, RecordSummary)>) -> Self {
        let mut index: HashMap<RecordKey, Records> = HashMap::default();
        for (key, record) in records {
            index.entry(key).or_default().list(&record).push(record);
        }
        index
            .values_mut()
            .for_each(|records| records.unused.sort_by_key(RecordSummary::rank));
        Self(index)
    }

    /// Adds a record.
    pub fn insert(&mut self, key: RecordKey, record: RecordSummary) {
        let list = self.0.entry(key).or_default().list(&record);
        let position = list.partition_point(|other| other.rank() < record.rank());
        list.insert(position, record);
    }

    /// Removes a record, or its earlier state before it is added again.
    pub fn remove(&mut self, key: &RecordKey, id: TravelRecordId) {
        if let Some(records) = self.0.get_mut(key) {
            records.unused.retain(|record| record.id != id);
            records.claimed.retain(|record| record.id != id);
            if records.unused.is_empty() && records.claimed.is_empty() {
                self.0.remove(key);
            }
        }
    }

    /// The record that covers an amount: the one that `transaction` has claimed before, else the smallest, then the one
    /// that expires first (CO-40).
    pub fn choose(
        &self,
        key: &RecordKey,
        amount: U256,
        transaction: Option<TransactionKey>,
        now: Timestamp,
    ) -> Option<&RecordSummary> {
        let records = self.0.get(key)?;
        let is_claimed = |record: &&RecordSummary| {
            transaction.is_some() && record.state.transaction() == transaction && record.amount >= amount
        };
        let is_unused = |record: &&RecordSummary| record.state.status_at(now) == RecordStatus::Unused;
        let too_small = records.unused.partition_point(|record| record.amount < amount);
        let mut covering = records.unused.iter().skip(too_small);
        records
            .claimed
            .iter()
            .find(is_claimed)
            .or_else(|| covering.find(is_unused))
    }
}

impl Records {
    fn list(&mut self, record: &RecordSummary) -> &mut Vec<RecordSummary> {
        if record.state.transaction().is_some() {
            &mut self.claimed
        } else {
            &mut self.unused
        }
    }
}

impl RecordSummary {
    /// The order in which records are chosen.
    fn rank(&self) -> (U256, Option<Timestamp>, TravelRecordId) {
        (self.amount, self.state.expires_at(), self.id)
    }
}

impl fmt::Display for TravelRecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.as_hyphenated(), f)
    }
}

//! The records: one type per kind of record.
//!
//! A record describes an event. The time of the event and its position in a chain belong to the entry that holds the
//! record. Fields with personal values are optional even if callers always set them, because an entry that is read
//! after an erasure no longer has them.

mod access;
mod admin;
mod disclosure;
mod security;
mod send;

pub use access::{AccessRecord, AuthMethod, MatchedVia, TraceKind};
pub use admin::{Action, AdminEntry, OutboxFault, ResourceType, SUPER_ADMIN, SYSTEM_DISCLOSURE, SYSTEM_RETENTION};
pub use disclosure::{DisclosureAction, DisclosureData, DisclosureRead};
pub use security::{SecurityEvent, SecurityKind};
pub use send::{Outcome, SendIntent, SendOutcome};

use crate::code::codes;
use gw_types::OrgId;

codes! {
    /// The five streams of spec/70 section 1; each is its own chain.
    Stream {
        /// Mutations by administrators: one cluster-wide shard, fed from the policy store.
        Admin = "admin",
        /// RPC calls and data retrievals, including the intents and outcomes of sends.
        Access = "access",
        /// Compliance decisions.
        Compliance = "compliance",
        /// Reads and state transitions of disclosures.
        Disclosure = "disclosure",
        /// Logins, bans, address links and verification findings.
        Security = "security",
    }
}

codes! {
    /// The kind of record that an entry holds.
    Kind {
        /// The first entry of a chain.
        Genesis = "genesis",
        /// An [`AccessRecord`].
        Access = "access",
        /// An [`AdminEntry`].
        Admin = "admin",
        /// A [`SecurityEvent`].
        Security = "security",
        /// A [`DisclosureRead`].
        Disclosure = "disclosure",
        /// A [`SendIntent`].
        SendIntent = "send_intent",
        /// A [`SendOutcome`].
        SendOutcome = "send_outcome",
    }
}

/// One recorded event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// An RPC call or a data retrieval.
    Access(AccessRecord),
    /// A mutation by an administrator.
    Admin(AdminEntry),
    /// A security event.
    Security(SecurityEvent),
    /// A read under a grant of disclosure.
    Disclosure(DisclosureRead),
    /// A send about to be forwarded (HD22).
    SendIntent(SendIntent),
    /// The outcome of a send (HD22).
    SendOutcome(SendOutcome),
}

impl Record {
    /// The stream the record belongs to.
    pub const fn stream(&self) -> Stream {
        match self {
            Self::Access(_) | Self::SendIntent(_) | Self::SendOutcome(_) => Stream::Access,
            Self::Admin(_) => Stream::Admin,
            Self::Security(_) => Stream::Security,
            Self::Disclosure(_) => Stream::Disclosure,
        }
    }

    /// The record's kind.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Access(_) => Kind::Access,
            Self::Admin(_) => Kind::Admin,
            Self::Security(_) => Kind::Security,
            Self::Disclosure(_) => Kind::Disclosure,
            Self::SendIntent(_) => Kind::SendIntent,
            Self::SendOutcome(_) => Kind::SendOutcome,
        }
    }

    /// The organization that the record belongs to.
    pub const fn org_id(&self) -> Option<OrgId> {
        match self {
            Self::Access(record) => record.org_id,
            Self::Admin(entry) => entry.org_id,
            Self::Security(event) => event.org_id,
            Self::Disclosure(read) => read.org_id,
            Self::SendIntent(intent) => Some(intent.org_id),
            Self::SendOutcome(outcome) => Some(outcome.org_id),
        }
    }
}

macro_rules! from_records {
    ($($name:ident($type:ty)),* $(,)?) => {$(
        impl From<$type> for Record {
            fn from(record: $type) -> Self {
                Self::$name(record)
            }
        }
    )*};
}

from_records! {
    Access(AccessRecord),
    Admin(AdminEntry),
    Security(SecurityEvent),
    Disclosure(DisclosureRead),
    SendIntent(SendIntent),
    SendOutcome(SendOutcome),
}

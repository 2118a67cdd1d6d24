//! Configuration of a store, and the actor of a transaction.

use crate::{
    audit::{OutboxKey, OutboxMark},
    lock::DirectoryLock,
};
use gw_audit::StoreId;
use gw_types::{Clock, Entropy, ExternalId, Secret, UserId};
use std::{net::IpAddr, path::PathBuf, sync::Arc, time::Duration};

/// Location of a database. Only this module and `dialect` distinguish the engines.
#[derive(Clone, Debug)]
pub enum Location {
    /// A file in a directory that this process has locked (HD24).
    Sqlite {
        /// The locked directory.
        directory: Arc<DirectoryLock>,
        /// The file's name in it.
        file: String,
    },
    /// The file for a process that only reads: it needs no lock, and another process may hold the directory and write.
    SqliteReadOnly {
        /// The file; it must exist.
        file: PathBuf,
    },
    /// A PostgreSQL primary.
    Postgres {
        /// The URL for all queries; it may lead through a pooler.
        url: Secret,
        /// The URL for LISTEN, which bypasses the pooler (HD23 E-6); `None` if there is no pooler.
        direct: Option<Secret>,
        /// Maximum lifetime of a connection (`DB_CONN_MAX_LIFETIME`).
        lifetime: Duration,
        /// Whether the server may take seconds for each answer, until requests are served.
        is_patient: bool,
    },
}

impl Location {
    /// Creates the location of a PostgreSQL database without a pooler.
    pub fn postgres(url: Secret) -> Self {
        Self::Postgres {
            url,
            direct: None,
            lifetime: Duration::from_secs(300),
            is_patient: false,
        }
    }

    /// Lets the server take seconds for each answer, until [`end_patience`](crate::Store::end_patience): for commands,
    /// and for the start of a gateway; no effect on SQLite.
    #[must_use]
    pub fn patient(mut self) -> Self {
        if let Self::Postgres { is_patient, .. } = &mut self {
            *is_patient = true;
        }
        self
    }

    /// Sets the maximum lifetime of connections; no effect on SQLite.
    #[must_use]
    pub fn with_lifetime(mut self, new: Duration) -> Self {
        if let Self::Postgres { lifetime, .. } = &mut self {
            *lifetime = new;
        }
        self
    }
}

/// Configuration of a store.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    /// Where the database lives.
    pub location: Location,
    /// Maximum connections of the read pool; on PostgreSQL, writers share them.
    pub connections: u32,
    /// Clock for row timestamps and audit entries.
    pub clock: Arc<dyn Clock>,
    /// Entropy for row ids.
    pub entropy: Arc<dyn Entropy>,
    /// Protection of the audit outbox of a policy store; audit stores and read-only commands need none.
    pub outbox: OutboxGuard,
}

/// Protects the rows of the audit outbox against an attacker who can write only to the database.
#[derive(Clone, Debug, Default)]
pub struct OutboxGuard {
    /// The key that authenticates rows. Without it, rows are written without an authentication code and read unchecked.
    pub key: Option<OutboxKey>,
    /// Notified of each commit that wrote rows.
    pub witness: Option<Arc<dyn OutboxWitness>>,
}

/// Remembers the outbox position and the last written rows outside the database. This reveals replaced rows, and rows
/// that are missing at the end.
pub trait OutboxWitness: Send + Sync + core::fmt::Debug {
    /// Records that rows up to `mark` are committed, with these ids and digests. Called after each commit that wrote
    /// rows, not necessarily in order; must not block.
    fn note(&self, mark: OutboxMark, digests: &[(i64, [u8; 32])]);

    /// Records the ids and codes of rows whose mutation was rolled back. An attacker who saw such a row has a valid
    /// code for a change that never took place. Must not block.
    fn note_undone(&self, store: StoreId, codes: &[(i64, [u8; 32])]);

    /// Returns the last id known to be committed in a policy store, or 0.
    fn last_id(&self, store: StoreId) -> i64;

    /// Returns the digest of the row committed under an id, if remembered.
    fn digest(&self, store: StoreId, id: i64) -> Option<[u8; 32]>;

    /// Returns ids and codes of rows whose mutations were rolled back, if remembered.
    fn undone(&self, store: StoreId) -> Vec<(i64, [u8; 32])>;

    /// Returns the policy stores that this one replaced; rows that wait in the outbox may have their ids.
    fn former_stores(&self) -> Vec<StoreId>;
}

/// Who makes a change, for the audit entry (spec/70 section 2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// The user row behind a JWT.
    pub user: Option<UserId>,
    /// A DID, or one of the fixed names.
    pub external_id: String,
    /// The client's address.
    pub ip: Option<IpAddr>,
    /// The request's correlation id.
    pub correlation_id: Option<String>,
}

impl Actor {
    /// The holder of the super administrator's token (`X-Admin-Token`).
    pub const SUPER_ADMIN: &str = "__super_admin__";
    /// The holder of the platform administrator's token.
    pub const OPERATOR: &str = "__operator__";
    /// The gateway itself.
    pub const SYSTEM: &str = "__system__";

    /// Creates the actor for a user.
    pub fn user(id: UserId, name: &ExternalId) -> Self {
        Self {
            user: Some(id),
            external_id: name.as_str().to_owned(),
            ip: None,
            correlation_id: None,
        }
    }

    /// Creates the actor for a token or a worker: one of the fixed names, or `system:…`.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            user: None,
            external_id: name.into(),
            ip: None,
            correlation_id: None,
        }
    }

    /// Creates the actor for the gateway itself.
    pub fn system() -> Self {
        Self::named(Self::SYSTEM)
    }

    /// Adds the client address and correlation id of a request.
    #[must_use]
    pub fn from_request(mut self, ip: Option<IpAddr>, correlation_id: Option<String>) -> Self {
        self.ip = ip;
        self.correlation_id = correlation_id;
        self
    }
}

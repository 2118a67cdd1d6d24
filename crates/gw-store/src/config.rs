//! What opening a store takes, and who acts in a transaction.

use crate::{
    audit::{OutboxKey, OutboxMark},
    lock::DirectoryLock,
};
use gw_audit::StoreId;
use gw_types::{Clock, Entropy, ExternalId, Secret, UserId};
use std::{net::IpAddr, path::PathBuf, sync::Arc, time::Duration};

/// Where a database lives. Both engines are told apart here and in `dialect`, nowhere else.
#[derive(Clone, Debug)]
pub enum Location {
    /// A file in a directory that this process holds (HD24): the lock is the proof.
    Sqlite {
        /// The held directory.
        directory: Arc<DirectoryLock>,
        /// The file's name in it.
        file: String,
    },
    /// The same file for a process that only reads: no lock is needed, another process may hold the directory and write.
    SqliteReadOnly {
        /// The file; it must exist.
        file: PathBuf,
    },
    /// A PostgreSQL primary.
    Postgres {
        /// The URL for all queries; it may lead through a pooler.
        url: Secret,
        /// The URL for LISTEN, straight to the server (HD23 E-6); the same one if there is no pooler.
        direct: Option<Secret>,
        /// How long one connection is used before another takes its place (`DB_CONN_MAX_LIFETIME`).
        lifetime: Duration,
    },
}

impl Location {
    /// A PostgreSQL database without a pooler in between.
    pub fn postgres(url: Secret) -> Self {
        Self::Postgres {
            url,
            direct: None,
            lifetime: Duration::from_secs(300),
        }
    }

    /// The same, using connections for so long; a file has none to exchange.
    #[must_use]
    pub fn with_lifetime(mut self, new: Duration) -> Self {
        if let Self::Postgres { lifetime, .. } = &mut self {
            *lifetime = new;
        }
        self
    }
}

/// What opening a store takes.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    /// Where the database lives.
    pub location: Location,
    /// The most connections of the read pool; PostgreSQL's writers share them.
    pub connections: u32,
    /// Time for row stamps and audit entries.
    pub clock: Arc<dyn Clock>,
    /// Chance for row ids.
    pub entropy: Arc<dyn Entropy>,
    /// What guards the audit outbox of a policy store; an audit store and commands that write nothing need none.
    pub outbox: OutboxGuard,
}

/// What guards the rows of the audit outbox against whoever can write to the database alone.
#[derive(Clone, Debug, Default)]
pub struct OutboxGuard {
    /// Authenticates rows; without it rows are written without code and taken as they are.
    pub key: Option<OutboxKey>,
    /// Told of each commit that wrote rows.
    pub witness: Option<Arc<dyn OutboxWitness>>,
}

/// Remembers outside the database how far the outbox got, and what was written last: rows missing at its end, and rows
/// that stand in the place of others, are found by it.
pub trait OutboxWitness: Send + Sync + core::fmt::Debug {
    /// Rows up to this one are committed, these ids with these digests. Called after each commit that wrote rows, not
    /// necessarily in order; must not wait.
    fn note(&self, mark: OutboxMark, digests: &[(i64, [u8; 32])]);

    /// Rows with these ids and codes were written, and their mutation was undone: whoever saw one has a genuine code of a
    /// change that never was. Must not wait.
    fn note_undone(&self, store: StoreId, codes: &[(i64, [u8; 32])]);

    /// The last id known to be committed in a policy store, or 0.
    fn last_id(&self, store: StoreId) -> i64;

    /// The digest of the row that was committed under an id, as far as it is remembered.
    fn digest(&self, store: StoreId, id: i64) -> Option<[u8; 32]>;

    /// Ids and codes of rows whose mutations were undone, as far as they are remembered.
    fn undone(&self, store: StoreId) -> Vec<(i64, [u8; 32])>;

    /// The policy stores that were here before this one: rows may wait that were written under their identity.
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
    /// `X-Admin-Token`.
    pub const SUPER_ADMIN: &str = "__super_admin__";
    /// The operator's token.
    pub const OPERATOR: &str = "__operator__";
    /// The gateway itself.
    pub const SYSTEM: &str = "__system__";

    /// A user acting for themselves or as administrator.
    pub fn user(id: UserId, name: &ExternalId) -> Self {
        Self {
            user: Some(id),
            external_id: name.as_str().to_owned(),
            ip: None,
            correlation_id: None,
        }
    }

    /// A token or a worker: one of the fixed names, or `system:…`.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            user: None,
            external_id: name.into(),
            ip: None,
            correlation_id: None,
        }
    }

    /// The gateway itself.
    pub fn system() -> Self {
        Self::named(Self::SYSTEM)
    }

    /// The same, from this client address and request.
    #[must_use]
    pub fn from_request(mut self, ip: Option<IpAddr>, correlation_id: Option<String>) -> Self {
        self.ip = ip;
        self.correlation_id = correlation_id;
        self
    }
}

//! What may go wrong, as the callers need to tell it apart.

use sea_orm::{DbErr, RuntimeErr, sqlx};

/// A failed store operation.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The row that the operation is about does not exist.
    #[error("no such {0}")]
    NotFound(Missing),
    /// A unique constraint refused the write; decided by its name, never by message text (spec/80 section 4).
    #[error("{0} is already taken")]
    Conflict(Conflict),
    /// A seeded system row, or the default organization (A2).
    #[error("system rows cannot be changed")]
    Immutable,
    /// The write breaks a rule that the schema itself holds, for instance A5 or a dangling reference.
    #[error("the write breaks the rule `{0}`")]
    Rule(&'static str),
    /// An administrator revoked this link: proving it again is refused (LK-2).
    #[error("the link was revoked by an administrator")]
    LinkRevoked,
    /// A stored row breaks an invariant: somebody wrote past this crate.
    #[error("table `{table}`: column `{column}` of row `{id}` is malformed")]
    Row {
        /// Table name.
        table: &'static str,
        /// Column name.
        column: &'static str,
        /// The row's key.
        id: String,
    },
    /// The answering database is a replica or in recovery (E-3).
    #[error("the database is not a primary")]
    NotPrimary,
    /// The schema is older or newer than this build.
    #[error("the database schema is {0}")]
    Schema(&'static str),
    /// Another live instance excludes this one (HD24).
    #[error("another instance is alive: {0}")]
    OtherInstance(String),
    /// A chain's end is not where the writer believed (spec/70 rule 13).
    #[error("the chain holds `{stored}` entries")]
    ChainMoved {
        /// The number of the next entry.
        stored: u64,
    },
    /// Another writer took the chain over (HD24).
    #[error("another writer took the chain over")]
    Fenced,
    /// The detached task that commits and publishes died.
    #[error("the committing task ended without an answer")]
    Detached,
    /// The database refused or could not be reached.
    #[error("the database failed")]
    Database(#[source] DbErr),
}

impl StoreError {
    /// Whether the database could not be reached or is shutting down: trying again later may help, and nothing is wrong
    /// with the request (RTO8).
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::NotPrimary | Self::Database(DbErr::ConnectionAcquire(_) | DbErr::Conn(_)) => true,
            Self::Database(DbErr::Exec(RuntimeErr::SqlxError(cause)) | DbErr::Query(RuntimeErr::SqlxError(cause))) => {
                is_connection_lost(cause)
            }
            _ => false,
        }
    }
}

fn is_connection_lost(cause: &sqlx::Error) -> bool {
    match cause {
        sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed => true,
        // PostgreSQL class 57P: the server shuts down, crashed, or takes no connections.
        sqlx::Error::Database(error) => error.code().is_some_and(|code| code.starts_with("57P")),
        _ => false,
    }
}

/// What was not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Missing {
    /// An organization.
    Organization,
    /// A group.
    Group,
    /// A user.
    User,
    /// A membership.
    Membership,
    /// A contract.
    Contract,
    /// A contract grant.
    Grant,
    /// A linked address.
    Link,
    /// A login that can refresh.
    Session,
    /// A reservation.
    Reservation,
    /// A visibility row.
    Visibility,
    /// An allowed directory tenant.
    Tenant,
    /// A shared contract.
    SharedInfra,
    /// Approved creation code.
    ApprovedCode,
    /// A personal RPC URL.
    PersonalUrl,
    /// A suspension.
    Suspension,
    /// A quarantine.
    Quarantine,
    /// A conviction.
    Conviction,
    /// A legal hold.
    LegalHold,
    /// A chain of the audit log.
    Chain,
}

impl core::fmt::Display for Missing {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Organization => "organization",
            Self::Group => "group",
            Self::User => "user",
            Self::Membership => "membership",
            Self::Contract => "contract",
            Self::Grant => "grant",
            Self::Link => "link",
            Self::Session => "session",
            Self::Reservation => "reservation",
            Self::Visibility => "visibility row",
            Self::Tenant => "tenant",
            Self::SharedInfra => "shared contract",
            Self::ApprovedCode => "approved code",
            Self::LegalHold => "legal hold",
            Self::PersonalUrl => "personal URL",
            Self::Suspension => "suspension",
            Self::Quarantine => "quarantine",
            Self::Conviction => "conviction",
            Self::Chain => "chain",
        })
    }
}

/// Which unique constraint refused a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Conflict {
    /// `organizations.slug`
    OrganizationSlug,
    /// `groups.slug` within the organization
    GroupSlug,
    /// `groups.name` within the organization, whatever the case
    GroupName,
    /// `users.external_id`
    ExternalId,
    /// One membership per user and group
    Membership,
    /// `contracts.address`
    ContractAddress,
    /// One grant per contract and group
    Grant,
    /// One link row per user and address
    Link,
    /// `refresh_tokens.hash`
    Token,
    /// `directory_tenants.tenant_id`
    Tenant,
    /// `shared_infrastructure.address`
    SharedInfra,
    /// `approved_code.code_hash`
    ApprovedCode,
    /// A primary key or a constraint that callers cannot provoke
    Other,
}

impl core::fmt::Display for Conflict {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::OrganizationSlug => "the organization slug",
            Self::GroupSlug => "the group slug",
            Self::GroupName => "the group name",
            Self::ExternalId => "the external id",
            Self::Membership => "the membership",
            Self::ContractAddress => "the contract address",
            Self::Grant => "the grant",
            Self::Link => "the link",
            Self::Token => "the token",
            Self::Tenant => "the tenant",
            Self::SharedInfra => "the shared address",
            Self::ApprovedCode => "the creation code",
            Self::Other => "the key",
        })
    }
}

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
    /// A mutation was sent to be committed, and nobody can say yet that it stands and is in force here: it may be. Read it
    /// back before repeating it.
    #[error("the change is not confirmed: {0}")]
    Unconfirmed(&'static str),
    /// What the database has of the mutation's audit entry is not what was written: somebody changes rows on their way. The
    /// mutation was undone.
    #[error("the audit entry of the change is not what was written: nothing was changed")]
    EntryAltered,
    /// The database said that it took a row, and does not show it: somebody keeps rows from being stored.
    #[error("the database did not keep what was written to `{0}`")]
    NotKept(&'static str),
    /// The database refused a mutation at its very end, or its audit entry, for nothing that its caller asked for: somebody's
    /// trigger or rule. The mutation was undone.
    #[error("the database refused the audit entry of the change: nothing was changed")]
    EntryRefused,
    /// The epoch of policy stands where no mutation put it, and cannot be raised.
    #[error("the epoch of policy stands at {0}, where no mutation put it")]
    EpochExhausted(u64),
    /// The detached task that commits and publishes died.
    #[error("the committing task ended without an answer")]
    Detached,
    /// The database refused or could not be reached.
    #[error("the database failed")]
    Database(#[source] DbErr),
}

impl StoreError {
    /// Whether the database could not be reached, is shutting down, has no room, or did not confirm a change: trying again
    /// later may help, and nothing is wrong with the request (RTO8, RL1).
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::NotPrimary
            | Self::Unconfirmed(_)
            | Self::EntryAltered
            | Self::EntryRefused
            | Self::EpochExhausted(_)
            | Self::Database(DbErr::ConnectionAcquire(_) | DbErr::Conn(_)) => true,
            Self::Database(DbErr::Exec(RuntimeErr::SqlxError(cause)) | DbErr::Query(RuntimeErr::SqlxError(cause))) => {
                is_connection_lost(cause)
            }
            _ => false,
        }
    }
}

impl StoreError {
    /// Whether a row is there and holds what its columns cannot. Everything else says nothing about the row: the database
    /// was busy, away or out of files, and is asked again.
    pub(crate) fn is_malformed(&self) -> bool {
        matches!(self, Self::Database(error) if crate::dialect::is_malformed(error))
    }
}

fn is_connection_lost(cause: &sqlx::Error) -> bool {
    match cause {
        sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed => true,
        sqlx::Error::Database(error) => error.code().is_some_and(|code| is_state_of_server(&code)),
        _ => false,
    }
}

/// Whether a code of the database speaks of its own state rather than of the statement.
fn is_state_of_server(code: &str) -> bool {
    // PostgreSQL's have five characters, SQLite's are numbers whose lowest byte is the class.
    if code.len() == 5 {
        // 08 connection, 53 resources (disk full, too many connections), 57 told to stop (shutdown, statement timeout),
        // 58 system (input or output), 55P03 a lock not given in time, 25006 a standby, 25P03 idle for too long, 40 undone
        // for the sake of others (serialization, deadlock), P0 raised by a function: none of ours raises anything.
        let class = ["08", "40", "53", "57", "58", "P0"]
            .iter()
            .any(|class| code.starts_with(class));
        return class || ["55P03", "25006", "25P03"].contains(&code);
    }
    // BUSY, LOCKED, NOMEM, READONLY, IOERR, FULL, CANTOPEN, PROTOCOL; and CONSTRAINT_TRIGGER, as no trigger of ours raises.
    code.parse::<u32>()
        .is_ok_and(|code| code == 1811 || matches!(code & 0xff, 5 | 6 | 7 | 8 | 10 | 13 | 14 | 15))
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

#[cfg(test)]
mod tests {
    use super::is_state_of_server;

    #[test]
    fn the_servers_state_is_told_from_the_statements_faults() {
        for code in [
            "57P01", "53100", "53300", "58030", "08006", "55P03", "25006", "40001", "40P01", "P0001", "1811", "13",
            "778", "10", "5", "517",
        ] {
            assert!(is_state_of_server(code), "{code}");
        }
        for code in ["23505", "42P01", "22001", "1", "19", "2067", "11"] {
            assert!(!is_state_of_server(code), "{code}");
        }
    }
}

//! Errors, by the distinctions that callers need.

use sea_orm::{DbErr, RuntimeErr, sqlx};

/// A failed store operation.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The row that the operation is about does not exist.
    #[error("no such {0}")]
    NotFound(Missing),
    /// A unique constraint rejected the write; identified by its name, never by message text (spec/80 section 4).
    #[error("{0} is already taken")]
    Conflict(Conflict),
    /// The row is a seeded system row or the default organization (A2).
    #[error("system rows cannot be changed")]
    Immutable,
    /// The write breaks a rule of the schema, for instance A5 or a dangling reference.
    #[error("the write breaks the rule `{0}`")]
    Rule(&'static str),
    /// An administrator revoked this link: it cannot be proved again (LK-2).
    #[error("the link was revoked by an administrator")]
    LinkRevoked,
    /// A stored row breaks an invariant: it was not written by this crate.
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
    /// The only row of `policy_store` is missing, which identifies the database: no mutation can be recorded.
    #[error(
        "the row of table `policy_store` is missing, so no change can be recorded: the likely cause is manual SQL; \
         restore the policy database from a backup, or insert the row again with its former `store_id` and with \
         `last_outbox_id` 0"
    )]
    PolicyStoreRow,
    /// Another live instance excludes this one (HD24).
    #[error("another instance is alive: {0}")]
    OtherInstance(String),
    /// A chain's end is not where the writer believed (spec/70 rule 13).
    #[error("the chain holds `{stored}` entries")]
    ChainMoved {
        /// The sequence number of the next entry.
        stored: u64,
    },
    /// Another writer took the chain over (HD24).
    #[error("another writer took the chain over")]
    Fenced,
    /// A commit was sent, but it is not confirmed that it succeeded and is in force here. Read the data back before
    /// repeating the mutation.
    #[error("the change is not confirmed: {0}")]
    Unconfirmed(&'static str),
    /// The mutation's audit entry in the database differs from what was written: something alters rows on their way.
    /// The mutation was rolled back.
    #[error("the database altered the audit entry of the change: the change was rolled back")]
    EntryAltered,
    /// The database accepted a row, but does not return it: something prevents rows from being stored.
    #[error("the database accepted a row of `{0}` and does not return it")]
    NotKept(&'static str),
    /// The database rejected a mutation's last statements or its audit entry for a reason that the caller did not
    /// cause: a foreign trigger or rule. The mutation was rolled back.
    #[error("the database rejected the audit entry of the change: the change was rolled back")]
    EntryRefused,
    /// The triggers of this table did not record the mutation's change of it, so no instance would apply the change.
    /// The mutation was rolled back.
    #[error("the database did not record the change of table `{0}`: the change was rolled back")]
    ChangeUnrecorded(&'static str),
    /// Something in the schema can hide rows, so nothing may be removed.
    #[error("the database is not as the migrations made it, so it can hide rows: {0}")]
    SchemaChanged(String),
    /// The policy epoch has a value that no mutation wrote, and cannot be raised.
    #[error("the policy epoch is {0}, which no change can have set")]
    EpochExhausted(u64),
    /// The one row of the policy epoch is missing, so no mutation can be locked and numbered.
    #[error("the policy epoch is missing")]
    EpochMissing,
    /// The detached task that commits and publishes ended without a result.
    #[error("the committing task ended without an answer")]
    Detached,
    /// The database returned an error or could not be reached.
    #[error("the database failed")]
    Database(#[source] DbErr),
}

impl StoreError {
    /// Whether the database could not be reached, is shutting down, has no room, or did not confirm a change: a retry
    /// may help, and the request is valid (RTO8, RL1).
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::NotPrimary
            | Self::PolicyStoreRow
            | Self::Unconfirmed(_)
            | Self::EntryAltered
            | Self::EntryRefused
            | Self::ChangeUnrecorded(_)
            | Self::EpochExhausted(_)
            | Self::EpochMissing => true,
            Self::Database(error) => is_unavailable(error),
            _ => false,
        }
    }
}

/// Whether a database error concerns its own state rather than the statement.
pub(crate) fn is_unavailable(error: &DbErr) -> bool {
    match error {
        DbErr::ConnectionAcquire(_) | DbErr::Conn(_) => true,
        DbErr::Exec(RuntimeErr::SqlxError(cause)) | DbErr::Query(RuntimeErr::SqlxError(cause)) => {
            is_connection_lost(cause)
        }
        _ => false,
    }
}

impl StoreError {
    /// Whether a row is there and its values cannot be read. Any other error says nothing about the row.
    pub fn is_about_row(&self) -> bool {
        matches!(self, Self::Row { .. }) || self.is_malformed()
    }

    /// Whether a row exists but has a value of a wrong type. Any other error says nothing about the row: the database
    /// was busy, unreachable or out of files, and the query is retried.
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

/// Whether an error code concerns the database's own state rather than the statement.
fn is_state_of_server(code: &str) -> bool {
    // PostgreSQL codes have five characters; SQLite codes are numbers whose lowest byte is the class.
    if code.len() == 5 {
        // 08 connection, 53 resources (disk full, too many connections), 57 operator intervention (shutdown, statement
        // timeout), 58 system (input or output), 55P03 lock not available in time, 25006 a standby, 25P03 idle in
        // transaction for too long, 42501 a privilege that was taken away, 40 rollback because of others
        // (serialization, deadlock), P0 raised by a function: none of ours raises anything.
        let class = ["08", "40", "53", "57", "58", "P0"]
            .iter()
            .any(|class| code.starts_with(class));
        return class || ["55P03", "25006", "25P03", "42501"].contains(&code);
    }
    // BUSY, LOCKED, NOMEM, READONLY, IOERR, FULL, CANTOPEN, PROTOCOL; and CONSTRAINT_TRIGGER, as no trigger of ours
    // raises.
    code.parse::<u32>()
        .is_ok_and(|code| code == 1811 || matches!(code & 0xff, 5 | 6 | 7 | 8 | 10 | 13 | 14 | 15))
}

/// The kind of object that was not found.
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
    /// The webhook of an organization.
    Webhook,
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
            Self::Webhook => "webhook",
            Self::PersonalUrl => "personal URL",
            Self::Suspension => "suspension",
            Self::Quarantine => "quarantine",
            Self::Conviction => "conviction",
            Self::Chain => "chain",
        })
    }
}

/// The unique constraint that rejected a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Conflict {
    /// `organizations.slug`
    OrganizationSlug,
    /// `groups.slug` within the organization
    GroupSlug,
    /// `groups.name` within the organization, ignoring case
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
    /// One grant of disclosure per request
    DisclosureGrant,
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
            Self::DisclosureGrant => "the grant of disclosure",
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
            "57P01", "53100", "53300", "58030", "08006", "55P03", "25006", "42501", "40001", "40P01", "P0001", "1811",
            "13", "778", "10", "5", "517",
        ] {
            assert!(is_state_of_server(code), "{code}");
        }
        for code in ["23505", "42P01", "22001", "1", "19", "2067", "11"] {
            assert!(!is_state_of_server(code), "{code}");
        }
    }
}

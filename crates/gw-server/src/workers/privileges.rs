//! Watches whether the credentials of the databases have the privileges that the gateway needs. An administrator who
//! takes one away stops every write that needs it, and reads go on: without this watch, nothing would tell.

use gw_audit::{SecurityEvent, SecurityKind};
use gw_journal::Journal;
use gw_store::{Store, StoreError, audit::AuditStore};
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Time between two look-ups.
const INTERVAL: Duration = Duration::from_secs(5);

/// Looks up the privileges until `end` is cancelled. `/ready` shows those of the policy store as `writes`, and those of
/// the audit store as `audit_store`.
pub(crate) async fn watch(store: Store, audit: AuditStore, journal: Arc<Journal>, end: CancellationToken) {
    let mut policy = Database::new("policy");
    let mut log = Database::new("audit");
    let watch = async {
        loop {
            policy.note(store.missing_privileges().await, &journal);
            log.note(audit.missing_privileges().await, &journal);
            sleep(INTERVAL).await;
        }
    };
    end.run_until_cancelled(watch).await;
}

/// What is known of one database.
struct Database {
    name: &'static str,
    missing: Vec<String>,
}

impl Database {
    const fn new(name: &'static str) -> Self {
        Self {
            name,
            missing: Vec::new(),
        }
    }

    /// Reports a change since the last look-up. A database that does not answer is reported elsewhere.
    fn note(&mut self, missing: Result<Vec<String>, StoreError>, journal: &Journal) {
        let Ok(missing) = missing else { return };
        let (database, count) = (self.name, u32::try_from(missing.len()).unwrap_or(u32::MAX));
        metrics::gauge!("ledger_gateway_missing_database_privileges", "database" => database).set(f64::from(count));
        if missing == self.missing {
            return;
        }
        let reason = if missing.is_empty() {
            tracing::info!(database, "the credential of the database has its privileges again");
            format!("{database}:restored")
        } else {
            tracing::error!(
                database,
                missing = missing.join(", "),
                "the credential of the database lacks privileges that the gateway needs, so writes are refused: find \
                 out who revoked them, and GRANT them again"
            );
            format!("{database}:missing")
        };
        let event = SecurityEvent {
            reason: Some(reason.into()),
            count: Some(u64::from(count)),
            ..SecurityEvent::new(SecurityKind::DatabasePrivileges)
        };
        if let Err(error) = journal.append_or_keep(event) {
            tracing::error!(
                error = &error as &dyn core::error::Error,
                database,
                "the security event about privileges of the database was not recorded"
            );
        }
        self.missing = missing;
    }
}

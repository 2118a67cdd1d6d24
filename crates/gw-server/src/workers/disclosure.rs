//! Records the ends of requests and grants of disclosure, destroys the secrets of ended grants, and encrypts secrets
//! anew that need the previous encryption key (spec/50 section 3, rule 29).
//!
//! Only the destruction depends on this worker: every use of a grant checks its end. All instances run it; what one has
//! done is nothing to do for the others.

use gw_crypto::KeyCipher;
use gw_store::{Actor, Feed, Store, StoreError};
use gw_types::{DisclosureGrantId, Seconds};
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Time between two sweeps.
const INTERVAL: Duration = Duration::from_secs(60);
/// Maximum rows of each kind that one transaction changes, so that others do not wait for long.
const BATCH: usize = 200;

/// Sweeps the grants of disclosure.
#[derive(Debug)]
pub(crate) struct DisclosureSweeper {
    pub(crate) store: Store,
    pub(crate) feed: Feed,
    pub(crate) cipher: Arc<KeyCipher>,
    /// `DISCLOSURE_SECRET_RETENTION`.
    pub(crate) secret_retention: Seconds,
}

impl DisclosureSweeper {
    /// Sweeps every minute until `end` is cancelled. A secret that needs the previous encryption key is renewed at
    /// start: keys change only then.
    pub(crate) async fn run(self, end: CancellationToken) {
        self.report_unreadable();
        let mut is_renewed = false;
        loop {
            if !is_renewed {
                is_renewed = log_failure(self.renew().await);
            }
            log_failure(self.sweep().await);
            if end.run_until_cancelled(sleep(INTERVAL)).await.is_none() {
                return;
            }
        }
    }

    async fn sweep(&self) -> Result<(), StoreError> {
        while self.store.read().has_overdue_disclosures(self.secret_retention).await? {
            let mut tx = self.store.begin(&Actor::named(gw_audit::SYSTEM_DISCLOSURE)).await?;
            let limit = u64::try_from(BATCH).unwrap_or(u64::MAX);
            let swept = tx.sweep_disclosures(self.secret_retention, limit).await?;
            tx.commit().await?;
            tracing::info!(
                requests = swept.requests,
                grants = swept.grants,
                secrets = swept.destroyed_secrets,
                "ended requests and grants of disclosure were recorded"
            );
        }
        Ok(())
    }

    async fn renew(&self) -> Result<(), StoreError> {
        let outdated = self.grants_where(|grant, secret| self.cipher.is_outdated_grant_secret(grant, secret));
        for grants in outdated.chunks(BATCH) {
            let mut tx = self.store.begin(&Actor::named(gw_audit::SYSTEM_DISCLOSURE)).await?;
            tx.renew_grant_secrets(grants, &self.cipher).await?;
            tx.commit().await?;
        }
        if !outdated.is_empty() {
            tracing::info!(
                grants = outdated.len(),
                "the secrets of grants of disclosure are encrypted with the new RPC_API_KEY_ENCRYPTION_KEY"
            );
        }
        Ok(())
    }

    fn report_unreadable(&self) {
        let unreadable = self.grants_where(|grant, secret| self.cipher.open_grant_secret(grant, secret).is_err());
        if !unreadable.is_empty() {
            tracing::error!(
                grants = unreadable.len(),
                "the secrets of grants of disclosure cannot be decrypted, so these grants show no names: check \
                 RPC_API_KEY_ENCRYPTION_KEY and RPC_API_KEY_ENCRYPTION_KEY_PREVIOUS"
            );
        }
    }

    fn grants_where(
        &self,
        matches: impl Fn(DisclosureGrantId, &gw_types::SealedGrantSecret) -> bool,
    ) -> Vec<DisclosureGrantId> {
        let pinned = self.feed.pin();
        let grants = pinned.snapshot.disclosures();
        grants
            .filter(|grant| matches(grant.id, &grant.secret))
            .map(|grant| grant.id)
            .collect()
    }
}

/// Returns whether the step succeeded.
fn log_failure(step: Result<(), StoreError>) -> bool {
    if let Err(error) = &step {
        tracing::warn!(
            error = error as &dyn core::error::Error,
            "ended grants of disclosure were not recorded; the next attempt is in a minute"
        );
    }
    step.is_ok()
}

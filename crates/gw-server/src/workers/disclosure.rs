//! Records the ends of requests and grants of disclosure, destroys the secrets of ended grants, and encrypts secrets of
//! grants and webhooks anew that need the previous encryption key (spec/50 section 3, rule 29).
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
        self.renew_grants().await?;
        self.renew_webhooks().await
    }

    async fn renew_webhooks(&self) -> Result<(), StoreError> {
        let mut outdated = Vec::new();
        for (org, secret) in self.store.read().list_webhook_secrets().await? {
            if self.cipher.is_outdated_webhook_secret(org, &secret) {
                outdated.push(org);
            } else if self.cipher.open_webhook_secret(org, &secret).is_err() {
                tracing::error!(
                    org.id = %org,
                    "the secret of a webhook cannot be decrypted, so its events are not delivered: check \
                     RPC_API_KEY_ENCRYPTION_KEY and RPC_API_KEY_ENCRYPTION_KEY_PREVIOUS, or make a new secret"
                );
            }
        }
        for orgs in outdated.chunks(BATCH) {
            let mut tx = self.store.begin(&Actor::named(gw_audit::SYSTEM_DISCLOSURE)).await?;
            tx.renew_webhook_secrets(orgs, &self.cipher).await?;
            tx.commit().await?;
        }
        if !outdated.is_empty() {
            tracing::info!(
                webhooks = outdated.len(),
                "the secrets of webhooks are encrypted with the new RPC_API_KEY_ENCRYPTION_KEY"
            );
        }
        Ok(())
    }

    async fn renew_grants(&self) -> Result<(), StoreError> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use gw_policy::disclosure::{GrantLimits, RequestStatus, ScopeInput};
    use gw_store::{
        read::{DisclosureFilter, Paging, Scope},
        record::{AccessInput, DisclosureApproval, NewDisclosureRequest, NewGroup},
    };
    use gw_testkit::Fixture;
    use gw_types::Secret;

    fn cipher(digits: &str) -> KeyCipher {
        KeyCipher::new(&Secret::new(digits.repeat(32))).unwrap()
    }

    /// A pending request that ends in an hour, and a grant for a day.
    async fn disclosed(fixture: &Fixture) {
        let org = fixture.create_org("bank").await;
        let group = |name: &str| NewGroup::plain(org, name, name);
        let owner = fixture.create_user("owner", group("one"), AccessInput::default()).await;
        let grantee = fixture
            .create_user("grantee", group("two"), AccessInput::default())
            .await;
        let request = |hours| NewDisclosureRequest {
            requester: Some(grantee.id),
            requester_did: None,
            target: owner.id,
            org,
            scope: ScopeInput::default(),
            reason: "audit".to_owned(),
            legal_basis: None,
            expires_in_hours: Some(hours),
            requires_legal_basis_for_full: false,
        };
        fixture
            .change(async |tx| {
                tx.create_disclosure_request(request(1)).await.unwrap();
                let id = tx.create_disclosure_request(request(0)).await.unwrap().id;
                let (approval, limits) = (DisclosureApproval::default(), GrantLimits::default());
                let cipher = cipher("11");
                let granted = tx.approve_disclosure(id, owner.id, &approval, limits, &cipher);
                granted.await.unwrap();
            })
            .await;
    }

    fn sweeper(fixture: &Fixture, cipher: KeyCipher) -> DisclosureSweeper {
        DisclosureSweeper {
            store: fixture.store.clone(),
            feed: fixture.feed.clone(),
            cipher: Arc::new(cipher),
            secret_retention: Seconds(30 * 86_400),
        }
    }

    /// Section 3, rule 29: the sweeper records ends, and destroys a secret 30 days after the end of its grant. Then the
    /// grant leaves the snapshot.
    #[tokio::test]
    async fn ds29_the_sweeper_records_ends_and_destroys_secrets() {
        let fixture = Fixture::start().await;
        disclosed(&fixture).await;
        let sweeper = sweeper(&fixture, cipher("11"));
        let stored = async || {
            let filter = DisclosureFilter::all(Scope::All);
            let paging = Paging { limit: 10, offset: 0 };
            let page = fixture
                .store
                .read()
                .list_disclosure_requests(&filter, paging)
                .await
                .unwrap();
            page.rows
                .iter()
                .filter(|row| row.request.status == RequestStatus::Expired)
                .count()
        };
        let before = fixture.feed.epoch();
        sweeper.sweep().await.unwrap();
        assert_eq!(fixture.feed.epoch(), before, "nothing has ended, so nothing is written");
        fixture.clock.pass(86_400);
        sweeper.sweep().await.unwrap();
        assert_eq!(stored().await, 1);
        assert!(
            !fixture
                .store
                .read()
                .has_overdue_disclosures(sweeper.secret_retention)
                .await
                .unwrap()
        );
        assert_eq!(fixture.feed.pin().snapshot.disclosures().count(), 1);
        fixture.clock.pass(30 * 86_400 - 1);
        sweeper.sweep().await.unwrap();
        assert_eq!(fixture.feed.pin().snapshot.disclosures().count(), 1);
        fixture.clock.pass(1);
        sweeper.sweep().await.unwrap();
        assert_eq!(fixture.feed.pin().snapshot.disclosures().count(), 0);
    }

    /// After a rotation the secret of a webhook opens with the new key alone.
    #[tokio::test]
    async fn the_sweeper_encrypts_secrets_of_webhooks_anew_after_a_rotation() {
        let fixture = Fixture::start().await;
        let org = fixture.create_org("bank").await;
        let secret = gw_types::WebhookSecret::new([9; 32]);
        let sealed = cipher("11")
            .seal_webhook_secret(org, &secret, &*fixture.entropy)
            .unwrap();
        fixture
            .change(async |tx| {
                tx.set_webhook(org, "https://bank.example/", Some(sealed))
                    .await
                    .unwrap();
            })
            .await;
        let rotated = cipher("22").with_previous(&Secret::new("11".repeat(32))).unwrap();
        sweeper(&fixture, rotated).renew().await.unwrap();
        let stored = fixture.store.read().list_webhook_secrets().await.unwrap();
        let opens = |cipher: &KeyCipher| cipher.open_webhook_secret(org, &stored[0].1).is_ok();
        assert!(opens(&cipher("22")) && !opens(&cipher("11")));
    }

    /// Rule 29: after a rotation the secrets open with the new key alone; without the previous key they stay as they
    /// are.
    #[tokio::test]
    async fn ds29_the_sweeper_encrypts_secrets_anew_after_a_rotation() {
        let fixture = Fixture::start().await;
        disclosed(&fixture).await;
        let opens = |cipher: &KeyCipher| {
            let pinned = fixture.feed.pin();
            let grant = pinned.snapshot.disclosures().next().unwrap();
            cipher.open_grant_secret(grant.id, &grant.secret).is_ok()
        };
        sweeper(&fixture, cipher("22")).renew().await.unwrap();
        assert!(opens(&cipher("11")) && !opens(&cipher("22")));
        let rotated = cipher("22").with_previous(&Secret::new("11".repeat(32))).unwrap();
        sweeper(&fixture, rotated).renew().await.unwrap();
        assert!(opens(&cipher("22")) && !opens(&cipher("11")));
    }
}

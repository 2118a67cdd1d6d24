//! Asks contract wallets every day whether they still accept the signature that linked them (HD10). The owner of a
//! wallet may have changed, or the linked user may have lost the right to call it.

use gw_audit::{SecurityEvent, SecurityKind};
use gw_http::HttpContext;
use gw_identity::{Chain, ask_wallet};
use gw_journal::Journal;
use gw_policy::{
    PolicySettings,
    access::{WalletAnswer, WalletQuestion},
};
use gw_store::{Actor, Missing, Store, StoreError, record::WalletLink};
use gw_types::Seconds;
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

const DAY: Seconds = Seconds(86_400);
/// Time between two queries for wallets whose last confirmation is older than a day.
const INTERVAL: Duration = Duration::from_secs(600);
/// Wallets per query; further wallets follow with the next query.
const BATCH: u64 = 500;

/// The worker and its dependencies.
pub(crate) struct ContractWallets {
    pub(crate) store: Store,
    pub(crate) chain: Arc<dyn Chain>,
    pub(crate) http_context: Arc<HttpContext>,
    pub(crate) policy_settings: Arc<PolicySettings>,
    pub(crate) journal: Arc<Journal>,
}

impl ContractWallets {
    /// Asks the wallets until `end` is cancelled. A wallet that cannot be asked now is asked again after the next
    /// query.
    pub(crate) async fn reconfirm_daily(self, end: CancellationToken) {
        loop {
            if let Err(error) = self.ask_all(&end).await {
                tracing::warn!(
                    error = &error as &dyn core::error::Error,
                    "the links of contract wallets were not confirmed; the next attempt is in ten minutes"
                );
            }
            if end.run_until_cancelled(sleep(INTERVAL)).await.is_none() {
                return;
            }
        }
    }

    async fn ask_all(&self, end: &CancellationToken) -> Result<(), StoreError> {
        let before = self.http_context.now().minus(DAY);
        for link in self.store.read().list_unconfirmed_wallets(before, BATCH).await? {
            if end.is_cancelled() {
                return Ok(());
            }
            let question = WalletQuestion {
                wallet: link.address,
                hash: link.proof.hash,
                signature: link.proof.signature.clone(),
            };
            let (policy, now) = (&self.http_context.policy, self.http_context.now());
            match ask_wallet(&*self.chain, policy, &self.policy_settings, link.user, &question, now).await {
                Ok(WalletAnswer::Yes { .. }) => self.confirm(&link).await?,
                Ok(WalletAnswer::No) => self.end_link(&link).await?,
                // An error of the node, or a trace that cannot be read, proves no change of the wallet.
                Ok(WalletAnswer::Unknown) => tracing::warn!(
                    user.id = %link.user,
                    "the node gave no trace of a contract wallet, so its link stays unconfirmed; the next attempt is \
                     in ten minutes"
                ),
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn core::error::Error,
                        "a contract wallet did not confirm its link; the next attempt is in ten minutes"
                    );
                }
            }
        }
        Ok(())
    }

    async fn confirm(&self, link: &WalletLink) -> Result<(), StoreError> {
        let mut tx = self.store.begin(&Actor::system()).await?;
        match tx.confirm_wallet_link(link.user, link.address).await {
            Ok(()) => tx.commit().await.map(drop),
            // The link ended meanwhile.
            Err(StoreError::NotFound(Missing::Link)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn end_link(&self, link: &WalletLink) -> Result<(), StoreError> {
        let mut tx = self.store.begin(&Actor::system()).await?;
        match tx.end_wallet_link(link.user, link.address).await {
            Ok(_) => tx.commit().await?,
            Err(StoreError::NotFound(Missing::Link)) => return Ok(()),
            Err(error) => return Err(error),
        };
        let event = SecurityEvent {
            external_id: Some(link.external_id.clone()),
            user_id: Some(link.user),
            address: Some(link.address),
            reason: Some("contract_wallet".into()),
            ..SecurityEvent::new(SecurityKind::EthAddressUnlinked)
        };
        if let Err(error) = self.journal.append(event) {
            tracing::error!(
                error = &error as &dyn core::error::Error,
                "the security event for the end of a wallet link was not recorded"
            );
        }
        Ok(())
    }
}

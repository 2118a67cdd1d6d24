//! Asks contract wallets every day whether they still take the signature that linked them (HD10): their owner may have
//! changed, and with it whose address it is; or its owner may have lost the right to ask it.

use gw_audit::{SecurityEvent, SecurityKind};
use gw_http::Edge;
use gw_identity::{Chain, ask_wallet};
use gw_journal::Journal;
use gw_policy::{
    Knobs,
    access::{WalletAnswer, WalletQuestion},
};
use gw_store::{Actor, Missing, Store, StoreError, record::WalletLink};
use gw_types::Seconds;
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

const DAY: Seconds = Seconds(86_400);
/// Between two looks for wallets whose day is over.
const BETWEEN: Duration = Duration::from_secs(600);
/// Of one look; the others have their turn at the next.
const MOST: u64 = 500;

/// What asking draws on.
pub(crate) struct ContractWallets {
    pub(crate) store: Store,
    pub(crate) chain: Arc<dyn Chain>,
    pub(crate) edge: Arc<Edge>,
    pub(crate) knobs: Arc<Knobs>,
    pub(crate) journal: Arc<Journal>,
}

impl ContractWallets {
    /// Asks until told to end. What cannot be asked now is asked at the next look.
    pub(crate) async fn ask_daily(self, end: CancellationToken) {
        loop {
            if let Err(error) = self.ask_all(&end).await {
                tracing::warn!(
                    error = &error as &dyn core::error::Error,
                    "contract wallets were not asked"
                );
            }
            if end.run_until_cancelled(sleep(BETWEEN)).await.is_none() {
                return;
            }
        }
    }

    async fn ask_all(&self, end: &CancellationToken) -> Result<(), StoreError> {
        let before = self.edge.now().minus(DAY);
        for link in self.store.read().list_unconfirmed_wallets(before, MOST).await? {
            if end.is_cancelled() {
                return Ok(());
            }
            let question = WalletQuestion {
                wallet: link.address,
                hash: link.proof.hash,
                signature: link.proof.signature.clone(),
            };
            let (policy, now) = (&self.edge.policy, self.edge.now());
            match ask_wallet(&*self.chain, policy, &self.knobs, link.user, &question, now).await {
                Ok(WalletAnswer::Yes { .. }) => self.confirm(&link).await?,
                Ok(WalletAnswer::No) => self.end(&link).await?,
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn core::error::Error,
                        "a contract wallet could not be asked"
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
            // Ended meanwhile.
            Err(StoreError::NotFound(Missing::Link)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn end(&self, link: &WalletLink) -> Result<(), StoreError> {
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
                "the end of a link was not reported"
            );
        }
        Ok(())
    }
}

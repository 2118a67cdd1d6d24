//! Reports shared contracts whose code differs from the pinned code. Each one is counted, and its shared tag becomes
//! void in the policy store, on every instance, until an administrator confirms the contract (spec/80 section 9).

use crate::{send_context::SendContext, telemetry::RpcMetrics};
use gw_policy::access::BrokenPin;
use gw_store::{Actor, Store, StoreError};
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

/// Writes broken code pins to the policy store, with at most one task for each pin at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct CodePinReporter(Arc<Mutex<HashSet<BrokenPin>>>);

/// The actor of the audit entries.
const AUDIT_ACTOR: &str = "system:code-pins";

impl CodePinReporter {
    /// Reports pins that are broken at the head of the chain, each in a task of its own: the call that reports them
    /// does not wait for the policy store.
    pub(crate) fn report(&self, metrics: &RpcMetrics, sends: &SendContext, broken: Vec<BrokenPin>) {
        for pin in broken {
            metrics.pin_broken();
            if !self.lock().insert(pin) {
                continue;
            }
            let (reporter, store) = (self.clone(), sends.store.clone());
            sends.tasks.spawn(async move {
                if let Err(error) = void_tag(&store, pin).await {
                    tracing::error!(
                        error = &error as &dyn std::error::Error,
                        "a broken code pin could not be stored: the next call to the contract reports it again"
                    );
                }
                reporter.lock().remove(&pin);
            });
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashSet<BrokenPin>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn void_tag(store: &Store, (address, code_hash): BrokenPin) -> Result<(), StoreError> {
    let mut tx = store.begin(&Actor::named(AUDIT_ACTOR)).await?;
    match tx.void_shared_infra_pin(address, code_hash).await {
        Ok(()) => {
            tracing::warn!(
                "the code of a shared contract differs from its pin: the tag is void until an administrator confirms it"
            );
            tx.commit().await.map(drop)
        }
        // The tag has been removed in the meantime.
        Err(StoreError::NotFound(_)) => tx.rollback().await,
        Err(error) => Err(error),
    }
}

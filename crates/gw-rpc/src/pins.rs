//! A shared contract whose code is not the pinned one: counted, and noted in the policy store, so that the tag is void
//! on every instance until an administrator has looked (spec/80 section 9).

use crate::state::Inner;
use gw_policy::access::BrokenPin;
use gw_store::{Actor, Store, StoreError};
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

/// What is being written down.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pins(Arc<Mutex<HashSet<BrokenPin>>>);

/// What the audit log calls the finder.
const FINDER: &str = "system:code-pins";

impl Pins {
    /// Reports what the head of the chain shows. Detached from the call that found it, which is refused all the same.
    pub(crate) fn report(&self, state: &Inner, broken: Vec<BrokenPin>) {
        for found in broken {
            state.meters.pin_broken();
            if !self.open().insert(found) {
                continue;
            }
            let (pins, store) = (self.clone(), state.sends.store.clone());
            state.sends.tasks.spawn(async move {
                if let Err(error) = note(&store, found).await {
                    tracing::error!(
                        error = &error as &dyn std::error::Error,
                        "a broken code pin could not be noted"
                    );
                }
                pins.open().remove(&found);
            });
        }
    }

    fn open(&self) -> std::sync::MutexGuard<'_, HashSet<BrokenPin>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn note(store: &Store, (address, found): BrokenPin) -> Result<(), StoreError> {
    let mut tx = store.begin(&Actor::named(FINDER)).await?;
    match tx.break_shared_infra(address, found).await {
        Ok(()) => {
            tracing::warn!("a shared contract holds other code than its pin: its tag is void");
            tx.commit().await.map(drop)
        }
        // The tag is gone meanwhile.
        Err(StoreError::NotFound(_)) => tx.rollback().await,
        Err(error) => Err(error),
    }
}

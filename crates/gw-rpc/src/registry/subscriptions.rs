//! The subscriptions of one connection.

use super::LogCursor;
use crate::outcome::SubscriptionError;
use gw_evm::SubscriptionId;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Mutex as AsyncMutex, Notify};

/// The most subscriptions of one connection (WS-5); the error message contains this number.
const PER_CONNECTION: usize = 16;

/// The subscriptions of one connection.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    subscriptions: Mutex<Vec<Subscription>>,
    /// Notified when a subscription becomes active, so that earlier updates are delivered at once.
    activated: Notify,
}

/// One subscription.
#[derive(Clone, Debug)]
pub(crate) struct Subscription {
    pub(crate) id: SubscriptionId,
    /// Whether updates may be delivered; false until the client has got the id.
    is_active: bool,
    pub(crate) cursor: Arc<AsyncMutex<LogCursor>>,
}

/// One message of a connection, and the subscriptions that it created.
#[derive(Debug, Default)]
pub(crate) struct Message {
    connection: Arc<Subscriptions>,
    created: Mutex<Vec<SubscriptionId>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Message {
    pub(crate) fn new(connection: &Arc<Subscriptions>) -> Self {
        Self {
            connection: Arc::clone(connection),
            created: Mutex::default(),
        }
    }

    pub(crate) fn subscribe(&self, id: SubscriptionId, cursor: LogCursor) -> Result<(), SubscriptionError> {
        let mut subscriptions = lock(&self.connection.subscriptions);
        if subscriptions.len() >= PER_CONNECTION {
            return Err(SubscriptionError::TooManySubscriptions);
        }
        subscriptions.push(Subscription {
            id,
            is_active: false,
            cursor: Arc::new(AsyncMutex::new(cursor)),
        });
        lock(&self.created).push(id);
        Ok(())
    }

    pub(crate) fn unsubscribe(&self, id: Option<SubscriptionId>) -> bool {
        let mut subscriptions = lock(&self.connection.subscriptions);
        let count_before = subscriptions.len();
        subscriptions.retain(|subscription| Some(subscription.id) != id);
        subscriptions.len() < count_before
    }

    /// Activates the subscriptions that the message created, once its answer is queued.
    pub(crate) fn answered(&self) {
        let created = std::mem::take(&mut *lock(&self.created));
        if created.is_empty() {
            return;
        }
        for subscription in &mut *lock(&self.connection.subscriptions) {
            subscription.is_active |= created.contains(&subscription.id);
        }
        self.connection.activated.notify_one();
    }
}

impl Subscriptions {
    /// Waits until a subscription becomes active.
    pub(crate) async fn activated(&self) {
        self.activated.notified().await;
    }

    /// The subscriptions whose updates may be delivered.
    pub(crate) fn active(&self) -> Vec<Subscription> {
        lock(&self.subscriptions)
            .iter()
            .filter(|subscription| subscription.is_active)
            .cloned()
            .collect()
    }

    pub(crate) fn contains(&self, id: SubscriptionId) -> bool {
        lock(&self.subscriptions)
            .iter()
            .any(|subscription| subscription.id == id)
    }
}

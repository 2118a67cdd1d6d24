//! Limits the requests that wait for the gateway at the same time, in all and for each client.

use gw_http::AddressKey;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// Counts the requests on their way to the gateway.
#[derive(Debug)]
pub(crate) struct ForwardLimits {
    total: usize,
    per_client: usize,
    open: Mutex<HashMap<AddressKey, usize>>,
}

/// The place of one request. Dropping it frees the place.
#[derive(Debug)]
pub(crate) struct ForwardPermit {
    limits: Arc<ForwardLimits>,
    client: AddressKey,
}

impl ForwardLimits {
    pub(crate) fn new(total: usize, per_client: usize) -> Self {
        Self {
            total,
            per_client,
            open: Mutex::default(),
        }
    }

    /// Takes a place for a client; `None` if there is none.
    pub(crate) fn try_acquire(self: &Arc<Self>, client: AddressKey) -> Option<ForwardPermit> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let of_client = open.get(&client).copied().unwrap_or_default();
        if of_client >= self.per_client || open.values().sum::<usize>() >= self.total {
            return None;
        }
        open.insert(client, of_client.saturating_add(1));
        Some(ForwardPermit {
            limits: Arc::clone(self),
            client,
        })
    }
}

impl Drop for ForwardPermit {
    fn drop(&mut self) {
        let mut open = self.limits.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.client) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                open.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_http::ClientAddress;

    fn client(last: u8) -> AddressKey {
        ClientAddress([192, 0, 2, last].into()).into()
    }

    #[test]
    fn one_client_leaves_places_to_others() {
        let limits = Arc::new(ForwardLimits::new(3, 2));
        let first = limits.try_acquire(client(1)).unwrap();
        let _second = limits.try_acquire(client(1)).unwrap();
        assert!(limits.try_acquire(client(1)).is_none(), "the client has its share");
        let _other = limits.try_acquire(client(2)).unwrap();
        assert!(limits.try_acquire(client(3)).is_none(), "no place is left");
        drop(first);
        assert!(limits.try_acquire(client(3)).is_some());
    }
}

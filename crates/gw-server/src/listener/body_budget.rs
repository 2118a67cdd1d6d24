//! Limits the bytes of request bodies that are in memory at once, for a listener and for each address (RL8).
//!
//! A body is charged as it arrives, until its request is answered. If the budget of an address, of a network around it,
//! or of the listener is used up, the slowest incomplete body of the group yields: its request is answered with 503.
//! Complete bodies never yield. If no other body can yield, the arriving one is rejected.

use super::quota::Network;
use gw_http::TrustedProxies;
use http::HeaderMap;
use metrics::{Counter, Gauge, counter, gauge};
use std::{
    collections::{HashMap, HashSet},
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::Waker,
    time::Duration,
};
use tokio::time::Instant;

const MIB: usize = 1024 * 1024;
/// After this time without a rejected body, the next one is logged again.
const QUIET_PERIOD: Duration = Duration::from_secs(60);
/// The group of bodies for which a trusted proxy names no client. Only the listener's budget limits it.
const PROXIES: Network = Network::NONE;

/// The body budgets of one listener, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BodyLimits {
    /// Budget of the listener.
    pub(crate) total: usize,
    /// Budget of one IPv4 address or IPv6 /64. The networks around it have a multiple of it, see [`Network::around`].
    pub(crate) per_address: usize,
}

impl BodyLimits {
    /// For the public listener: 128 of the largest bodies, or 8 KiB for each of the default 16,384 connections. One
    /// address gets a quarter of it, because a whole office may share an address.
    pub(crate) const PUBLIC: Self = Self {
        total: 128 * MIB,
        per_address: 32 * MIB,
    };
    /// For the internal listener: all callers are in one network, so one address may use the whole budget.
    pub(crate) const INTERNAL: Self = Self {
        total: 32 * MIB,
        per_address: 32 * MIB,
    };
}

/// The request bodies of one listener, and their limits.
#[derive(Debug)]
pub(crate) struct BodyBudget {
    listener: &'static str,
    limits: BodyLimits,
    proxies: TrustedProxies,
    table: Mutex<Table>,
    held: Gauge,
    yielded: Counter,
}

#[derive(Debug, Default)]
struct Table {
    held: usize,
    bodies: HashMap<u64, BodyEntry>,
    groups: HashMap<Network, Group>,
    next: u64,
    last_contention: Option<Instant>,
}

#[derive(Debug)]
struct BodyEntry {
    bytes: usize,
    since: Instant,
    is_complete: bool,
    /// From the narrowest to the widest.
    networks: Vec<Network>,
    signal: Arc<Signal>,
}

#[derive(Debug, Default)]
struct Group {
    bytes: usize,
    is_widest: bool,
    members: HashSet<u64>,
}

/// Notifies a body that waits for bytes that it must yield.
#[derive(Debug, Default)]
struct Signal {
    yields: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

/// The charge of one request; released on drop.
#[derive(Debug)]
pub(super) struct BodyCharge {
    budget: Arc<BodyBudget>,
    client: Option<IpAddr>,
    signal: Arc<Signal>,
    id: Mutex<Option<u64>>,
}

/// The budget cannot hold the body: it yields or is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OverBudget;

impl BodyBudget {
    /// Creates the budget of a listener. Metrics and log lines call it `listener`.
    pub(crate) fn new(listener: &'static str, limits: BodyLimits, proxies: TrustedProxies) -> Arc<Self> {
        Arc::new(Self {
            listener,
            limits,
            proxies,
            table: Mutex::default(),
            held: gauge!("ledger_gateway_http_body_bytes", "listener" => listener),
            yielded: counter!("ledger_gateway_http_bodies_refused_total", "listener" => listener),
        })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a charge for the body of one request. Behind a trusted proxy, the client is the one that the proxy names.
    pub(super) fn open(self: &Arc<Self>, peer: IpAddr, headers: &HeaderMap) -> Arc<BodyCharge> {
        let client = self.proxies.forwarded(peer, headers).unwrap_or(peer);
        let client = (!self.proxies.contains(client)).then_some(client);
        Arc::new(BodyCharge {
            budget: Arc::clone(self),
            client,
            signal: Arc::default(),
            id: Mutex::default(),
        })
    }

    /// Counts a rejected body and logs it: the first one, and again after [`QUIET_PERIOD`].
    fn report_rejection(&self, table: &mut Table, network: Option<Network>) {
        self.yielded.increment(1);
        let now = Instant::now();
        let last = table.last_contention.replace(now);
        if last.is_none_or(|last| now.duration_since(last) >= QUIET_PERIOD) {
            let network = network.map_or_else(|| "any".to_owned(), |network| network.to_string());
            tracing::warn!(
                listener = self.listener,
                held = table.held,
                total = self.limits.total,
                per_address = self.limits.per_address,
                network,
                "the budget for request bodies is used up: from now on the slowest incomplete bodies are answered with \
                 503; block the network if it sends bodies that do not end"
            );
        }
    }
}

impl Table {
    /// Adds bytes to a body and its networks.
    fn add(&mut self, id: u64, bytes: usize) {
        let Some(entry) = self.bodies.get_mut(&id) else { return };
        entry.bytes = entry.bytes.saturating_add(bytes);
        self.held = self.held.saturating_add(bytes);
        for network in &entry.networks {
            if let Some(group) = self.groups.get_mut(network) {
                group.bytes = group.bytes.saturating_add(bytes);
            }
        }
    }

    fn remove(&mut self, id: u64) {
        let Some(entry) = self.bodies.remove(&id) else { return };
        self.held = self.held.saturating_sub(entry.bytes);
        for network in &entry.networks {
            let Some(group) = self.groups.get_mut(network) else {
                continue;
            };
            group.bytes = group.bytes.saturating_sub(entry.bytes);
            group.members.remove(&id);
            if group.members.is_empty() {
                self.groups.remove(network);
            }
        }
    }

    fn insert(&mut self, networks: Vec<Network>, signal: &Arc<Signal>) -> u64 {
        let id = self.next;
        self.next = id.wrapping_add(1);
        for network in &networks {
            let group = self.groups.entry(*network).or_default();
            group.is_widest = networks.last() == Some(network);
            group.members.insert(id);
        }
        let entry = BodyEntry {
            bytes: 0,
            since: Instant::now(),
            is_complete: false,
            networks,
            signal: Arc::clone(signal),
        };
        self.bodies.insert(id, entry);
        id
    }

    fn bytes_of(&self, network: Network) -> usize {
        self.groups.get(&network).map_or(0, |group| group.bytes)
    }

    /// The incomplete body of a network with the lowest rate. A body without bytes is skipped: ending it would free
    /// nothing. `arriving` is the id of the arriving body and the bytes to add to it.
    fn slowest(&self, network: Network, arriving: (u64, usize)) -> Option<u64> {
        let now = Instant::now();
        let rated = self.groups.get(&network)?.members.iter().filter_map(|id| {
            let entry = self.bodies.get(id).filter(|entry| !entry.is_complete)?;
            let bytes = entry
                .bytes
                .saturating_add(if *id == arriving.0 { arriving.1 } else { 0 });
            let age = now.duration_since(entry.since).as_micros().saturating_add(1);
            // In bytes per day, so that integers distinguish very slow bodies.
            let rate = (bytes as u128).saturating_mul(86_400_000_000) / age;
            (bytes > 0).then_some((rate, entry.since, *id))
        });
        rated.min().map(|(.., id)| id)
    }

    /// The slowest body of the widest network with the most bytes that has an incomplete body.
    fn slowest_of_fullest(&self, arriving: (u64, usize)) -> Option<(Network, u64)> {
        let mut widest: Vec<_> = self.groups.iter().filter(|(_, group)| group.is_widest).collect();
        widest.sort_unstable_by_key(|(network, group)| std::cmp::Reverse((group.bytes, **network)));
        widest
            .into_iter()
            .find_map(|(network, _)| Some((*network, self.slowest(*network, arriving)?)))
    }
}

impl BodyCharge {
    /// Charges bytes that arrived. Slower bodies yield if there is no budget for them.
    ///
    /// # Errors
    /// [`OverBudget`] if this body is the slowest one itself, or has yielded before.
    pub(super) fn charge(&self, bytes: usize) -> Result<(), OverBudget> {
        let budget = &*self.budget;
        let mut own_id = self.id.lock().unwrap_or_else(PoisonError::into_inner);
        if self.has_yielded() {
            return Err(OverBudget);
        }
        let networks = self.client.map_or_else(|| vec![(PROXIES, usize::MAX)], Network::around);
        let mut table = budget.table();
        let id = *own_id
            .get_or_insert_with(|| table.insert(networks.iter().map(|(network, _)| *network).collect(), &self.signal));
        for (network, factor) in networks {
            let limit = budget.limits.per_address.saturating_mul(factor);
            while table.bytes_of(network).saturating_add(bytes) > limit {
                budget.report_rejection(&mut table, Some(network));
                let slowest = table.slowest(network, (id, bytes));
                self.evict(&mut table, id, slowest)?;
            }
        }
        while table.held.saturating_add(bytes) > budget.limits.total {
            let slowest = table.slowest_of_fullest((id, bytes));
            budget.report_rejection(&mut table, slowest.map(|(network, _)| network));
            self.evict(&mut table, id, slowest.map(|(_, id)| id))?;
        }
        table.add(id, bytes);
        budget.held.set(table.held as f64);
        Ok(())
    }

    /// Removes the slowest body from the table and notifies it; or this body, if it is the slowest one.
    fn evict(&self, table: &mut Table, own_id: u64, slowest: Option<u64>) -> Result<(), OverBudget> {
        let evicted = slowest.filter(|id| *id != own_id);
        let signal = evicted
            .and_then(|id| table.bodies.get(&id))
            .map(|entry| Arc::clone(&entry.signal));
        table.remove(evicted.unwrap_or(own_id));
        match signal {
            Some(signal) => {
                signal.request_yield();
                Ok(())
            }
            None => {
                self.signal.yields.store(true, Ordering::SeqCst);
                Err(OverBudget)
            }
        }
    }

    /// Marks the body as complete, so that it does not yield any more.
    pub(super) fn complete(&self) {
        let own_id = *self.id.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = own_id
            && let Some(entry) = self.budget.table().bodies.get_mut(&id)
        {
            entry.is_complete = true;
        }
    }

    /// Whether this body was rejected or has yielded.
    pub(super) fn has_yielded(&self) -> bool {
        self.signal.yields.load(Ordering::SeqCst)
    }

    /// Whether this body was rejected or has yielded. If not, `waker` is woken once it must yield.
    pub(super) fn poll_yielded(&self, waker: &Waker) -> bool {
        let mut registered_waker = self.signal.waker.lock().unwrap_or_else(PoisonError::into_inner);
        if !registered_waker
            .as_ref()
            .is_some_and(|registered| registered.will_wake(waker))
        {
            *registered_waker = Some(waker.clone());
        }
        drop(registered_waker);
        self.has_yielded()
    }
}

impl Signal {
    fn request_yield(&self) {
        self.yields.store(true, Ordering::SeqCst);
        let registered_waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = registered_waker {
            waker.wake();
        }
    }
}

impl Drop for BodyCharge {
    fn drop(&mut self) {
        let own_id = self.id.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(id) = own_id {
            let mut table = self.budget.table();
            table.remove(id);
            self.budget.held.set(table.held as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(total: usize, per_address: usize) -> Arc<BodyBudget> {
        let proxies = TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap()]);
        BodyBudget::new("test", BodyLimits { total, per_address }, proxies)
    }

    fn open(budget: &Arc<BodyBudget>, peer: &str) -> Arc<BodyCharge> {
        budget.open(peer.parse().unwrap(), &HeaderMap::new())
    }

    fn held(budget: &Arc<BodyBudget>) -> usize {
        budget.table().held
    }

    /// RL8: a stalled body yields before a slow one, and a slow one before a fast one.
    #[tokio::test(start_paused = true)]
    async fn rl8_the_slowest_body_of_an_address_yields() {
        let budget = budget(10_000, 1_000);
        let stalled = open(&budget, "198.51.100.1");
        let slow = open(&budget, "198.51.100.1");
        stalled.charge(300).unwrap();
        slow.charge(300).unwrap();
        tokio::time::advance(Duration::from_secs(2)).await;
        slow.charge(10).unwrap();
        let fast = open(&budget, "198.51.100.1");
        tokio::time::advance(Duration::from_secs(1)).await;
        fast.charge(390).unwrap();
        let other_address = open(&budget, "203.0.113.1");
        other_address.charge(1_000).unwrap();
        assert!(
            ![&stalled, &slow, &fast, &other_address]
                .iter()
                .any(|charge| charge.has_yielded())
        );
        fast.charge(100).unwrap();
        assert!(stalled.has_yielded() && !slow.has_yielded());
        assert_eq!(stalled.charge(1), Err(OverBudget), "it has yielded for good");
        // The slow body exceeds the budget, and is itself the slowest one.
        tokio::time::advance(Duration::from_secs(1)).await;
        fast.charge(200).unwrap();
        assert_eq!(slow.charge(100), Err(OverBudget));
        assert!(!fast.has_yielded() && !other_address.has_yielded());
        drop((stalled, slow, fast, other_address));
        let table = budget.table();
        assert!(table.held == 0 && table.bodies.is_empty() && table.groups.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn rl8_a_complete_body_never_yields() {
        let budget = budget(10_000, 1_000);
        let complete = open(&budget, "198.51.100.1");
        complete.charge(900).unwrap();
        complete.complete();
        tokio::time::advance(Duration::from_secs(9)).await;
        let next = open(&budget, "198.51.100.1");
        assert_eq!(next.charge(200), Err(OverBudget));
        assert!(!complete.has_yielded() && held(&budget) == 900);
        drop(complete);
        assert_eq!(open(&budget, "198.51.100.1").charge(1_000), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn rl8_at_a_full_listener_the_fullest_network_yields() {
        let budget = budget(2_000, 1_000);
        let quiet = open(&budget, "203.0.113.1");
        quiet.charge(100).unwrap();
        let mut crowd = Vec::new();
        for host in 1..=9 {
            tokio::time::advance(Duration::from_millis(100)).await;
            let charge = open(&budget, &format!("198.51.100.{host}"));
            charge.charge(200).unwrap();
            crowd.push(charge);
        }
        let proxied = open(&budget, "10.0.0.1");
        proxied.charge(150).unwrap();
        assert!(crowd[0].has_yielded() && !crowd[1].has_yielded() && !quiet.has_yielded());
        let forwarded: HeaderMap = [(
            http::HeaderName::from_static("x-forwarded-for"),
            "203.0.113.7".parse().unwrap(),
        )]
        .into_iter()
        .collect();
        let client = budget.open("10.0.0.1".parse().unwrap(), &forwarded);
        assert_eq!(client.client, Some("203.0.113.7".parse().unwrap()));
        client.charge(200).unwrap();
        assert!(crowd[1].has_yielded() && !quiet.has_yielded() && !proxied.has_yielded());
    }

    #[tokio::test(start_paused = true)]
    async fn rl8_networks_around_an_address_are_limited_too() {
        let budget = budget(100_000, 100);
        let hosts: Vec<_> = (1..=4)
            .map(|host| open(&budget, &format!("2001:db8:1:{host}::1")))
            .collect();
        for host in &hosts[..3] {
            host.charge(100).unwrap();
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        hosts[3].charge(100).unwrap();
        assert!(
            hosts[0].has_yielded() && held(&budget) == 300,
            "a /56 has three times the budget of a /64"
        );
    }
}

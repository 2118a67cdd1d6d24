//! How many bytes of request bodies are held at once, in all and of one address (RL8).
//!
//! A body is charged as it arrives, until its request is answered. Where the share of an address, of a network around it,
//! or of the listener is used up, the slowest body of the group that is not whole yet gives way: it is answered with 503.
//! Bodies that are whole never give way; where there is nothing else, the one that arrives is refused.

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
/// Calm that lasts so long ends a rush; the next one is told of anew.
const CALM: Duration = Duration::from_secs(60);
/// The group of all that trusted proxies send in their own name: bounded by the total alone.
const PROXIES: Network = Network::NOWHERE;

/// How many bytes of bodies one listener holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BodyLimits {
    /// In all.
    pub(super) total: usize,
    /// Of one IPv4 address or IPv6 /64; the networks around it may hold some times as many.
    pub(super) per_address: usize,
}

impl BodyLimits {
    /// 128 of the largest bodies, or 8 KiB for each of as many connections as there are at most by default; a quarter of
    /// it for an address, behind which an office may stand.
    pub(super) const PUBLIC: Self = Self {
        total: 128 * MIB,
        per_address: 32 * MIB,
    };
    /// Who reaches the internal listener is one network's.
    pub(super) const INTERNAL: Self = Self {
        total: 32 * MIB,
        per_address: 32 * MIB,
    };
}

/// The bodies of one listener.
#[derive(Debug)]
pub(super) struct BodyBudget {
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
    bodies: HashMap<u64, Entry>,
    groups: HashMap<Network, Group>,
    next: u64,
    last_rush: Option<Instant>,
}

#[derive(Debug)]
struct Entry {
    bytes: usize,
    since: Instant,
    is_whole: bool,
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

/// Tells a body that waits for bytes that it gives way.
#[derive(Debug, Default)]
struct Signal {
    yields: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

/// What one request holds of the budget, given back when it is dropped.
#[derive(Debug)]
pub(super) struct BodyCharge {
    budget: Arc<BodyBudget>,
    client: Option<IpAddr>,
    signal: Arc<Signal>,
    id: Mutex<Option<u64>>,
}

/// The budget has no room for a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OverBudget;

impl BodyBudget {
    /// Of a listener that is called this in metrics and log lines.
    pub(super) fn new(listener: &'static str, limits: BodyLimits, proxies: TrustedProxies) -> Arc<Self> {
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

    /// For the body of one request. Behind a trusted proxy the client is whom it names.
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

    /// Counts a refusal; the operator is told once, and again after a calm.
    fn report_refusal(&self, table: &mut Table, network: Option<Network>) {
        self.yielded.increment(1);
        let now = Instant::now();
        let last = table.last_rush.replace(now);
        if last.is_none_or(|last| now.duration_since(last) >= CALM) {
            let network = network.map_or_else(|| "any".to_owned(), |network| network.to_string());
            tracing::warn!(
                listener = self.listener,
                held = table.held,
                total = self.limits.total,
                per_address = self.limits.per_address,
                network,
                "request bodies on their way hold as many bytes as they may: from now on the slowest of them are answered \
                 with 503; block the network if it sends bodies that do not end"
            );
        }
    }
}

impl Table {
    /// Counts bytes of a body.
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
        let entry = Entry {
            bytes: 0,
            since: Instant::now(),
            is_whole: false,
            networks,
            signal: Arc::clone(signal),
        };
        self.bodies.insert(id, entry);
        id
    }

    fn bytes_of(&self, network: Network) -> usize {
        self.groups.get(&network).map_or(0, |group| group.bytes)
    }

    /// Of the bodies of a network that are not whole, the one that came in at the lowest rate; one that holds nothing would
    /// make no room. `own` is counted with what it is about to get.
    fn slowest(&self, network: Network, own: (u64, usize)) -> Option<u64> {
        let now = Instant::now();
        let rated = self.groups.get(&network)?.members.iter().filter_map(|id| {
            let entry = self.bodies.get(id).filter(|entry| !entry.is_whole)?;
            let bytes = entry.bytes.saturating_add(if *id == own.0 { own.1 } else { 0 });
            let age = now.duration_since(entry.since).as_micros().saturating_add(1);
            // Bytes in a day, so that whole numbers tell creeping bodies apart.
            let rate = (bytes as u128).saturating_mul(86_400_000_000) / age;
            (bytes > 0).then_some((rate, entry.since, *id))
        });
        rated.min().map(|(.., id)| id)
    }

    /// The slowest body of the widest network that holds most bytes, and has one that is not whole.
    fn slowest_of_fullest(&self, own: (u64, usize)) -> Option<(Network, u64)> {
        let mut widest: Vec<_> = self.groups.iter().filter(|(_, group)| group.is_widest).collect();
        widest.sort_unstable_by_key(|(network, group)| std::cmp::Reverse((group.bytes, **network)));
        widest
            .into_iter()
            .find_map(|(network, _)| Some((*network, self.slowest(*network, own)?)))
    }
}

impl BodyCharge {
    /// Charges bytes that came; slower bodies give way for them.
    ///
    /// # Errors
    /// [`OverBudget`] where this body is the slowest itself, or has given way before.
    pub(super) fn charge(&self, bytes: usize) -> Result<(), OverBudget> {
        let budget = &*self.budget;
        let mut own = self.id.lock().unwrap_or_else(PoisonError::into_inner);
        if self.has_yielded() {
            return Err(OverBudget);
        }
        let around = self.client.map_or_else(|| vec![(PROXIES, usize::MAX)], Network::around);
        let mut table = budget.table();
        let id = *own
            .get_or_insert_with(|| table.insert(around.iter().map(|(network, _)| *network).collect(), &self.signal));
        for (network, times) in around {
            let most = budget.limits.per_address.saturating_mul(times);
            while table.bytes_of(network).saturating_add(bytes) > most {
                budget.report_refusal(&mut table, Some(network));
                let slowest = table.slowest(network, (id, bytes));
                self.give_way(&mut table, id, slowest)?;
            }
        }
        while table.held.saturating_add(bytes) > budget.limits.total {
            let slowest = table.slowest_of_fullest((id, bytes));
            budget.report_refusal(&mut table, slowest.map(|(network, _)| network));
            self.give_way(&mut table, id, slowest.map(|(_, id)| id))?;
        }
        table.add(id, bytes);
        budget.held.set(table.held as f64);
        Ok(())
    }

    /// Ends the slowest body, which may be this one.
    fn give_way(&self, table: &mut Table, own: u64, slowest: Option<u64>) -> Result<(), OverBudget> {
        let other = slowest.filter(|id| *id != own);
        let signal = other
            .and_then(|id| table.bodies.get(&id))
            .map(|entry| Arc::clone(&entry.signal));
        table.remove(other.unwrap_or(own));
        match signal {
            Some(signal) => {
                signal.end();
                Ok(())
            }
            None => {
                self.signal.yields.store(true, Ordering::SeqCst);
                Err(OverBudget)
            }
        }
    }

    /// The body is whole: it does not give way any more.
    pub(super) fn complete(&self) {
        let own = *self.id.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = own
            && let Some(entry) = self.budget.table().bodies.get_mut(&id)
        {
            entry.is_whole = true;
        }
    }

    /// Whether this body was refused, or gave way.
    pub(super) fn has_yielded(&self) -> bool {
        self.signal.yields.load(Ordering::SeqCst)
    }

    /// The same; where it was not, the task is woken when it is.
    pub(super) fn poll_yielded(&self, waker: &Waker) -> bool {
        let mut waiting = self.signal.waker.lock().unwrap_or_else(PoisonError::into_inner);
        if !waiting.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *waiting = Some(waker.clone());
        }
        drop(waiting);
        self.has_yielded()
    }
}

impl Signal {
    fn end(&self) {
        self.yields.store(true, Ordering::SeqCst);
        let waiting = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = waiting {
            waker.wake();
        }
    }
}

impl Drop for BodyCharge {
    fn drop(&mut self) {
        let own = self.id.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(id) = own {
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

    /// RL8: the body that stands still gives way before one that creeps, and that before one that comes fast.
    #[tokio::test(start_paused = true)]
    async fn rl8_the_slowest_body_of_an_address_gives_way() {
        let budget = budget(10_000, 1_000);
        let still = open(&budget, "198.51.100.1");
        let creeping = open(&budget, "198.51.100.1");
        still.charge(300).unwrap();
        creeping.charge(300).unwrap();
        tokio::time::advance(Duration::from_secs(2)).await;
        creeping.charge(10).unwrap();
        let fast = open(&budget, "198.51.100.1");
        tokio::time::advance(Duration::from_secs(1)).await;
        fast.charge(390).unwrap();
        let elsewhere = open(&budget, "203.0.113.1");
        elsewhere.charge(1_000).unwrap();
        assert!(
            ![&still, &creeping, &fast, &elsewhere]
                .iter()
                .any(|one| one.has_yielded())
        );
        fast.charge(100).unwrap();
        assert!(still.has_yielded() && !creeping.has_yielded());
        assert_eq!(still.charge(1), Err(OverBudget), "it has given way for good");
        // The creeping one asks for more than there is: it is the slowest itself.
        tokio::time::advance(Duration::from_secs(1)).await;
        fast.charge(200).unwrap();
        assert_eq!(creeping.charge(100), Err(OverBudget));
        assert!(!fast.has_yielded() && !elsewhere.has_yielded());
        drop((still, creeping, fast, elsewhere));
        let table = budget.table();
        assert!(table.held == 0 && table.bodies.is_empty() && table.groups.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn rl8_a_whole_body_never_gives_way() {
        let budget = budget(10_000, 1_000);
        let whole = open(&budget, "198.51.100.1");
        whole.charge(900).unwrap();
        whole.complete();
        tokio::time::advance(Duration::from_secs(9)).await;
        let next = open(&budget, "198.51.100.1");
        assert_eq!(next.charge(200), Err(OverBudget));
        assert!(!whole.has_yielded() && held(&budget) == 900);
        drop(whole);
        assert_eq!(open(&budget, "198.51.100.1").charge(1_000), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn rl8_a_full_listener_takes_from_the_fullest_network() {
        let budget = budget(2_000, 1_000);
        let quiet = open(&budget, "203.0.113.1");
        quiet.charge(100).unwrap();
        let mut crowd = Vec::new();
        for host in 1..=9 {
            tokio::time::advance(Duration::from_millis(100)).await;
            let one = open(&budget, &format!("198.51.100.{host}"));
            one.charge(200).unwrap();
            crowd.push(one);
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
    async fn rl8_networks_around_an_address_are_bounded_too() {
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
            "a /56 holds three times as much as a /64"
        );
    }
}

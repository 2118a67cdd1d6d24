//! Limits the connections of a listener, and closes idle ones to make room for new ones (RL7).
//!
//! There is a limit for the listener, one for each address, and a multiple of the latter for each network around an
//! address; the networks have the prefix lengths that the login limits use. If an address or network is at its limit,
//! the connection of it that has been idle longest yields, which means that it is closed. If the listener is full, an
//! idle connection of the fullest network yields. Behind a trusted proxy the client is not known before its request:
//! only the listener's limit applies to a proxy's connections, and they yield last.
//!
//! Invariant: a connection yields only while none of its requests is being answered. A request is being answered until
//! the last byte of its response is written. A WebSocket is never idle. A connection whose request headers are
//! incomplete is idle.

use gw_http::TrustedProxies;
use metrics::{Counter, Gauge, counter, gauge};
use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
    net::{IpAddr, Ipv6Addr},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};

/// After this time without a closed or refused connection, the next one is logged again.
const QUIET_PERIOD: Duration = Duration::from_secs(60);

/// The connection limits of one listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionLimits {
    /// Limit of the listener.
    pub(crate) total: usize,
    /// Limit of one IPv4 address or IPv6 /64.
    pub(crate) per_address: usize,
}

/// The open connections of one listener, and their limits.
#[derive(Debug)]
pub(crate) struct Quota {
    listener: &'static str,
    limits: ConnectionLimits,
    proxies: TrustedProxies,
    table: Mutex<Table>,
    idle_order: Arc<IdleOrder>,
    open: Gauge,
    yielded: Counter,
    refused: Counter,
}

/// A logical clock for the order in which connections became idle, and a notification for tasks that wait for one.
#[derive(Debug)]
struct IdleOrder {
    next: AtomicU64,
    /// Whether a task waits for `changed`.
    has_waiter: AtomicBool,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Table {
    connections: HashMap<u64, Arc<Activity>>,
    /// The connections by network, of every prefix length. Connections of proxies are in no group.
    groups: HashMap<Network, Group>,
    /// The widest networks, ordered by number of connections. Among equals, the one with the longest idle connection is
    /// last.
    ranking: BTreeSet<(usize, Reverse<u64>, Network)>,
    next: u64,
    last_contention: Option<Instant>,
}

#[derive(Debug, Default)]
struct Group {
    members: HashMap<u64, Arc<Activity>>,
    /// Lower bound: no member has been idle since before this moment.
    idle_since: u64,
}

/// An IPv6 network: prefix length and address bits. IPv4 networks are in the IPv4-mapped range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Network(u8, u128);

/// The state of one connection.
#[derive(Debug)]
pub(super) struct Activity {
    id: u64,
    /// From the narrowest to the widest.
    networks: Vec<Network>,
    /// One of the constants below, or the moment since which the connection is idle.
    state: AtomicU64,
    yields: Notify,
    idle_order: Arc<IdleOrder>,
}

/// State: a request is being answered, or the connection is a WebSocket.
const ANSWERING: u64 = 0;
/// State: the response is complete and is being written.
const WRITING: u64 = 1;
/// State: the connection was asked to yield.
const YIELDING: u64 = 2;
/// The first moment of the idle clock; smaller values are states.
const FIRST_MOMENT: u64 = 3;

/// The right to one open connection; released on drop.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    quota: Arc<Quota>,
    activity: Arc<Activity>,
}

/// Why a connection gets no permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NoPermit {
    /// The address or a network around it is at its limit, and all its connections are busy.
    Network,
    /// The listener is at its limit, and all its connections are busy.
    Listener,
}

impl Network {
    /// A value that [`Self::around`] returns for no address.
    pub(super) const NONE: Self = Self(0, 0);

    /// The networks that an address is counted in, from the narrowest to the widest. The number is the factor by which
    /// the limit of an address is multiplied for the network.
    pub(super) fn around(address: IpAddr) -> Vec<(Self, usize)> {
        let network = |bits: u128, width: u8, prefix: u8| {
            let mask = u128::MAX.checked_shl(u32::from(width - prefix)).unwrap_or(0);
            Self(prefix.saturating_add(128 - width), bits & mask)
        };
        match address.to_canonical() {
            // The IPv4-mapped range contains no IPv6 addresses in use.
            IpAddr::V4(v4) => {
                let bits = Ipv6Addr::to_bits(v4.to_ipv6_mapped());
                vec![(network(bits, 128, 128), 1), (network(bits, 128, 120), 10)]
            }
            IpAddr::V6(v6) => {
                let bits = v6.to_bits();
                vec![
                    (network(bits, 128, 64), 1),
                    (network(bits, 128, 56), 3),
                    (network(bits, 128, 48), 9),
                ]
            }
        }
    }
}

impl core::fmt::Display for Network {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match Ipv6Addr::from_bits(self.1).to_ipv4_mapped() {
            Some(v4) => write!(f, "{v4}/{}", self.0.saturating_sub(96)),
            None => write!(f, "{}/{}", Ipv6Addr::from_bits(self.1), self.0),
        }
    }
}

impl Quota {
    /// Creates the quota of a listener. Metrics and log lines call it `listener`.
    pub(crate) fn new(listener: &'static str, limits: ConnectionLimits, proxies: TrustedProxies) -> Arc<Self> {
        let idle_order = IdleOrder {
            next: AtomicU64::new(FIRST_MOMENT),
            has_waiter: AtomicBool::new(false),
            changed: Notify::new(),
        };
        Arc::new(Self {
            listener,
            limits,
            proxies,
            table: Mutex::default(),
            idle_order: Arc::new(idle_order),
            open: gauge!("ledger_gateway_http_connections", "listener" => listener),
            yielded: counter!("ledger_gateway_http_connections_yielded_total", "listener" => listener),
            refused: counter!("ledger_gateway_http_connections_refused_total", "listener" => listener),
        })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acquires a permit for a connection from `peer`. Waits while the listener is full and all its connections are
    /// busy. Returns `None` if the address or a network around it is full and all its connections are busy.
    pub(super) async fn acquire(self: &Arc<Self>, peer: IpAddr) -> Option<ConnectionPermit> {
        loop {
            let changed = self.idle_order.changed.notified();
            match self.try_acquire(peer) {
                Ok(permit) => return Some(permit),
                Err(NoPermit::Network) => {
                    self.refused.increment(1);
                    return None;
                }
                Err(NoPermit::Listener) => {}
            }
            self.idle_order.has_waiter.store(true, Ordering::SeqCst);
            // A connection may have become idle before `has_waiter` was set.
            if let Ok(permit) = self.try_acquire(peer) {
                return Some(permit);
            }
            changed.await;
        }
    }

    fn try_acquire(self: &Arc<Self>, peer: IpAddr) -> Result<ConnectionPermit, NoPermit> {
        let networks = if self.proxies.contains(peer) {
            Vec::new()
        } else {
            Network::around(peer)
        };
        let mut table = self.table();
        for (network, factor) in &networks {
            let limit = self.limits.per_address.saturating_mul(*factor);
            if table.connections_of(*network) >= limit {
                self.report_contention(
                    &mut table,
                    "a network is at its connection limit",
                    limit,
                    Some(*network),
                );
                let idle = table.yield_longest_idle_of(*network).ok_or(NoPermit::Network)?;
                self.evict(&mut table, &idle);
            }
        }
        if table.connections.len() >= self.limits.total {
            self.report_contention(
                &mut table,
                "the listener is at its connection limit",
                self.limits.total,
                None,
            );
            let now = self.idle_order.next.load(Ordering::SeqCst);
            let idle = table.yield_longest_idle(now).ok_or(NoPermit::Listener)?;
            self.evict(&mut table, &idle);
        }
        let id = table.next;
        table.next = id.wrapping_add(1);
        let networks = networks.into_iter().map(|(network, _)| network).collect();
        let idle_since = self.idle_order.now();
        let (state, idle_order) = (AtomicU64::new(idle_since), Arc::clone(&self.idle_order));
        let activity = Arc::new(Activity {
            id,
            networks,
            state,
            yields: Notify::new(),
            idle_order,
        });
        table.insert(&activity, idle_since);
        self.open.increment(1.0);
        Ok(ConnectionPermit {
            quota: Arc::clone(self),
            activity,
        })
    }

    fn evict(&self, table: &mut Table, activity: &Activity) {
        table.remove(activity);
        self.open.decrement(1.0);
        self.yielded.increment(1);
        activity.yields.notify_one();
    }

    /// Logs that connections yield or are refused: at the first one, and again after [`QUIET_PERIOD`].
    fn report_contention(&self, table: &mut Table, cause: &'static str, limit: usize, network: Option<Network>) {
        let now = Instant::now();
        let last = table.last_contention.replace(now);
        if last.is_none_or(|last| now.duration_since(last) >= QUIET_PERIOD) {
            let network = network.map_or_else(|| "any".to_owned(), |network| network.to_string());
            tracing::warn!(
                listener = self.listener,
                limit,
                network,
                "{cause}: from now on the longest idle connection is closed for each new one (MAX_CONNECTIONS, \
                 MAX_CONNECTIONS_PER_ADDRESS, MAX_INTERNAL_CONNECTIONS)"
            );
        }
    }
}

impl IdleOrder {
    fn now(&self) -> u64 {
        self.next.fetch_add(1, Ordering::SeqCst)
    }

    fn notify_waiters(&self) {
        if self.has_waiter.swap(false, Ordering::SeqCst) {
            self.changed.notify_waiters();
        }
    }
}

impl Table {
    fn connections_of(&self, network: Network) -> usize {
        self.groups.get(&network).map_or(0, |group| group.members.len())
    }

    fn insert(&mut self, activity: &Arc<Activity>, now: u64) {
        self.connections.insert(activity.id, Arc::clone(activity));
        for network in &activity.networks {
            let is_widest = activity.networks.last() == Some(network);
            let group = self.groups.entry(*network).or_insert_with(|| Group {
                idle_since: now,
                ..Group::default()
            });
            let old_rank = (group.members.len(), Reverse(group.idle_since), *network);
            group.members.insert(activity.id, Arc::clone(activity));
            if is_widest {
                self.ranking.remove(&old_rank);
                self.ranking
                    .insert((group.members.len(), Reverse(group.idle_since), *network));
            }
        }
    }

    /// Removes a connection. Returns whether it was in the table.
    fn remove(&mut self, activity: &Activity) -> bool {
        if self.connections.remove(&activity.id).is_none() {
            return false;
        }
        for network in &activity.networks {
            let Some(group) = self.groups.get_mut(network) else {
                continue;
            };
            let old_rank = (group.members.len(), Reverse(group.idle_since), *network);
            group.members.remove(&activity.id);
            let remaining = group.members.len();
            if activity.networks.last() == Some(network) {
                self.ranking.remove(&old_rank);
                if remaining > 0 {
                    self.ranking.insert((remaining, Reverse(group.idle_since), *network));
                }
            }
            if remaining == 0 {
                self.groups.remove(network);
            }
        }
        true
    }

    /// Asks the longest idle connection of a network to yield, and returns it. In a network with several addresses, an
    /// address with more connections comes first.
    fn yield_longest_idle_of(&self, network: Network) -> Option<Arc<Activity>> {
        let group = self.groups.get(&network)?;
        let connections = |activity: &Activity| {
            activity
                .networks
                .first()
                .map_or(0, |narrowest| self.connections_of(*narrowest))
        };
        let idle = group
            .members
            .values()
            .filter_map(|member| Some((Reverse(connections(member)), member.idle_since()?, member)));
        yield_first(idle)
    }

    /// Asks the longest idle connection of the fullest network that has an idle one to yield, and returns it.
    /// Connections of proxies come last. `now` is the current moment of the idle clock.
    fn yield_longest_idle(&mut self, now: u64) -> Option<Arc<Activity>> {
        let mut below = None;
        loop {
            let next = match below {
                None => self.ranking.last(),
                Some(below) => self.ranking.range(..below).next_back(),
            };
            let Some(rank @ (_, Reverse(idle_since), network)) = next.copied() else {
                break;
            };
            if idle_since >= now {
                // This search has already found no idle connection in this network.
                below = Some(rank);
                continue;
            }
            let group = self.groups.get_mut(&network)?;
            // The known moment is only a lower bound: a connection with a later request became idle later.
            let longest = group.members.values().filter_map(|member| member.idle_since()).min();
            if longest.is_some_and(|longest| longest <= idle_since)
                && let Some(idle) = self.yield_longest_idle_of(network)
            {
                return Some(idle);
            }
            let Some(group) = self.groups.get_mut(&network) else {
                break;
            };
            group.idle_since = longest.unwrap_or(now).max(idle_since.saturating_add(1)).min(now);
            self.ranking.remove(&rank);
            self.ranking.insert((rank.0, Reverse(group.idle_since), network));
        }
        let proxied = self
            .connections
            .values()
            .filter(|connection| connection.networks.is_empty());
        yield_first(proxied.filter_map(|connection| Some((Reverse(0), connection.idle_since()?, connection))))
    }
}

/// Asks the first of these connections to yield that is still idle since the same moment, and returns it.
fn yield_first<'a>(idle: impl Iterator<Item = (Reverse<usize>, u64, &'a Arc<Activity>)>) -> Option<Arc<Activity>> {
    let mut idle: Vec<_> = idle.collect();
    while let Some(index) =
        (0..idle.len()).min_by_key(|index| idle.get(*index).map(|(connections, since, _)| (*connections, *since)))
    {
        let (_, since, activity) = idle.swap_remove(index);
        if activity.request_yield(since) {
            return Some(Arc::clone(activity));
        }
    }
    None
}

impl Activity {
    fn idle_since(&self) -> Option<u64> {
        Some(self.state.load(Ordering::SeqCst)).filter(|state| *state >= FIRST_MOMENT)
    }

    fn request_yield(&self, since: u64) -> bool {
        self.state
            .compare_exchange(since, YIELDING, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
    }

    /// Call when the headers of a request are complete.
    pub(super) fn begin(&self) {
        self.state.store(ANSWERING, Ordering::SeqCst);
    }

    /// Call when the last byte of the response was handed to the connection.
    fn answered(&self) {
        let _ = self
            .state
            .compare_exchange(ANSWERING, WRITING, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Call when everything handed to the connection was written. Returns whether the connection became idle.
    pub(super) fn flushed(&self) -> bool {
        if self.state.load(Ordering::Relaxed) != WRITING {
            return false;
        }
        self.state.store(self.idle_order.now(), Ordering::SeqCst);
        self.idle_order.notify_waiters();
        true
    }

    /// Whether a request is being answered. Then no read deadline applies.
    pub(super) fn is_busy(&self) -> bool {
        matches!(self.state.load(Ordering::SeqCst), ANSWERING | WRITING)
    }

    /// Waits until the connection is asked to yield.
    pub(super) async fn yield_requested(&self) {
        self.yields.notified().await;
    }

    /// A permit of a quota with one connection.
    #[cfg(test)]
    pub(super) fn single() -> ConnectionPermit {
        let limits = ConnectionLimits {
            total: 1,
            per_address: 1,
        };
        let quota = Quota::new("test", limits, TrustedProxies::default());
        quota.try_acquire(IpAddr::from([127, 0, 0, 1])).unwrap()
    }
}

impl ConnectionPermit {
    pub(super) fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        // A connection that yielded was removed before.
        if self.quota.table().remove(&self.activity) {
            self.quota.open.decrement(1.0);
            self.quota.idle_order.notify_waiters();
        }
    }
}

pin_project_lite::pin_project! {
    /// A response body that reports when all of it was handed to the connection.
    pub(super) struct TrackedBody<B> {
        #[pin]
        body: B,
        activity: AnsweredGuard,
    }
}

/// Marks the request as answered on drop. `None` for a WebSocket, which has its own timeouts.
struct AnsweredGuard(Option<Arc<Activity>>);

impl Drop for AnsweredGuard {
    fn drop(&mut self) {
        if let Some(activity) = &self.0 {
            activity.answered();
        }
    }
}

impl<B> TrackedBody<B> {
    pub(super) fn new(body: B, activity: Option<Arc<Activity>>) -> Self {
        Self {
            body,
            activity: AnsweredGuard(activity),
        }
    }
}

impl<B: http_body::Body> http_body::Body for TrackedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<B::Data>, B::Error>>> {
        self.project().body.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rl7_networks_have_the_prefix_lengths_of_login_limits() {
        let networks = |text: &str| -> Vec<(String, usize)> {
            Network::around(text.parse().unwrap())
                .iter()
                .map(|(net, factor)| (net.to_string(), *factor))
                .collect()
        };
        let named = |rows: &[(&str, usize)]| {
            rows.iter()
                .map(|(net, factor)| ((*net).to_owned(), *factor))
                .collect::<Vec<_>>()
        };
        let v6 = [("2001:db8:1:2::/64", 1), ("2001:db8:1::/56", 3), ("2001:db8:1::/48", 9)];
        assert_eq!(networks("2001:db8:1:2:3::4"), named(&v6));
        assert_eq!(
            networks("198.51.100.77"),
            named(&[("198.51.100.77/32", 1), ("198.51.100.0/24", 10)])
        );
        assert_eq!(networks("::ffff:198.51.100.77"), networks("198.51.100.77"));
    }

    fn quota(total: usize, per_address: usize) -> Arc<Quota> {
        let proxies = TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap()]);
        Quota::new("test", ConnectionLimits { total, per_address }, proxies)
    }

    fn acquire(quota: &Arc<Quota>, peer: &str) -> Result<ConnectionPermit, NoPermit> {
        quota.try_acquire(peer.parse().unwrap())
    }

    fn has_yielded(permit: &ConnectionPermit) -> bool {
        permit.activity.state.load(Ordering::SeqCst) == YIELDING
    }

    fn make_request(permit: &ConnectionPermit) {
        permit.activity.begin();
        permit.activity.answered();
        permit.activity.flushed();
    }

    #[test]
    fn rl7_the_longest_idle_of_the_address_yields_and_no_busy_one() {
        let quota = quota(100, 3);
        let permits: Vec<_> = (0..3).map(|_| acquire(&quota, "198.51.100.1").unwrap()).collect();
        permits[0].activity.begin();
        make_request(&permits[1]);
        let fourth = acquire(&quota, "198.51.100.1").unwrap();
        assert_eq!([0, 1, 2].map(|at| has_yielded(&permits[at])), [false, false, true]);
        // A request counts as being answered until its response is written.
        for permit in [&permits[1], &fourth] {
            permit.activity.begin();
            permit.activity.answered();
        }
        assert_eq!(acquire(&quota, "198.51.100.1").unwrap_err(), NoPermit::Network);
        assert!(acquire(&quota, "198.51.100.2").is_ok());
        fourth.activity.flushed();
        assert!(acquire(&quota, "198.51.100.1").is_ok() && has_yielded(&fourth));
        drop((permits, fourth));
        let table = quota.table();
        assert!(table.connections.is_empty() && table.groups.is_empty() && table.ranking.is_empty());
    }

    #[test]
    fn rl7_a_network_is_bounded_and_its_fullest_address_yields() {
        let quota = quota(100, 1);
        let peers = ["2001:db8:1:2::1", "2001:db8:1:3::1", "2001:db8:1:4::1"];
        let permits: Vec<_> = peers.iter().map(|peer| acquire(&quota, peer).unwrap()).collect();
        // The /56 is full; the longest idle of it yields.
        let _fourth = acquire(&quota, "2001:db8:1:5::1").unwrap();
        assert_eq!([0, 1, 2].map(|at| has_yielded(&permits[at])), [true, false, false]);
        let _outside = acquire(&quota, "2001:db8:2:5::1").unwrap();
        assert!(!has_yielded(&permits[1]));
    }

    #[test]
    fn rl7_a_full_listener_takes_from_the_fullest_network_and_from_a_proxy_last() {
        let quota = quota(6, 3);
        let proxied = acquire(&quota, "10.0.0.1").unwrap();
        let lone = acquire(&quota, "203.0.113.1").unwrap();
        let crowd: Vec<_> = (0..3).map(|_| acquire(&quota, "198.51.100.1").unwrap()).collect();
        let neighbour = acquire(&quota, "198.51.100.2").unwrap();
        // The listener is full with six: the crowd's network yields, first the address with more connections, and of it
        // the longest idle connection.
        let fifth = acquire(&quota, "192.0.2.1").unwrap();
        let sixth = acquire(&quota, "192.0.2.129").unwrap();
        assert_eq!([0, 1, 2].map(|at| has_yielded(&crowd[at])), [true, true, false]);
        assert!(
            ![&proxied, &lone, &neighbour, &fifth, &sixth]
                .into_iter()
                .any(has_yielded)
        );
        // All networks have two connections: the network with the longest idle one yields.
        make_request(&crowd[2]);
        make_request(&neighbour);
        let next = acquire(&quota, "203.0.113.77").unwrap();
        assert!(has_yielded(&fifth) && !has_yielded(&lone));
        for permit in [&lone, &crowd[2], &neighbour, &sixth, &next] {
            permit.activity.begin();
        }
        let newest = acquire(&quota, "203.0.113.200").unwrap();
        assert!(has_yielded(&proxied));
        newest.activity.begin();
        assert_eq!(acquire(&quota, "8.8.8.8").unwrap_err(), NoPermit::Listener);
    }

    #[test]
    fn rl7_only_the_listener_limit_applies_to_a_proxy() {
        let quota = quota(50, 2);
        let permits: Vec<_> = (0..50).map(|_| acquire(&quota, "10.0.0.1").unwrap()).collect();
        assert!(!permits.iter().any(has_yielded));
        let _next = acquire(&quota, "10.0.0.1").unwrap();
        assert!(has_yielded(&permits[0]));
    }

    #[tokio::test]
    async fn rl7_a_new_connection_waits_while_all_are_busy() {
        let quota = quota(1, 5);
        let only = acquire(&quota, "198.51.100.1").unwrap();
        only.activity.begin();
        let waiting = tokio::spawn({
            let quota = Arc::clone(&quota);
            async move { quota.acquire(IpAddr::from([203, 0, 113, 1])).await.is_some() }
        });
        while !quota.idle_order.has_waiter.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
        only.activity.answered();
        only.activity.flushed();
        assert!(waiting.await.unwrap());
    }
}

//! Who may have a connection to a listener, and whose yields when there are too many (RL7).
//!
//! A listener has a number of connections in all, one address a part of them, and the networks around an address some times
//! as many, in the steps of the login places. Where the bound is met, the connection of the same group that has been idle
//! longest yields; where the listener is full, it is one of the fullest network. Behind a trusted proxy the client is not
//! known before its request: a proxy's connections are bounded by the total alone, and yield last.
//!
//! Invariant: a connection yields only while no request of it is being answered, its last byte written included. A
//! connection that became a WebSocket is never idle. One whose request's headers are not whole is.

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

/// Calm that lasts so long ends a rush; the next one is told of anew.
const CALM: Duration = Duration::from_secs(60);

/// How many connections of one listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ConnectionLimits {
    /// In all.
    pub(super) total: usize,
    /// Of one IPv4 address or IPv6 /64.
    pub(super) per_address: usize,
}

/// The connections of one listener.
#[derive(Debug)]
pub(super) struct Quota {
    listener: &'static str,
    limits: ConnectionLimits,
    proxies: TrustedProxies,
    table: Mutex<Table>,
    moments: Arc<Moments>,
    open: Gauge,
    yielded: Counter,
    refused: Counter,
}

/// The order in which connections fell idle, and word of it for those who wait.
#[derive(Debug)]
struct Moments {
    next: AtomicU64,
    is_waited_for: AtomicBool,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Table {
    all: HashMap<u64, Arc<Activity>>,
    /// By network, narrow and wide ones; those of proxies are in none.
    groups: HashMap<Network, Group>,
    /// The widest networks, the fullest last, of equals the one idle longest last.
    ranking: BTreeSet<(usize, Reverse<u64>, Network)>,
    next: u64,
    last_rush: Option<Instant>,
}

#[derive(Debug, Default)]
struct Group {
    members: HashMap<u64, Arc<Activity>>,
    /// None of them has been idle since before this moment.
    idle_since: u64,
}

/// The length of a prefix and its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Network(u8, u128);

/// What one connection is at.
#[derive(Debug)]
pub(super) struct Activity {
    id: u64,
    /// From the narrowest to the widest.
    networks: Vec<Network>,
    /// One of the states below, or since when it is idle.
    state: AtomicU64,
    yields: Notify,
    moments: Arc<Moments>,
}

/// A request is being answered, or it is a WebSocket.
const ANSWERING: u64 = 0;
/// The answer is complete and on its way.
const WRITING: u64 = 1;
/// It is told to yield.
const YIELDING: u64 = 2;
const FIRST_MOMENT: u64 = 3;

/// A connection's place, given up when it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    quota: Arc<Quota>,
    activity: Arc<Activity>,
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NoSeat {
    /// All connections of the address, or of a network around it, are being answered.
    Network,
    /// All connections of the listener are.
    Listener,
}

impl Network {
    /// No address is of it alone.
    pub(super) const NOWHERE: Self = Self(0, 0);

    /// The networks an address is counted in and how many times an address's part each may hold.
    pub(super) fn around(address: IpAddr) -> Vec<(Self, usize)> {
        let of = |bits: u128, width: u8, prefix: u8| {
            let mask = u128::MAX.checked_shl(u32::from(width - prefix)).unwrap_or(0);
            Self(prefix.saturating_add(128 - width), bits & mask)
        };
        match address.to_canonical() {
            // Beside all IPv6 addresses that are given to anybody.
            IpAddr::V4(v4) => {
                let bits = Ipv6Addr::to_bits(v4.to_ipv6_mapped());
                vec![(of(bits, 128, 128), 1), (of(bits, 128, 120), 10)]
            }
            IpAddr::V6(v6) => {
                let bits = v6.to_bits();
                vec![(of(bits, 128, 64), 1), (of(bits, 128, 56), 3), (of(bits, 128, 48), 9)]
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
    /// Of a listener that is called this in metrics and log lines.
    pub(super) fn new(listener: &'static str, limits: ConnectionLimits, proxies: TrustedProxies) -> Arc<Self> {
        let moments = Moments {
            next: AtomicU64::new(FIRST_MOMENT),
            is_waited_for: AtomicBool::new(false),
            changed: Notify::new(),
        };
        Arc::new(Self {
            listener,
            limits,
            proxies,
            table: Mutex::default(),
            moments: Arc::new(moments),
            open: gauge!("ledger_gateway_http_connections", "listener" => listener),
            yielded: counter!("ledger_gateway_http_connections_yielded_total", "listener" => listener),
            refused: counter!("ledger_gateway_http_connections_refused_total", "listener" => listener),
        })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection from there. Where every connection of the listener is being answered it is waited for;
    /// nothing where every one of the address, or of a network around it, is.
    pub(super) async fn seat(self: &Arc<Self>, peer: IpAddr) -> Option<Seat> {
        loop {
            let changed = self.moments.changed.notified();
            match self.try_seat(peer) {
                Ok(seat) => return Some(seat),
                Err(NoSeat::Network) => {
                    self.refused.increment(1);
                    return None;
                }
                Err(NoSeat::Listener) => {}
            }
            self.moments.is_waited_for.store(true, Ordering::SeqCst);
            // One may have come free before it was known that somebody waits.
            if let Ok(seat) = self.try_seat(peer) {
                return Some(seat);
            }
            changed.await;
        }
    }

    fn try_seat(self: &Arc<Self>, peer: IpAddr) -> Result<Seat, NoSeat> {
        let networks = if self.proxies.contains(peer) {
            Vec::new()
        } else {
            Network::around(peer)
        };
        let mut table = self.table();
        for (network, times) in &networks {
            let most = self.limits.per_address.saturating_mul(*times);
            if table.len_of(*network) >= most {
                self.tell(
                    &mut table,
                    "a network has as many connections as it may",
                    most,
                    Some(*network),
                );
                let yields = table.longest_idle_of(*network).ok_or(NoSeat::Network)?;
                self.end(&mut table, &yields);
            }
        }
        if table.all.len() >= self.limits.total {
            self.tell(
                &mut table,
                "the listener has as many connections as it may",
                self.limits.total,
                None,
            );
            let now = self.moments.next.load(Ordering::SeqCst);
            let yields = table.longest_idle(now).ok_or(NoSeat::Listener)?;
            self.end(&mut table, &yields);
        }
        let id = table.next;
        table.next = id.wrapping_add(1);
        let networks = networks.into_iter().map(|(network, _)| network).collect();
        let idle_since = self.moments.now();
        let (state, moments) = (AtomicU64::new(idle_since), Arc::clone(&self.moments));
        let activity = Arc::new(Activity {
            id,
            networks,
            state,
            yields: Notify::new(),
            moments,
        });
        table.insert(&activity, idle_since);
        self.open.increment(1.0);
        Ok(Seat {
            quota: Arc::clone(self),
            activity,
        })
    }

    fn end(&self, table: &mut Table, activity: &Activity) {
        table.remove(activity);
        self.open.decrement(1.0);
        self.yielded.increment(1);
        activity.yields.notify_one();
    }

    /// Tells once that connections begin to yield or are refused, and again after a calm.
    fn tell(&self, table: &mut Table, why: &'static str, limit: usize, network: Option<Network>) {
        let now = Instant::now();
        let last = table.last_rush.replace(now);
        if last.is_none_or(|last| now.duration_since(last) >= CALM) {
            let network = network.map_or_else(|| "any".to_owned(), |network| network.to_string());
            tracing::warn!(
                listener = self.listener,
                limit,
                network,
                "{why}: from now on the longest idle connection is closed for each new one (MAX_CONNECTIONS, \
                 MAX_CONNECTIONS_PER_ADDRESS, MAX_INTERNAL_CONNECTIONS)"
            );
        }
    }
}

impl Moments {
    fn now(&self) -> u64 {
        self.next.fetch_add(1, Ordering::SeqCst)
    }

    fn something_changed(&self) {
        if self.is_waited_for.swap(false, Ordering::SeqCst) {
            self.changed.notify_waiters();
        }
    }
}

impl Table {
    fn len_of(&self, network: Network) -> usize {
        self.groups.get(&network).map_or(0, |group| group.members.len())
    }

    fn insert(&mut self, activity: &Arc<Activity>, now: u64) {
        self.all.insert(activity.id, Arc::clone(activity));
        for network in &activity.networks {
            let is_widest = activity.networks.last() == Some(network);
            let group = self.groups.entry(*network).or_insert_with(|| Group {
                idle_since: now,
                ..Group::default()
            });
            let before = (group.members.len(), Reverse(group.idle_since), *network);
            group.members.insert(activity.id, Arc::clone(activity));
            if is_widest {
                self.ranking.remove(&before);
                self.ranking
                    .insert((group.members.len(), Reverse(group.idle_since), *network));
            }
        }
    }

    /// Whether it was there.
    fn remove(&mut self, activity: &Activity) -> bool {
        if self.all.remove(&activity.id).is_none() {
            return false;
        }
        for network in &activity.networks {
            let Some(group) = self.groups.get_mut(network) else {
                continue;
            };
            let before = (group.members.len(), Reverse(group.idle_since), *network);
            group.members.remove(&activity.id);
            let left = group.members.len();
            if activity.networks.last() == Some(network) {
                self.ranking.remove(&before);
                if left > 0 {
                    self.ranking.insert((left, Reverse(group.idle_since), *network));
                }
            }
            if left == 0 {
                self.groups.remove(network);
            }
        }
        true
    }

    /// Tells the longest idle connection of the network to yield: of the fullest address, where it holds several.
    fn longest_idle_of(&self, network: Network) -> Option<Arc<Activity>> {
        let group = self.groups.get(&network)?;
        let crowd = |activity: &Activity| activity.networks.first().map_or(0, |narrowest| self.len_of(*narrowest));
        let idle = group
            .members
            .values()
            .filter_map(|one| Some((Reverse(crowd(one)), one.idle_since()?, one)));
        first_to_yield(idle)
    }

    /// The same of all: of the fullest network that has one, of equals the longest idle; a proxy's if there is no other.
    fn longest_idle(&mut self, now: u64) -> Option<Arc<Activity>> {
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
                // Looked at in this search, without success.
                below = Some(rank);
                continue;
            }
            let group = self.groups.get_mut(&network)?;
            // What was known is a lower bound: who made a request since has been idle less long.
            let longest = group.members.values().filter_map(|one| one.idle_since()).min();
            if longest.is_some_and(|longest| longest <= idle_since)
                && let Some(yields) = self.longest_idle_of(network)
            {
                return Some(yields);
            }
            let Some(group) = self.groups.get_mut(&network) else {
                break;
            };
            group.idle_since = longest.unwrap_or(now).max(idle_since.saturating_add(1)).min(now);
            self.ranking.remove(&rank);
            self.ranking.insert((rank.0, Reverse(group.idle_since), network));
        }
        let proxied = self.all.values().filter(|one| one.networks.is_empty());
        first_to_yield(proxied.filter_map(|one| Some((Reverse(0), one.idle_since()?, one))))
    }
}

/// The first of these that is still as idle as it was when it was looked at; it is told to yield.
fn first_to_yield<'a>(idle: impl Iterator<Item = (Reverse<usize>, u64, &'a Arc<Activity>)>) -> Option<Arc<Activity>> {
    let mut idle: Vec<_> = idle.collect();
    while let Some(at) = (0..idle.len()).min_by_key(|at| idle.get(*at).map(|(crowd, since, _)| (*crowd, *since))) {
        let (_, since, activity) = idle.swap_remove(at);
        if activity.ask_to_yield(since) {
            return Some(Arc::clone(activity));
        }
    }
    None
}

impl Activity {
    fn idle_since(&self) -> Option<u64> {
        Some(self.state.load(Ordering::SeqCst)).filter(|state| *state >= FIRST_MOMENT)
    }

    fn ask_to_yield(&self, since: u64) -> bool {
        self.state
            .compare_exchange(since, YIELDING, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
    }

    /// The headers of a request are complete.
    pub(super) fn begin(&self) {
        self.state.store(ANSWERING, Ordering::SeqCst);
    }

    /// The last byte of the answer was handed to the connection.
    fn answered(&self) {
        let _ = self
            .state
            .compare_exchange(ANSWERING, WRITING, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Everything handed to the connection was written; whether it fell idle by that.
    pub(super) fn flushed(&self) -> bool {
        if self.state.load(Ordering::Relaxed) != WRITING {
            return false;
        }
        self.state.store(self.moments.now(), Ordering::SeqCst);
        self.moments.something_changed();
        true
    }

    /// Whether a request is being answered: then reading has no deadline of its own.
    pub(super) fn is_busy(&self) -> bool {
        matches!(self.state.load(Ordering::SeqCst), ANSWERING | WRITING)
    }

    /// Returns when it is told to yield.
    pub(super) async fn told_to_yield(&self) {
        self.yields.notified().await;
    }

    /// One that nobody counts.
    #[cfg(test)]
    pub(super) fn alone() -> Seat {
        let limits = ConnectionLimits {
            total: 1,
            per_address: 1,
        };
        let quota = Quota::new("test", limits, TrustedProxies::default());
        quota.try_seat(IpAddr::from([127, 0, 0, 1])).unwrap()
    }
}

impl Seat {
    pub(super) fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // One that yielded gave its place up before.
        if self.quota.table().remove(&self.activity) {
            self.quota.open.decrement(1.0);
            self.quota.moments.something_changed();
        }
    }
}

pin_project_lite::pin_project! {
    /// The body of an answer: notes when all of it was handed over.
    pub(super) struct Noting<B> {
        #[pin]
        body: B,
        activity: NoteAnswered,
    }
}

/// `None` is a WebSocket, which keeps its own time.
struct NoteAnswered(Option<Arc<Activity>>);

impl Drop for NoteAnswered {
    fn drop(&mut self) {
        if let Some(activity) = &self.0 {
            activity.answered();
        }
    }
}

impl<B> Noting<B> {
    pub(super) fn new(body: B, activity: Option<Arc<Activity>>) -> Self {
        Self {
            body,
            activity: NoteAnswered(activity),
        }
    }
}

impl<B: http_body::Body> http_body::Body for Noting<B> {
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
    fn rl7_networks_are_those_of_the_login_places() {
        let of = |text: &str| -> Vec<(String, usize)> {
            Network::around(text.parse().unwrap())
                .iter()
                .map(|(net, times)| (net.to_string(), *times))
                .collect()
        };
        let named = |rows: &[(&str, usize)]| {
            rows.iter()
                .map(|(net, times)| ((*net).to_owned(), *times))
                .collect::<Vec<_>>()
        };
        let v6 = [("2001:db8:1:2::/64", 1), ("2001:db8:1::/56", 3), ("2001:db8:1::/48", 9)];
        assert_eq!(of("2001:db8:1:2:3::4"), named(&v6));
        assert_eq!(
            of("198.51.100.77"),
            named(&[("198.51.100.77/32", 1), ("198.51.100.0/24", 10)])
        );
        assert_eq!(of("::ffff:198.51.100.77"), of("198.51.100.77"));
    }

    fn quota(total: usize, per_address: usize) -> Arc<Quota> {
        let proxies = TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap()]);
        Quota::new("test", ConnectionLimits { total, per_address }, proxies)
    }

    fn seat(quota: &Arc<Quota>, peer: &str) -> Result<Seat, NoSeat> {
        quota.try_seat(peer.parse().unwrap())
    }

    fn has_yielded(seat: &Seat) -> bool {
        seat.activity.state.load(Ordering::SeqCst) == YIELDING
    }

    fn make_request(seat: &Seat) {
        seat.activity.begin();
        seat.activity.answered();
        seat.activity.flushed();
    }

    #[test]
    fn rl7_the_longest_idle_of_the_address_yields_and_none_that_is_answered() {
        let quota = quota(100, 3);
        let seats: Vec<_> = (0..3).map(|_| seat(&quota, "198.51.100.1").unwrap()).collect();
        seats[0].activity.begin();
        make_request(&seats[1]);
        let fourth = seat(&quota, "198.51.100.1").unwrap();
        assert_eq!([0, 1, 2].map(|at| has_yielded(&seats[at])), [false, false, true]);
        // A complete answer that is not written yet is being answered.
        for seat in [&seats[1], &fourth] {
            seat.activity.begin();
            seat.activity.answered();
        }
        assert_eq!(seat(&quota, "198.51.100.1").unwrap_err(), NoSeat::Network);
        assert!(seat(&quota, "198.51.100.2").is_ok());
        fourth.activity.flushed();
        assert!(seat(&quota, "198.51.100.1").is_ok() && has_yielded(&fourth));
        drop((seats, fourth));
        let table = quota.table();
        assert!(table.all.is_empty() && table.groups.is_empty() && table.ranking.is_empty());
    }

    #[test]
    fn rl7_a_network_is_bounded_and_its_fullest_address_yields() {
        let quota = quota(100, 1);
        let peers = ["2001:db8:1:2::1", "2001:db8:1:3::1", "2001:db8:1:4::1"];
        let seats: Vec<_> = peers.iter().map(|peer| seat(&quota, peer).unwrap()).collect();
        // The /56 is full; the longest idle of it yields.
        let _fourth = seat(&quota, "2001:db8:1:5::1").unwrap();
        assert_eq!([0, 1, 2].map(|at| has_yielded(&seats[at])), [true, false, false]);
        let _other = seat(&quota, "2001:db8:2:5::1").unwrap();
        assert!(!has_yielded(&seats[1]));
    }

    #[test]
    fn rl7_a_full_listener_takes_from_the_fullest_network_and_from_a_proxy_last() {
        let quota = quota(6, 3);
        let proxied = seat(&quota, "10.0.0.1").unwrap();
        let lone = seat(&quota, "203.0.113.1").unwrap();
        let crowd: Vec<_> = (0..3).map(|_| seat(&quota, "198.51.100.1").unwrap()).collect();
        let neighbour = seat(&quota, "198.51.100.2").unwrap();
        // Six: the crowd's network yields, and of it the address with more, the longest idle first.
        let fifth = seat(&quota, "192.0.2.1").unwrap();
        let sixth = seat(&quota, "192.0.2.129").unwrap();
        assert_eq!([0, 1, 2].map(|at| has_yielded(&crowd[at])), [true, true, false]);
        assert!(
            ![&proxied, &lone, &neighbour, &fifth, &sixth]
                .into_iter()
                .any(has_yielded)
        );
        // All networks of two: the one that holds the longest idle of them.
        make_request(&crowd[2]);
        make_request(&neighbour);
        let _next = seat(&quota, "203.0.113.77").unwrap();
        assert!(has_yielded(&fifth) && !has_yielded(&lone));
        for one in [&lone, &crowd[2], &neighbour, &sixth, &_next] {
            one.activity.begin();
        }
        let _newest = seat(&quota, "203.0.113.200").unwrap();
        assert!(has_yielded(&proxied));
        _newest.activity.begin();
        assert_eq!(seat(&quota, "8.8.8.8").unwrap_err(), NoSeat::Listener);
    }

    #[test]
    fn rl7_a_proxy_is_bounded_by_the_listener_alone() {
        let quota = quota(50, 2);
        let seats: Vec<_> = (0..50).map(|_| seat(&quota, "10.0.0.1").unwrap()).collect();
        assert!(!seats.iter().any(has_yielded));
        let _next = seat(&quota, "10.0.0.1").unwrap();
        assert!(has_yielded(&seats[0]));
    }

    #[tokio::test]
    async fn rl7_whoever_finds_all_busy_waits_for_the_first_to_be_done() {
        let quota = quota(1, 5);
        let only = seat(&quota, "198.51.100.1").unwrap();
        only.activity.begin();
        let waits = tokio::spawn({
            let quota = Arc::clone(&quota);
            async move { quota.seat(IpAddr::from([203, 0, 113, 1])).await.is_some() }
        });
        while !quota.moments.is_waited_for.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
        only.activity.answered();
        only.activity.flushed();
        assert!(waits.await.unwrap());
    }
}

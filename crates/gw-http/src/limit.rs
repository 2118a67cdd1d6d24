//! Rate limits counted in this process. They limit `/rpc`, whose path makes no network call for them. Limits that
//! instances share are counted in the cache.

use crate::client::ClientAddress;
use governor::{
    Quota, RateLimiter, clock::Clock as _, middleware::NoOpMiddleware, nanos::Nanos, state::keyed::DashMapStateStore,
};
use gw_types::{Clock, Seconds};
use ipnet::IpNet;
use std::{
    hash::Hash,
    net::{IpAddr, Ipv6Addr},
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

/// An address as limits count it: IPv6 by /64, since one subscriber owns a whole /64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressKey(IpAddr);

impl AddressKey {
    /// The address, or the first address of its /64.
    pub const fn address(self) -> IpAddr {
        self.0
    }
}

impl core::fmt::Display for AddressKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

impl From<ClientAddress> for AddressKey {
    fn from(ClientAddress(address): ClientAddress) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(v4) => IpAddr::V4(v4),
            IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << 64))),
        })
    }
}

/// The networks of an address for which open sessions are limited: a subscriber's, a site's and a whole allocation, the
/// widest last. For IPv6 /64, /56 and /48; for IPv4 the address and its /24.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Networks(Vec<String>);

impl Networks {
    /// The names of the networks, the narrowest first.
    pub fn names(&self) -> &[String] {
        &self.0
    }
}

impl From<ClientAddress> for Networks {
    fn from(ClientAddress(address): ClientAddress) -> Self {
        let net = |prefix: u8| {
            IpNet::new(address.to_canonical(), prefix).map_or_else(|_| String::new(), |net| net.trunc().to_string())
        };
        Self(match address.to_canonical() {
            IpAddr::V4(_) => vec![net(32), net(24)],
            IpAddr::V6(_) => vec![net(64), net(56), net(48)],
        })
    }
}

/// A limit of requests per minute and key. All of them may come in one burst.
pub struct RateLimit<K: Hash + Eq + Clone = AddressKey> {
    limiter: RateLimiter<K, DashMapStateStore<K>, Ticks, NoOpMiddleware<Nanos>>,
    clock: Ticks,
    checks: AtomicU32,
}

/// After this many checks, keys that are idle again are removed.
const SWEEP_EVERY: u32 = 4096;

impl<K: Hash + Eq + Clone> RateLimit<K> {
    /// Creates a limit of `max` requests per minute and key.
    pub fn per_minute(max: NonZeroU32, clock: Arc<dyn Clock>) -> Self {
        let clock = Ticks(clock);
        let limiter = RateLimiter::dashmap_with_clock(Quota::per_minute(max), clock.clone());
        Self {
            limiter,
            clock,
            checks: AtomicU32::new(0),
        }
    }

    /// Counts one request. If it is over the limit, returns the time to wait.
    ///
    /// # Errors
    /// The time to wait, if the request is over the limit.
    pub fn check(&self, key: &K) -> Result<(), Seconds> {
        if self.checks.fetch_add(1, Ordering::Relaxed) % SWEEP_EVERY == SWEEP_EVERY - 1 {
            self.limiter.retain_recent();
        }
        self.limiter
            .check_key(key)
            .map_err(|refused| round_up(refused.wait_time_from(self.clock.now())))
    }
}

impl<K: Hash + Eq + Clone> core::fmt::Debug for RateLimit<K> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RateLimit").finish_non_exhaustive()
    }
}

fn round_up(wait: Duration) -> Seconds {
    let secs = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    Seconds(u32::try_from(secs).unwrap_or(u32::MAX).max(1))
}

/// Adapts the gateway's clock to the limiter.
#[derive(Clone, Debug)]
struct Ticks(Arc<dyn Clock>);

impl governor::clock::Clock for Ticks {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        let micros = u64::try_from(self.0.now().micros()).unwrap_or(0);
        Nanos::new(micros.saturating_mul(1000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_types::testing::ManualClock;

    fn key(text: &str) -> AddressKey {
        ClientAddress(text.parse().unwrap()).into()
    }

    #[test]
    fn identity_9_ten_per_minute_then_wait() {
        let clock = Arc::new(ManualClock::default());
        let limit = RateLimit::per_minute(NonZeroU32::new(10).unwrap(), clock.clone());
        let (one, other) = (key("198.51.100.1"), key("198.51.100.2"));
        for _ in 0..10 {
            assert_eq!(limit.check(&one), Ok(()));
        }
        assert_eq!(limit.check(&one), Err(Seconds(6)));
        assert_eq!(limit.check(&other), Ok(()), "addresses are counted apart");
        clock.pass(6);
        assert_eq!(limit.check(&one), Ok(()));
        assert_eq!(limit.check(&one), Err(Seconds(6)));
    }

    #[test]
    fn rts4_hd34_networks_of_an_address() {
        let names = |text: &str| Networks::from(ClientAddress(text.parse().unwrap())).names().to_vec();
        assert_eq!(
            names("2001:db8:1:2:3::4"),
            ["2001:db8:1:2::/64", "2001:db8:1::/56", "2001:db8:1::/48"]
        );
        assert_eq!(names("198.51.100.77"), ["198.51.100.77/32", "198.51.100.0/24"]);
        assert_eq!(names("::ffff:198.51.100.77"), names("198.51.100.77"));
    }

    #[test]
    fn identity_9_ipv6_counts_by_64() {
        assert_eq!(key("2001:db8:1:2:3::4"), key("2001:db8:1:2:ffff::1"));
        assert_ne!(key("2001:db8:1:2::1"), key("2001:db8:1:3::1"));
        assert_eq!(key("::ffff:198.51.100.1"), key("198.51.100.1"));
    }
}

//! How many logins one network may have on their way (spec/10 §9, HD34).

use gw_cache::Group;
use gw_http::{ClientAddress, Networks};

/// The places of one opener: its address may hold `per_address`, the networks around it some times as many.
#[derive(Debug)]
pub(crate) struct Places {
    networks: Networks,
    per_address: u32,
}

impl Places {
    /// Of an opener.
    pub(crate) fn new(opener: ClientAddress, per_address: u32) -> Self {
        Self {
            networks: Networks::from(opener),
            per_address,
        }
    }

    /// The groups that an open login counts in. An IPv6 site holds three times as much as a subscriber's network, an
    /// allocation nine times; an IPv4 /24, behind which many unrelated people stand, ten times as much as an address.
    pub(crate) fn groups(&self) -> Vec<Group<'_>> {
        let names = self.networks.names();
        let factors: &[u32] = if names.len() > 2 { &[1, 3, 9] } else { &[1, 10] };
        let most = factors.iter().map(|factor| self.per_address.saturating_mul(*factor));
        names
            .iter()
            .zip(most)
            .map(|(name, most)| Group::new(name, most))
            .collect()
    }

    /// The same for what is finished: it takes no place of an open one, and yields by network all the same.
    pub(crate) fn unlimited(&self) -> Vec<Group<'_>> {
        self.networks
            .names()
            .iter()
            .map(|name| Group::unlimited(name))
            .collect()
    }
}

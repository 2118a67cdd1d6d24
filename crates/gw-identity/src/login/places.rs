//! Limits on the open logins of an address and its networks (spec/10 §9, HD34).

use gw_cache::Group;
use gw_http::{ClientAddress, Networks};

/// The limits of one opener: `per_address` for its address, and a multiple of it for each network around it.
#[derive(Debug)]
pub(crate) struct Places {
    networks: Networks,
    per_address: u32,
}

impl Places {
    /// Creates the limits of an opener.
    pub(crate) fn new(opener: ClientAddress, per_address: u32) -> Self {
        Self {
            networks: Networks::from(opener),
            per_address,
        }
    }

    /// The groups that an open login counts in, with their limits. An IPv6 site may hold three times as many as a
    /// subscriber's network, and an allocation nine times; an IPv4 /24, which many unrelated people share, ten times as
    /// many as an address.
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

    /// The groups of a finished login, without limits: it does not count as open, but a full cache still evicts entries
    /// of the fullest network first.
    pub(crate) fn unlimited(&self) -> Vec<Group<'_>> {
        self.networks
            .names()
            .iter()
            .map(|name| Group::unlimited(name))
            .collect()
    }
}

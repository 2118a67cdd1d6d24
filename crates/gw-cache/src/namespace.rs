//! The kinds of stored values: names, lifetimes and capacities.

use gw_types::Seconds;
use std::time::Duration;

macro_rules! kinds {
    ($(#[$doc:meta])* $kind:ident:
        $($(#[$line:meta])* $name:ident = $text:literal, $ttl:literal s, $capacity:literal;)*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $kind {
            $($(#[$line])* $name,)*
        }

        impl $kind {
            /// All variants.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Returns its part of the keys.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// Returns the lifetime of its entries.
            pub const fn ttl(self) -> Duration {
                match self { $(Self::$name => Duration::from_secs($ttl),)* }
            }

            /// Returns the maximum number of entries.
            pub const fn capacity(self) -> usize {
                match self { $(Self::$name => $capacity,)* }
            }
        }
    };
}

kinds! {
    /// A kind of value.
    Namespace:
    /// Pending login sessions (ZK-10; 10 000 open ones, spec/10 §1).
    LoginSession = "login", 600 s, 10_000;
    /// Completed logins whose tokens wait for their page: they do not count against the open ones.
    FinishedLogin = "logged_in", 600 s, 10_000;
    /// Challenges to link an address (LK-1).
    LinkChallenge = "link", 300 s, 100_000;
    /// Hashes of accepted login messages (ZK-48).
    AcceptedMessage = "message", 86_400 s, 1_000_000;
    /// First-party OAuth sessions (OA-2).
    OauthSession = "oauth", 600 s, 1_000;
    /// OAuth sessions that have their code.
    FinishedOauth = "oauth_done", 600 s, 10_000;
    /// OAuth codes by their hash (OA-6).
    OauthCode = "code", 300 s, 10_000;
    /// Used OAuth codes by their hash, and the login minted from each (OA-6).
    SpentCode = "spent", 86_400 s, 1_000_000;
    /// States of pending directory logins (DS-2).
    DirectoryState = "directory", 600 s, 10_000;
    /// Tokens of grantees for reports of a grant, by their hash (spec/50 rule 38).
    DisclosureToken = "disclosure", 3_600 s, 100_000;
    /// Reports under a grant, by grant and type (spec/50 rule 33).
    DisclosureReport = "report", 86_400 s, 10_000;
}

kinds! {
    /// A kind of counted event; the capacity limits how many keys one process counts by itself.
    CounterKind:
    /// Rejected proofs per login session and address (spec/10 §9).
    LoginFailures = "login_failures", 600 s, 100_000;
    /// Failures at the token endpoint per client (spec/10 §9).
    ClientFailures = "client_failures", 900 s, 100_000;
}

impl Namespace {
    /// Returns the lifetime of its values in seconds.
    pub const fn seconds(self) -> Seconds {
        // At most some days, by the table above.
        #[expect(clippy::cast_possible_truncation, reason = "the lives above are days at most")]
        Seconds(self.ttl().as_secs() as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_kinds_share_a_name() {
        let names: Vec<_> = Namespace::ALL
            .iter()
            .map(|namespace| namespace.name())
            .chain(CounterKind::ALL.iter().map(|kind| kind.name()))
            .collect();
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len(), "{names:?}");
    }

    #[test]
    fn every_kind_ends_and_is_bounded() {
        for namespace in Namespace::ALL {
            assert!(
                namespace.capacity() > 0 && namespace.seconds() > Seconds(0),
                "{namespace:?}"
            );
        }
    }
}

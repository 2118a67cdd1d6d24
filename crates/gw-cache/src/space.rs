//! What is kept, under which name, for how long and how much of it.

use gw_types::Seconds;
use std::time::Duration;

macro_rules! kinds {
    ($(#[$doc:meta])* $kind:ident: $($(#[$line:meta])* $name:ident = $text:literal, $life:literal s, $most:literal;)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $kind {
            $($(#[$line])* $name,)*
        }

        impl $kind {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Its part of the keys.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// How long its entries live.
            pub const fn life(self) -> Duration {
                match self { $(Self::$name => Duration::from_secs($life),)* }
            }

            /// How many entries there may be.
            pub const fn most(self) -> usize {
                match self { $(Self::$name => $most,)* }
            }
        }
    };
}

kinds! {
    /// A kind of value.
    Space:
    /// Login sessions on their way (ZK-10; 10 000 open ones, spec/10 §1).
    LoginSession = "login", 600 s, 10_000;
    /// Completed logins whose tokens wait for their page: none of them holds a place of an open one.
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
    /// States of directory logins on their way (DS-2).
    DirectoryState = "directory", 600 s, 10_000;
}

kinds! {
    /// A kind of event that is counted; `most` bounds how many keys one process counts by itself.
    Window:
    /// Refused proofs per login session and address (spec/10 §9).
    LoginFailures = "login_failures", 600 s, 100_000;
    /// Failures at the token endpoint per client (spec/10 §9).
    ClientFailures = "client_failures", 900 s, 100_000;
}

impl Space {
    /// How long its values live, in seconds.
    pub const fn seconds(self) -> Seconds {
        // At most some days, by the table above.
        #[expect(clippy::cast_possible_truncation, reason = "the lives above are days at most")]
        Seconds(self.life().as_secs() as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_kinds_share_a_name() {
        let names: Vec<_> = Space::ALL
            .iter()
            .map(|space| space.name())
            .chain(Window::ALL.iter().map(|kind| kind.name()))
            .collect();
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len(), "{names:?}");
    }

    #[test]
    fn every_kind_ends_and_is_bounded() {
        for space in Space::ALL {
            assert!(space.most() > 0 && space.seconds() > Seconds(0), "{space:?}");
        }
    }
}

//! How long what we know of the directory holds, and when it may be asked again (DS-1, DS-6). Pure: time is an argument.

use super::KeySet;
use gw_types::{Seconds, Timestamp};
use std::sync::Arc;

/// From this age on the directory is asked again.
const FRESH: Seconds = Seconds(86_400);
/// Until this age a copy serves while the directory does not answer.
const USABLE: Seconds = Seconds(2 * 86_400);
/// Between attempts while it does not answer.
const RETRY: Seconds = Seconds(60);
/// Between attempts because of unknown keys: anybody can name one.
const UNKNOWN_KEY: Seconds = Seconds(300);

/// Where the directory answers what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Endpoints {
    /// Where people log in.
    pub(super) authorization: String,
    /// Where codes become tokens.
    pub(super) token: String,
}

/// What one round of asking told.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) endpoints: Endpoints,
    pub(super) keys: KeySet,
}

/// What is known, since when, and when was asked.
#[derive(Debug, Default)]
pub(super) struct Keyring {
    known: Option<(Arc<Known>, Timestamp)>,
    tried: Option<Timestamp>,
    tried_for_unknown_key: Option<Timestamp>,
}

impl Keyring {
    /// What may still be used.
    pub(super) fn usable(&self, now: Timestamp) -> Option<Arc<Known>> {
        let (known, since) = self.known.as_ref()?;
        (now < since.plus(USABLE)).then(|| Arc::clone(known))
    }

    /// Whether the directory should be asked.
    pub(super) fn due(&self, now: Timestamp) -> bool {
        let old = self.known.as_ref().is_none_or(|(_, since)| now >= since.plus(FRESH));
        old && self.tried.is_none_or(|tried| now >= tried.plus(RETRY))
    }

    /// Notes an attempt if one is due; whether it is.
    pub(super) fn begin_refresh(&mut self, now: Timestamp) -> bool {
        let due = self.due(now);
        if due {
            self.tried = Some(now);
        }
        due
    }

    /// The same for an unknown key.
    pub(super) fn begin_for_unknown_key(&mut self, now: Timestamp) -> bool {
        let may = self.tried_for_unknown_key.is_none_or(|tried| now >= tried.plus(UNKNOWN_KEY));
        if may {
            self.tried_for_unknown_key = Some(now);
        }
        may
    }

    /// Keeps what the directory told.
    pub(super) fn keep(&mut self, known: Known, now: Timestamp) {
        self.known = Some((Arc::new(known), now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3600;

    fn known() -> Known {
        let keys = serde_json::json!({ "keys": [gw_testkit::jwt::SigningKey::generate("k1").jwk()] });
        Known {
            endpoints: Endpoints { authorization: "a".into(), token: "t".into() },
            keys: KeySet::parse(keys.to_string().as_bytes()).unwrap(),
        }
    }

    const fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(1_800_000_000 + secs)
    }

    #[test]
    fn ds1_a_directory_that_does_not_answer_is_asked_each_minute() {
        let mut ring = Keyring::default();
        assert!(ring.usable(at(0)).is_none(), "not available meanwhile");
        assert!(ring.begin_refresh(at(0)));
        assert!(!ring.begin_refresh(at(59)));
        assert!(ring.begin_refresh(at(60)));
        ring.keep(known(), at(61));
        assert!(ring.usable(at(61)).is_some() && !ring.begin_refresh(at(200)));
    }

    #[test]
    fn ds6_keys_are_fetched_daily_and_a_stale_copy_serves_another_day() {
        let mut ring = Keyring::default();
        ring.keep(known(), at(0));
        assert!(!ring.due(at(24 * HOUR - 1)));
        assert!(ring.begin_refresh(at(24 * HOUR)));
        assert!(!ring.due(at(24 * HOUR + 30)) && ring.due(at(24 * HOUR + 60)));
        assert!(ring.usable(at(48 * HOUR - 1)).is_some());
        assert!(ring.usable(at(48 * HOUR)).is_none());
    }

    #[test]
    fn ds6_unknown_keys_make_it_ask_once_in_five_minutes() {
        let mut ring = Keyring::default();
        ring.keep(known(), at(0));
        assert!(ring.begin_for_unknown_key(at(10)));
        assert!(!ring.begin_for_unknown_key(at(10)));
        assert!(!ring.begin_for_unknown_key(at(309)));
        assert!(ring.begin_for_unknown_key(at(310)));
    }
}

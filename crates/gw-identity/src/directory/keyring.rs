//! How long the directory's keys and endpoints are used, and when the directory may be asked again (DS-1, DS-6). Pure:
//! time is an argument.

use super::KeySet;
use gw_types::{Seconds, Timestamp};
use std::{collections::VecDeque, sync::Arc};

/// The directory is asked again from this age on.
const FRESH: Seconds = Seconds(86_400);
/// Keys and endpoints are used until this age while the directory does not answer.
const USABLE: Seconds = Seconds(2 * 86_400);
/// Time between attempts while the directory does not answer.
const RETRY: Seconds = Seconds(60);
/// How long a key that the directory did not know is not asked for again.
const ABSENT: Seconds = Seconds(300);
/// Maximum number of unknown keys that are remembered.
const ABSENT_MAX: usize = 256;
/// Longer key ids are rejected without a request.
const LONGEST_ID: usize = 256;
/// Unknown keys cause this many requests in a row, then one per `INTERVAL`. The limit is needed because clients can
/// invent key ids; the burst, so that a new key of the directory is found at once.
const BURST: i64 = 6;
const INTERVAL: Seconds = Seconds(10);

/// Who named an unknown key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NamedBy {
    /// The directory, in a token that it sent.
    Directory,
    /// A caller, in a token that the caller sent.
    Caller,
}

/// The endpoints of the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Endpoints {
    /// The endpoint where users log in.
    pub(super) authorization: String,
    /// The endpoint that exchanges codes for tokens.
    pub(super) token: String,
}

/// The result of one successful discovery.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) endpoints: Endpoints,
    pub(super) keys: KeySet,
}

/// The last discovery and its time, and the time of the last attempt.
#[derive(Debug, Default)]
pub(super) struct Keyring {
    known: Option<(Arc<Known>, Timestamp)>,
    tried: Option<Timestamp>,
    /// Keys that the directory did not know, and until when each is remembered.
    absent: VecDeque<(String, Timestamp)>,
    /// When the next request for an unknown key would be due if requests were spaced by `INTERVAL`.
    due_for_directory: Option<Timestamp>,
    due_for_callers: Option<Timestamp>,
}

impl Keyring {
    /// The last discovery, while it may be used.
    pub(super) fn usable(&self, now: Timestamp) -> Option<Arc<Known>> {
        let (known, since) = self.known.as_ref()?;
        (now < since.plus(USABLE)).then(|| Arc::clone(known))
    }

    /// Whether the directory should be asked.
    pub(super) fn due(&self, now: Timestamp) -> bool {
        let old = self.known.as_ref().is_none_or(|(_, since)| now >= since.plus(FRESH));
        old && self.tried.is_none_or(|tried| now >= tried.plus(RETRY))
    }

    /// Records an attempt if one is due. Returns whether it is.
    pub(super) fn begin_refresh(&mut self, now: Timestamp) -> bool {
        let due = self.due(now);
        if due {
            self.tried = Some(now);
        }
        due
    }

    /// Records an attempt for an unknown key if one is allowed: not for a key known to be absent, and at a limited rate
    /// for ever new keys.
    pub(super) fn begin_for_unknown_key(&mut self, id: &str, named_by: NamedBy, now: Timestamp) -> bool {
        self.absent.retain(|(_, until)| *until > now);
        if id.len() > LONGEST_ID || self.absent.iter().any(|(absent, _)| absent == id) {
            return false;
        }
        let due = match named_by {
            NamedBy::Directory => &mut self.due_for_directory,
            NamedBy::Caller => &mut self.due_for_callers,
        };
        let from = due.map_or(now, |due| due.max(now));
        let ahead = from.micros().saturating_sub(now.micros());
        let may = ahead <= (BURST - 1) * i64::from(INTERVAL.0) * 1_000_000;
        if may {
            *due = Some(from.plus(INTERVAL));
        }
        may
    }

    /// Records that the directory was asked and does not know this key.
    pub(super) fn note_absent(&mut self, id: &str, now: Timestamp) {
        if self.absent.len() >= ABSENT_MAX {
            self.absent.pop_front();
        }
        self.absent.push_back((id.to_owned(), now.plus(ABSENT)));
    }

    /// Stores the result of a discovery.
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
            endpoints: Endpoints {
                authorization: "a".into(),
                token: "t".into(),
            },
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
    fn rts12_ds6_an_unknown_key_is_looked_for_once_in_five_minutes() {
        let mut ring = Keyring::default();
        ring.keep(known(), at(0));
        assert!(ring.begin_for_unknown_key("bogus", NamedBy::Caller, at(10)));
        ring.note_absent("bogus", at(10));
        assert!(!ring.begin_for_unknown_key("bogus", NamedBy::Caller, at(309)));
        assert!(
            ring.begin_for_unknown_key("new", NamedBy::Caller, at(10)),
            "another one at once"
        );
        assert!(ring.begin_for_unknown_key("bogus", NamedBy::Caller, at(310)));
        assert!(!ring.begin_for_unknown_key(&"x".repeat(257), NamedBy::Caller, at(400)));
    }

    #[test]
    fn rts12_ds6_invented_keys_delay_a_new_one_by_seconds_only() {
        let mut ring = Keyring::default();
        ring.keep(known(), at(0));
        let mut asked = 0;
        for n in 0..1_000 {
            let id = n.to_string();
            if ring.begin_for_unknown_key(&id, NamedBy::Caller, at(10)) {
                asked += 1;
                ring.note_absent(&id, at(10));
            }
        }
        assert_eq!(asked, BURST);
        assert!(
            ring.begin_for_unknown_key("new", NamedBy::Directory, at(10)),
            "what the directory names is found at once"
        );
        assert!(
            ring.begin_for_unknown_key("new", NamedBy::Caller, at(20)),
            "what a caller names, within ten seconds"
        );
        for n in 0..1_000 {
            ring.note_absent(&n.to_string(), at(10));
        }
        assert!(ring.absent.len() <= ABSENT_MAX);
    }
}

//! The session of a browser: when its access token is used, refreshed, or over (spec/40 section 7, step 8).
//!
//! Pure functions; [`crate::state`] carries out what they say.

use gw_types::{Seconds, Secret, Timestamp};

/// A token with this much time left is refreshed.
const REFRESH_AHEAD: Seconds = Seconds(5 * 60);

/// From when on a token that was issued `now` is refreshed: when five minutes or less remain. A token of less than ten
/// minutes is used for half of its life first; otherwise one of five minutes, the gateway's default, would be refreshed
/// with every request.
pub(crate) fn refresh_at(now: Timestamp, life: Seconds) -> Timestamp {
    let ahead = REFRESH_AHEAD.0.min(life.0 / 2);
    now.plus(Seconds(life.0.saturating_sub(ahead)))
}

/// An access token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AccessToken {
    /// The token.
    pub(crate) token: Secret,
    /// When it expires.
    pub(crate) expires_at: Timestamp,
    /// From when on it is refreshed.
    pub(crate) refresh_at: Timestamp,
    /// The external id of the user, if the token names one.
    pub(crate) subject: Option<String>,
}

/// The tokens of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tokens {
    /// The access token.
    pub(crate) access: AccessToken,
    /// The refresh token.
    pub(crate) refresh: Secret,
}

/// The session as the cookies of a request show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Session {
    /// The access token, possibly expired.
    pub(crate) access: Option<AccessToken>,
    /// The refresh token.
    pub(crate) refresh: Option<Secret>,
}

/// What a request does with its session.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SessionUse<'a> {
    /// There is no session: the request is anonymous.
    Anonymous,
    /// The access token is used as it is.
    Access(&'a AccessToken),
    /// The tokens are refreshed first.
    Refresh(&'a Secret),
    /// The session has ended.
    Ended,
}

impl Session {
    /// What to do first.
    pub(crate) fn first_use(&self, now: Timestamp) -> SessionUse<'_> {
        match (self.valid_access(now), &self.refresh) {
            (Some(access), _) if now < access.refresh_at => SessionUse::Access(access),
            (_, Some(refresh)) => SessionUse::Refresh(refresh),
            (Some(access), None) => SessionUse::Access(access),
            (None, None) if self.access.is_some() => SessionUse::Ended,
            (None, None) => SessionUse::Anonymous,
        }
    }

    /// What to do if the refresh gave no tokens: the session goes on while its access token is valid.
    pub(crate) fn valid_access(&self, now: Timestamp) -> Option<&AccessToken> {
        self.access.as_ref().filter(|access| now < access.expires_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_types::Clock as _;
    use gw_types::testing::ManualClock;

    fn access(clock: &ManualClock, left: u32) -> AccessToken {
        AccessToken {
            token: Secret::new("access"),
            expires_at: clock.now_plus(Seconds(left)),
            refresh_at: refresh_at(clock.now(), Seconds(left)),
            subject: None,
        }
    }

    #[test]
    fn step_8_a_token_is_refreshed_when_five_minutes_or_less_remain() {
        let clock = ManualClock::default();
        let refresh = Secret::new("refresh");
        let session = Session {
            access: Some(access(&clock, 900)),
            refresh: Some(refresh.clone()),
        };
        let access = session.access.as_ref().unwrap();
        for (passed, expected, valid) in [
            (0, SessionUse::Access(access), true),
            (599, SessionUse::Access(access), true),
            (600, SessionUse::Refresh(&refresh), true),
            (899, SessionUse::Refresh(&refresh), true),
            (900, SessionUse::Refresh(&refresh), false),
        ] {
            let now = clock.now_plus(Seconds(passed));
            assert_eq!(session.first_use(now), expected, "{passed}");
            assert_eq!(session.valid_access(now).is_some(), valid, "{passed}");
        }
    }

    /// Decision 35: the gateway's tokens live five minutes by default.
    #[test]
    fn step_8_a_short_token_is_used_for_half_of_its_life() {
        let clock = ManualClock::default();
        for (life, used) in [
            (3600, 3300),
            (900, 600),
            (601, 301),
            (600, 300),
            (300, 150),
            (60, 30),
            (1, 1),
            (0, 0),
        ] {
            let expected = clock.now_plus(Seconds(used));
            assert_eq!(refresh_at(clock.now(), Seconds(life)), expected, "{life}");
        }
    }

    #[test]
    fn step_8_the_cookies_alone_decide_without_one_of_them() {
        let clock = ManualClock::default();
        let (none, refresh) = (None, Some(Secret::new("refresh")));
        let session = |access, refresh: &Option<Secret>| Session {
            access,
            refresh: refresh.clone(),
        };
        let now = clock.now();
        assert_eq!(session(None, &none).first_use(now), SessionUse::Anonymous);
        let only_refresh = session(None, &refresh);
        assert_eq!(
            only_refresh.first_use(now),
            SessionUse::Refresh(&Secret::new("refresh"))
        );
        let short = session(Some(access(&clock, 10)), &none);
        assert_eq!(short.first_use(now), SessionUse::Access(short.access.as_ref().unwrap()));
        assert_eq!(
            session(Some(access(&clock, 0)), &none).first_use(now),
            SessionUse::Ended
        );
    }
}

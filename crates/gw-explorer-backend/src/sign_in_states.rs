//! The sign-ins that wait for the browser to come back from the gateway (spec/40 section 7, step 1).
//!
//! The browser itself holds each of them, in an encrypted cookie. So every instance with the same client secret can
//! end a sign-in that another one began, and nothing is held that a flood could fill.
//!
//! Invariant: a state is used within ten minutes, by the browser that began it, and once on each instance. A copy that
//! is used on another instance gives nothing: the gateway takes the code once.

use crate::return_url::ReturnUrl;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use gw_types::{Entropy, Seconds, Secret, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

/// The lifetime of a state.
pub(crate) const STATE_LIFE: Seconds = Seconds(600);
/// The most used states that are remembered; then the oldest is forgotten.
const MAX_USED: usize = 1000;

/// A sign-in that began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PendingSignIn {
    /// The `state` parameter.
    pub(crate) state: String,
    /// The PKCE verifier.
    pub(crate) verifier: Secret,
    /// Where the browser is sent.
    pub(crate) return_url: ReturnUrl,
    /// When it began.
    pub(crate) begun: Timestamp,
}

/// [`PendingSignIn`] as its cookie holds it.
#[derive(Serialize, Deserialize)]
pub(crate) struct PendingContent {
    state: String,
    verifier: String,
    return_url: String,
    /// Seconds since 1970.
    begun: i64,
}

impl PendingSignIn {
    /// Begins a sign-in.
    pub(crate) fn new(return_url: ReturnUrl, now: Timestamp, entropy: &dyn Entropy) -> Self {
        Self {
            state: random(entropy),
            verifier: Secret::new(random(entropy)),
            return_url,
            begun: now,
        }
    }

    /// Whether the ten minutes are not over. A clock that was set back does not make a state live longer.
    pub(crate) fn is_alive(&self, now: Timestamp) -> bool {
        self.begun <= now && now < self.begun.plus(STATE_LIFE)
    }

    pub(crate) fn content(&self) -> PendingContent {
        PendingContent {
            state: self.state.clone(),
            verifier: self.verifier.expose().to_owned(),
            return_url: self.return_url.as_str().to_owned(),
            begun: self.begun.secs(),
        }
    }
}

impl TryFrom<PendingContent> for PendingSignIn {
    type Error = crate::return_url::ReturnUrlError;

    fn try_from(content: PendingContent) -> Result<Self, Self::Error> {
        Ok(Self {
            return_url: ReturnUrl::parse(&content.return_url)?,
            state: content.state,
            verifier: Secret::new(content.verifier),
            begun: Timestamp::from_secs(content.begun),
        })
    }
}

/// The states that this instance has seen used.
#[derive(Debug, Default)]
pub(crate) struct UsedStates(Mutex<VecDeque<UsedState>>);

#[derive(Debug)]
struct UsedState {
    digest: [u8; 32],
    begun: Timestamp,
}

impl UsedStates {
    /// Uses a state up. Returns whether it was unused and alive.
    #[must_use]
    pub(crate) fn use_up(&self, pending: &PendingSignIn, now: Timestamp) -> bool {
        if !pending.is_alive(now) {
            return false;
        }
        let digest: [u8; 32] = Sha256::digest(&pending.state).into();
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        used.retain(|state| now < state.begun.plus(STATE_LIFE));
        if used.iter().any(|state| state.digest == digest) {
            return false;
        }
        if used.len() >= MAX_USED {
            used.pop_front();
        }
        let begun = pending.begun;
        used.push_back(UsedState { digest, begun });
        true
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// 32 random bytes as base64url, which is also a valid PKCE verifier (RFC 7636 section 4.1).
fn random(entropy: &dyn Entropy) -> String {
    let mut bytes = [0u8; 32];
    entropy.fill(&mut bytes);
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_types::{
        Clock as _,
        testing::{ManualClock, SeededEntropy},
    };

    struct Fixture {
        used: UsedStates,
        clock: ManualClock,
        entropy: SeededEntropy,
    }

    impl Fixture {
        fn new() -> Self {
            Self {
                used: UsedStates::default(),
                clock: ManualClock::default(),
                entropy: SeededEntropy::default(),
            }
        }

        fn begin(&self) -> PendingSignIn {
            let page = ReturnUrl::parse("/tx/1").unwrap();
            PendingSignIn::new(page, self.clock.now(), &self.entropy)
        }

        fn use_up(&self, pending: &PendingSignIn) -> bool {
            self.used.use_up(pending, self.clock.now())
        }
    }

    #[test]
    fn step_1_a_state_is_32_random_bytes_and_single_use() {
        let fixture = Fixture::new();
        let (first, second) = (fixture.begin(), fixture.begin());
        assert_ne!(first.state, second.state);
        assert_ne!(first.state, first.verifier.expose());
        assert_eq!(URL_SAFE_NO_PAD.decode(&first.state).unwrap().len(), 32);
        assert!(fixture.use_up(&first));
        assert!(!fixture.use_up(&first), "used");
        assert!(fixture.use_up(&second));
    }

    #[test]
    fn step_1_a_state_lives_ten_minutes() {
        let fixture = Fixture::new();
        let (early, late) = (fixture.begin(), fixture.begin());
        fixture.clock.pass(599);
        assert!(fixture.use_up(&early));
        fixture.clock.pass(1);
        assert!(!fixture.use_up(&late));
        fixture.clock.pass(-700);
        assert!(!fixture.use_up(&late), "the clock was set back");
    }

    #[test]
    fn step_1_at_most_1000_used_states_are_held() {
        let fixture = Fixture::new();
        for _ in 0..2000 {
            assert!(fixture.use_up(&fixture.begin()));
        }
        assert_eq!(fixture.used.len(), MAX_USED);
        fixture.clock.pass(600);
        assert!(fixture.use_up(&fixture.begin()));
        assert_eq!(fixture.used.len(), 1, "states are forgotten when their life is over");
    }
}

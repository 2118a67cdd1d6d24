//! One refresh per refresh token, however many requests of a browser need it (spec/40 section 7, step 8).
//!
//! The gateway accepts a refresh token once, and ends the login if it is used again later. So the outcome is kept for a
//! while: it also answers requests that the browser sent before it got the new cookies.

use crate::{session::Tokens, upstream::RefreshError};
use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use gw_types::{Clock, Seconds, Secret, Timestamp};
use sha2::{Digest as _, Sha256};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};
use tokio_util::task::TaskTracker;

/// How long an outcome is kept.
const KEPT: Seconds = Seconds(60);

/// The outcome of a refresh.
pub(crate) type Refreshed = Result<Tokens, RefreshError>;

#[derive(Debug)]
struct Flight {
    outcome: Shared<BoxFuture<'static, Refreshed>>,
    begun: Timestamp,
}

/// The refreshes of this instance, by the digest of their token.
#[derive(Debug)]
pub(crate) struct RefreshFlights {
    flights: Mutex<HashMap<[u8; 32], Flight>>,
    clock: Arc<dyn Clock>,
    tasks: TaskTracker,
}

impl RefreshFlights {
    pub(crate) fn new(clock: Arc<dyn Clock>, tasks: TaskTracker) -> Self {
        Self {
            flights: Mutex::default(),
            clock,
            tasks,
        }
    }

    /// Joins the refresh of `token`, or begins it with `refresh`. The refresh runs to its end even if every request
    /// that waits for it is gone (HD21).
    pub(crate) async fn join(&self, token: &Secret, refresh: BoxFuture<'static, Refreshed>) -> Refreshed {
        self.flight(token, refresh).await
    }

    fn flight(&self, token: &Secret, refresh: BoxFuture<'static, Refreshed>) -> Shared<BoxFuture<'static, Refreshed>> {
        let (key, now) = (Sha256::digest(token.expose().as_bytes()).into(), self.clock.now());
        let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        flights.retain(|_, flight| flight.is_of_use(now));
        if let Some(flight) = flights.get(&key) {
            return flight.outcome.clone();
        }
        let task = self.tasks.spawn(refresh);
        let outcome = async move { task.await.unwrap_or(Err(RefreshError::Unavailable)) };
        let outcome = outcome.boxed().shared();
        flights.insert(
            key,
            Flight {
                outcome: outcome.clone(),
                begun: now,
            },
        );
        outcome
    }
}

impl Flight {
    /// A refresh that could not reach the gateway may be tried again at once.
    fn is_of_use(&self, now: Timestamp) -> bool {
        match self.outcome.peek() {
            None => true,
            Some(Err(RefreshError::Unavailable)) => false,
            Some(Ok(_) | Err(RefreshError::Refused)) => self.begun <= now && now < self.begun.plus(KEPT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::AccessToken;
    use gw_types::testing::ManualClock;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::Notify;

    fn tokens() -> Tokens {
        Tokens {
            access: AccessToken {
                token: Secret::new("access"),
                expires_at: Timestamp::from_secs(2_000_000_000),
                refresh_at: Timestamp::from_secs(1_999_999_700),
                subject: None,
            },
            refresh: Secret::new("refresh 2"),
        }
    }

    struct Fixture {
        clock: ManualClock,
        flights: RefreshFlights,
        begun: Arc<AtomicUsize>,
    }

    impl Fixture {
        fn new() -> Self {
            let clock = ManualClock::default();
            let flights = RefreshFlights::new(Arc::new(clock.clone()), TaskTracker::new());
            Self {
                clock,
                flights,
                begun: Arc::default(),
            }
        }

        async fn join(&self, token: &str, outcome: Refreshed) -> Refreshed {
            let begun = Arc::clone(&self.begun);
            let refresh = async move {
                begun.fetch_add(1, Ordering::SeqCst);
                outcome
            };
            self.flights.join(&Secret::new(token), refresh.boxed()).await
        }

        fn begun(&self) -> usize {
            self.begun.load(Ordering::SeqCst)
        }
    }

    #[tokio::test]
    async fn step_8_requests_of_one_token_share_one_refresh() {
        let fixture = Fixture::new();
        let gate = Arc::new(Notify::new());
        let (begun, waits) = (Arc::clone(&fixture.begun), Arc::clone(&gate));
        let slow = async move {
            begun.fetch_add(1, Ordering::SeqCst);
            waits.notified().await;
            Ok(tokens())
        };
        let token = Secret::new("refresh 1");
        let first = fixture.flights.flight(&token, slow.boxed());
        let waiting = (0..8).map(|_| fixture.join("refresh 1", Err(RefreshError::Refused)));
        let waiting = futures_util::future::join_all(waiting);
        gate.notify_one();
        let (first, others) = tokio::join!(first, waiting);
        assert_eq!(first, Ok(tokens()));
        assert!(others.iter().all(|other| *other == Ok(tokens())));
        assert_eq!(fixture.begun(), 1);
        assert!(fixture.join("another", Err(RefreshError::Refused)).await.is_err());
        assert_eq!(fixture.begun(), 2);
    }

    #[tokio::test]
    async fn step_8_a_late_request_gets_the_same_outcome_for_a_minute() {
        let fixture = Fixture::new();
        assert!(fixture.join("refresh 1", Ok(tokens())).await.is_ok());
        fixture.clock.pass(59);
        assert!(fixture.join("refresh 1", Err(RefreshError::Refused)).await.is_ok());
        fixture.clock.pass(1);
        assert!(fixture.join("refresh 1", Err(RefreshError::Refused)).await.is_err());
        assert_eq!(fixture.begun(), 2);
    }

    #[tokio::test]
    async fn step_8_a_refresh_without_an_answer_is_tried_again() {
        let fixture = Fixture::new();
        let unavailable = fixture.join("refresh 1", Err(RefreshError::Unavailable)).await;
        assert_eq!(unavailable, Err(RefreshError::Unavailable));
        assert!(fixture.join("refresh 1", Ok(tokens())).await.is_ok());
    }

    #[tokio::test]
    async fn hd21_a_refresh_outlives_the_requests_that_wait_for_it() {
        let fixture = Fixture::new();
        let gate = Arc::new(Notify::new());
        let waits = Arc::clone(&gate);
        let slow = async move {
            waits.notified().await;
            Ok(tokens())
        };
        drop(fixture.flights.flight(&Secret::new("refresh 1"), slow.boxed()));
        gate.notify_one();
        fixture.flights.tasks.close();
        fixture.flights.tasks.wait().await;
        let late = fixture.join("refresh 1", Err(RefreshError::Refused)).await;
        assert_eq!(late, Ok(tokens()));
        assert_eq!(fixture.begun(), 0);
    }
}

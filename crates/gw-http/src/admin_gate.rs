//! The tokens of the admin API that belong to no user, and the lockout of addresses that guess them (80 §1).

use crate::{client::ClientAddress, limit::AddressKey};
use gw_policy::{Snapshot, access::admin};
use gw_types::{Seconds, Secret, Timestamp, UserId};
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

/// The tokens of the admin API, and the addresses that sent wrong ones.
#[derive(Debug)]
pub struct AdminGate {
    supers: Vec<Secret>,
    operators: Vec<Secret>,
    qualifies: admin::AdminCriteria,
    lockout: AdminTokenLockout,
}

impl AdminGate {
    /// Creates the gate from ADMIN_API_TOKEN, its predecessor, and OPERATOR_API_TOKEN. An empty token matches nothing
    /// (rule 1.1).
    pub fn new(token: Secret, previous: Option<Secret>, operator: Option<Secret>, production: bool) -> Self {
        let real = |secrets: Vec<Secret>| secrets.into_iter().filter(|s| !s.expose().is_empty()).collect();
        Self {
            supers: real([Some(token), previous].into_iter().flatten().collect()),
            operators: real(operator.into_iter().collect()),
            qualifies: admin::AdminCriteria::default(),
            lockout: AdminTokenLockout::new(production),
        }
    }

    /// Sets other criteria for administrators (`ADMIN_REQUIRE_ORG_ADMIN_GROUP`).
    #[must_use]
    pub fn with(mut self, qualifies: admin::AdminCriteria) -> Self {
        self.qualifies = qualifies;
        self
    }

    /// The organizations that a user administers now.
    pub fn status(&self, snapshot: &Snapshot, user: UserId, now: Timestamp) -> admin::AdminStatus {
        admin::status_by(snapshot, user, now, self.qualifies)
    }

    /// The holder of a token.
    ///
    /// # Errors
    ///
    /// The time to wait, while `client` is locked out. `Ok(None)` for a wrong token, which counts towards the lockout;
    /// an absent `token` is one that cannot be read.
    pub(crate) fn authenticate(
        &self,
        token: Option<&str>,
        client: ClientAddress,
        now: Timestamp,
    ) -> Result<Option<TokenHolder>, Seconds> {
        self.lockout.check(client, now)?;
        let holder = token.and_then(|token| self.holder(token));
        if holder.is_none() {
            self.lockout.count(client, now);
        }
        Ok(holder)
    }

    fn holder(&self, token: &str) -> Option<TokenHolder> {
        // Compares with every secret, so that the time does not reveal which one matched.
        let any = |secrets: &[Secret]| {
            secrets
                .iter()
                .fold(false, |matched, secret| secret.matches(token) | matched)
        };
        match (any(&self.supers), any(&self.operators)) {
            (true, _) => Some(TokenHolder::Super),
            (false, true) => Some(TokenHolder::Operator),
            (false, false) => None,
        }
    }
}

/// Whose token of the admin API a request carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenHolder {
    /// ADMIN_API_TOKEN.
    Super,
    /// OPERATOR_API_TOKEN.
    Operator,
}

/// Gate 3: ten wrong tokens in a minute lock an address out for a minute.
#[derive(Debug)]
struct AdminTokenLockout {
    enabled: bool,
    addresses: Mutex<HashMap<AddressKey, TokenFailures>>,
}

/// The wrong tokens that one address sent within a minute.
#[derive(Clone, Copy, Debug)]
struct TokenFailures {
    count: u32,
    since: Timestamp,
    locked_until: Option<Timestamp>,
}

const WRONG_MAX: u32 = 10;
const MINUTE: Seconds = Seconds(60);
/// Above this number of addresses, those without a recent wrong token are removed.
const SWEEP_OVER: usize = 10_000;

impl AdminTokenLockout {
    fn new(enabled: bool) -> Self {
        Self {
            enabled,
            addresses: Mutex::default(),
        }
    }

    fn check(&self, client: ClientAddress, now: Timestamp) -> Result<(), Seconds> {
        let addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        match addresses.get(&client.into()).and_then(|wrong| wrong.locked_until) {
            Some(until) if until > now => {
                let micros = until.micros().saturating_sub(now.micros());
                Err(Seconds(
                    u32::try_from(micros.div_euclid(1_000_000) + 1).unwrap_or(u32::MAX),
                ))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn count(&self, client: ClientAddress, now: Timestamp) {
        if !self.enabled {
            return;
        }
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        let quiet =
            |wrong: &TokenFailures| wrong.since.plus(MINUTE) <= now && wrong.locked_until.is_none_or(|end| end <= now);
        if addresses.len() > SWEEP_OVER {
            addresses.retain(|_, wrong| !quiet(wrong));
        }
        let fresh = TokenFailures {
            count: 0,
            since: now,
            locked_until: None,
        };
        let wrong = addresses.entry(client.into()).or_insert(fresh);
        if quiet(wrong) {
            *wrong = fresh;
        }
        wrong.count += 1;
        if wrong.count >= WRONG_MAX {
            *wrong = TokenFailures {
                count: 0,
                since: now,
                locked_until: Some(now.plus(MINUTE)),
            };
        }
    }
}

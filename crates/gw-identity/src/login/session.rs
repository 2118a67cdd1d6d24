//! Login sessions and what each state allows (ZK-10 to ZK-14, HD19).
//!
//! Invariant: of all proofs for one session at most one leads to tokens: it claims the session first, by a
//! compare-and-set, and what is claimed or completed can be neither claimed again nor marked as refused.
//!
//! The methods are asynchronous although this build keeps sessions in the process: a shared cache takes the inside's
//! place.

use super::{AuthorizationRequest, Reason, vault::SealedPair};
use crate::expiring::{Expiring, Full};
use gw_http::{AddressKey, ClientAddress};
use gw_types::{Entropy, Seconds, Secret, Timestamp};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use uuid::Uuid;

/// How long a session lives (ZK-10).
pub(crate) const LIFE: Seconds = Seconds(600);
const MAX_OPEN: usize = 10_000;
const MAX_OPEN_PER_ADDRESS: usize = 20;
const MAX_FAILURES: u32 = 10;

/// A login session's id. It stands in the QR code, so it opens nothing alone (ZK-13).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LoginId(pub(crate) Uuid);

/// What the page that opened a session shows to get its tokens.
#[derive(Clone, Debug)]
pub(crate) struct LoginSecret(Secret);

impl LoginSecret {
    pub(crate) fn fresh(entropy: &dyn Entropy) -> Self {
        let mut bytes = [0u8; 32];
        entropy.fill(&mut bytes);
        Self(Secret::new(hex::encode(bytes)))
    }

    pub(crate) fn expose(&self) -> &str {
        self.0.expose()
    }

    fn hash(text: &str) -> [u8; 32] {
        Sha256::digest(text.as_bytes()).into()
    }
}

/// One login on its way.
#[derive(Debug)]
pub(crate) struct LoginSession {
    request: AuthorizationRequest,
    opener: ClientAddress,
    secret: [u8; 32],
    state: State,
}

#[derive(Debug)]
enum State {
    /// Waiting for a proof; the last one may have been refused.
    Pending { refused: Option<Reason> },
    /// A proof held, its tokens are on their way.
    Claimed,
    /// Tokens for the page are ready.
    Completed(SealedPair),
}

/// How far a session is, as a poll sees it.
#[derive(Debug)]
pub(crate) enum Status {
    /// No tokens, or none for this caller.
    Pending {
        /// Why the last proof was refused.
        refused: Option<Reason>,
    },
    /// Tokens for this caller.
    Completed(SealedPair),
}

/// Why no session can be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// Too many in all.
    Full,
    /// Too many of one address.
    Address,
}

impl From<Full> for NoRoom {
    fn from(_: Full) -> Self {
        Self::Full
    }
}

impl LoginSession {
    pub(crate) fn new(request: AuthorizationRequest, opener: ClientAddress, secret: &LoginSecret) -> Self {
        let secret = LoginSecret::hash(secret.expose());
        Self { request, opener, secret, state: State::Pending { refused: None } }
    }

    /// Whether a poll may have the tokens: it shows the secret, or it comes from where the session was opened (HD19).
    fn entitles(&self, secrets: &[&str], client: ClientAddress) -> bool {
        let shown = secrets.iter().any(|text| LoginSecret::hash(text).ct_eq(&self.secret).into());
        shown || client == self.opener
    }
}

/// All login sessions of this instance.
#[derive(Debug)]
pub(crate) struct LoginSessions {
    sessions: Expiring<LoginId, LoginSession>,
}

impl LoginSessions {
    pub(crate) fn new() -> Self {
        Self { sessions: Expiring::new(MAX_OPEN) }
    }

    /// Opens a session.
    pub(crate) async fn open(&self, id: LoginId, session: LoginSession, now: Timestamp) -> Result<(), NoRoom> {
        let opener = AddressKey::from(session.opener);
        self.sessions.insert_if(now, (id, session), now.plus(LIFE), |others| {
            let same = others.filter(|other| AddressKey::from(other.opener) == opener).count();
            if same >= MAX_OPEN_PER_ADDRESS { Err(NoRoom::Address) } else { Ok(()) }
        })
    }

    /// The request a proof must answer, while one is awaited.
    pub(crate) async fn pending(&self, id: LoginId, now: Timestamp) -> Option<AuthorizationRequest> {
        self.sessions
            .with(now, &id, |session| match session.state {
                State::Pending { .. } => Some(session.request.clone()),
                State::Claimed | State::Completed(_) => None,
            })
            .flatten()
    }

    /// Notes a refused proof; the session stays open (ZK-10).
    pub(crate) async fn refuse(&self, id: LoginId, reason: Reason, now: Timestamp) {
        self.sessions.with(now, &id, |session| match &mut session.state {
            State::Pending { refused } => *refused = Some(reason),
            State::Claimed | State::Completed(_) => {}
        });
    }

    /// Makes the caller the one who completes the session (ZK-12).
    pub(crate) async fn claim(&self, id: LoginId, now: Timestamp) -> bool {
        self.sessions
            .with(now, &id, |session| match session.state {
                State::Pending { .. } => {
                    session.state = State::Claimed;
                    true
                }
                State::Claimed | State::Completed(_) => false,
            })
            .unwrap_or(false)
    }

    /// Opens a claimed session again, for the reason that it could not be completed.
    pub(crate) async fn release(&self, id: LoginId, reason: Reason, now: Timestamp) {
        self.sessions.with(now, &id, |session| match session.state {
            State::Claimed => session.state = State::Pending { refused: Some(reason) },
            State::Pending { .. } | State::Completed(_) => {}
        });
    }

    /// Completes a claimed session.
    pub(crate) async fn complete(&self, id: LoginId, pair: SealedPair, now: Timestamp) {
        self.sessions.with(now, &id, |session| match session.state {
            State::Claimed => session.state = State::Completed(pair),
            State::Pending { .. } | State::Completed(_) => {}
        });
    }

    /// How far a session is. Who may not have its tokens sees it as pending.
    pub(crate) async fn status(
        &self,
        id: LoginId,
        secrets: &[&str],
        client: ClientAddress,
        now: Timestamp,
    ) -> Option<Status> {
        self.sessions.with(now, &id, |session| match &session.state {
            State::Pending { refused } => Status::Pending { refused: *refused },
            State::Completed(pair) if session.entitles(secrets, client) => Status::Completed(pair.clone()),
            State::Claimed | State::Completed(_) => Status::Pending { refused: None },
        })
    }
}

/// Rejected proofs per session and address (spec/10 §9); the session itself lives on.
#[derive(Debug)]
pub(crate) struct Failures {
    counts: Expiring<(LoginId, AddressKey), u32>,
}

impl Failures {
    pub(crate) fn new() -> Self {
        Self { counts: Expiring::new(10 * MAX_OPEN) }
    }

    /// Whether this address has used up its tries.
    pub(crate) fn exhausted(&self, id: LoginId, client: ClientAddress, now: Timestamp) -> bool {
        self.counts.with(now, &(id, client.into()), |count| *count >= MAX_FAILURES).unwrap_or(false)
    }

    /// Counts a rejected proof. With no room left to count, further tries are not held back; the address limit is.
    pub(crate) fn count(&self, id: LoginId, client: ClientAddress, now: Timestamp) {
        let key = (id, AddressKey::from(client));
        if self.counts.with(now, &key, |count| *count += 1).is_none() {
            let _full = self.counts.insert(now, key, 1, now.plus(LIFE));
        }
    }
}

//! Login sessions and what each state allows (ZK-10 to ZK-14, HD19).
//!
//! Invariant: of all proofs for one session at most one leads to tokens: it claims the session first, by a
//! compare-and-set among all instances, and what is claimed or completed can be neither claimed again nor marked as
//! refused.

use super::{AuthorizationRequest, Reason, vault::SealedPair};
use gw_cache::{Cache, Change, Entry, PutError, Space, Unavailable, Window};
use gw_http::{AddressKey, ClientAddress};
use gw_types::{Entropy, ExternalId, Seconds, Secret, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use uuid::Uuid;

/// How long a session lives (ZK-10).
pub(crate) const LIFE: Seconds = Space::LoginSession.seconds();
const MAX_OPEN_PER_ADDRESS: u32 = 20;
const MAX_FAILURES: u64 = 10;

/// A login session's id. It stands in the QR code, so it opens nothing alone (ZK-13).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LoginId(pub(crate) Uuid);

impl LoginId {
    fn key(self) -> String {
        self.0.to_string()
    }
}

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

/// One login on its way, as the cache holds it: the secret as its hash, the tokens sealed.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LoginSession {
    request: AuthorizationRequest,
    opener: ClientAddress,
    opened_at: Timestamp,
    secret: [u8; 32],
    state: State,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// Waiting for a proof; the last one may have been refused.
    Pending { refused: Option<Refusal> },
    /// A proof held, its tokens are on their way.
    Claimed,
    /// Tokens for the page are ready.
    Completed { pair: SealedPair, by: LoggedIn },
}

/// Why the last proof was refused, and whose it was if that is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refusal {
    /// As the page is told.
    pub(crate) reason: Reason,
    /// As administrators are told.
    pub(crate) exact: String,
    /// Whose proof it was.
    pub(crate) subject: Option<ExternalId>,
}

/// Who completed a session, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LoggedIn {
    pub(crate) at: Timestamp,
    pub(crate) subject: ExternalId,
    pub(crate) provider: String,
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

/// A session as administrators see it: neither request nor secret nor tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionView {
    /// Its id.
    pub id: Uuid,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
    /// From where it was opened.
    pub opener: ClientAddress,
    /// How far it is.
    pub progress: Progress,
}

/// How far a session is, as administrators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// No proof has come.
    Open,
    /// The last proof was refused.
    Refused {
        /// Why, exactly.
        exact: String,
        /// Whose it was, if that is known.
        subject: Option<ExternalId>,
    },
    /// Completed.
    Completed {
        /// When.
        at: Timestamp,
        /// Who logged in.
        subject: ExternalId,
        /// How it was proved.
        provider: String,
    },
}

impl LoginSession {
    pub(crate) fn new(
        request: AuthorizationRequest,
        opener: ClientAddress,
        secret: &LoginSecret,
        now: Timestamp,
    ) -> Self {
        let secret = LoginSecret::hash(secret.expose());
        Self { request, opener, opened_at: now, secret, state: State::Pending { refused: None } }
    }

    /// Whether a poll may have the tokens: it shows the secret, or it comes from where the session was opened (HD19).
    fn entitles(&self, secrets: &[&str], client: ClientAddress) -> bool {
        let shown = secrets.iter().any(|text| LoginSecret::hash(text).ct_eq(&self.secret).into());
        shown || client == self.opener
    }

    /// What another version wrote and this one cannot read is no session.
    fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    fn view(self, id: Uuid) -> SessionView {
        let progress = match self.state {
            State::Pending { refused: None } | State::Claimed => Progress::Open,
            State::Pending { refused: Some(Refusal { exact, subject, .. }) } => Progress::Refused { exact, subject },
            State::Completed { by: LoggedIn { at, subject, provider }, .. } => {
                Progress::Completed { at, subject, provider }
            }
        };
        let expires_at = self.opened_at.plus(LIFE);
        SessionView { id, opened_at: self.opened_at, expires_at, opener: self.opener, progress }
    }
}

/// All login sessions.
#[derive(Clone, Debug)]
pub struct LoginSessions {
    cache: Cache,
}

impl LoginSessions {
    /// The sessions in `cache`.
    pub fn new(cache: Cache) -> Self {
        Self { cache }
    }

    /// Opens a session.
    pub(crate) async fn open(&self, id: LoginId, session: &LoginSession) -> Result<(), PutError> {
        // A session of ours can always be written.
        let bytes = serde_json::to_vec(session).map_err(|_| Unavailable)?;
        let opener = AddressKey::from(session.opener).to_string();
        self.cache.put(Entry::new(Space::LoginSession, &id.key(), &bytes).among(&opener, MAX_OPEN_PER_ADDRESS)).await
    }

    /// The request a proof must answer, while one is awaited.
    pub(crate) async fn pending(&self, id: LoginId) -> Result<Option<AuthorizationRequest>, Unavailable> {
        Ok(self.find(id).await?.and_then(|session| match session.state {
            State::Pending { .. } => Some(session.request),
            State::Claimed | State::Completed { .. } => None,
        }))
    }

    /// Notes a refused proof; the session stays open (ZK-10).
    pub(crate) async fn refuse(&self, id: LoginId, refusal: &Refusal) -> Result<(), Unavailable> {
        let note = |state| match state {
            State::Pending { .. } => Some(State::Pending { refused: Some(refusal.clone()) }),
            State::Claimed | State::Completed { .. } => None,
        };
        self.change(id, note).await.map(|_| ())
    }

    /// Makes the caller the one who completes the session (ZK-12).
    pub(crate) async fn claim(&self, id: LoginId) -> Result<bool, Unavailable> {
        let claim = |state| match state {
            State::Pending { .. } => Some(State::Claimed),
            State::Claimed | State::Completed { .. } => None,
        };
        self.change(id, claim).await
    }

    /// Opens a claimed session again, for the reason that it could not be completed.
    pub(crate) async fn release(&self, id: LoginId, refusal: &Refusal) -> Result<(), Unavailable> {
        let release = |state| match state {
            State::Claimed => Some(State::Pending { refused: Some(refusal.clone()) }),
            State::Pending { .. } | State::Completed { .. } => None,
        };
        self.change(id, release).await.map(|_| ())
    }

    /// Completes a claimed session.
    pub(crate) async fn complete(&self, id: LoginId, pair: &SealedPair, by: &LoggedIn) -> Result<(), Unavailable> {
        let complete = |state| match state {
            State::Claimed => Some(State::Completed { pair: pair.clone(), by: by.clone() }),
            State::Pending { .. } | State::Completed { .. } => None,
        };
        self.change(id, complete).await.map(|_| ())
    }

    /// How far a session is. Who may not have its tokens sees it as pending.
    pub(crate) async fn status(
        &self,
        id: LoginId,
        secrets: &[&str],
        client: ClientAddress,
    ) -> Result<Option<Status>, Unavailable> {
        Ok(self.find(id).await?.map(|session| match &session.state {
            State::Pending { refused } => Status::Pending { refused: refused.as_ref().map(|refusal| refusal.reason) },
            State::Completed { pair, .. } if session.entitles(secrets, client) => Status::Completed(pair.clone()),
            State::Claimed | State::Completed { .. } => Status::Pending { refused: None },
        }))
    }

    /// All sessions, oldest first.
    pub async fn list(&self) -> Result<Vec<SessionView>, Unavailable> {
        const PAGE: usize = 500;
        let mut views = Vec::new();
        loop {
            let page = self.cache.list(Space::LoginSession, views.len(), PAGE).await?;
            let last = page.entries.len() < PAGE;
            views.extend(page.entries.iter().filter_map(|(key, bytes)| view(key, bytes)));
            if last {
                return Ok(views);
            }
        }
    }

    /// One session.
    pub async fn find_view(&self, id: Uuid) -> Result<Option<SessionView>, Unavailable> {
        Ok(self.find(LoginId(id)).await?.map(|session| session.view(id)))
    }

    /// Ends a session; says whether there was one.
    pub async fn end(&self, id: Uuid) -> Result<bool, Unavailable> {
        Ok(self.cache.take(Space::LoginSession, &LoginId(id).key()).await?.is_some())
    }

    async fn find(&self, id: LoginId) -> Result<Option<LoginSession>, Unavailable> {
        let found = self.cache.get(Space::LoginSession, &id.key()).await?;
        Ok(found.as_deref().and_then(LoginSession::read))
    }

    /// Moves a session to the state `next` names, if it names one; says whether it did.
    async fn change(
        &self,
        id: LoginId,
        mut next: impl FnMut(State) -> Option<State> + Send,
    ) -> Result<bool, Unavailable> {
        let key = id.key();
        let changed = self.cache.update(Space::LoginSession, &key, |bytes| {
            let moved = LoginSession::read(bytes).and_then(|session| {
                let LoginSession { request, opener, opened_at, secret, state } = session;
                let state = next(state)?;
                serde_json::to_vec(&LoginSession { request, opener, opened_at, secret, state }).ok()
            });
            match moved {
                Some(bytes) => (Change::Set(bytes), true),
                None => (Change::Keep, false),
            }
        });
        Ok(changed.await?.unwrap_or(false))
    }
}

fn view(key: &str, bytes: &[u8]) -> Option<SessionView> {
    Some(LoginSession::read(bytes)?.view(Uuid::parse_str(key).ok()?))
}

/// Rejected proofs per session and address (spec/10 §9); the session itself lives on.
#[derive(Debug)]
pub(crate) struct Failures {
    cache: Cache,
}

impl Failures {
    pub(crate) fn new(cache: Cache) -> Self {
        Self { cache }
    }

    /// Whether this address has used up its tries.
    pub(crate) async fn exhausted(&self, id: LoginId, client: ClientAddress) -> Result<bool, Unavailable> {
        Ok(self.cache.hits(Window::LoginFailures, &key(id, client)).await? >= MAX_FAILURES)
    }

    /// Counts a rejected proof.
    pub(crate) async fn count(&self, id: LoginId, client: ClientAddress) -> Result<(), Unavailable> {
        self.cache.hit(Window::LoginFailures, &key(id, client)).await.map(|_| ())
    }
}

fn key(id: LoginId, client: ClientAddress) -> String {
    format!("{} {}", id.0, AddressKey::from(client))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{login::RequestFacts, testing::CountingEntropy};

    /// What the cache holds would open nothing for whoever reads it (decision 26).
    #[test]
    fn zk11_a_stored_session_names_no_secret() {
        let entropy = CountingEntropy::default();
        let facts = RequestFacts {
            verifier: "did:test:v",
            base: "https://gate.example",
            scope: &[],
            circuits: &[gw_zk::circuit::Circuit::AuthV2],
            session: Uuid::from_u128(1),
            now: Timestamp::from_secs(1_700_000_000),
        };
        let request = AuthorizationRequest::new(&facts, &entropy);
        let secret = LoginSecret::fresh(&entropy);
        let opener = ClientAddress("198.51.100.1".parse().unwrap());
        let session = LoginSession::new(request.clone(), opener, &secret, facts.now);
        let bytes = serde_json::to_vec(&session).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains(secret.expose()));
        let read = LoginSession::read(&bytes).unwrap();
        assert_eq!(read.request, request);
        assert!(read.entitles(&[secret.expose()], ClientAddress("203.0.113.1".parse().unwrap())));
        assert!(LoginSession::read(b"{}").is_none());
    }
}

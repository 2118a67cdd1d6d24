//! Login sessions and what each state allows (ZK-10 to ZK-14, HD19, HD34).
//!
//! Invariant: of all proofs for one session at most one leads to tokens: it claims the session first, by a
//! compare-and-set among all instances, and what is claimed or completed can be neither claimed again nor marked as
//! refused.
//!
//! An open session holds a place of its opener's network; a completed one waits for its page elsewhere and holds none, and so
//! does one whose proof met a fault of ours.

use super::{AuthorizationRequest, Opener, Reason, vault::SealedPair};
use crate::error::once_the_cache_answers;
use gw_cache::{Cache, Change, Entry, PutError, Space, Unavailable, Window};
use gw_http::{AddressKey, ClientAddress};
use gw_types::{Entropy, ExternalId, Seconds, Secret, Timestamp};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::time::Duration;
use uuid::Uuid;

/// How long a session lives (ZK-10).
pub(crate) const LIFE: Seconds = Space::LoginSession.seconds();
pub(crate) const MAX_OPEN_PER_ADDRESS: u32 = 20;
const HANDLE: &[u8] = b"ledger-gateway login handle v1";
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
}

/// One login on its way, as the cache holds it: the secret as its hash, the tokens sealed.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LoginSession {
    request: AuthorizationRequest,
    pub(crate) opener: Opener,
    opened_at: Timestamp,
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
    /// Its handle: it names the session to administrators and opens nothing, unlike the id in the QR code (HD34).
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
    pub(crate) fn new(request: AuthorizationRequest, opener: Opener, now: Timestamp) -> Self {
        Self {
            request,
            opener,
            opened_at: now,
            state: State::Pending { refused: None },
        }
    }

    /// How far it is, for somebody who is its opener or not.
    pub(crate) fn status(&self, to_opener: bool) -> Status {
        match &self.state {
            State::Pending { refused: Some(refusal) } if to_opener => Status::Pending {
                refused: Some(refusal.reason),
            },
            State::Completed { pair, .. } if to_opener => Status::Completed(pair.clone()),
            State::Pending { .. } | State::Claimed | State::Completed { .. } => Status::Pending { refused: None },
        }
    }

    /// The request a proof must answer, while one is awaited.
    pub(crate) fn pending(self) -> Option<AuthorizationRequest> {
        match self.state {
            State::Pending { .. } => Some(self.request),
            State::Claimed | State::Completed { .. } => None,
        }
    }

    /// What another version wrote and this one cannot read is no session.
    fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    fn view(self, id: Uuid) -> SessionView {
        let progress = match self.state {
            State::Pending { refused: None } | State::Claimed => Progress::Open,
            State::Pending {
                refused: Some(Refusal { exact, subject, .. }),
            } => Progress::Refused { exact, subject },
            State::Completed {
                by: LoggedIn { at, subject, provider },
                ..
            } => Progress::Completed { at, subject, provider },
        };
        let expires_at = self.opened_at.plus(LIFE);
        SessionView {
            id,
            opened_at: self.opened_at,
            expires_at,
            opener: self.opener.address,
            progress,
        }
    }
}

/// All login sessions.
#[derive(Clone)]
pub struct LoginSessions {
    cache: Cache,
    /// Makes handles of ids.
    mac: Option<Hmac<Sha256>>,
}

impl LoginSessions {
    /// The sessions in `cache`; instances that share `secret` call them by the same handles.
    pub fn new(cache: Cache, secret: &Secret) -> Self {
        // HMAC takes keys of every length.
        let mac = <Hmac<Sha256> as KeyInit>::new_from_slice(secret.expose().as_bytes()).ok();
        Self { cache, mac }
    }

    /// Opens a session.
    pub(crate) async fn open(&self, id: LoginId, session: &LoginSession) -> Result<(), PutError> {
        // A session of ours can always be written.
        let bytes = serde_json::to_vec(session).map_err(|_| Unavailable)?;
        let places = session.opener.places();
        let (key, groups) = (id.key(), places.groups());
        let entry = Entry::new(Space::LoginSession, &key, &bytes).with_group_limits(&groups);
        let opened = self.cache.put(entry).await;
        if let Err(PutError::Unavailable(_)) = opened {
            // Nobody was told of it, yet it may hold a place.
            self.abandon(id);
        }
        opened
    }

    /// Removes a session whose id never reached a client, once the cache answers.
    pub(crate) fn abandon(&self, id: LoginId) {
        let this = self.clone();
        once_the_cache_answers(move || {
            let this = this.clone();
            async move { this.remove(id).await.map(|_| ()) }
        });
    }

    /// The request a proof must answer, while one is awaited.
    pub(crate) async fn pending(&self, id: LoginId) -> Result<Option<AuthorizationRequest>, Unavailable> {
        Ok(self.find(id).await?.and_then(LoginSession::pending))
    }

    /// Notes a refused proof; the session stays open (ZK-10).
    pub(crate) async fn refuse(&self, id: LoginId, refusal: &Refusal) -> Result<(), Unavailable> {
        let note = |state| match state {
            State::Pending { .. } => Some(State::Pending {
                refused: Some(refusal.clone()),
            }),
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
            State::Claimed => Some(State::Pending {
                refused: Some(refusal.clone()),
            }),
            State::Pending { .. } | State::Completed { .. } => None,
        };
        self.change(id, release).await.map(|_| ())
    }

    /// Keeps an open session without its place: what failed for a fault of ours shuts nobody out (RL14, HD34). It waits
    /// among the completed ones, where the fullest network yields; a proof still completes it.
    pub(crate) async fn set_aside(&self, id: LoginId, now: Timestamp) -> Result<(), Unavailable> {
        let key = id.key();
        let open = self.cache.get(Space::LoginSession, &key).await?;
        let Some(session) = open.as_deref().and_then(LoginSession::read) else {
            return Ok(());
        };
        // Claimed, so that no proof completes the one that is taken away.
        if !matches!(session.state, State::Pending { .. }) || !self.claim(id).await? {
            return Ok(());
        }
        let bytes = serde_json::to_vec(&session).map_err(|_| Unavailable)?;
        let left = session.opened_at.plus(LIFE).micros().saturating_sub(now.micros());
        let left = Duration::from_micros(u64::try_from(left).unwrap_or(0));
        let places = session.opener.places();
        let groups = places.unlimited();
        let aside = Entry::new(Space::FinishedLogin, &key, &bytes)
            .living(left)
            .with_group_limits(&groups);
        self.cache.put(aside).await.map_err(|_| Unavailable)?;
        if self.cache.take(Space::LoginSession, &key).await?.is_none() {
            // Ended meanwhile by an administrator.
            self.cache.take(Space::FinishedLogin, &key).await?;
        }
        Ok(())
    }

    /// Completes a claimed session: it gives its place back and waits for its page, for as long as it would have lived.
    pub(crate) async fn complete(&self, id: LoginId, pair: &SealedPair, by: &LoggedIn) -> Result<(), Unavailable> {
        let key = id.key();
        let open = self.cache.get(Space::LoginSession, &key).await?;
        let Some(session) = open.as_deref().and_then(LoginSession::read) else {
            // One that was set aside holds no place.
            let completed = |state| {
                let by = || State::Completed {
                    pair: pair.clone(),
                    by: by.clone(),
                };
                matches!(state, State::Claimed).then(by)
            };
            return self.change(id, completed).await.map(|_| ());
        };
        if !matches!(session.state, State::Claimed) {
            return Ok(());
        }
        let left = session.opened_at.plus(LIFE).micros().saturating_sub(by.at.micros());
        let places = session.opener.places();
        let state = State::Completed {
            pair: pair.clone(),
            by: by.clone(),
        };
        let bytes = serde_json::to_vec(&LoginSession { state, ..session }).map_err(|_| Unavailable)?;
        let left = Duration::from_micros(u64::try_from(left).unwrap_or(0));
        let groups = places.unlimited();
        let finished = Entry::new(Space::FinishedLogin, &key, &bytes)
            .living(left)
            .with_group_limits(&groups);
        // In this order: a poll in between sees one that is not completed yet, never none.
        self.cache.put(finished).await.map_err(|_| Unavailable)?;
        if self.cache.take(Space::LoginSession, &key).await?.is_none() {
            // Ended meanwhile by an administrator.
            self.cache.take(Space::FinishedLogin, &key).await?;
        }
        Ok(())
    }

    /// All sessions, the next to end first.
    pub async fn list(&self) -> Result<Vec<SessionView>, Unavailable> {
        let mut views: Vec<SessionView> = Vec::new();
        for space in [Space::LoginSession, Space::FinishedLogin] {
            self.each(space, |id, session| {
                views.push(session.view(self.handle(id)));
                false
            })
            .await?;
        }
        views.sort_by_key(|view| view.expires_at);
        // One that is being completed stands in both.
        views.dedup_by_key(|view| view.id);
        Ok(views)
    }

    /// The session of a handle.
    pub async fn find_view(&self, handle: Uuid) -> Result<Option<SessionView>, Unavailable> {
        let Some(id) = self.by_handle(handle).await? else {
            return Ok(None);
        };
        Ok(self.find(id).await?.map(|session| session.view(handle)))
    }

    /// Ends the session of a handle; says whether there was one.
    pub async fn end(&self, handle: Uuid) -> Result<bool, Unavailable> {
        match self.by_handle(handle).await? {
            Some(id) => self.remove(id).await,
            None => Ok(false),
        }
    }

    /// Ends a session; says whether there was one.
    pub(crate) async fn remove(&self, id: LoginId) -> Result<bool, Unavailable> {
        let open = self.cache.take(Space::LoginSession, &id.key()).await?;
        let finished = self.cache.take(Space::FinishedLogin, &id.key()).await?;
        Ok(open.is_some() || finished.is_some())
    }

    /// One session, open or completed.
    pub(crate) async fn find(&self, id: LoginId) -> Result<Option<LoginSession>, Unavailable> {
        for space in [Space::LoginSession, Space::FinishedLogin] {
            let found = self.cache.get(space, &id.key()).await?;
            if let Some(session) = found.as_deref().and_then(LoginSession::read) {
                return Ok(Some(session));
            }
        }
        Ok(None)
    }

    /// What administrators call a session: who knows it cannot poll.
    fn handle(&self, id: LoginId) -> Uuid {
        let tag = self
            .mac
            .clone()
            .map(|mac| mac.chain_update(HANDLE).chain_update(id.0).finalize().into_bytes());
        let bytes = tag.and_then(|tag| tag.first_chunk::<16>().copied()).unwrap_or_default();
        uuid::Builder::from_custom_bytes(bytes).into_uuid()
    }

    async fn by_handle(&self, handle: Uuid) -> Result<Option<LoginId>, Unavailable> {
        let mut found = None;
        for space in [Space::LoginSession, Space::FinishedLogin] {
            self.each(space, |id, _| {
                let is = self.handle(id) == handle;
                found = is.then_some(id).or(found);
                is
            })
            .await?;
        }
        Ok(found)
    }

    /// Shows every session of a space to `look` until it says that it has seen enough.
    async fn each(&self, space: Space, mut look: impl FnMut(LoginId, LoginSession) -> bool) -> Result<(), Unavailable> {
        const PAGE: usize = 500;
        let mut offset = 0;
        loop {
            let page = self.cache.list(space, offset, PAGE).await?;
            for (key, bytes) in &page.entries {
                if let (Ok(id), Some(session)) = (Uuid::parse_str(key), LoginSession::read(bytes))
                    && look(LoginId(id), session)
                {
                    return Ok(());
                }
            }
            if page.entries.len() < PAGE {
                return Ok(());
            }
            offset += PAGE;
        }
    }

    /// Moves a session to the state `next` names, if it names one; says whether it did.
    async fn change(
        &self,
        id: LoginId,
        mut next: impl FnMut(State) -> Option<State> + Send,
    ) -> Result<bool, Unavailable> {
        let key = id.key();
        // One that was set aside is open, too.
        for space in [Space::LoginSession, Space::FinishedLogin] {
            let changed = self.cache.update(space, &key, |bytes| {
                let moved = LoginSession::read(bytes).and_then(|session| {
                    let LoginSession {
                        request,
                        opener,
                        opened_at,
                        state,
                    } = session;
                    let state = next(state)?;
                    serde_json::to_vec(&LoginSession {
                        request,
                        opener,
                        opened_at,
                        state,
                    })
                    .ok()
                });
                match moved {
                    Some(bytes) => (Change::Set(bytes), true),
                    None => (Change::Keep, false),
                }
            });
            if let Some(changed) = changed.await? {
                return Ok(changed);
            }
        }
        Ok(false)
    }
}

impl core::fmt::Debug for LoginSessions {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("LoginSessions")
    }
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

    /// How long this address has to wait, if it has used up its tries.
    pub(crate) async fn exhausted(&self, id: LoginId, client: ClientAddress) -> Result<Option<Seconds>, Unavailable> {
        let hits = self.cache.hits(Window::LoginFailures, &key(id, client)).await?;
        Ok((hits.count >= MAX_FAILURES).then(|| hits.wait()))
    }

    /// Counts a rejected proof.
    pub(crate) async fn count(&self, id: LoginId, client: ClientAddress) -> Result<(), Unavailable> {
        self.cache
            .hit(Window::LoginFailures, &key(id, client))
            .await
            .map(|_| ())
    }
}

fn key(id: LoginId, client: ClientAddress) -> String {
    format!("{} {}", id.0, AddressKey::from(client))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        login::{OpenerEvidence, RequestFacts},
        testing::CountingEntropy,
    };

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
        let (address, elsewhere) = ("198.51.100.1".parse().unwrap(), "203.0.113.1".parse().unwrap());
        let opener = Opener::new(secret.expose(), ClientAddress(address), &http::HeaderMap::new());
        let session = LoginSession::new(request.clone(), opener, facts.now);
        let bytes = serde_json::to_vec(&session).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains(secret.expose()));
        let read = LoginSession::read(&bytes).unwrap();
        assert_eq!(read.request, request);
        let mut headers = http::HeaderMap::new();
        headers.insert("x-login-secret", secret.expose().parse().unwrap());
        assert!(read.opener.is(&OpenerEvidence::of(&headers, ClientAddress(elsewhere))));
        assert!(LoginSession::read(b"{}").is_none());
    }
}

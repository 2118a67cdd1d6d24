//! Login sessions and what each state allows (ZK-10 to ZK-14, HD19, HD34).
//!
//! Invariant: of all proofs for one session at most one yields tokens. It claims the session first, by a
//! compare-and-set across all instances. A claimed or completed session can be neither claimed again nor marked as
//! rejected.
//!
//! An open session counts against the limits of its opener's network. A completed session, and one whose proof met an
//! internal fault, moves to another cache space, where it no longer counts.

use super::{AuthorizationRequest, Opener, Reason, vault::SealedPair};
use crate::error::once_the_cache_answers;
use gw_cache::{Cache, Change, CounterKind, Entry, Namespace, PutError, Unavailable};
use gw_http::{AddressKey, ClientAddress};
use gw_types::{ExternalId, Seconds, Secret, Timestamp};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::time::Duration;
use uuid::Uuid;

/// How long a session lives (ZK-10).
pub(crate) const LIFE: Seconds = Namespace::LoginSession.seconds();
pub(crate) const MAX_OPEN_PER_ADDRESS: u32 = 20;
const HANDLE: &[u8] = b"ledger-gateway login handle v1";
const MAX_FAILURES: u64 = 10;

/// A login session's id. It is part of the QR code, so it grants nothing by itself (ZK-13).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LoginId(pub(crate) Uuid);

impl LoginId {
    fn key(self) -> String {
        self.0.to_string()
    }
}

/// One login in progress as stored in the cache: the secret as a hash, the tokens encrypted.
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
    /// Waiting for a proof; the last one may have been rejected.
    Pending { refused: Option<LoginRejection> },
    /// A proof was accepted and its tokens are being issued.
    Claimed,
    /// Tokens for the page are ready.
    Completed { pair: SealedPair, by: LoginCompletion },
}

/// Why the last proof was rejected, and the sender's external id if known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LoginRejection {
    /// The reason that the page sees.
    pub(crate) reason: Reason,
    /// The exact reason, for administrators.
    pub(crate) exact: String,
    /// The external id of the proof's sender, if known.
    pub(crate) subject: Option<ExternalId>,
}

/// Who completed a session, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LoginCompletion {
    pub(crate) at: Timestamp,
    pub(crate) subject: ExternalId,
    pub(crate) provider: String,
}

/// The state of a session as a poll sees it.
#[derive(Debug)]
pub(crate) enum Status {
    /// No tokens, or none for this caller.
    Pending {
        /// Why the last proof was rejected.
        refused: Option<Reason>,
    },
    /// Tokens for this caller.
    Completed(SealedPair),
}

/// A session as administrators see it: neither request nor secret nor tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionView {
    /// The session's handle, by which administrators name it. It grants nothing, unlike the id in the QR code (HD34).
    pub id: Uuid,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
    /// The address that opened it.
    pub opener: ClientAddress,
    /// Its state.
    pub progress: Progress,
}

/// The state of a session as administrators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// No proof has come.
    Open,
    /// The last proof was rejected.
    Refused {
        /// The exact reason.
        exact: String,
        /// The external id of the proof's sender, if known.
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

    /// The state as its opener sees it, or as others see it.
    pub(crate) fn status(&self, to_opener: bool) -> Status {
        match &self.state {
            State::Pending { refused: Some(refusal) } if to_opener => Status::Pending {
                refused: Some(refusal.reason),
            },
            State::Completed { pair, .. } if to_opener => Status::Completed(pair.clone()),
            State::Pending { .. } | State::Claimed | State::Completed { .. } => Status::Pending { refused: None },
        }
    }

    /// The request that a proof must answer, while the session is pending.
    pub(crate) fn pending(self) -> Option<AuthorizationRequest> {
        match self.state {
            State::Pending { .. } => Some(self.request),
            State::Claimed | State::Completed { .. } => None,
        }
    }

    /// Returns `None` for bytes that another version wrote and this one cannot read.
    fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    fn view(self, id: Uuid) -> SessionView {
        let progress = match self.state {
            State::Pending { refused: None } | State::Claimed => Progress::Open,
            State::Pending {
                refused: Some(LoginRejection { exact, subject, .. }),
            } => Progress::Refused { exact, subject },
            State::Completed {
                by: LoginCompletion { at, subject, provider },
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
    /// Derives handles from ids.
    mac: Option<Hmac<Sha256>>,
}

impl LoginSessions {
    /// Creates the sessions in `cache`. Instances that share `secret` use the same handles.
    pub fn new(cache: Cache, secret: &Secret) -> Self {
        // HMAC accepts keys of every length.
        let mac = <Hmac<Sha256> as KeyInit>::new_from_slice(secret.expose().as_bytes()).ok();
        Self { cache, mac }
    }

    /// Opens a session.
    pub(crate) async fn open(&self, id: LoginId, session: &LoginSession) -> Result<(), PutError> {
        // Serialization of a session cannot fail.
        let bytes = serde_json::to_vec(session).map_err(|_| Unavailable)?;
        let places = session.opener.places();
        let (key, groups) = (id.key(), places.groups());
        let entry = Entry::new(Namespace::LoginSession, &key, &bytes).with_group_limits(&groups);
        let opened = self.cache.put(entry).await;
        if let Err(PutError::Unavailable(_)) = opened {
            // No client got the id, yet the entry may exist and count against the limit.
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

    /// The request that a proof must answer, while the session is pending.
    pub(crate) async fn pending(&self, id: LoginId) -> Result<Option<AuthorizationRequest>, Unavailable> {
        Ok(self.find(id).await?.and_then(LoginSession::pending))
    }

    /// Records a rejected proof; the session stays open (ZK-10).
    pub(crate) async fn record_rejection(&self, id: LoginId, rejection: &LoginRejection) -> Result<(), Unavailable> {
        let note = |state| match state {
            State::Pending { .. } => Some(State::Pending {
                refused: Some(rejection.clone()),
            }),
            State::Claimed | State::Completed { .. } => None,
        };
        self.change(id, note).await.map(|_| ())
    }

    /// Claims the session, so that only the caller can complete it. Returns whether it was pending (ZK-12).
    pub(crate) async fn claim(&self, id: LoginId) -> Result<bool, Unavailable> {
        let claim = |state| match state {
            State::Pending { .. } => Some(State::Claimed),
            State::Claimed | State::Completed { .. } => None,
        };
        self.change(id, claim).await
    }

    /// Reopens a claimed session that could not be completed, with the reason.
    pub(crate) async fn release(&self, id: LoginId, rejection: &LoginRejection) -> Result<(), Unavailable> {
        let release = |state| match state {
            State::Claimed => Some(State::Pending {
                refused: Some(rejection.clone()),
            }),
            State::Pending { .. } | State::Completed { .. } => None,
        };
        self.change(id, release).await.map(|_| ())
    }

    /// Moves an open session out of its network's limit after an internal fault, so that the fault does not prevent
    /// further logins (RL14, HD34). The session moves to the space of completed ones, where entries of the fullest
    /// network are evicted first. A proof can still complete it.
    pub(crate) async fn set_aside(&self, id: LoginId, now: Timestamp) -> Result<(), Unavailable> {
        let key = id.key();
        let open = self.cache.get(Namespace::LoginSession, &key).await?;
        let Some(session) = open.as_deref().and_then(LoginSession::read) else {
            return Ok(());
        };
        // Claimed, so that no proof completes the entry that is removed below.
        if !matches!(session.state, State::Pending { .. }) || !self.claim(id).await? {
            return Ok(());
        }
        let bytes = serde_json::to_vec(&session).map_err(|_| Unavailable)?;
        let left = session.opened_at.plus(LIFE).micros().saturating_sub(now.micros());
        let left = Duration::from_micros(u64::try_from(left).unwrap_or(0));
        let places = session.opener.places();
        let groups = places.unlimited();
        let aside = Entry::new(Namespace::FinishedLogin, &key, &bytes)
            .with_ttl(left)
            .with_group_limits(&groups);
        self.cache.put(aside).await.map_err(|_| Unavailable)?;
        if self.cache.take(Namespace::LoginSession, &key).await?.is_none() {
            // An administrator ended it meanwhile.
            self.cache.take(Namespace::FinishedLogin, &key).await?;
        }
        Ok(())
    }

    /// Completes a claimed session: it no longer counts against its network's limit, and waits for its page's poll
    /// until the time at which it would have expired.
    pub(crate) async fn complete(
        &self,
        id: LoginId,
        pair: &SealedPair,
        by: &LoginCompletion,
    ) -> Result<(), Unavailable> {
        let key = id.key();
        let open = self.cache.get(Namespace::LoginSession, &key).await?;
        let Some(session) = open.as_deref().and_then(LoginSession::read) else {
            // A session that was set aside is in the other space.
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
        let finished = Entry::new(Namespace::FinishedLogin, &key, &bytes)
            .with_ttl(left)
            .with_group_limits(&groups);
        // In this order, so that a poll in between finds a session that is not completed yet, never none.
        self.cache.put(finished).await.map_err(|_| Unavailable)?;
        if self.cache.take(Namespace::LoginSession, &key).await?.is_none() {
            // An administrator ended it meanwhile.
            self.cache.take(Namespace::FinishedLogin, &key).await?;
        }
        Ok(())
    }

    /// Lists all sessions, the next to expire first.
    ///
    /// # Errors
    /// [`Unavailable`] if the shared cache does not answer.
    pub async fn list(&self) -> Result<Vec<SessionView>, Unavailable> {
        let mut views: Vec<SessionView> = Vec::new();
        for space in [Namespace::LoginSession, Namespace::FinishedLogin] {
            self.each(space, |id, session| {
                views.push(session.view(self.handle(id)));
                false
            })
            .await?;
        }
        views.sort_by_key(|view| view.expires_at);
        // A session that is being completed is in both spaces.
        views.dedup_by_key(|view| view.id);
        Ok(views)
    }

    /// Finds the session of a handle.
    ///
    /// # Errors
    /// [`Unavailable`] if the shared cache does not answer.
    pub async fn find_view(&self, handle: Uuid) -> Result<Option<SessionView>, Unavailable> {
        let Some(id) = self.by_handle(handle).await? else {
            return Ok(None);
        };
        Ok(self.find(id).await?.map(|session| session.view(handle)))
    }

    /// Ends the session of a handle. Returns whether there was one.
    ///
    /// # Errors
    /// [`Unavailable`] if the shared cache does not answer.
    pub async fn end(&self, handle: Uuid) -> Result<bool, Unavailable> {
        match self.by_handle(handle).await? {
            Some(id) => self.remove(id).await,
            None => Ok(false),
        }
    }

    /// Ends a session. Returns whether there was one.
    pub(crate) async fn remove(&self, id: LoginId) -> Result<bool, Unavailable> {
        let open = self.cache.take(Namespace::LoginSession, &id.key()).await?;
        let finished = self.cache.take(Namespace::FinishedLogin, &id.key()).await?;
        Ok(open.is_some() || finished.is_some())
    }

    /// Finds a session, open or completed.
    pub(crate) async fn find(&self, id: LoginId) -> Result<Option<LoginSession>, Unavailable> {
        for space in [Namespace::LoginSession, Namespace::FinishedLogin] {
            let bytes = self.cache.get(space, &id.key()).await?;
            if let Some(session) = bytes.as_deref().and_then(LoginSession::read) {
                return Ok(Some(session));
            }
        }
        Ok(None)
    }

    /// The handle of a session, for administrators. It does not allow polling.
    fn handle(&self, id: LoginId) -> Uuid {
        let tag = self
            .mac
            .clone()
            .map(|mac| mac.chain_update(HANDLE).chain_update(id.0).finalize().into_bytes());
        let bytes = tag.and_then(|tag| tag.first_chunk::<16>().copied()).unwrap_or_default();
        uuid::Builder::from_custom_bytes(bytes).into_uuid()
    }

    async fn by_handle(&self, handle: Uuid) -> Result<Option<LoginId>, Unavailable> {
        let mut matching = None;
        for space in [Namespace::LoginSession, Namespace::FinishedLogin] {
            self.each(space, |id, _| {
                let is = self.handle(id) == handle;
                matching = is.then_some(id).or(matching);
                is
            })
            .await?;
        }
        Ok(matching)
    }

    /// Calls `look` with every session of a space until it returns `true`.
    async fn each(
        &self,
        space: Namespace,
        mut look: impl FnMut(LoginId, LoginSession) -> bool,
    ) -> Result<(), Unavailable> {
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

    /// Moves a session to the state that `next` returns, if any. Returns whether it moved.
    async fn change(
        &self,
        id: LoginId,
        mut next: impl FnMut(State) -> Option<State> + Send,
    ) -> Result<bool, Unavailable> {
        let key = id.key();
        // A session that was set aside is open, too.
        for space in [Namespace::LoginSession, Namespace::FinishedLogin] {
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

/// Counts rejected proofs per session and address (spec/10 §9). The limit does not end the session.
#[derive(Debug)]
pub(crate) struct FailureCounter {
    cache: Cache,
}

impl FailureCounter {
    pub(crate) fn new(cache: Cache) -> Self {
        Self { cache }
    }

    /// How long this address must wait; `None` if it has attempts left.
    pub(crate) async fn exhausted(&self, id: LoginId, client: ClientAddress) -> Result<Option<Seconds>, Unavailable> {
        let hits = self.cache.hits(CounterKind::LoginFailures, &key(id, client)).await?;
        Ok((hits.count >= MAX_FAILURES).then(|| hits.wait()))
    }

    /// Counts a rejected proof.
    pub(crate) async fn count(&self, id: LoginId, client: ClientAddress) -> Result<(), Unavailable> {
        self.cache
            .hit(CounterKind::LoginFailures, &key(id, client))
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
        login_secret::LoginSecret,
    };
    use gw_types::testing::SeededEntropy;

    /// A reader of the cache must gain nothing from a stored session (decision 26).
    #[test]
    fn zk11_a_stored_session_names_no_secret() {
        let entropy = SeededEntropy::default();
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
        assert!(
            read.opener
                .is(&OpenerEvidence::from_headers(&headers, ClientAddress(elsewhere)))
        );
        assert!(LoginSession::read(b"{}").is_none());
    }
}

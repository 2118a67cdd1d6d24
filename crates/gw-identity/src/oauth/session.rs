//! OAuth sessions and codes, in the cache that all instances share (OA-2, OA-5, OA-6, OA-9).
//!
//! Invariant: a session yields at most one code: the code is derived from the session's id, and its record is created
//! once. A code is redeemed at most once: only the caller that marks it as spent redeems it.
//!
//! The code itself is never stored, so that a reader of the cache cannot redeem it.

use super::{Challenge, RedirectUri};
use crate::login::Opener;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use gw_cache::{Cache, Change, Entry, Namespace, PutError, Unavailable};
use gw_http::Amr;
use gw_store::record::TokenHash;
use gw_types::{Entropy, ExternalId, Seconds, Secret, SessionId, Timestamp};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::time::Duration;
use uuid::Uuid;

const LABEL: &[u8] = b"ledger-gateway oauth code v1";

/// 256 bits that name a session. They are part of the page's URL and of the QR code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OauthId(String);

impl OauthId {
    pub(crate) fn fresh(entropy: &dyn Entropy) -> Self {
        let mut bytes = [0u8; 32];
        entropy.fill(&mut bytes);
        Self(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Parses an id; `None` if the text is not one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0u8; 32];
        let read = URL_SAFE_NO_PAD.decode_slice(text, &mut bytes);
        matches!(read, Ok(32)).then(|| Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// An authorization request of an application, and how far it got.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct OauthSession {
    pub(crate) client: String,
    pub(crate) redirect_uri: RedirectUri,
    pub(crate) state: String,
    pub(crate) challenge: Option<Challenge>,
    /// The user who was logged in when the session began.
    pub(crate) initiator: Option<ExternalId>,
    /// The login session whose completion completes this session.
    pub(crate) login: Uuid,
    /// The message that the login's wallet answers.
    pub(crate) auth_request: Value,
    /// Who opened the session; only the opener may learn of it (HD34).
    pub(crate) opener: Opener,
    /// When it ends.
    expires_at: Timestamp,
    /// The user who logged in.
    #[serde(default)]
    pub(crate) completed_by: Option<ExternalId>,
    pub(crate) progress: Progress,
}

/// The state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Progress {
    /// Waiting for the user.
    Pending,
    /// A code was issued.
    Completed,
    /// The code was used.
    Redeemed,
}

/// The parameters of an authorization request.
#[derive(Debug)]
pub(crate) struct AuthorizeParams {
    pub(crate) client: String,
    pub(crate) redirect_uri: RedirectUri,
    pub(crate) state: String,
    pub(crate) challenge: Option<Challenge>,
}

impl OauthSession {
    pub(crate) fn new(params: AuthorizeParams, initiator: Option<ExternalId>, opener: Opener, now: Timestamp) -> Self {
        let AuthorizeParams {
            client,
            redirect_uri,
            state,
            challenge,
        } = params;
        Self {
            client,
            redirect_uri,
            state,
            challenge,
            initiator,
            login: Uuid::nil(),
            auth_request: Value::Null,
            opener,
            expires_at: now.plus(Namespace::OauthSession.seconds()),
            completed_by: None,
            progress: Progress::Pending,
        }
    }

    /// Sets the login session whose completion completes this session.
    pub(crate) fn answered_by(self, login: Uuid, auth_request: Value) -> Self {
        Self {
            login,
            auth_request,
            ..self
        }
    }
}

/// What a code grants, and to whom: a login whose first refresh token no client has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Grant {
    /// The session it came from.
    pub(crate) session: String,
    pub(crate) client: String,
    pub(crate) redirect_uri: String,
    pub(crate) challenge: Option<Challenge>,
    pub(crate) login: GrantedLogin,
}

/// The login behind a code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GrantedLogin {
    pub(crate) subject: ExternalId,
    pub(crate) amr: Amr,
    pub(crate) family: SessionId,
    /// When the family began, in microseconds.
    started: i64,
    /// SHA-256 of the family's first refresh token; redeeming the code exchanges it.
    first: [u8; 32],
}

impl GrantedLogin {
    pub(crate) fn new(
        subject: ExternalId,
        amr: Amr,
        family: SessionId,
        started: Timestamp,
        TokenHash(first): TokenHash,
    ) -> Self {
        Self {
            subject,
            amr,
            family,
            started: started.micros(),
            first,
        }
    }

    pub(crate) fn started(&self) -> Timestamp {
        Timestamp::from_micros(self.started)
    }

    pub(crate) fn first(&self) -> TokenHash {
        TokenHash(self.first)
    }
}

/// Why a session was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("too many open sessions")]
    Full(Seconds),
    #[error("too many open sessions of one network")]
    NetworkFull(Seconds),
    #[error("the cache is unavailable")]
    Unavailable,
}

/// Why a session was not completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CompleteError {
    #[error("the session is over, or done")]
    Over,
    #[error("the cache is unavailable")]
    Unavailable,
}

/// The result of redeeming a code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Redeemed {
    /// The code is unknown.
    Unknown,
    /// The code was used before: the login that it granted must end.
    Again(Box<GrantedLogin>),
    /// The code is now used, by this caller.
    Now(Box<Grant>),
}

/// All OAuth sessions and codes.
pub(crate) struct OauthSessions {
    cache: Cache,
    mac: Option<Hmac<Sha256>>,
}

impl OauthSessions {
    /// Creates the sessions. Instances that share `secret` derive the same codes.
    pub(crate) fn new(cache: Cache, secret: &Secret) -> Self {
        // HMAC accepts keys of every length. Without a MAC there is no code, and nothing completes.
        let mac = <Hmac<Sha256> as KeyInit>::new_from_slice(secret.expose().as_bytes()).ok();
        Self { cache, mac }
    }

    pub(crate) async fn open(&self, id: &OauthId, session: &OauthSession) -> Result<(), OpenError> {
        let bytes = serde_json::to_vec(session).map_err(|_| OpenError::Unavailable)?;
        let places = session.opener.places();
        let groups = places.groups();
        let entry = Entry::new(Namespace::OauthSession, id.as_str(), &bytes).with_group_limits(&groups);
        self.cache.put(entry).await.map_err(|error| match error {
            PutError::Full { wait } => OpenError::Full(wait),
            PutError::GroupFull { wait } => OpenError::NetworkFull(wait),
            PutError::Unavailable(_) => OpenError::Unavailable,
        })
    }

    pub(crate) async fn find(&self, id: &OauthId) -> Result<Option<OauthSession>, Unavailable> {
        for space in [Namespace::OauthSession, Namespace::FinishedOauth] {
            if let Some(session) = self.cache.get(space, id.as_str()).await?.and_then(|bytes| read(&bytes)) {
                return Ok(Some(session));
            }
        }
        Ok(None)
    }

    /// Creates the session's code, once, and returns the redirect URL that delivers it.
    pub(crate) async fn complete(
        &self,
        id: &OauthId,
        session: &OauthSession,
        login: GrantedLogin,
        issuer: &str,
        now: Timestamp,
    ) -> Result<String, CompleteError> {
        let code = self.code(id).ok_or(CompleteError::Unavailable)?;
        let completed_by = Some(login.subject.clone());
        let grant = Grant {
            session: id.as_str().to_owned(),
            client: session.client.clone(),
            redirect_uri: session.redirect_uri.as_str().to_owned(),
            challenge: session.challenge,
            login,
        };
        let bytes = serde_json::to_vec(&grant).map_err(|_| CompleteError::Unavailable)?;
        let made = self
            .cache
            .put_new(Entry::new(Namespace::OauthCode, &key(code.expose()), &bytes))
            .await;
        if !made.map_err(|_| CompleteError::Unavailable)? {
            return Err(CompleteError::Over);
        }
        // Only after the record of the code exists, so that a poll never delivers a code that does not count yet. The
        // session then no longer counts against its network's limit; a poll in between finds one that is not completed
        // yet.
        let done = OauthSession {
            completed_by,
            progress: Progress::Completed,
            ..session.clone()
        };
        match self
            .finish(id, &done, now)
            .await
            .map_err(|_| CompleteError::Unavailable)?
        {
            true => Ok(session.redirect_uri.with_code(code.expose(), &session.state, issuer)),
            false => Err(CompleteError::Over),
        }
    }

    /// Moves a session to the completed ones. Returns whether it was open until now.
    async fn finish(&self, id: &OauthId, done: &OauthSession, now: Timestamp) -> Result<bool, Unavailable> {
        let bytes = serde_json::to_vec(done).map_err(|_| Unavailable)?;
        let left = u64::try_from(done.expires_at.micros().saturating_sub(now.micros())).unwrap_or(0);
        let places = done.opener.places();
        let groups = places.unlimited();
        let entry = Entry::new(Namespace::FinishedOauth, id.as_str(), &bytes).with_ttl(Duration::from_micros(left));
        let aside = self.cache.get(Namespace::FinishedOauth, id.as_str()).await?;
        let aside = aside.as_deref().and_then(read::<OauthSession>);
        let was_aside = aside.is_some_and(|session| session.progress == Progress::Pending);
        self.cache
            .put(entry.with_group_limits(&groups))
            .await
            .map_err(|_| Unavailable)?;
        let was_open = self.cache.take(Namespace::OauthSession, id.as_str()).await?.is_some() || was_aside;
        if !was_open {
            self.cache.take(Namespace::FinishedOauth, id.as_str()).await?;
        }
        Ok(was_open)
    }

    /// Moves an open session out of its network's limit after an internal fault (RL14, HD34). If the cache is
    /// unavailable it still counts.
    pub(crate) async fn set_aside(&self, id: &OauthId, open: &OauthSession, now: Timestamp) {
        let Ok(bytes) = serde_json::to_vec(open) else { return };
        let left = u64::try_from(open.expires_at.micros().saturating_sub(now.micros())).unwrap_or(0);
        let places = open.opener.places();
        let groups = places.unlimited();
        let entry = Entry::new(Namespace::FinishedOauth, id.as_str(), &bytes).with_ttl(Duration::from_micros(left));
        // A session that was completed meanwhile stays completed.
        if let Ok(true) = self.cache.put_new(entry.with_group_limits(&groups)).await {
            let _gone = self.cache.take(Namespace::OauthSession, id.as_str()).await;
        }
    }

    /// The redirect URL with the code of a completed session.
    pub(crate) fn redirect_url(&self, id: &OauthId, session: &OauthSession, issuer: &str) -> Option<String> {
        let code = self.code(id)?;
        Some(session.redirect_uri.with_code(code.expose(), &session.state, issuer))
    }

    /// Redeems a code. Of several parallel callers one gets the grant; the others learn that the code was used.
    pub(crate) async fn redeem(&self, code: &str) -> Result<Redeemed, Unavailable> {
        let key = key(code);
        let grant: Option<Grant> = self
            .cache
            .get(Namespace::OauthCode, &key)
            .await?
            .and_then(|bytes| read(&bytes));
        let Some(grant) = grant else {
            return self.spent(&key).await;
        };
        let bytes = serde_json::to_vec(&grant.login).map_err(|_| Unavailable)?;
        match self.cache.put_new(Entry::new(Namespace::SpentCode, &key, &bytes)).await {
            Ok(true) => {}
            Ok(false) => return self.spent(&key).await,
            // A code that cannot be marked as spent is not spent.
            Err(_) => return Err(Unavailable),
        }
        // The code is spent even if these two calls fail.
        let _gone = self.cache.take(Namespace::OauthCode, &key).await;
        let _closed = self
            .advance(&grant.session, Progress::Completed, Progress::Redeemed)
            .await;
        Ok(Redeemed::Now(Box::new(grant)))
    }

    async fn spent(&self, key: &str) -> Result<Redeemed, Unavailable> {
        let login = self
            .cache
            .get(Namespace::SpentCode, key)
            .await?
            .and_then(|bytes| read(&bytes));
        Ok(login.map_or(Redeemed::Unknown, |login| Redeemed::Again(Box::new(login))))
    }

    async fn advance(&self, id: &str, from: Progress, to: Progress) -> Result<bool, Unavailable> {
        let moved = self.cache.update(Namespace::FinishedOauth, id, |bytes| {
            let session = read::<OauthSession>(bytes).filter(|session| session.progress == from);
            let next = session.and_then(|session| {
                serde_json::to_vec(&OauthSession {
                    progress: to,
                    ..session
                })
                .ok()
            });
            next.map_or((Change::Keep, false), |next| (Change::Set(next), true))
        });
        Ok(moved.await?.unwrap_or(false))
    }

    fn code(&self, id: &OauthId) -> Option<Secret> {
        let tag = self
            .mac
            .clone()?
            .chain_update(LABEL)
            .chain_update(id.as_str())
            .finalize()
            .into_bytes();
        Some(Secret::new(URL_SAFE_NO_PAD.encode(tag)))
    }
}

impl core::fmt::Debug for OauthSessions {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("OauthSessions")
    }
}

/// The cache key of a code.
fn key(code: &str) -> String {
    hex::encode(Sha256::digest(code.as_bytes()))
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}

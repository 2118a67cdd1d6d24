//! Access and refresh tokens: JWT, HS256, two kinds with separate secrets (spec/10 TK-1, TK-2, decision 36).
//!
//! Not here: storage, rotation and revocation (`gw-identity`), and whether the subject may do anything (`gw-policy`).
//!
//! Invariant: a token is accepted only if its header segment is byte for byte the one that this codec writes for that
//! kind. No algorithm, type or key is ever taken from the token.

use crate::cursor_cipher::CursorCipher;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use gw_policy::access::TokenFacts;
use gw_types::{ExternalId, Seconds, Secret, SessionId, Timestamp, TokenId};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::borrow::Cow;

/// The audience of every token.
pub const AUDIENCE: &str = "ledger-gateway";

/// Maximum difference between the clocks of two instances. A token is accepted this much longer than its `exp`, so a
/// revocation must be remembered that much longer, too.
pub const SKEW: Seconds = Seconds(5);

/// Maximum lifetimes of any setting (decision 35, TK-5).
const LONGEST: TokenLives = TokenLives {
    access: Seconds(86_400),
    refresh: Seconds(30 * 86_400),
};

/// Maximum length of a token; longer texts are rejected.
const MAX_LEN: usize = 2048;

/// The secrets of one kind of token.
#[derive(Clone, Debug)]
pub struct TokenSecrets {
    /// Signs and validates tokens.
    pub current: Secret,
    /// Validate tokens, never sign (TK-2).
    pub previous: Vec<Secret>,
}

/// The longest accepted lifetimes, whatever a token's own `exp` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenLives {
    /// ACCESS_TOKEN_TTL.
    pub access: Seconds,
    /// REFRESH_TOKEN_TTL.
    pub refresh: Seconds,
}

/// How the subject proved who they are (`amr`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Amr {
    /// A zero-knowledge proof.
    Zk,
    /// Interactive directory login.
    Directory,
    /// A directory service principal.
    Sp,
    /// A mock login; a release does not have it (MK-2).
    #[cfg(feature = "mock-login")]
    Mock,
}

impl Amr {
    /// The word in the token and in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Zk => "zk",
            Self::Directory => "directory",
            Self::Sp => "sp",
            #[cfg(feature = "mock-login")]
            Self::Mock => "mock",
        }
    }
}

/// The claims of an access token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessClaims {
    /// The user's external id.
    pub subject: ExternalId,
    /// The id of this token.
    pub token: TokenId,
    /// The token family: the tokens that rotate from one first pair.
    pub session: SessionId,
    /// When it was issued.
    pub issued_at: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
    /// KYC at the time of issue. For clients only: decisions read the user row (TK-1).
    pub kyc: bool,
    /// How the login was proved.
    pub amr: Amr,
}

impl AccessClaims {
    /// The facts by which policy identifies the user of a verified token.
    pub fn facts(&self) -> TokenFacts {
        TokenFacts {
            subject: self.subject.clone(),
            token: self.token,
            session: TokenId(self.session.0),
            issued_at: self.issued_at,
        }
    }
}

/// The claims of a refresh token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefreshClaims {
    /// The user's external id.
    pub subject: ExternalId,
    /// The id of this token.
    pub token: TokenId,
    /// The family.
    pub session: SessionId,
    /// When it was issued.
    pub issued_at: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
    /// How the login was proved.
    pub amr: Amr,
}

/// Why a token is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Malformed, wrongly signed, of the other kind, for another audience, or not valid yet.
    #[error("not a valid token")]
    Invalid,
    /// Expired.
    #[error("token expired")]
    Expired,
}

/// Why a codec cannot be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretsError {
    /// A secret is used for both kinds (TK-10): keys would no longer distinguish them.
    #[error("a secret signs or validates both access and refresh tokens")]
    Shared,
    /// A secret is empty: with an empty HMAC key every client could sign tokens.
    #[error("a token secret is empty")]
    Empty,
}

/// Signs and verifies both kinds of token.
#[derive(Debug)]
pub struct TokenCodec {
    issuer: String,
    access: Kind,
    refresh: Kind,
    cursors: CursorCipher,
}

impl TokenCodec {
    /// Creates a codec whose tokens name `issuer` (BASE_URL).
    ///
    /// # Errors
    /// [`SecretsError`] if a secret is empty or is used for both kinds of token.
    pub fn new(issuer: &str, access: &TokenSecrets, refresh: &TokenSecrets) -> Result<Self, SecretsError> {
        let all = |secrets: &TokenSecrets| {
            [&secrets.current]
                .into_iter()
                .chain(&secrets.previous)
                .cloned()
                .collect()
        };
        let (of_access, of_refresh): (Vec<Secret>, Vec<Secret>) = (all(access), all(refresh));
        if of_access
            .iter()
            .chain(&of_refresh)
            .any(|secret| secret.expose().is_empty())
        {
            return Err(SecretsError::Empty);
        }
        if of_access.iter().any(|secret| of_refresh.contains(secret)) {
            return Err(SecretsError::Shared);
        }
        Ok(Self {
            issuer: issuer.to_owned(),
            access: Kind::new("at+jwt", &of_access, LONGEST.access)?,
            refresh: Kind::new("rt+jwt", &of_refresh, LONGEST.refresh)?,
            cursors: CursorCipher::derived_from(&access.current).ok_or(SecretsError::Empty)?,
        })
    }

    /// Encrypts the cursors of lists, with a key derived from the current secret of access tokens.
    pub fn cursors(&self) -> &CursorCipher {
        &self.cursors
    }

    /// Limits the accepted lifetimes to these.
    #[must_use]
    pub fn with_lives(mut self, lives: TokenLives) -> Self {
        self.access.longest = lives.access;
        self.refresh.longest = lives.refresh;
        self
    }

    /// Signs an access token.
    pub fn sign_access(&self, claims: &AccessClaims) -> Secret {
        self.access.sign(&Wire {
            iss: (&self.issuer).into(),
            aud: AUDIENCE.into(),
            sub: claims.subject.as_str().into(),
            jti: claims.token,
            sid: claims.session,
            iat: claims.issued_at.secs(),
            nbf: claims.issued_at.secs(),
            exp: claims.expires_at.secs(),
            micros: micros_of(claims.issued_at),
            amr: [claims.amr],
            kyc: Some(claims.kyc),
        })
    }

    /// Signs a refresh token.
    pub fn sign_refresh(&self, claims: &RefreshClaims) -> Secret {
        self.refresh.sign(&Wire {
            iss: (&self.issuer).into(),
            aud: AUDIENCE.into(),
            sub: claims.subject.as_str().into(),
            jti: claims.token,
            sid: claims.session,
            iat: claims.issued_at.secs(),
            nbf: claims.issued_at.secs(),
            exp: claims.expires_at.secs(),
            micros: micros_of(claims.issued_at),
            amr: [claims.amr],
            kyc: None,
        })
    }

    /// Verifies an access token. Other code checks that it is not revoked and that its subject may log in.
    ///
    /// # Errors
    /// [`TokenError`] if the token is invalid, expired or of another kind.
    pub fn access(&self, text: &str, now: Timestamp) -> Result<AccessClaims, TokenError> {
        let buffer = self.access.open(text)?;
        let wire = self.check(&self.access, &buffer, now)?;
        Ok(AccessClaims {
            subject: ExternalId::new(&wire.sub).map_err(|_| TokenError::Invalid)?,
            token: wire.jti,
            session: wire.sid,
            issued_at: wire.issued_at(),
            expires_at: Timestamp::from_secs(wire.exp),
            kyc: wire.kyc.ok_or(TokenError::Invalid)?,
            amr: wire.amr[0],
        })
    }

    /// Verifies a refresh token.
    ///
    /// # Errors
    /// [`TokenError`] if the token is invalid, expired or of another kind.
    pub fn refresh(&self, text: &str, now: Timestamp) -> Result<RefreshClaims, TokenError> {
        let buffer = self.refresh.open(text)?;
        let wire = self.check(&self.refresh, &buffer, now)?;
        Ok(RefreshClaims {
            subject: ExternalId::new(&wire.sub).map_err(|_| TokenError::Invalid)?,
            token: wire.jti,
            session: wire.sid,
            issued_at: wire.issued_at(),
            expires_at: Timestamp::from_secs(wire.exp),
            amr: wire.amr[0],
        })
    }

    fn check<'a>(&self, kind: &Kind, payload: &'a [u8], now: Timestamp) -> Result<Wire<'a>, TokenError> {
        let mut wire: Wire<'a> = serde_json::from_slice(payload).map_err(|_| TokenError::Invalid)?;
        if wire.iss != self.issuer || wire.aud != AUDIENCE || wire.micros >= MICROS {
            return Err(TokenError::Invalid);
        }
        // A lifetime longer than the configured one comes from an older setting, or from a forger.
        wire.exp = wire.exp.min(wire.iat.saturating_add(i64::from(kind.longest.0)));
        let soon = now.plus(SKEW);
        if Timestamp::from_secs(wire.nbf) > soon || Timestamp::from_secs(wire.iat) > soon {
            return Err(TokenError::Invalid);
        }
        if Timestamp::from_secs(wire.exp).plus(SKEW) <= now {
            return Err(TokenError::Expired);
        }
        Ok(wire)
    }
}

/// The claims as written in the token.
#[derive(Serialize, Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    iss: Cow<'a, str>,
    #[serde(borrow)]
    aud: Cow<'a, str>,
    #[serde(borrow)]
    sub: Cow<'a, str>,
    jti: TokenId,
    sid: SessionId,
    iat: i64,
    nbf: i64,
    exp: i64,
    /// The microseconds of the time of issue within the second `iat`. A revocation must not end tokens that are issued
    /// later in the same second.
    #[serde(default, rename = "iat_us", skip_serializing_if = "is_zero")]
    micros: u32,
    /// RFC 8176: a list; here it has exactly one entry.
    amr: [Amr; 1],
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kyc: Option<bool>,
}

/// Microseconds of a second.
const MICROS: u32 = 1_000_000;

fn micros_of(at: Timestamp) -> u32 {
    u32::try_from(at.micros().rem_euclid(i64::from(MICROS))).unwrap_or(0)
}

/// serde passes a reference.
const fn is_zero(micros: &u32) -> bool {
    *micros == 0
}

impl Wire<'_> {
    fn issued_at(&self) -> Timestamp {
        Timestamp::from_micros(
            Timestamp::from_secs(self.iat)
                .micros()
                .saturating_add(i64::from(self.micros)),
        )
    }
}

/// One kind of token: its header and its keys, of which the first signs.
struct Kind {
    /// The longest accepted lifetime.
    longest: Seconds,
    /// The encoded header, followed by a dot.
    header: String,
    keys: Vec<Hmac<Sha256>>,
}

impl core::fmt::Debug for Kind {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Kind")
            .field("header", &self.header)
            .field("keys", &self.keys.len())
            .finish()
    }
}

impl Kind {
    fn new(typ: &str, secrets: &[Secret], longest: Seconds) -> Result<Self, SecretsError> {
        let header = URL_SAFE_NO_PAD.encode(format!(r#"{{"alg":"HS256","typ":"{typ}"}}"#)) + ".";
        let keys = secrets
            .iter()
            .map(|secret| Hmac::new_from_slice(secret.expose().as_bytes()).map_err(|_| SecretsError::Empty))
            .collect::<Result<_, _>>()?;
        Ok(Self { longest, header, keys })
    }

    fn sign(&self, claims: &Wire<'_>) -> Secret {
        let mut text = self.header.clone();
        // Invariant: strings, numbers and ids always serialize; an empty payload would not verify anyway.
        let payload = serde_json::to_vec(claims).unwrap_or_default();
        URL_SAFE_NO_PAD.encode_string(payload, &mut text);
        if let Some(key) = self.keys.first() {
            let tag = key.clone().chain_update(text.as_bytes()).finalize().into_bytes();
            text.push('.');
            URL_SAFE_NO_PAD.encode_string(tag, &mut text);
        }
        Secret::new(text)
    }

    /// Verifies the signature and returns the payload.
    fn open(&self, text: &str) -> Result<Vec<u8>, TokenError> {
        if text.len() > MAX_LEN {
            return Err(TokenError::Invalid);
        }
        let rest = text.strip_prefix(self.header.as_str()).ok_or(TokenError::Invalid)?;
        let (payload, tag) = rest.split_once('.').ok_or(TokenError::Invalid)?;
        let mut presented = [0u8; 32];
        match URL_SAFE_NO_PAD.decode_slice(tag, &mut presented) {
            Ok(32) => {}
            Ok(_) | Err(_) => return Err(TokenError::Invalid),
        }
        let signed = text
            .get(..self.header.len() + payload.len())
            .ok_or(TokenError::Invalid)?
            .as_bytes();
        let vouched = self
            .keys
            .iter()
            .any(|key| key.clone().chain_update(signed).verify_slice(&presented).is_ok());
        if !vouched {
            return Err(TokenError::Invalid);
        }
        URL_SAFE_NO_PAD.decode(payload).map_err(|_| TokenError::Invalid)
    }
}

#[cfg(test)]
mod tests;

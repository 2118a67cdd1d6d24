//! Access and refresh tokens: JWT, two kinds with separate secrets (spec/10 TK-1, TK-2, decision 36). Both are signed
//! with HS256. Access tokens may be signed with EdDSA instead, so that other services can verify them by the public
//! keys (spec/85 section 7). The private keys are derived from the secrets of access tokens, so they rotate with them.
//!
//! Not here: storage, rotation and revocation (`gw-identity`), and whether the subject may do anything (`gw-policy`).
//!
//! Invariant: a token is accepted only if its header segment is byte for byte the one that this codec writes for that
//! kind with one of its keys. No algorithm, type or key is ever taken from the token.

mod public_keys;

pub use public_keys::{KeySetDocument, KeySetError, PublicKeys, PublicTokenError};

use crate::cursor_cipher::CursorCipher;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ed25519_dalek::{Signature, Signer as _, SigningKey};
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

/// How access tokens are signed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessAlgorithm {
    /// HMAC-SHA256: only holders of the secret can verify tokens.
    #[default]
    Hs256,
    /// Ed25519 (RFC 8037): everybody can verify tokens by the public keys.
    EdDsa,
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
            // Both algorithms are accepted whichever signs, so that instances can change it one after the other.
            access: Kind::new("at+jwt", &of_access, LONGEST.access)?.with_derived_keys(&of_access)?,
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

    /// Signs access tokens with this algorithm.
    #[must_use]
    pub fn with_access_algorithm(mut self, algorithm: AccessAlgorithm) -> Self {
        self.access.algorithm = algorithm;
        self
    }

    /// The keys by which other services verify access tokens: none if the tokens are signed with HS256.
    pub fn public_keys(&self) -> PublicKeys {
        match self.access.algorithm {
            AccessAlgorithm::Hs256 => PublicKeys::default(),
            AccessAlgorithm::EdDsa => PublicKeys::new(self.access.keys.iter().filter_map(Key::public)),
        }
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
        Wire::checked(&buffer, &self.issuer, self.access.longest, now)?.access_claims()
    }

    /// Verifies a refresh token.
    ///
    /// # Errors
    /// [`TokenError`] if the token is invalid, expired or of another kind.
    pub fn refresh(&self, text: &str, now: Timestamp) -> Result<RefreshClaims, TokenError> {
        let buffer = self.refresh.open(text)?;
        let wire = Wire::checked(&buffer, &self.issuer, self.refresh.longest, now)?;
        Ok(RefreshClaims {
            subject: ExternalId::new(&wire.sub).map_err(|_| TokenError::Invalid)?,
            token: wire.jti,
            session: wire.sid,
            issued_at: wire.issued_at(),
            expires_at: Timestamp::from_secs(wire.exp),
            amr: wire.amr[0],
        })
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

impl<'a> Wire<'a> {
    /// Reads the payload of a token whose signature is valid.
    fn checked(payload: &'a [u8], issuer: &str, longest: Seconds, now: Timestamp) -> Result<Self, TokenError> {
        let mut wire: Self = serde_json::from_slice(payload).map_err(|_| TokenError::Invalid)?;
        if wire.iss != issuer || wire.aud != AUDIENCE || wire.micros >= MICROS {
            return Err(TokenError::Invalid);
        }
        // A lifetime longer than the configured one comes from an older setting, or from a forger.
        wire.exp = wire.exp.min(wire.iat.saturating_add(i64::from(longest.0)));
        let soon = now.plus(SKEW);
        if Timestamp::from_secs(wire.nbf) > soon || Timestamp::from_secs(wire.iat) > soon {
            return Err(TokenError::Invalid);
        }
        if Timestamp::from_secs(wire.exp).plus(SKEW) <= now {
            return Err(TokenError::Expired);
        }
        Ok(wire)
    }

    fn access_claims(&self) -> Result<AccessClaims, TokenError> {
        Ok(AccessClaims {
            subject: ExternalId::new(&self.sub).map_err(|_| TokenError::Invalid)?,
            token: self.jti,
            session: self.sid,
            issued_at: self.issued_at(),
            expires_at: Timestamp::from_secs(self.exp),
            kyc: self.kyc.ok_or(TokenError::Invalid)?,
            amr: self.amr[0],
        })
    }

    fn issued_at(&self) -> Timestamp {
        Timestamp::from_micros(
            Timestamp::from_secs(self.iat)
                .micros()
                .saturating_add(i64::from(self.micros)),
        )
    }
}

/// One kind of token and its keys. The first key of the algorithm signs.
struct Kind {
    /// The type in the header.
    typ: &'static str,
    /// The longest accepted lifetime.
    longest: Seconds,
    algorithm: AccessAlgorithm,
    keys: Vec<Key>,
}

/// A key, with the encoded header of its tokens, followed by a dot.
struct Key {
    header: String,
    signer: Signer,
}

enum Signer {
    Hmac(Hmac<Sha256>),
    Ed25519(Box<SigningKey>),
}

impl core::fmt::Debug for Kind {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Kind")
            .field("typ", &self.typ)
            .field("algorithm", &self.algorithm)
            .field("keys", &self.keys.len())
            .finish()
    }
}

impl Kind {
    fn new(typ: &'static str, secrets: &[Secret], longest: Seconds) -> Result<Self, SecretsError> {
        let header = URL_SAFE_NO_PAD.encode(format!(r#"{{"alg":"HS256","typ":"{typ}"}}"#)) + ".";
        let key = |secret: &Secret| {
            Ok(Key {
                header: header.clone(),
                signer: Signer::Hmac(keyed(secret)?),
            })
        };
        Ok(Self {
            typ,
            longest,
            algorithm: AccessAlgorithm::Hs256,
            keys: secrets.iter().map(key).collect::<Result<_, _>>()?,
        })
    }

    /// Adds an Ed25519 key for each secret.
    fn with_derived_keys(mut self, secrets: &[Secret]) -> Result<Self, SecretsError> {
        for secret in secrets {
            let seed = keyed(secret)?.chain_update(ED25519_LABEL).finalize().into_bytes();
            let key = SigningKey::from_bytes(&seed.into());
            self.keys.push(Key {
                header: public_keys::header(&public_keys::key_id(&key.verifying_key()), self.typ),
                signer: Signer::Ed25519(Box::new(key)),
            });
        }
        Ok(self)
    }

    fn sign(&self, claims: &Wire<'_>) -> Secret {
        let mut text = String::new();
        let signs = |key: &&Key| key.algorithm() == self.algorithm;
        // Invariant: there is a key, and strings, numbers and ids always serialize; an empty text would not verify.
        if let Some(key) = self.keys.iter().find(signs) {
            text.push_str(&key.header);
            URL_SAFE_NO_PAD.encode_string(serde_json::to_vec(claims).unwrap_or_default(), &mut text);
            let tag = key.sign(text.as_bytes());
            text.push('.');
            URL_SAFE_NO_PAD.encode_string(tag, &mut text);
        }
        Secret::new(text)
    }

    /// Verifies the signature and returns the payload.
    fn open(&self, text: &str) -> Result<Vec<u8>, TokenError> {
        let parts = TokenParts::split(text)?;
        let vouched = self
            .keys
            .iter()
            .any(|key| key.header == parts.header && key.verifies(parts.signed.as_bytes(), &parts.signature));
        if !vouched {
            return Err(TokenError::Invalid);
        }
        URL_SAFE_NO_PAD.decode(parts.payload).map_err(|_| TokenError::Invalid)
    }
}

impl Key {
    fn algorithm(&self) -> AccessAlgorithm {
        match self.signer {
            Signer::Hmac(_) => AccessAlgorithm::Hs256,
            Signer::Ed25519(_) => AccessAlgorithm::EdDsa,
        }
    }

    fn public(&self) -> Option<ed25519_dalek::VerifyingKey> {
        match &self.signer {
            Signer::Hmac(_) => None,
            Signer::Ed25519(key) => Some(key.verifying_key()),
        }
    }

    fn sign(&self, signed: &[u8]) -> Vec<u8> {
        match &self.signer {
            Signer::Hmac(key) => key.clone().chain_update(signed).finalize().into_bytes().to_vec(),
            Signer::Ed25519(key) => key.sign(signed).to_bytes().to_vec(),
        }
    }

    fn verifies(&self, signed: &[u8], signature: &[u8]) -> bool {
        match &self.signer {
            Signer::Hmac(key) => key.clone().chain_update(signed).verify_slice(signature).is_ok(),
            Signer::Ed25519(key) => Signature::from_slice(signature)
                .is_ok_and(|signature| key.verifying_key().verify_strict(signed, &signature).is_ok()),
        }
    }
}

/// Separates the keys of EdDSA from all other uses of a secret.
const ED25519_LABEL: &[u8] = b"ledger-gateway access tokens: Ed25519";

fn keyed(secret: &Secret) -> Result<Hmac<Sha256>, SecretsError> {
    Hmac::new_from_slice(secret.expose().as_bytes()).map_err(|_| SecretsError::Empty)
}

/// The parts of a token, not verified.
struct TokenParts<'a> {
    /// With its dot.
    header: &'a str,
    payload: &'a str,
    /// Header and payload.
    signed: &'a str,
    signature: Vec<u8>,
}

impl<'a> TokenParts<'a> {
    fn split(text: &'a str) -> Result<Self, TokenError> {
        if text.len() > MAX_LEN {
            return Err(TokenError::Invalid);
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(TokenError::Invalid)?;
        let dot = signed.find('.').ok_or(TokenError::Invalid)?;
        let (header, payload) = signed.split_at_checked(dot + 1).ok_or(TokenError::Invalid)?;
        Ok(Self {
            header,
            payload,
            signed,
            signature: URL_SAFE_NO_PAD.decode(signature).map_err(|_| TokenError::Invalid)?,
        })
    }
}

#[cfg(test)]
mod tests;

//! Issues token pairs (spec/10 section 4). The token format is in `gw-http`, the stored rows are in `gw-store`.

use gw_http::{AccessClaims, Amr, ApiError, HttpContext, RefreshClaims, token::SKEW};
use gw_policy::access::{IdentityError, TokenFacts, identify};
use gw_store::record::{NewRefreshToken, TokenHash, User};
use gw_types::{Seconds, Secret, SessionId, Timestamp, TokenId};
use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// Maximum lifetime of a token family (TK-5).
const FAMILY_LIFE: Seconds = Seconds(30 * 86_400);
/// Maximum lifetime of an access token (decision 35), whatever the setting was when it was issued.
const LONGEST_ACCESS: Seconds = Seconds(86_400);

/// Issues pairs of tokens.
#[derive(Clone, Debug)]
pub struct TokenIssuer {
    http_context: Arc<HttpContext>,
    access_ttl: Seconds,
    refresh_ttl: Seconds,
}

/// An access token and the refresh token that continues it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenPair {
    /// The access token.
    pub access: Secret,
    /// When it ends.
    pub access_expires_at: Timestamp,
    /// The refresh token.
    pub refresh: Secret,
}

/// A token family: the tokens that rotate from one first pair.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// The family's id (`sid`).
    pub id: SessionId,
    /// The login's id, which is the id of the first family it made. Everything that a login made ends with it (HD35).
    pub login: SessionId,
    /// When the login took place.
    pub started: Timestamp,
    /// How the login was proved.
    pub amr: Amr,
}

impl TokenIssuer {
    pub(crate) fn new(http_context: Arc<HttpContext>, access_ttl: Seconds, refresh_ttl: Seconds) -> Self {
        Self {
            http_context,
            access_ttl,
            refresh_ttl,
        }
    }

    /// Starts the first family of a new login.
    pub fn new_family(&self, amr: Amr, now: Timestamp) -> Family {
        let id = SessionId(self.http_context.entropy.uuid());
        Family {
            id,
            login: id,
            started: now,
            amr,
        }
    }

    /// Creates another family of the same login, so that rotation of one does not revoke the other (HD19).
    pub(crate) fn sibling(&self, family: Family) -> Family {
        Family {
            id: SessionId(self.http_context.entropy.uuid()),
            ..family
        }
    }

    /// Issues a pair of the family, and the row that identifies the refresh token. No token outlives its family.
    pub fn issue(&self, user: &User, family: Family, now: Timestamp) -> (TokenPair, NewRefreshToken) {
        let family_end = family.started.plus(FAMILY_LIFE);
        let access = AccessClaims {
            subject: user.external_id.clone(),
            token: TokenId(self.http_context.entropy.uuid()),
            session: family.id,
            issued_at: now,
            expires_at: now.plus(self.access_ttl).min(family_end),
            kyc: user.kyc,
            amr: family.amr,
        };
        let refresh = RefreshClaims {
            subject: user.external_id.clone(),
            token: TokenId(self.http_context.entropy.uuid()),
            session: family.id,
            issued_at: now,
            expires_at: now.plus(self.refresh_ttl).min(family_end),
            amr: family.amr,
        };
        let pair = TokenPair {
            access: self.http_context.tokens.sign_access(&access),
            access_expires_at: access.expires_at,
            refresh: self.http_context.tokens.sign_refresh(&refresh),
        };
        let row = NewRefreshToken {
            hash: hash(&pair.refresh),
            id: refresh.token,
            family: family.id,
            login: family.login,
            user: user.id,
            amr: family.amr.as_str().to_owned(),
            family_started: family.started,
            expires_at: refresh.expires_at,
        };
        (pair, row)
    }
}

/// Whether the login of a pair that waits for its page has ended meanwhile: by logout, revocation or ban. An unknown
/// user counts as not ended, because another instance may have just created it.
pub(crate) fn has_ended(http_context: &HttpContext, pair: &TokenPair) -> Result<bool, ApiError> {
    let Ok(claims) = http_context.tokens.refresh(pair.refresh.expose(), http_context.now()) else {
        return Ok(true);
    };
    let facts = TokenFacts {
        subject: claims.subject,
        token: claims.token,
        session: TokenId(claims.session.0),
        issued_at: claims.issued_at,
    };
    let snapshot = http_context.policy.pin().ok_or_else(ApiError::policy_unavailable)?;
    Ok(!matches!(
        identify(&snapshot, &facts),
        Ok(_) | Err(IdentityError::UnknownUser)
    ))
}

/// The stored hash of a token (TK-3).
pub(crate) fn hash(token: &Secret) -> TokenHash {
    TokenHash(Sha256::digest(token.expose().as_bytes()).into())
}

/// Until when a revoked family must be remembered: its last access token has expired by then.
pub(crate) fn revoked_until(now: Timestamp) -> Timestamp {
    now.plus(LONGEST_ACCESS).plus(SKEW)
}

/// Tokens as clients get them.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct AuthResponse {
    /// The access token.
    #[serde(serialize_with = "expose")]
    #[schema(value_type = String)]
    pub access_token: Secret,
    /// The refresh token.
    #[serde(serialize_with = "expose")]
    #[schema(value_type = String)]
    pub refresh_token: Secret,
    /// `Bearer`.
    pub token_type: &'static str,
    /// Seconds until the access token ends.
    pub expires_in: u32,
}

impl AuthResponse {
    /// Converts the pair; `expires_in` counts from `now`.
    pub fn new(pair: TokenPair, now: Timestamp) -> Self {
        let left = pair.access_expires_at.secs().saturating_sub(now.secs());
        Self {
            access_token: pair.access,
            refresh_token: pair.refresh,
            token_type: "Bearer",
            expires_in: u32::try_from(left.max(0)).unwrap_or(u32::MAX),
        }
    }
}

/// Serializes a token. The only place where tokens leave.
fn expose<S: Serializer>(secret: &Secret, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(secret.expose())
}

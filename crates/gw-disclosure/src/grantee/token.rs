//! Tokens for the reports of a grant (rule 38): 32 random bytes, stored as a digest, for an hour at most.

use super::reader::GrantPath;
use crate::{DisclosureState, caller::User, error::GrantError, wire::DisclosureTokenResponse};
use axum::{Json, extract::State};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use gw_cache::{Entry, Group, Namespace};
use gw_policy::access::TokenFacts;
use gw_types::{DisclosureGrantId, ExternalId, Timestamp};
use http::{HeaderMap, HeaderName};
use sha2::{Digest as _, Sha256};
use std::time::Duration;

const HEADER: HeaderName = HeaderName::from_static("x-disclosure-token");
/// The most tokens of one grantee at the same time.
const PER_GRANTEE: u32 = 100;

/// The grant of a token, and the access token with which the grantee made it: what ends that one ends this one (HD35).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenHolder {
    pub(crate) grant: DisclosureGrantId,
    pub(crate) maker: TokenFacts,
}

impl TokenHolder {
    /// The members, separated by spaces. The DID is the last one.
    fn write(&self) -> String {
        let Self { grant, maker } = self;
        let issued_at = maker.issued_at.micros();
        format!(
            "{grant} {} {} {issued_at} {}",
            maker.token, maker.session, maker.subject
        )
    }

    fn read(text: &[u8]) -> Option<Self> {
        let mut members = std::str::from_utf8(text).ok()?.splitn(5, ' ');
        let mut next = || members.next();
        Some(Self {
            grant: next()?.parse().ok()?,
            maker: TokenFacts {
                token: next()?.parse().ok()?,
                session: next()?.parse().ok()?,
                issued_at: Timestamp::from_micros(next()?.parse().ok()?),
                subject: ExternalId::new(next()?).ok()?,
            },
        })
    }
}

/// Makes a token for the reports of a grant, for programs that shall not have the grantee's own token. It ends after an
/// hour, with the grant, or with the login that made it.
#[utoipa::path(post, path = "/api/v1/explorer/grant/{grant_id}/token", tag = "disclosure", security(("bearer" = [])),
    params(("grant_id" = String, Path, format = Uuid, description = "The grant")),
    responses((status = 201, body = DisclosureTokenResponse), GrantError))]
pub(crate) async fn create_disclosure_token(
    GrantPath(id): GrantPath,
    user: User,
    State(state): State<DisclosureState>,
) -> Result<(http::StatusCode, Json<DisclosureTokenResponse>), GrantError> {
    let now = state.http_context.now();
    let grantee = &user.caller.user;
    let grant = state
        .open_grant(&user.caller.snapshot, &grantee.external_id, id, now)?
        .grant;
    user.origin
        .set_org_of_member(grant.org, &user.caller.snapshot, grantee.id, now);
    let mut bits = [0; 32];
    state.http_context.entropy.fill(&mut bits);
    let token = URL_SAFE_NO_PAD.encode(bits);
    let expires_at = now.plus(Namespace::DisclosureToken.seconds()).min(grant.expires_at);
    let left = u64::try_from(expires_at.micros().saturating_sub(now.micros())).unwrap_or_default();
    let holder = TokenHolder {
        grant: id,
        maker: user.caller.claims.facts(),
    };
    let (key, value, group) = (digest(&token), holder.write(), grantee.id.to_string());
    let groups = [Group::new(&group, PER_GRANTEE)];
    let entry = Entry::new(Namespace::DisclosureToken, &key, value.as_bytes());
    let entry = entry.with_ttl(Duration::from_micros(left)).with_group_limits(&groups);
    state.cache.put(entry).await?;
    let answer = DisclosureTokenResponse {
        token,
        grant_id: id,
        expires_at,
    };
    Ok((http::StatusCode::CREATED, Json(answer)))
}

/// The holder of the token in the headers; `None` without the header.
///
/// # Errors
/// 401 for a token that was not issued or has ended, and for several headers; 503 if the cache cannot be reached.
pub(crate) async fn holder(state: &DisclosureState, headers: &HeaderMap) -> Result<Option<TokenHolder>, GrantError> {
    let mut presented = headers.get_all(HEADER).iter();
    let Some(token) = presented.next() else { return Ok(None) };
    let token = token
        .to_str()
        .ok()
        .filter(|_| presented.next().is_none())
        .ok_or(GrantError::Token)?;
    let stored = state.cache.get(Namespace::DisclosureToken, &digest(token)).await?;
    let holder = stored.and_then(|stored| TokenHolder::read(&stored));
    holder.map(Some).ok_or(GrantError::Token)
}

/// Whether the headers have a token.
pub(crate) fn is_presented(headers: &HeaderMap) -> bool {
    headers.contains_key(HEADER)
}

fn digest(token: &str) -> String {
    hex::encode(Sha256::digest(token.as_bytes()))
}

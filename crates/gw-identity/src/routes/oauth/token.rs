//! `POST /oauth/token`: an application exchanges its code for tokens (OA-6, OA-7).
//!
//! Checks, in this order: the grant type, the client's authentication, the code and everything it is bound to. A
//! mismatch after the client is authenticated invalidates the code.

use super::OauthError;
use crate::{
    error::spawn_tracked,
    oauth::{GrantedLogin, Redeemed},
    request_info::RequestInfo,
    security,
    state::IdentityState,
    tokens::{AuthResponse, Family, TokenPair, revoked_until},
};
use axum::{
    Json,
    extract::{Request, State},
    response::IntoResponse,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use gw_audit::SecurityKind;
use gw_cache::CounterKind;
use gw_http::{AddressKey, ErrorCode, parse_open_json, read_body};
use gw_store::{Actor, record::Rotation};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use serde::Deserialize;
use sha2::{Digest, Sha256};

/// Maximum failures of one client from one address in 15 minutes (spec/10 §9). Also counted by address, so that others
/// cannot lock an application out.
const MAX_FAILURES: u64 = 20;
const PRAGMA: (HeaderName, HeaderValue) = (header::PRAGMA, HeaderValue::from_static("no-cache"));

/// A token request, as a form or as JSON.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[schema(as = OAuthTokenRequest)]
pub(crate) struct TokenRequest {
    /// `authorization_code`.
    grant_type: Option<String>,
    /// The code.
    code: Option<String>,
    /// The `redirect_uri` of the authorization request.
    redirect_uri: Option<String>,
    /// The client id; here or by HTTP Basic.
    client_id: Option<String>,
    /// The client secret; here or by HTTP Basic.
    client_secret: Option<String>,
    /// Proof key (PKCE).
    code_verifier: Option<String>,
}

/// The client credentials in a request, not yet checked.
#[derive(Debug, PartialEq, Eq)]
struct Credentials {
    id: String,
    /// The possible decodings of the secret.
    secrets: Vec<String>,
}

/// Exchange a code for tokens
///
/// The client authenticates by HTTP Basic (`client_secret_basic`) or in the body (`client_secret_post`).
#[utoipa::path(
    post,
    path = "/oauth/token",
    operation_id = "oauthToken",
    tag = "oauth",
    request_body(
        content((TokenRequest = "application/x-www-form-urlencoded"), (TokenRequest = "application/json"))
    ),
    responses(
        (status = 200, body = AuthResponse),
        OauthError,
        (status = 403),
    ),
)]
pub(crate) async fn token(
    State(state): State<IdentityState>,
    request_info: RequestInfo,
    headers: HeaderMap,
    request: Request,
) -> Result<impl IntoResponse, OauthError> {
    let body = read_body(request.into_body())
        .await
        .map_err(|error| match error.code() {
            ErrorCode::PayloadTooLarge => OauthError::TooLarge,
            ErrorCode::Unavailable => OauthError::Unavailable,
            _ => OauthError::Body,
        })?;
    let params = read(&headers, &body)?;
    if params.grant_type.as_deref() != Some("authorization_code") {
        return Err(OauthError::GrantType);
    }
    let client = authenticate(&state, &headers, &params, &request_info).await?;
    let code = params
        .code
        .filter(|code| !code.is_empty())
        .ok_or(OauthError::Missing("code"))?;
    let redirect_uri = params.redirect_uri.ok_or(OauthError::Missing("redirect_uri"))?;
    let shown = Shown {
        client,
        code,
        redirect_uri,
        verifier: params.code_verifier,
    };
    let worker = state.clone();
    let pair = spawn_tracked(
        &state.tasks,
        async move { redeem(&worker, &shown, &request_info).await },
    )
    .await?;
    Ok(([PRAGMA], Json(AuthResponse::new(pair, state.http_context.now()))))
}

/// The values that are compared with the code's grant.
struct Shown {
    client: String,
    code: String,
    redirect_uri: String,
    verifier: Option<String>,
}

fn read(headers: &HeaderMap, body: &[u8]) -> Result<TokenRequest, OauthError> {
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let kind = kind.to_ascii_lowercase();
    let looks_like_json = !kind.contains("x-www-form-urlencoded") && body.trim_ascii().first() == Some(&b'{');
    if kind.contains("json") || looks_like_json {
        // RFC 6749 section 3.2: unknown parameters are ignored.
        return parse_open_json(body).map_err(|_| OauthError::Body);
    }
    let mut params = TokenRequest::default();
    for (name, value) in form_urlencoded::parse(body) {
        let (name, member) = match name.as_ref() {
            "grant_type" => ("grant_type", &mut params.grant_type),
            "code" => ("code", &mut params.code),
            "redirect_uri" => ("redirect_uri", &mut params.redirect_uri),
            "client_id" => ("client_id", &mut params.client_id),
            "client_secret" => ("client_secret", &mut params.client_secret),
            "code_verifier" => ("code_verifier", &mut params.code_verifier),
            _ => continue,
        };
        if member.replace(value.into_owned()).is_some() {
            return Err(OauthError::Repeated(name));
        }
    }
    Ok(params)
}

/// Reads the client credentials. A request must not use two methods.
fn credentials(headers: &HeaderMap, params: &TokenRequest) -> Result<Credentials, OauthError> {
    let body_secret = params.client_secret.clone().filter(|secret| !secret.is_empty());
    let mut sent = headers.get_all(header::AUTHORIZATION).iter();
    let basic = match (sent.next(), sent.next()) {
        (None, _) => {
            let id = params.client_id.clone().ok_or(OauthError::Client)?;
            let secret = body_secret.ok_or(OauthError::Client)?;
            return Ok(Credentials {
                id,
                secrets: vec![secret],
            });
        }
        (Some(_), Some(_)) => return Err(OauthError::TwoMethods),
        (Some(value), None) => basic(value).ok_or(OauthError::Client)?,
    };
    if body_secret.is_some() {
        return Err(OauthError::TwoMethods);
    }
    match &params.client_id {
        Some(id) if *id != basic.id => Err(OauthError::Client),
        Some(_) | None => Ok(basic),
    }
}

/// Parses HTTP Basic. RFC 6749 §2.3.1 form-encodes id and secret before they are joined; many clients do not, so both
/// decodings of the secret are tried.
fn basic(value: &HeaderValue) -> Option<Credentials> {
    let (scheme, encoded) = value.to_str().ok()?.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let joined = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (id, secret) = joined.split_once(':')?;
    let mut secrets = vec![decoded(secret), secret.to_owned()];
    secrets.dedup();
    (!id.is_empty() && !secret.is_empty()).then(|| Credentials {
        id: decoded(id),
        secrets,
    })
}

fn decoded(text: &str) -> String {
    // Parsed as a form with one nameless value, in which `&` and `=` are literal.
    let whole = text.replace('&', "%26").replace('=', "%3D");
    form_urlencoded::parse(format!("={whole}").as_bytes())
        .next()
        .map_or_else(String::new, |(_, v)| v.into_owned())
}

/// Authenticates the client and returns its id.
async fn authenticate(
    state: &IdentityState,
    headers: &HeaderMap,
    params: &TokenRequest,
    request_info: &RequestInfo,
) -> Result<String, OauthError> {
    let Credentials { id, secrets } = credentials(headers, params)?;
    let oauth = &state.inner.oauth;
    // All unknown clients share one count, so that inventing names gives no new attempts.
    let known = oauth.secrets.clients().get(&id).is_some();
    let named = if known {
        hex::encode(Sha256::digest(id.as_bytes()))
    } else {
        "unknown".to_owned()
    };
    let counted = format!("{named}|{}", AddressKey::from(request_info.client));
    let failures = oauth.cache.hits(CounterKind::ClientFailures, &counted).await?;
    if failures.count >= MAX_FAILURES {
        return Err(OauthError::TooManyFailures(failures.wait()));
    }
    if oauth.secrets.check(&id, secrets).await? {
        return Ok(id);
    }
    oauth.cache.hit(CounterKind::ClientFailures, &counted).await?;
    let mut event = security::event(SecurityKind::LoginRefused, request_info);
    event.provider = Some("oauth".into());
    event.reason = Some("invalid_client".into());
    state.record_refusal(event);
    Err(OauthError::Client)
}

/// Authenticates the client of a request with this body, for routes that only applications may call.
pub(crate) async fn client_of(
    state: &IdentityState,
    headers: &HeaderMap,
    body: &[u8],
    request_info: &RequestInfo,
) -> Result<String, OauthError> {
    authenticate(state, headers, &read(headers, body)?, request_info).await
}

/// Redeems the code and continues its login.
async fn redeem(state: &IdentityState, shown: &Shown, request_info: &RequestInfo) -> Result<TokenPair, OauthError> {
    let grant = match state.inner.oauth.sessions.redeem(&shown.code).await? {
        Redeemed::Unknown => return Err(OauthError::Grant),
        Redeemed::Again(login) => {
            end(state, &login, request_info, "oauth_code_reuse").await?;
            return Err(OauthError::Grant);
        }
        Redeemed::Now(grant) => grant,
    };
    let proved = match (&grant.challenge, &shown.verifier) {
        (None, None) => true,
        (Some(challenge), Some(verifier)) => challenge.is_met_by(verifier),
        // A verifier without a challenge: an attacker removed the challenge from the authorization request (RFC 9700
        // §4.8).
        (None, Some(_)) | (Some(_), None) => false,
    };
    if !proved || grant.client != shown.client || grant.redirect_uri != shown.redirect_uri {
        end(state, &grant.login, request_info, "oauth_mismatch").await?;
        return Err(OauthError::Grant);
    }
    match exchange(state, &grant.login, request_info).await? {
        Some(pair) => Ok(pair),
        None => Err(OauthError::Grant),
    }
}

/// Exchanges the login's first refresh token for a pair. `None` if the login has ended meanwhile.
async fn exchange(
    state: &IdentityState,
    login: &GrantedLogin,
    request_info: &RequestInfo,
) -> Result<Option<TokenPair>, OauthError> {
    let mut tx = state
        .store
        .begin(&request_info.actor(Actor::named(login.subject.as_str())))
        .await?;
    let Some(user) = tx.read().find_user_by_external_id(&login.subject).await? else {
        return Ok(None);
    };
    // TK-5, as in a refresh.
    if let Some(tenant) = user.auth_tenant_id
        && tx
            .read()
            .find_tenant(tenant)
            .await?
            .is_none_or(|tenant| tenant.disabled)
    {
        return Ok(None);
    }
    if user.banned {
        tx.revoke_family(login.family, revoked_until(tx.now())).await?;
        tx.commit().await?;
        return Ok(None);
    }
    let Some(stored) = tx.read().find_refresh_token(login.first()).await? else {
        return Ok(None);
    };
    let family = Family {
        id: login.family,
        login: stored.login,
        started: login.started(),
        amr: login.amr,
    };
    let (pair, successor) = state.inner.issuer.issue(&user, family, tx.now());
    match tx.rotate_refresh_token(login.first(), successor).await? {
        Rotation::Done => {
            tx.commit().await?;
            Ok(Some(pair))
        }
        Rotation::Reused => {
            tx.commit().await?;
            Ok(None)
        }
        Rotation::Unknown | Rotation::Expired | Rotation::JustUsed => Ok(None),
    }
}

/// Ends the login that a code granted, or would have granted.
async fn end(
    state: &IdentityState,
    login: &GrantedLogin,
    request_info: &RequestInfo,
    reason: &'static str,
) -> Result<(), OauthError> {
    let mut reservation = state.journal.reserve(1)?;
    let mut tx = state
        .store
        .begin(&request_info.actor(Actor::named(login.subject.as_str())))
        .await?;
    let ended = tx.revoke_family(login.family, revoked_until(tx.now())).await?;
    tx.commit().await?;
    if ended {
        let mut event = security::event(SecurityKind::SessionRevoked, request_info);
        event.external_id = Some(login.subject.clone());
        event.session_id = Some(login.family);
        event.provider = Some("oauth".into());
        event.reason = Some(reason.into());
        reservation.append(event)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    fn by_basic(joined: &str) -> String {
        format!("Basic {}", STANDARD.encode(joined))
    }

    fn who(authorization: Option<&str>, id: Option<&str>, secret: Option<&str>) -> Result<(String, Vec<String>), u16> {
        let params = TokenRequest {
            client_id: id.map(str::to_owned),
            client_secret: secret.map(str::to_owned),
            ..TokenRequest::default()
        };
        let headers = authorization.map_or_else(HeaderMap::new, |value| headers(&[("authorization", value)]));
        match credentials(&headers, &params) {
            Ok(client) => Ok((client.id, client.secrets)),
            Err(error) => Err(error.into_response().status().as_u16()),
        }
    }

    #[test]
    fn oa7_a_client_authenticates_by_one_way() {
        let is = |id: &str, secrets: &[&str]| Ok((id.to_owned(), secrets.iter().map(|s| (*s).to_owned()).collect()));
        assert_eq!(who(None, Some("a"), Some("s")), is("a", &["s"]));
        assert_eq!(who(Some(&by_basic("a:s:t")), None, None), is("a", &["s:t"]));
        assert_eq!(who(Some(&by_basic("a:s")), Some("a"), None), is("a", &["s"]));
        assert_eq!(
            who(Some(&by_basic("a:x%2By+z")), None, None),
            is("a", &["x+y z", "x%2By+z"])
        );
        assert_eq!(who(Some(&by_basic("a:x&y=z")), None, None), is("a", &["x&y=z"]));
        assert_eq!(who(Some(&by_basic("a:s")), Some("a"), Some("s")), Err(400), "two ways");
        for (authorization, id, secret) in [
            (None, None, None),
            (None, Some("a"), None),
            (None, Some("a"), Some("")),
            (None, None, Some("s")),
            (Some("Bearer x".to_owned()), Some("a"), None),
            (Some("Basic ???".to_owned()), Some("a"), None),
            (Some(by_basic("no colon")), Some("a"), None),
            (Some(by_basic(":s")), None, None),
            (Some(by_basic("a:")), None, None),
            (Some(by_basic("a:s")), Some("b"), None),
        ] {
            assert_eq!(
                who(authorization.as_deref(), id, secret),
                Err(401),
                "{authorization:?} {id:?} {secret:?}"
            );
        }
    }

    #[test]
    fn oa7_requests_are_forms_or_json() {
        let form = "application/x-www-form-urlencoded; charset=utf-8";
        let code = |kind: &str, body: &str| {
            read(&headers(&[("content-type", kind)]), body.as_bytes())
                .map(|params| params.code)
                .map_err(|_| ())
        };
        assert_eq!(code(form, "code=a%20b&other=1"), Ok(Some("a b".to_owned())));
        assert_eq!(code("application/json", r#"{"code":"x"}"#), Ok(Some("x".to_owned())));
        assert_eq!(code("text/plain", r#" {"code":"x"}"#), Ok(Some("x".to_owned())));
        assert_eq!(code("text/plain", "code=x"), Ok(Some("x".to_owned())));
        for (kind, body) in [
            (form, "code=a&code=b"),
            ("application/json", r#"{"code":"a","code":"b"}"#),
            ("application/json", r#"{"code":1}"#),
            ("application/json", "code=a"),
        ] {
            assert_eq!(code(kind, body), Err(()), "{kind} {body}");
        }
    }
}

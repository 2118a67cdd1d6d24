//! `GET /oauth/authorize`: an application sends a user here to log in (OA-1 to OA-4).
//!
//! Errors are answered directly and never by a redirect, because the redirect URI is one of the checked parameters.

use super::{
    OauthError, base_path,
    error::{OAuthErrorResponse, OAuthOrAPIError},
};
use crate::{
    login::{AuthorizationRequest, LoginError, LoginId, LoginSession, Opener, RequestFacts},
    login_secret::{LoginSecret, SECRET_HEADER},
    oauth::{AuthorizeParams, Challenge, OauthId, OauthSession, RedirectUri},
    request_info::RequestInfo,
    routes::{cookies, pages::wants_page},
    state::IdentityState,
};
use axum::{
    Json,
    extract::{RawQuery, State},
    response::{IntoResponse, Response},
};
use gw_http::{AllowedOrigins, auth::access_cookie};
use gw_policy::access::identify;
use gw_types::ExternalId;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Serialize;
use std::collections::BTreeMap;

/// Maximum length of the application's own value, which is returned to it unchanged.
const MAX_STATE: usize = 2048;

/// An open session, for pages that show the login themselves.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct OauthAuthorizeJSONResponse {
    /// The OAuth session.
    oauth_session_id: String,
    /// The login session that answers it.
    auth_session_id: String,
    /// The message for the wallet.
    auth_request: AuthorizationRequest,
}

/// Start the authorization code flow
///
/// Browsers (`Accept: text/html`) are sent to the sign-in page and get errors as a page; other clients get JSON. If the
/// request has a Bearer token or the `pp_access` cookie, its user may complete the session silently.
#[utoipa::path(
    get,
    path = "/oauth/authorize",
    operation_id = "oauthAuthorize",
    tag = "oauth",
    params(
        ("client_id" = String, Query, description = "The application"),
        ("redirect_uri" = String, Query, description = "Where the code is sent"),
        ("state" = String, Query, description = "The application's own value, given back to it"),
        ("response_type" = String, Query, description = "`code`"),
        ("code_challenge" = Option<String>, Query, description = "Proof key (PKCE)"),
        ("code_challenge_method" = Option<String>, Query, description = "`S256`"),
    ),
    responses(
        (status = 200, body = OauthAuthorizeJSONResponse),
        (status = 302, description = "To the sign-in page"),
        (status = 400, body = OAuthErrorResponse),
        (status = 403, description = "A page of another site made the request, other than by a link"),
        (status = 429, body = OAuthOrAPIError),
        (status = 500, body = OAuthOrAPIError),
        (status = 503, body = OAuthOrAPIError, description = "Too many open sessions"),
    ),
)]
pub(crate) async fn authorize(
    State(state): State<IdentityState>,
    request_info: RequestInfo,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, OauthError> {
    let params = read_params(&state, query.as_deref().unwrap_or_default())?;
    let (http_context, config) = (&*state.http_context, &state.inner.config);
    let verifier = config.verifier(http_context.production)?;
    let scope = config.scope()?;
    let now = http_context.now();
    let (id, login) = (
        OauthId::fresh(&*http_context.entropy),
        LoginId(http_context.entropy.uuid()),
    );
    let facts = RequestFacts {
        verifier,
        base: &config.base_url,
        session: login.0,
        scope,
        circuits: &config.auth_circuits,
        now,
    };
    let mut auth_request = AuthorizationRequest::new(&facts, &*http_context.entropy);
    auth_request.body.callback_url = format!(
        "{}/oauth/callback?session={}&oauth_session={}",
        config.base_url,
        login.0,
        id.as_str()
    );
    let secret = LoginSecret::fresh(&*http_context.entropy);

    let message = serde_json::to_value(&auth_request).map_err(|_| OauthError::Unavailable)?;
    let (page, browser) = (wants_page(&headers), AllowedOrigins::sent_by_browser(&headers));
    let opener = Opener::new(secret.expose(), request_info.client, &headers);
    let opener = if page { opener.with_cookie() } else { opener };
    let initiator = initiator(&state, &headers);
    let session = OauthSession::new(params, initiator, opener.clone(), now).answered_by(login.0, message);
    // Only a client with the secret gets the message that the wallet signs, because the signature logs the wallet's
    // owner in at an application.
    let login_session = LoginSession::new(auth_request.clone(), opener.with_cookie(), now);
    state
        .inner
        .sessions
        .open(login, &login_session)
        .await
        .map_err(LoginError::from)?;
    if let Err(error) = state.inner.oauth.sessions.open(&id, &session).await {
        // No client got the id of the login session, which must not count against the limit.
        if state.inner.sessions.remove(login).await.is_err() {
            state.inner.sessions.abandon(login);
        }
        return Err(error.into());
    }

    if page {
        let to = HeaderValue::from_str(&format!(
            "{}?oauth_session={}",
            state.inner.oauth.login_page,
            id.as_str()
        ));
        let to = to.map_err(|_| OauthError::Unavailable)?;
        let cookie = cookies::set_oauth_login(http_context, &base_path(&state), &id, login.0, &secret);
        return Ok((StatusCode::FOUND, cookie, [(header::LOCATION, to)]).into_response());
    }
    let mut answer = match browser {
        true => cookies::set_oauth_login(http_context, &base_path(&state), &id, login.0, &secret),
        false => HeaderMap::new(),
    };
    if let Ok(value) = HeaderValue::from_str(secret.expose()) {
        answer.insert(SECRET_HEADER, value);
    }
    let body = OauthAuthorizeJSONResponse {
        oauth_session_id: id.as_str().to_owned(),
        auth_session_id: login.0.to_string(),
        auth_request,
    };
    Ok((answer, Json(body)).into_response())
}

/// Reads and checks the parameters of the request.
fn read_params(state: &IdentityState, query: &str) -> Result<AuthorizeParams, OauthError> {
    const KNOWN: [&str; 6] = [
        "client_id",
        "redirect_uri",
        "state",
        "response_type",
        "code_challenge",
        "code_challenge_method",
    ];
    let mut given: BTreeMap<&str, String> = BTreeMap::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let Some(name) = KNOWN.into_iter().find(|known| *known == name) else {
            continue;
        };
        if value.is_empty() {
            continue;
        }
        if given.insert(name, value.into_owned()).is_some() {
            return Err(OauthError::Repeated(name));
        }
    }
    let need = |name| given.get(name).ok_or(OauthError::Missing(name));
    let (client, uri, echo, kind) = (
        need("client_id")?,
        need("redirect_uri")?,
        need("state")?,
        need("response_type")?,
    );
    if kind != "code" {
        return Err(OauthError::ResponseType);
    }
    if echo.len() > MAX_STATE {
        return Err(OauthError::Malformed("state"));
    }
    let oauth = &state.inner.oauth;
    let known = oauth.secrets.clients().get(client).ok_or(OauthError::UnknownClient)?;
    let redirect_uri = RedirectUri::parse(uri).map_err(|_| OauthError::Redirect)?;
    if !redirect_uri.is_allowed(
        known.redirects(),
        &state.http_context.origins,
        state.http_context.production,
    ) {
        return Err(OauthError::Redirect);
    }
    let challenge = match (
        given.get("code_challenge"),
        given.get("code_challenge_method").map(String::as_str),
    ) {
        (Some(challenge), Some("S256")) => {
            Some(Challenge::parse(challenge).ok_or(OauthError::Malformed("code_challenge"))?)
        }
        (Some(_), _) => return Err(OauthError::ChallengeMethod),
        (None, Some(_)) => return Err(OauthError::Missing("code_challenge")),
        (None, None) if oauth.require_pkce => return Err(OauthError::Missing("code_challenge")),
        (None, None) => None,
    };
    Ok(AuthorizeParams {
        client: client.clone(),
        redirect_uri,
        state: echo.clone(),
        challenge,
    })
}

/// The user who is logged in when the flow begins. A token that does not identify a valid user is ignored (TK-9).
fn initiator(state: &IdentityState, headers: &HeaderMap) -> Option<ExternalId> {
    let bearer = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let token = match bearer {
        Some(token) => token,
        // Any page may send its visitor here, so the cookie does not prove the user's intent; none is needed (decision
        // 4).
        None => access_cookie(headers)?,
    };
    let claims = state.http_context.tokens.access(token, state.http_context.now()).ok()?;
    let user = identify(&*state.http_context.policy.pin()?, &claims.facts()).ok()?;
    Some(user.external_id.clone())
}

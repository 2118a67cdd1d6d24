//! `/api/auth/*`: the sign-in at the gateway and its end (spec/40 section 7, steps 1 to 7 and 10).

use crate::{
    cookies::{Cookies, set_also},
    error::{ForwardError, SignInError},
    impersonation::{Impersonation, ImpersonationBody},
    page,
    return_url::ReturnUrl,
    sign_in_states::PendingSignIn,
    state::{Backend, BackendState, SignIn},
};
use axum::{
    Json, Router,
    extract::{RawQuery, State},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use gw_http::{ApiError, Message};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Serialize;

/// The most characters of a parameter that the gateway sends back.
const PARAMETER_MAX: usize = 512;

/// Who is signed in.
#[derive(Debug, Serialize)]
struct SignInStatus {
    /// Whether there is a sign-in (PRIVACY_ENABLED).
    privacy_enabled: bool,
    /// Whether this browser has a session.
    authenticated: bool,
    /// The external id of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    did: Option<String>,
    /// Whose view is shown instead of the user's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    view_as: Option<ImpersonationBody>,
}

pub(crate) fn router() -> Router<Backend> {
    Router::new()
        .route("/api/auth/login", get(login))
        .route("/api/auth/callback", get(callback))
        .route("/api/auth/status", get(status))
        .route("/api/auth/logout", post(logout))
}

fn sign_in(inner: &BackendState) -> Result<&SignIn, SignInError> {
    inner.sign_in.as_ref().ok_or(SignInError::Disabled)
}

/// Steps 1 and 2: sends the browser to the gateway.
async fn login(State(backend): State<Backend>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let begun = begin(&backend.0, query.as_deref().unwrap_or_default(), &headers);
    begun.unwrap_or_else(|error| page::error(&headers, error.into()))
}

fn begin(inner: &BackendState, query: &str, headers: &HeaderMap) -> Result<Response, SignInError> {
    let sign_in = sign_in(inner)?;
    let return_url = match parameter(query, "return_url") {
        Some(text) => ReturnUrl::parse(&text)?,
        None => ReturnUrl::home(),
    };
    let pending = PendingSignIn::new(return_url, inner.clock.now(), &*inner.entropy);
    let cookies = sign_in.cookies.begin_sign_in(&pending, headers, &*inner.entropy);
    let to = sign_in.tokens.authorize_url(pending.state, &pending.verifier);
    redirect(&to, cookies.ok_or(SignInError::Cookie)?)
}

/// Steps 6 and 7: the browser comes back with a code.
async fn callback(State(backend): State<Backend>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let query = query.unwrap_or_default();
    let state = parameter(&query, "state").unwrap_or_default();
    let result = finish(&backend.0, &query, &state, &headers).await;
    let mut response = result.unwrap_or_else(|error| {
        if let SignInError::Exchange(cause) = &error {
            tracing::error!(
                error = cause as &dyn core::error::Error,
                "a sign-in could not be completed"
            );
        }
        page::error(&headers, error.into())
    });
    if let Some(sign_in) = &backend.0.sign_in {
        set_also(response.headers_mut(), &sign_in.cookies.clear_state(&state));
    }
    response
}

async fn finish(inner: &BackendState, query: &str, state: &str, headers: &HeaderMap) -> Result<Response, SignInError> {
    let sign_in = sign_in(inner)?;
    let pending = sign_in.cookies.pending_sign_in(headers, state);
    let pending = pending.ok_or(SignInError::State)?;
    if !sign_in.used_states.use_up(&pending, inner.clock.now()) {
        return Err(SignInError::State);
    }
    let code = parameter(query, "code").ok_or(SignInError::NoCode)?;
    // The lifetime counts from before the exchange, so that the token never seems to live longer than it does.
    let now = inner.clock.now();
    let (client, verifier) = (sign_in.tokens.clone(), pending.verifier);
    // A code works once, so its exchange runs to the end even if the browser has gone (HD21).
    let exchange = inner
        .tasks
        .spawn(async move { client.exchange_code(code, &verifier, now).await });
    let tokens = exchange.await.map_err(|_| SignInError::Cookie)??;
    let cookies = sign_in.cookies.session(&tokens, now, &*inner.entropy);
    let mut cookies = cookies.ok_or(SignInError::Cookie)?;
    if Cookies::has_view_as(headers) {
        // The choice was another login's.
        set_also(&mut cookies, &Cookies::clear_view_as());
    }
    redirect(&pending.return_url.location(sign_in.frontend.as_ref()), cookies)
}

/// Tells who is signed in and whose view is shown, and refreshes the session if it is time.
async fn status(State(backend): State<Backend>, headers: HeaderMap) -> Response {
    let inner = &*backend.0;
    let mut cookies = HeaderMap::new();
    let answer = |authenticated, did, view_as| SignInStatus {
        privacy_enabled: inner.sign_in.is_some(),
        authenticated,
        did,
        view_as,
    };
    let status = match inner.session(&headers).await {
        Ok(session) => {
            set_also(&mut cookies, &session.cookies);
            let view_as = match inner.view_as(&headers, &session, &mut cookies).await {
                Ok(choice) => choice,
                // Reads are refused until the session can be verified, so the choice is shown, and can be ended.
                Err(_) => inner.stored_view_as(&headers),
            };
            answer(
                session.access.is_some(),
                session.subject,
                view_as.as_ref().map(Impersonation::body),
            )
        }
        Err(ForwardError::SessionEnded) => {
            cookies = Cookies::clear_session();
            answer(false, None, None)
        }
        Err(error) => return ApiError::from(error).into_response(),
    };
    (cookies, Json(status)).into_response()
}

/// Step 10: ends the session here and at the gateway.
async fn logout(State(backend): State<Backend>, headers: HeaderMap) -> Response {
    let result = end(&backend.0, &headers).await;
    match result {
        Ok(()) => (Cookies::clear_session(), Message::new("signed out")).into_response(),
        // The cookies are removed even if the gateway cannot be reached.
        Err(error @ SignInError::NotRevoked) => (Cookies::clear_session(), ApiError::from(error)).into_response(),
        Err(error) => ApiError::from(error).into_response(),
    }
}

async fn end(inner: &BackendState, headers: &HeaderMap) -> Result<(), SignInError> {
    let sign_in = sign_in(inner)?;
    if !inner.origins.sent_by_own_page(headers) {
        return Err(SignInError::ForeignPage);
    }
    let session = sign_in.stored(headers, &*inner.clock);
    let Some(refresh) = session.refresh else {
        return Ok(());
    };
    let client = sign_in.tokens.clone();
    let access = session.access.map(|access| access.token);
    let revoked = inner
        .tasks
        .spawn(async move { client.revoke(&refresh, access.as_ref()).await });
    match revoked.await {
        Ok(true) => Ok(()),
        Ok(false) | Err(_) => Err(SignInError::NotRevoked),
    }
}

fn redirect(to: &str, mut headers: HeaderMap) -> Result<Response, SignInError> {
    let to = HeaderValue::from_str(to).map_err(|_| SignInError::Cookie)?;
    headers.insert(header::LOCATION, to);
    Ok((StatusCode::FOUND, headers).into_response())
}

/// A parameter of a query, if it occurs once and is neither empty nor too long.
fn parameter(query: &str, name: &str) -> Option<String> {
    let mut values = url::form_urlencoded::parse(query.as_bytes()).filter(|(key, _)| key == name);
    let (value, None) = (values.next()?.1, values.next()) else {
        return None;
    };
    let max = if name == "return_url" {
        usize::MAX
    } else {
        PARAMETER_MAX
    };
    (!value.is_empty() && value.len() <= max).then(|| value.into_owned())
}

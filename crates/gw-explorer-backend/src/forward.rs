//! `/api/*`: forwards a request to the gateway with the access token of the session (spec/40 section 7, step 9).

use crate::{
    answer::{is_rejected, passed_on},
    cookies::{Cookies, set_also},
    error::ForwardError,
    impersonation::Impersonation,
    route::{RouteError, upstream_route},
    state::{Backend, BackendState},
    upstream::{Forwarded, Tree},
    view_as::ImpersonationError,
};
use axum::{
    body::{Body, Bytes},
    extract::{Request, State},
    response::{IntoResponse as _, Response},
};
use gw_http::{ApiError, CorrelationId, ORG_HEADER, read_body};
use http::{HeaderMap, Method, header};
use std::time::Duration;

const PREFIX: &str = "/api/";
/// The longest wait for the body of a request.
const BODY_DEADLINE: Duration = Duration::from_secs(10);

pub(crate) async fn forward(State(backend): State<Backend>, id: CorrelationId, request: Request) -> Response {
    let mut cookies = HeaderMap::new();
    let result = run(&backend.0, &id, request, &mut cookies).await;
    let mut response = result.unwrap_or_else(|error| error.into_response());
    set_also(response.headers_mut(), &cookies);
    response
}

async fn run(
    inner: &BackendState,
    id: &CorrelationId,
    request: Request,
    cookies: &mut HeaderMap,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().strip_prefix(PREFIX).ok_or(RouteError::Unknown);
    let route = path.and_then(|path| upstream_route(&parts.method, path));
    let route = route.map_err(ForwardError::from)?;
    let is_read = matches!(parts.method, Method::GET | Method::HEAD);
    if !is_read {
        if !inner.is_proxy {
            return Err(ForwardError::Route(RouteError::Method).into());
        }
        if !inner.origins.sent_by_own_page(&parts.headers) {
            return Err(ForwardError::ForeignPage.into());
        }
    }
    let _permit = inner.permit(&parts.extensions, &parts.headers)?;
    let body = if is_read {
        Bytes::new()
    } else {
        read_in_time(body).await?
    };
    let session = inner.session_of(&parts.headers, cookies).await?;
    let view_as = inner.view_as(&parts.headers, &session, cookies).await?;
    if view_as.is_some() && !(is_read && route.is_explorer) {
        return Err(ImpersonationError::ReadOnly.into());
    }
    let base = view_as.as_ref().map(Impersonation::base).unwrap_or_default();
    let query = parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let forwarded = Forwarded {
        tree: if view_as.is_some() {
            Tree::Administration
        } else {
            Tree::Public
        },
        // The gateway's answer to HEAD would have no body to bound; axum drops the body of this one.
        method: if is_read { Method::GET } else { parts.method },
        target: format!("{base}{}{query}", route.path),
        content_type: parts.headers.get(header::CONTENT_TYPE).filter(|_| !is_read),
        // The path of an impersonation names its organization.
        orgs: if view_as.is_none() && route.is_explorer {
            parts.headers.get_all(ORG_HEADER).iter().collect()
        } else {
            Vec::new()
        },
        body,
        bearer: session.access.as_ref(),
        correlation_id: id.as_str(),
    };
    let answer = match inner.upstream.forward(forwarded).await {
        Ok(answer) => answer,
        Err(error) => {
            tracing::warn!(
                error = &error as &dyn core::error::Error,
                correlation_id = id.as_str(),
                "a request could not be forwarded to the gateway"
            );
            return Err(ForwardError::from(error).into());
        }
    };
    if is_rejected(&session, answer.status(), answer.headers()) {
        *cookies = Cookies::clear_session();
    }
    let mut response = passed_on(answer).map_err(ForwardError::Status)?;
    if let Some(view_as) = view_as {
        view_as.mark(response.headers_mut());
    }
    Ok(response)
}

/// Reads the body, up to [`gw_http::BODY_LIMIT`].
async fn read_in_time(body: Body) -> Result<Bytes, ApiError> {
    let body = tokio::time::timeout(BODY_DEADLINE, read_body(body)).await;
    body.map_err(|_| ApiError::bad_request("request body did not arrive in time"))?
}

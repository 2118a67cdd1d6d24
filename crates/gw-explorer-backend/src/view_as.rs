//! View-as: an administrator reads the explorer as a member of an organization sees it (spec/40 E9, E11 and section 7,
//! step 9).
//!
//! The choice is in an encrypted cookie. While it holds, reads go to the gateway's impersonated tree, and nothing else
//! is forwarded. The gateway decides and records each read; this module decides nothing about rights.
//!
//! Invariant: a choice counts only in the login that made it, which the gateway's keys confirm. If that cannot be
//! checked, the request is refused: it never falls back to the administrator's own view.

use crate::{
    answer::{is_rejected, passed_on},
    cookies::{Cookies, set_also},
    error::ForwardError,
    impersonation::{IMPERSONATION_LIFE, Impersonation, ImpersonationBody},
    key_set::TokenCheckError,
    route::ORGANIZATIONS,
    state::{ActiveSession, Backend, BackendState, SignIn},
    upstream::{Forwarded, Tree},
};
use axum::{
    Json, Router,
    body::Bytes,
    extract::State,
    response::{IntoResponse as _, Response},
    routing::post,
};
use gw_http::{ApiError, CorrelationId, JsonBody, Message};
use gw_types::{ExternalId, OrgId, Secret};
use http::{Extensions, HeaderMap, Method};
use serde::Deserialize;

/// The most characters of the name of an organization that are kept.
const MAX_NAME: usize = 100;

/// Why an impersonation cannot begin or continue.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImpersonationError {
    /// There is no sign-in.
    #[error("there is no sign-in")]
    Disabled,
    /// Nobody is signed in.
    #[error("nobody is signed in")]
    Anonymous,
    /// The member or the organization has another form.
    #[error("the member or the organization is malformed")]
    Malformed,
    /// The access token is not verified.
    #[error(transparent)]
    Token(#[from] TokenCheckError),
    /// While another user's view is shown, nothing else can be read or changed.
    #[error("the request is not a read of the explorer")]
    ReadOnly,
    /// The choice could not be encrypted.
    #[error("the choice cannot be stored")]
    Cookie,
}

impl From<ImpersonationError> for ApiError {
    fn from(error: ImpersonationError) -> Self {
        match error {
            ImpersonationError::Disabled => Self::not_found("not found"),
            ImpersonationError::Anonymous => Self::unauthorized("sign in first"),
            ImpersonationError::Malformed => Self::bad_request("did and org_id must name a member and an organization"),
            ImpersonationError::Token(TokenCheckError::NoKeys) => Self::unavailable("view-as not configured"),
            ImpersonationError::Token(TokenCheckError::Unavailable) => {
                Self::unavailable("the session cannot be verified now")
            }
            ImpersonationError::Token(TokenCheckError::Rejected(_)) => {
                Self::forbidden("the session cannot be verified")
            }
            ImpersonationError::ReadOnly => Self::forbidden("not available while viewing as another user"),
            ImpersonationError::Cookie => Self::internal(),
        }
    }
}

impl BackendState {
    /// The choice of a request, if it holds. A choice of another login is cleared from the browser by `cookies`.
    ///
    /// # Errors
    /// [`ImpersonationError`] if there is a choice, and the session cannot be verified.
    pub(crate) async fn view_as(
        &self,
        request: &HeaderMap,
        session: &ActiveSession,
        cookies: &mut HeaderMap,
    ) -> Result<Option<Impersonation>, ImpersonationError> {
        let Some(sign_in) = &self.sign_in else {
            return Ok(None);
        };
        if !Cookies::has_view_as(request) {
            return Ok(None);
        }
        let choice = sign_in.cookies.view_as(request, self.clock.now());
        let is_held = match (&choice, &session.access) {
            (Some(choice), Some(access)) => sign_in.keys.verify(access).await?.session == choice.session,
            (None, _) | (_, None) => false,
        };
        if is_held {
            return Ok(choice);
        }
        set_also(cookies, &Cookies::clear_view_as());
        Ok(None)
    }
}

impl BackendState {
    /// The choice of a request, without knowing whose it is.
    pub(crate) fn stored_view_as(&self, request: &HeaderMap) -> Option<Impersonation> {
        let sign_in = self.sign_in.as_ref()?;
        sign_in.cookies.view_as(request, self.clock.now())
    }
}

pub(crate) fn router() -> Router<Backend> {
    Router::new().route("/api/view-as", post(begin).delete(end))
}

/// Chooses whom to view as.
async fn begin(
    State(backend): State<Backend>,
    id: CorrelationId,
    extensions: Extensions,
    headers: HeaderMap,
    JsonBody(body): JsonBody<ImpersonationBody>,
) -> Response {
    let mut cookies = HeaderMap::new();
    let result = choose(&backend.0, &id, &extensions, &headers, &body, &mut cookies).await;
    let mut response = result.unwrap_or_else(|error| error.into_response());
    set_also(response.headers_mut(), &cookies);
    response
}

async fn choose(
    inner: &BackendState,
    id: &CorrelationId,
    extensions: &Extensions,
    headers: &HeaderMap,
    body: &ImpersonationBody,
    cookies: &mut HeaderMap,
) -> Result<Response, ApiError> {
    let sign_in = sign_in(inner, headers)?;
    let did = ExternalId::new(body.did.trim()).map_err(|_| ImpersonationError::Malformed)?;
    let org: OrgId = body.org_id.trim().parse().map_err(|_| ImpersonationError::Malformed)?;
    let _permit = inner.permit(extensions, headers)?;
    let session = inner.session_of(headers, cookies).await?;
    let access = session.access.as_ref().ok_or(ImpersonationError::Anonymous)?;
    let claims = sign_in.keys.verify(access).await.map_err(ImpersonationError::from)?;
    let now = inner.clock.now();
    let mut choice = Impersonation {
        did,
        org,
        org_name: None,
        session: claims.session,
        until: now.plus(IMPERSONATION_LIFE).secs(),
    };
    // The gateway decides whether this administrator may view this member, and records it.
    let probe = Forwarded {
        tree: Tree::Administration,
        method: Method::GET,
        target: format!("{}/api/v1/explorer/chain-id", choice.base()),
        content_type: None,
        orgs: Vec::new(),
        body: Bytes::new(),
        bearer: Some(access),
        correlation_id: id.as_str(),
    };
    let answer = inner.upstream.forward(probe).await.map_err(ForwardError::from)?;
    if !answer.status().is_success() {
        if is_rejected(&session, answer.status(), answer.headers()) {
            *cookies = Cookies::clear_session();
        }
        return passed_on(answer).map_err(|status| ForwardError::Status(status).into());
    }
    choice.org_name = org_name(inner, id, access, org).await;
    let set = sign_in.cookies.set_view_as(&choice, &*inner.entropy);
    set_also(cookies, &set.ok_or(ImpersonationError::Cookie)?);
    Ok(Json(choice.body()).into_response())
}

/// The name of an organization of the signed-in user; `None` if the gateway does not tell it.
async fn org_name(inner: &BackendState, id: &CorrelationId, access: &Secret, org: OrgId) -> Option<String> {
    #[derive(Deserialize)]
    struct Organizations {
        organizations: Vec<Organization>,
    }
    #[derive(Deserialize)]
    struct Organization {
        id: OrgId,
        name: String,
    }
    let request = Forwarded {
        tree: Tree::Public,
        method: Method::GET,
        target: ORGANIZATIONS.to_owned(),
        content_type: None,
        orgs: Vec::new(),
        body: Bytes::new(),
        bearer: Some(access),
        correlation_id: id.as_str(),
    };
    let answer = inner.upstream.forward(request).await.ok()?;
    let list: Organizations = serde_json::from_slice(answer.body()).ok()?;
    let named = list.organizations.into_iter().find(|listed| listed.id == org)?;
    // The cookie has room for so much.
    Some(named.name.chars().take(MAX_NAME).collect())
}

/// Ends the choice.
async fn end(State(backend): State<Backend>, headers: HeaderMap) -> Result<Response, ApiError> {
    sign_in(&backend.0, &headers)?;
    Ok((Cookies::clear_view_as(), Message::new("viewing as yourself")).into_response())
}

/// The sign-in, for a request of an own page.
fn sign_in<'a>(inner: &'a BackendState, headers: &HeaderMap) -> Result<&'a SignIn, ApiError> {
    let sign_in = inner.sign_in.as_ref().ok_or(ImpersonationError::Disabled)?;
    if !inner.origins.sent_by_own_page(headers) {
        return Err(ForwardError::ForeignPage.into());
    }
    Ok(sign_in)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_http::PublicTokenError;
    use gw_types::{Seconds, SessionId, Timestamp};

    /// House rule 17.
    #[test]
    fn every_view_as_error_has_its_status_and_text() {
        let token = |error| ImpersonationError::Token(error);
        let rejected = TokenCheckError::Rejected(PublicTokenError::UnknownKey);
        let table = [
            (ImpersonationError::Disabled, 404, "not found"),
            (ImpersonationError::Anonymous, 401, "sign in first"),
            (
                ImpersonationError::Malformed,
                400,
                "did and org_id must name a member and an organization",
            ),
            (token(TokenCheckError::NoKeys), 503, "view-as not configured"),
            (
                token(TokenCheckError::Unavailable),
                503,
                "the session cannot be verified now",
            ),
            (token(rejected), 403, "the session cannot be verified"),
            (
                ImpersonationError::ReadOnly,
                403,
                "not available while viewing as another user",
            ),
            (ImpersonationError::Cookie, 500, "internal error"),
        ];
        for (error, status, text) in table {
            // A new variant stops the build here: add it to the table.
            match error {
                ImpersonationError::Disabled
                | ImpersonationError::Anonymous
                | ImpersonationError::Malformed
                | ImpersonationError::Token(
                    TokenCheckError::NoKeys | TokenCheckError::Unavailable | TokenCheckError::Rejected(_),
                )
                | ImpersonationError::ReadOnly
                | ImpersonationError::Cookie => {}
            }
            let answer = ApiError::from(error);
            assert_eq!((answer.code().status().as_u16(), answer.text()), (status, text));
        }
    }

    /// E11: a DID is one segment of the impersonated path, whatever it contains.
    #[test]
    fn e11_the_base_has_one_segment_for_the_member() {
        let base = |did: &str| {
            let choice = Impersonation {
                did: ExternalId::new(did).unwrap(),
                org: OrgId::fixed(7),
                org_name: None,
                session: SessionId::fixed(1),
                until: 0,
            };
            choice.base()
        };
        let org = "00000000-0000-0000-0000-000000000007";
        for (did, segment) in [
            ("did:test:a", "did:test:a"),
            ("did:test:..", "did:test:.."),
            ("did:test:a%2F..%2Fb", "did:test:a%252F..%252Fb"),
            ("directory:x_y-z", "directory:x_y-z"),
        ] {
            assert_eq!(base(did), format!("/api/v1/admin/impersonate/{segment}/in/{org}"));
        }
    }

    #[test]
    fn e9_a_choice_holds_for_an_hour_at_most() {
        let now = Timestamp::from_secs(1_700_000_000);
        let choice = |until| Impersonation {
            did: ExternalId::new("did:test:a").unwrap(),
            org: OrgId::fixed(7),
            org_name: None,
            session: SessionId::fixed(1),
            until,
        };
        for (until, is_alive) in [(0, true), (1, true), (3599, true), (3600, false), (-1, false)] {
            let at = now.plus(Seconds(3600)).secs();
            assert_eq!(choice(at - until).is_alive(now), is_alive, "{until}");
        }
    }
}

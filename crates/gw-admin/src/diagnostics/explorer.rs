//! The data API of the explorer below the impersonation path (spec/40 E11): an administrator reads what a member sees.

use super::impersonation::{Impersonator, Purpose, ShownCall};
use crate::{
    AdminState, error::AdminError, explorer_access::ExplorerView, private::IMPERSONATED_EXPLORER, scope::Admin,
};
use axum::{
    Router,
    extract::{ConnectInfo, Path, Request, State},
    response::Response,
    routing::{any, get},
};
use gw_http::{CorrelationId, admin::HEADER};
use http::{Uri, header};
use std::net::SocketAddr;

/// The root of the data API.
const ROOT: &str = "/api/v1/explorer/";

/// Impersonated reads of the explorer, by GET and HEAD only. Each is recorded before it is answered.
pub(crate) fn routes() -> Router<AdminState> {
    let base = "/api/v1/admin/impersonate/{did}";
    Router::new()
        .route(IMPERSONATED_EXPLORER, get(view_explorer))
        .route(&format!("{base}/in/{{org_id}}/{{*rest}}"), get(unknown_view))
        .route(&format!("{base}/{{*rest}}"), any(missing_org))
}

async fn view_explorer(
    admin: Admin,
    State(state): State<AdminState>,
    Path((did, org, _)): Path<(String, String, String)>,
    request: Request,
) -> Result<Response, AdminError> {
    let (impersonation, _) = Impersonator::authorize(&admin, &org)?.impersonate(&state, &did)?;
    let target = explorer_uri(request.uri()).ok_or_else(not_viewable)?;
    let route = state.explorer.route(target.path()).ok_or_else(not_viewable)?;
    let shown = ShownCall {
        purpose: Purpose::ViewAs,
        name: &format!("{} {route}", request.method()),
        params: &target.to_string(),
    };
    impersonation.record(&state, &admin, shown).await?;
    let view = ExplorerView {
        target: impersonation.target.id,
        impersonator: impersonation.impersonator,
        org: impersonation.org,
    };
    Ok(state.explorer.read(view, explorer_request(request, target)).await)
}

/// The address below the root of the data API. It is not decoded: a DID cannot contain an unescaped slash.
fn explorer_uri(uri: &Uri) -> Option<Uri> {
    let (_, path) = uri.path().split_once(ROOT)?;
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    format!("{ROOT}{path}{query}").parse().ok()
}

/// The request for the data API: without credentials, and without what routing noted about the request.
fn explorer_request(request: Request, uri: Uri) -> Request {
    let (parts, body) = request.into_parts();
    let mut copy = Request::new(body);
    *copy.method_mut() = parts.method;
    *copy.uri_mut() = uri;
    *copy.headers_mut() = parts.headers;
    for credential in [header::AUTHORIZATION, header::COOKIE, HEADER] {
        copy.headers_mut().remove(credential);
    }
    if let Some(peer) = parts.extensions.get::<ConnectInfo<SocketAddr>>() {
        copy.extensions_mut().insert(*peer);
    }
    if let Some(id) = parts.extensions.get::<CorrelationId>() {
        copy.extensions_mut().insert(id.clone());
    }
    copy
}

fn not_viewable() -> AdminError {
    AdminError::not_found("nothing of this name can be viewed")
}

async fn unknown_view(
    admin: Admin,
    State(state): State<AdminState>,
    Path((did, org, _)): Path<(String, String, String)>,
) -> Result<(), AdminError> {
    let _ = Impersonator::authorize(&admin, &org)?.impersonate(&state, &did)?;
    Err(not_viewable())
}

async fn missing_org(admin: Admin) -> Result<(), AdminError> {
    admin.require_person()?;
    Err(AdminError::bad_request(
        "name the organization: /impersonate/{did}/in/{org_id}/…",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e11_the_address_keeps_path_and_query() {
        let base = "/api/v1/admin/impersonate/did%2Fx/in/7";
        let target = |uri: &str| explorer_uri(&uri.parse().unwrap()).map(|uri| uri.to_string());
        assert_eq!(
            target(&format!("{base}/api/v1/explorer/blocks?limit=2")).as_deref(),
            Some("/api/v1/explorer/blocks?limit=2")
        );
        assert_eq!(
            target(&format!("{base}/api/v1/explorer/a%2Fb")).as_deref(),
            Some("/api/v1/explorer/a%2Fb")
        );
        assert_eq!(target(&format!("{base}/api/v1/other/blocks")), None);
    }

    #[test]
    fn e11_a_explorer_request_has_no_credentials() {
        let request = http::Request::get("/x")
            .header("authorization", "Bearer x")
            .header("cookie", "a=b")
            .header("x-admin-token", "x")
            .header("accept", "application/json")
            .body(axum::body::Body::empty())
            .unwrap();
        let copy = explorer_request(request, Uri::from_static("/y"));
        assert_eq!(copy.uri(), "/y");
        assert_eq!(copy.headers().len(), 1, "{:?}", copy.headers());
    }
}

use crate::{
    DisclosureState,
    caller::{Admin, JsonBody},
    error::AdminError,
    input,
    wire::{CreateDisclosureRequestBody, Request},
};
use axum::extract::State;
use gw_http::{ApiError, Created};
use gw_store::{DisclosureError, record::NewDisclosureRequest};

/// Asks a member of the organization to disclose data to a grantee. The owner approves or rejects the request.
#[utoipa::path(post, path = "/api/v1/admin/disclosure/requests", tag = "disclosure",
    request_body = CreateDisclosureRequestBody, responses((status = 201, body = Request), AdminError))]
pub(crate) async fn create_disclosure_request(
    admin: Admin,
    State(state): State<DisclosureState>,
    body: Result<JsonBody<CreateDisclosureRequestBody>, ApiError>,
) -> Result<Created<Request>, AdminError> {
    let JsonBody(body) = body?;
    let org = admin.org(body.org_id.as_deref(), "org_id is required")?;
    admin.require_writer(org)?;
    let creator = admin.user().map(|user| user.id.to_string());
    state
        .check_creation_rate(creator.as_deref().unwrap_or("platform"))
        .await?;
    let target = input::present(body.target_user_id.as_deref());
    let target = target.ok_or_else(|| ApiError::bad_request("target_user_id is required"))?;
    let target = input::id(target, "target_user_id")?;
    let requester = input::present(body.requester_user_id.as_deref());
    let mut requester = requester.map(|text| input::id(text, "requester_user_id")).transpose()?;
    // Anybody else is named by the DID: an id must not tell who a user of another organization is (HD30).
    let is_foreign = |user| {
        let snapshot = state.feed.pin().snapshot;
        !snapshot.is_member(user, org, state.http_context.now())
    };
    if admin.user().is_some() && requester.is_some_and(is_foreign) {
        return Err(DisclosureError::UnknownRequester.into());
    }
    let requester_did = input::present(body.requester_did.as_deref());
    let mut requester_did = requester_did
        .map(|text| input::did(text, "requester_did"))
        .transpose()?;
    if requester.is_none() && requester_did.is_none() {
        // Rule 8. The platform token is no person, so its request has no requester, and nobody can use the grant.
        requester = admin.user().map(|user| user.id);
        requester_did = admin.user().map(|user| user.external_id.clone());
    }
    let legal_basis = body.legal_basis.filter(|text| !text.trim().is_empty());
    let new = NewDisclosureRequest {
        requester,
        requester_did,
        target,
        org,
        scope: body.scope.unwrap_or_default().into(),
        reason: input::text(body.reason, "reason")?,
        legal_basis: legal_basis.map(|text| input::text(text, "legal_basis")).transpose()?,
        expires_in_hours: body.expires_in_hours,
        requires_legal_basis_for_full: state.settings.require_legal_basis_full,
    };
    let mut tx = admin.begin::<AdminError>(&state).await?;
    let request = tx.create_disclosure_request(new).await?;
    tx.commit().await?;
    admin.origin.set_org(org);
    let location = format!("/api/v1/admin/disclosure/requests/{}", request.id);
    Ok(Created(location, request.into()))
}

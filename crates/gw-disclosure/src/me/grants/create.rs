use crate::{
    DisclosureState,
    caller::{JsonBody, User},
    error::OwnerError,
    input,
    wire::{DisclosureApproveResponse, GrantDisclosureBody},
};
use axum::extract::State;
use gw_http::{ApiError, Created};
use gw_policy::{access::active_orgs, snapshot::Organization};
use gw_store::record::{DisclosureApproval, NewDisclosureRequest};
use gw_types::OrgId;

/// Discloses the caller's data to a DID that has not asked for it. The grant is the same as that of an approved
/// request: it has a request of its own, which the caller revokes to end it.
#[utoipa::path(post, path = "/api/v1/me/disclosure/grants", tag = "disclosure", security(("bearer" = [])),
    request_body = GrantDisclosureBody, responses((status = 201, body = DisclosureApproveResponse), OwnerError))]
pub(crate) async fn grant_disclosure(
    user: User,
    State(state): State<DisclosureState>,
    body: Result<JsonBody<GrantDisclosureBody>, ApiError>,
) -> Result<Created<DisclosureApproveResponse>, OwnerError> {
    let JsonBody(body) = body?;
    state.check_creation_rate(&user.id().to_string()).await?;
    let org = organization(&state, &user, input::present(body.org_id.as_deref()))?;
    let grantee = input::did(&body.grantee_did, "grantee_did")?;
    let new = NewDisclosureRequest {
        requester: None,
        requester_did: Some(grantee),
        target: user.id(),
        org,
        scope: body.scope.unwrap_or_default().into(),
        reason: input::text(body.reason, "reason")?,
        legal_basis: None,
        expires_in_hours: None,
        // The owner's own will is the basis.
        requires_legal_basis_for_full: false,
    };
    let approval = DisclosureApproval {
        duration_hours: body.grant_duration_hours,
        include_future_addresses: body.include_future_addresses,
        ..DisclosureApproval::default()
    };
    let mut tx = user.begin::<OwnerError>(&state).await?;
    let granted = tx
        .grant_disclosure(new, &approval, state.settings.limits, &state.key_cipher)
        .await?;
    tx.commit().await?;
    user.origin.set_org(org);
    let location = format!("/api/v1/me/disclosure/grants/{}", granted.grant.id);
    let answer = DisclosureApproveResponse {
        grant: granted.grant.into(),
        message: "Disclosure granted",
    };
    Ok(Created(location, answer))
}

/// The organization of the grant: the named one, or the caller's only one apart from the default organization.
fn organization(state: &DisclosureState, user: &User, named: Option<&str>) -> Result<OrgId, ApiError> {
    let mine = active_orgs(&user.caller.snapshot, user.id(), state.http_context.now());
    if let Some(text) = named {
        let org = text.parse().ok().filter(|org| mine.contains(org));
        return org.ok_or_else(|| ApiError::bad_request("org_id: not one of your organizations"));
    }
    let is_default = |org: &OrgId| *org == Organization::DEFAULT;
    let others: Vec<OrgId> = mine.iter().copied().filter(|org| !is_default(org)).collect();
    match (others.as_slice(), mine.as_slice()) {
        ([only], _) | ([], [only]) => Ok(*only),
        ([], _) => Err(ApiError::bad_request("you are a member of no organization")),
        _ => Err(ApiError::bad_request(
            "org_id is required: you are a member of several organizations",
        )),
    }
}

use crate::{
    AdminState,
    body::JsonBody,
    error::Failure,
    input,
    last_admin::LastAdmin,
    scope::{Admin, TARGET_DENIED},
    wire::{MembershipByDidRemovalRequest, MembershipByDidRequest, MembershipByDidResponse},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::Message;
use gw_store::record::{NewMembership, NewUser};
use http::StatusCode;

/// Puts whoever logs in as `did` into a group of the organization, creating the user (without the default group) if
/// need be. The answer is the same whether the user existed, belongs elsewhere or is banned (C5, HD40): it waits for the
/// user's agreement. Somebody who belongs to nobody else has the rights of the group at once.
#[utoipa::path(post, path = "/api/v1/admin/orgs/{org_id}/memberships/by-did", tag = "memberships",
    params(("org_id" = String, Path, format = Uuid)), request_body = MembershipByDidRequest,
    responses((status = 201, body = MembershipByDidResponse), (status = 400), (status = 401), (status = 403),
        (status = 404), (status = 409)))]
pub(crate) async fn add_by_did(
    admin: Admin,
    State(state): State<AdminState>,
    Path(org): Path<String>,
    JsonBody(body): JsonBody<MembershipByDidRequest>,
) -> Result<(StatusCode, Json<MembershipByDidResponse>), Failure> {
    let org = admin.writable_org(&state, &org).await?;
    let did = input::did(&body.did)?;
    let mut tx = admin.begin(&state).await?;
    let group = admin.group_of(&tx.read(), &org, &body.group_id).await?;
    admin.may_touch(&group)?;
    let expires_at = input::expiry(body.expires_at.as_deref(), tx.now())?;
    let known = tx.read().find_user_by_external_id(&did).await?;
    let user = match known {
        Some(user) => user,
        None => {
            let new = NewUser {
                external_id: did,
                kyc: false,
                auth_tenant_id: None,
                groups: Vec::new(),
            };
            tx.create_user(new).await?
        }
    };
    let new = NewMembership {
        user: user.id,
        group: group.group.id,
        expires_at,
    };
    let made = if admin.is_super() {
        tx.add_membership(new).await?
    } else {
        tx.offer_membership(new).await?
    };
    tx.commit().await?;
    Ok((
        StatusCode::CREATED,
        Json(MembershipByDidResponse {
            user_id: user.id,
            membership: made.into(),
        }),
    ))
}

/// Takes whoever logs in as `did` out of a group. Unknown DID, user or membership: one refusal.
#[utoipa::path(delete, path = "/api/v1/admin/orgs/{org_id}/memberships/by-did", tag = "memberships",
    params(("org_id" = String, Path, format = Uuid)), request_body = MembershipByDidRemovalRequest,
    responses((status = 200, body = Message), (status = 400), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn remove_by_did(
    admin: Admin,
    State(state): State<AdminState>,
    Path(org): Path<String>,
    JsonBody(body): JsonBody<MembershipByDidRemovalRequest>,
) -> Result<Message, Failure> {
    let org = admin.writable_org(&state, &org).await?;
    let did = input::did(&body.did)?;
    let mut tx = admin.begin(&state).await?;
    let group = admin.group_of(&tx.read(), &org, &body.group_id).await?;
    admin.may_disempower(&group)?;
    let found = match tx.read().find_user_by_external_id(&did).await? {
        Some(user) => tx.read().find_membership_of(user.id, group.group.id).await?,
        None => None,
    };
    let Some(membership) = found else {
        return Err(Failure::forbidden(TARGET_DENIED));
    };
    let before = LastAdmin::of(&tx, &[org.id]).await?;
    tx.remove_membership(membership.id).await?;
    before.keep(&admin, &mut tx).await?;
    tx.commit().await?;
    Ok(Message::new("membership removed"))
}

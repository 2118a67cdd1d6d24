use crate::{
    AdminState,
    body::JsonBody,
    error::AdminError,
    input,
    last_admin::LastAdmin,
    scope::{Admin, TARGET_DENIED},
    wire::{MembershipByDidRemovalRequest, MembershipByDidRequest, MembershipByDidResponse},
};
use axum::extract::{Path, State};
use gw_http::{Created, Message};
use gw_store::record::{NewMembership, NewUser};

/// Adds the user with this DID to a group of the organization, and creates the user (without the default group) if
/// needed. The membership waits until the user accepts it. The answer does not reveal whether the user existed, belongs
/// to other organizations or is banned (C5, HD40). A user of no other organization has the rights of the group at once.
#[utoipa::path(post, path = "/api/v1/admin/orgs/{org_id}/memberships/by-did", tag = "memberships",
    params(("org_id" = String, Path, format = Uuid)), request_body = MembershipByDidRequest,
    responses((status = 201, body = MembershipByDidResponse), (status = 400), (status = 401), (status = 403),
        (status = 404), (status = 409)))]
pub(crate) async fn add_by_did(
    admin: Admin,
    State(state): State<AdminState>,
    Path(org): Path<String>,
    JsonBody(body): JsonBody<MembershipByDidRequest>,
) -> Result<Created<MembershipByDidResponse>, AdminError> {
    let org = admin.writable_org(&state, &org).await?;
    let did = input::did(&body.did)?;
    let mut tx = admin.begin(&state).await?;
    let group = admin.group_of(&tx.read(), &org, &body.group_id).await?;
    admin.require_super_for_admin_group(&group)?;
    let expires_at = input::expiry(body.expires_at.as_deref(), tx.now())?;
    let user = tx.read().find_user_by_external_id(&did).await?;
    let user = match user {
        Some(existing) => existing,
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
    let membership = if admin.is_super() {
        tx.add_membership(new).await?
    } else {
        tx.offer_membership(new).await?
    };
    tx.commit().await?;
    let location = format!("/api/v1/admin/users/{}/memberships/{}", user.id, membership.id);
    Ok(Created(
        location,
        MembershipByDidResponse {
            user_id: user.id,
            membership: membership.into(),
        },
    ))
}

/// Removes the user with this DID from a group. An unknown DID, user or membership gets the same 403.
#[utoipa::path(delete, path = "/api/v1/admin/orgs/{org_id}/memberships/by-did", tag = "memberships",
    params(("org_id" = String, Path, format = Uuid)), request_body = MembershipByDidRemovalRequest,
    responses((status = 200, body = Message), (status = 400), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn remove_by_did(
    admin: Admin,
    State(state): State<AdminState>,
    Path(org): Path<String>,
    JsonBody(body): JsonBody<MembershipByDidRemovalRequest>,
) -> Result<Message, AdminError> {
    let org = admin.writable_org(&state, &org).await?;
    let did = input::did(&body.did)?;
    let mut tx = admin.begin(&state).await?;
    let group = admin.group_of(&tx.read(), &org, &body.group_id).await?;
    admin.may_disempower(&group)?;
    let membership = match tx.read().find_user_by_external_id(&did).await? {
        Some(user) => tx.read().find_membership_of(user.id, group.group.id).await?,
        None => None,
    };
    let Some(membership) = membership else {
        return Err(AdminError::forbidden(TARGET_DENIED));
    };
    let last_admin = LastAdmin::for_orgs(&tx, &[org.id]).await?;
    tx.remove_membership(membership.id).await?;
    last_admin.keep(&admin, &mut tx).await?;
    tx.commit().await?;
    Ok(Message::new("membership removed"))
}

use crate::{
    AdminState,
    body::JsonBody,
    error::AdminError,
    input,
    last_admin::LastAdmin,
    scope::{Access, Admin},
    wire::{MembershipCreateRequest, MembershipListItem, UserMembership},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::{Created, Message};
use gw_store::record::NewMembership;
use gw_types::MembershipId;

/// Lists a user's memberships in the caller's scope, ended ones included.
#[utoipa::path(get, path = "/api/v1/admin/users/{user_id}/memberships", tag = "memberships",
    params(("user_id" = String, Path, format = Uuid)),
    responses((status = 200, body = [MembershipListItem]), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn list_memberships(
    admin: Admin,
    State(state): State<AdminState>,
    Path(user): Path<String>,
) -> Result<Json<Vec<MembershipListItem>>, AdminError> {
    let scope = admin.scope()?;
    let user = admin
        .known_user(&state.store.read(), &user, None, Access::Read)
        .await?
        .user;
    let now = state.clock.now();
    let memberships = state.store.read().list_memberships(user.id, &scope).await?;
    Ok(Json(
        memberships
            .into_iter()
            .map(|item| MembershipListItem {
                expired: item.membership.has_ended(now),
                membership: item.membership.into(),
                group: item.group.into(),
            })
            .collect(),
    ))
}

/// Adds a user to a group of the caller's scope. Only super adds members to administrator groups (C4). A membership
/// added by an administrator of an organization waits until the user accepts it; one added by super does not (HD32).
#[utoipa::path(post, path = "/api/v1/admin/users/{user_id}/memberships", tag = "memberships",
    params(("user_id" = String, Path, format = Uuid)), request_body = MembershipCreateRequest,
    responses((status = 201, body = UserMembership), (status = 400), (status = 401), (status = 403), (status = 404),
        (status = 409)))]
pub(crate) async fn add_membership(
    admin: Admin,
    State(state): State<AdminState>,
    Path(user): Path<String>,
    JsonBody(body): JsonBody<MembershipCreateRequest>,
) -> Result<Created<UserMembership>, AdminError> {
    admin.require_writer()?;
    let mut tx = admin.begin(&state).await?;
    let user = admin.known_user(&tx.read(), &user, None, Access::Write).await?.user;
    let group = admin.target_group(&tx.read(), &body.group_id).await?;
    let new = NewMembership {
        user: user.id,
        group: group.group.id,
        expires_at: input::expiry(body.expires_at.as_deref(), tx.now())?,
    };
    let membership = if admin.is_super() {
        tx.add_membership(new).await?
    } else {
        tx.offer_membership(new).await?
    };
    tx.commit().await?;
    let location = format!("/api/v1/admin/users/{}/memberships/{}", user.id, membership.id);
    Ok(Created(location, membership.into()))
}

/// Ends a membership. Only super ends a membership that gives administrative rights (C4).
#[utoipa::path(delete, path = "/api/v1/admin/users/{user_id}/memberships/{membership_id}", tag = "memberships",
    params(("user_id" = String, Path, format = Uuid), ("membership_id" = String, Path, format = Uuid)),
    responses((status = 200, body = Message), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn remove_membership(
    admin: Admin,
    State(state): State<AdminState>,
    Path((user, membership)): Path<(String, String)>,
) -> Result<Message, AdminError> {
    admin.require_writer()?;
    let mut tx = admin.begin(&state).await?;
    let user = admin.known_user(&tx.read(), &user, None, Access::Write).await?.user;
    let row = match membership.parse::<MembershipId>() {
        Ok(id) => tx.read().find_membership(id).await?,
        Err(_) => None,
    };
    // A membership of another user or of a group out of scope gets the answer for an unknown membership.
    let Some(item) = row.filter(|item| item.membership.user == user.id) else {
        return Err(admin.unknown_target("membership not found"));
    };
    let group = admin.target_group(&tx.read(), &item.group.id.to_string()).await?;
    admin.may_disempower(&group)?;
    let last_admin = LastAdmin::for_orgs(&tx, &[item.group.org]).await?;
    tx.remove_membership(item.membership.id).await?;
    last_admin.keep(&admin, &mut tx).await?;
    tx.commit().await?;
    Ok(Message::new("membership removed"))
}

/// Confirms a membership in place of the user; super only.
#[utoipa::path(post, path = "/api/v1/admin/users/{user_id}/memberships/{membership_id}/confirm", tag = "memberships",
    params(("user_id" = String, Path, format = Uuid), ("membership_id" = String, Path, format = Uuid)),
    responses((status = 200, body = UserMembership), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn confirm_membership(
    admin: Admin,
    State(state): State<AdminState>,
    Path((user, membership)): Path<(String, String)>,
) -> Result<Json<UserMembership>, AdminError> {
    admin.require_super()?;
    let mut tx = admin.begin(&state).await?;
    let row = match membership.parse::<MembershipId>() {
        Ok(id) => tx.read().find_membership(id).await?,
        Err(_) => None,
    };
    let row = row.filter(|item| item.membership.user.to_string() == user);
    let item = row.ok_or_else(|| AdminError::not_found("membership not found"))?;
    let confirmed = tx.confirm_membership(item.membership.id).await?;
    tx.commit().await?;
    Ok(Json(confirmed.into()))
}

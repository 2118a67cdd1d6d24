use crate::{
    AdminState,
    body::JsonBody,
    error::Failure,
    input,
    last_admin::LastAdmin,
    scope::{Access, Admin},
    wire::{MembershipCreateRequest, MembershipListItem, UserMembership},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::Message;
use gw_store::record::NewMembership;
use gw_types::MembershipId;
use http::StatusCode;

/// A user's memberships in the caller's scope, ended ones included.
#[utoipa::path(get, path = "/api/v1/admin/users/{user_id}/memberships", tag = "memberships",
    params(("user_id" = String, Path, format = Uuid)),
    responses((status = 200, body = [MembershipListItem]), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn list_memberships(
    admin: Admin,
    State(state): State<AdminState>,
    Path(user): Path<String>,
) -> Result<Json<Vec<MembershipListItem>>, Failure> {
    let scope = admin.scope()?;
    let user = admin
        .known_user(&state.store.read(), &user, None, Access::Read)
        .await?
        .user;
    let now = state.clock.now();
    let found = state.store.read().list_memberships(user.id, &scope).await?;
    Ok(Json(
        found
            .into_iter()
            .map(|item| MembershipListItem {
                expired: item.membership.has_ended(now),
                membership: item.membership.into(),
                group: item.group.into(),
            })
            .collect(),
    ))
}

/// Puts a user into a group of the caller's scope. Only super fills administrator groups (C4). What an administrator of
/// an organization does so waits for the user's agreement; what super does, does not (HD32).
#[utoipa::path(post, path = "/api/v1/admin/users/{user_id}/memberships", tag = "memberships",
    params(("user_id" = String, Path, format = Uuid)), request_body = MembershipCreateRequest,
    responses((status = 201, body = UserMembership), (status = 400), (status = 401), (status = 403), (status = 404),
        (status = 409)))]
pub(crate) async fn add_membership(
    admin: Admin,
    State(state): State<AdminState>,
    Path(user): Path<String>,
    JsonBody(body): JsonBody<MembershipCreateRequest>,
) -> Result<(StatusCode, Json<UserMembership>), Failure> {
    admin.require_writer()?;
    let mut tx = admin.begin(&state).await?;
    let user = admin.known_user(&tx.read(), &user, None, Access::Write).await?.user;
    let group = admin.target_group(&tx.read(), &body.group_id).await?;
    let new = NewMembership {
        user: user.id,
        group: group.group.id,
        expires_at: input::expiry(body.expires_at.as_deref(), tx.now())?,
    };
    let made = if admin.is_super() {
        tx.add_membership(new).await?
    } else {
        tx.offer_membership(new).await?
    };
    tx.commit().await?;
    Ok((StatusCode::CREATED, Json(made.into())))
}

/// Ends a membership; one that gives administrator's powers is super's to end (C4).
#[utoipa::path(delete, path = "/api/v1/admin/users/{user_id}/memberships/{membership_id}", tag = "memberships",
    params(("user_id" = String, Path, format = Uuid), ("membership_id" = String, Path, format = Uuid)),
    responses((status = 200, body = Message), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn remove_membership(
    admin: Admin,
    State(state): State<AdminState>,
    Path((user, membership)): Path<(String, String)>,
) -> Result<Message, Failure> {
    admin.require_writer()?;
    let mut tx = admin.begin(&state).await?;
    let user = admin.known_user(&tx.read(), &user, None, Access::Write).await?.user;
    let found = match membership.parse::<MembershipId>() {
        Ok(id) => tx.read().find_membership(id).await?,
        Err(_) => None,
    };
    // A membership of another user, or of a group out of scope, is as unknown as one that never was.
    let Some(item) = found.filter(|item| item.membership.user == user.id) else {
        return Err(admin.unknown_target("membership not found"));
    };
    let group = admin.target_group(&tx.read(), &item.group.id.to_string()).await?;
    admin.may_disempower(&group)?;
    let before = LastAdmin::of(&tx, &[item.group.org]).await?;
    tx.remove_membership(item.membership.id).await?;
    before.keep(&admin, &mut tx).await?;
    tx.commit().await?;
    Ok(Message::new("membership removed"))
}

/// Super confirms a membership in the user's place.
#[utoipa::path(post, path = "/api/v1/admin/users/{user_id}/memberships/{membership_id}/confirm", tag = "memberships",
    params(("user_id" = String, Path, format = Uuid), ("membership_id" = String, Path, format = Uuid)),
    responses((status = 200, body = UserMembership), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn confirm_membership(
    admin: Admin,
    State(state): State<AdminState>,
    Path((user, membership)): Path<(String, String)>,
) -> Result<Json<UserMembership>, Failure> {
    admin.require_super()?;
    let mut tx = admin.begin(&state).await?;
    let found = match membership.parse::<MembershipId>() {
        Ok(id) => tx.read().find_membership(id).await?,
        Err(_) => None,
    };
    let found = found.filter(|item| item.membership.user.to_string() == user);
    let found = found.ok_or_else(|| Failure::not_found("membership not found"))?;
    let confirmed = tx.confirm_membership(found.membership.id).await?;
    tx.commit().await?;
    Ok(Json(confirmed.into()))
}

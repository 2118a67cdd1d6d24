use crate::{
    AdminState,
    error::Failure,
    input,
    last_admin::LastAdmin,
    scope::Admin,
    wire::{RbacUserUpdateRequest, User},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::JsonBody;
use gw_store::record::UserPatch;

/// Changes a user. `kyc` and `banned` bind everywhere, so an organization's administrator sets them only for users
/// whose organizations are all in scope (A11). A ban ends every token of the user before the answer leaves (A10).
#[utoipa::path(put, path = "/api/v1/admin/users/{user_id}", tag = "users",
    params(("user_id" = String, Path, format = Uuid)), request_body = RbacUserUpdateRequest,
    responses((status = 200, body = User), (status = 400), (status = 401), (status = 403), (status = 404),
        (status = 409)))]
pub(crate) async fn update_user(
    admin: Admin,
    State(state): State<AdminState>,
    Path(user): Path<String>,
    JsonBody(body): JsonBody<RbacUserUpdateRequest>,
) -> Result<Json<User>, Failure> {
    let patch = UserPatch {
        kyc: body.kyc,
        banned: body.banned,
        note: body.note.as_deref().map(|note| input::text(note, "note", 1000)).transpose()?,
        metadata: body.metadata,
    };
    admin.require_writer()?;
    let mut tx = state.store.begin(&admin.actor()).await?;
    let user = admin.writable_user(&tx.read(), &user).await?;
    if body.kyc.is_some() || body.banned.is_some() {
        admin.all_orgs_of(&tx.read(), user.id).await?;
    }
    // Whoever is banned administers nothing any more.
    let orgs = tx.read().organizations_of(user.id).await?;
    let before = LastAdmin::of(&tx, &orgs).await?;
    let changed = tx.update_user(user.id, patch).await?;
    before.keep(&admin, &mut tx).await?;
    tx.commit().await?;
    Ok(Json(changed.into()))
}

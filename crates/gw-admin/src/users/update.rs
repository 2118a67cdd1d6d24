use super::get::ForOrg;
use crate::{
    AdminState,
    error::Failure,
    input,
    last_admin::LastAdmin,
    scope::{Access, Admin},
    wire::{RbacUserUpdateRequest, User},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::{JsonBody, QueryParams};
use gw_store::record::UserPatch;

/// Changes a user. An administrator of an organization changes what that organization noted and decided: its KYC mark
/// and its ban bind there, whatever else the user belongs to (A11). Super changes the account: that binds everywhere, and
/// a ban ends every token of the user before the answer leaves (A10).
#[utoipa::path(put, path = "/api/v1/admin/users/{user_id}", tag = "users",
    params(("user_id" = String, Path, format = Uuid), ForOrg), request_body = RbacUserUpdateRequest,
    responses((status = 200, body = User), (status = 400), (status = 401), (status = 403), (status = 404),
        (status = 409)))]
pub(crate) async fn update_user(
    admin: Admin,
    State(state): State<AdminState>,
    Path(user): Path<String>,
    QueryParams(ForOrg { org_id }): QueryParams<ForOrg>,
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
    let mut known = admin.known_user(&tx.read(), &user, org_id.as_deref(), Access::Write).await?;
    // Whoever is banned administers nothing any more.
    let orgs =
        if known.orgs.is_empty() { tx.read().organizations_of(known.user.id).await? } else { known.orgs.clone() };
    let before = LastAdmin::of(&tx, &orgs).await?;
    if known.orgs.is_empty() {
        known.user = tx.update_user(known.user.id, patch).await?;
    } else {
        for org in &known.orgs {
            tx.update_org_user(*org, &known.user, patch.clone()).await?;
        }
    }
    before.keep(&admin, &mut tx).await?;
    let shown = known.shown(&tx.read()).await?;
    tx.commit().await?;
    Ok(Json(shown))
}

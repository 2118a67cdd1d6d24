use super::get::ForOrg;
use crate::{
    AdminState,
    body::JsonBody,
    error::Failure,
    input,
    last_admin::LastAdmin,
    scope::{Access, Admin, KnownUser},
    wire::{RbacUserUpdateRequest, User},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::QueryParams;
use gw_store::{Tx, record::UserPatch};

/// Changes a user. An administrator of an organization changes what that organization noted and decided: its KYC mark
/// and its ban bind there, whatever else the user belongs to (A11). Super changes the account: that binds everywhere, and
/// a ban ends every token of the user before the answer leaves (A10). A ban of an administrator, its end, and the end of
/// their KYC mark are super's alone (C4).
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
        note: body
            .note
            .as_deref()
            .map(|note| input::text(note, "note", 1000))
            .transpose()?,
        metadata: input::object(body.metadata, "metadata")?,
    };
    admin.require_writer()?;
    let mut tx = admin.begin(&state).await?;
    let mut known = admin
        .known_user(&tx.read(), &user, org_id.as_deref(), Access::Write)
        .await?;
    // Whoever is banned administers nothing any more.
    let orgs = if known.orgs.is_empty() {
        tx.read().organizations_of(known.user.id).await?
    } else {
        known.orgs.clone()
    };
    let before = LastAdmin::of(&tx, &orgs).await?;
    if known.orgs.is_empty() {
        known.user = tx.update_user(known.user.id, patch).await?;
    } else {
        if disempowers(&tx, &known, &patch).await? {
            admin.may_disempower_in(&tx.read(), known.user.id, &known.orgs).await?;
        }
        for org in &known.orgs {
            tx.update_org_user(*org, &known.user, patch.clone()).await?;
        }
    }
    before.keep(&admin, &mut tx).await?;
    let shown = known.shown(&tx.read()).await?;
    tx.commit().await?;
    Ok(Json(shown))
}

/// Whether the change may take what somebody has power by: a ban or its end, or the end of the KYC mark. What says again
/// what is said already changes nothing.
async fn disempowers(tx: &Tx, known: &KnownUser, patch: &UserPatch) -> Result<bool, Failure> {
    let records = tx.read().org_user_records(&known.user.external_id, &known.orgs).await?;
    Ok(known.orgs.iter().any(|org| {
        let record = records.iter().find(|record| record.org == *org);
        let (kyc, banned) = record.map_or((false, false), |record| (record.kyc, record.banned));
        patch.banned.is_some_and(|to| to != banned) || (kyc && patch.kyc == Some(false))
    }))
}

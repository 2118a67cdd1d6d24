use super::get::ForOrg;
use crate::{
    AdminState,
    body::JsonBody,
    error::AdminError,
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

/// Changes a user. An administrator of an organization changes the record of that organization: its note, KYC mark and
/// ban apply only there, even if the user belongs to other organizations (A11). Super changes the account, which
/// applies everywhere; a ban ends every token of the user before the response is sent (A10). Only super bans an
/// administrator, ends such a ban, or withdraws an administrator's KYC mark (C4).
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
) -> Result<Json<User>, AdminError> {
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
    // A banned user is no administrator any more.
    let orgs = if known.orgs.is_empty() {
        tx.read().organizations_of(known.user.id).await?
    } else {
        known.orgs.clone()
    };
    let last_admin = LastAdmin::for_orgs(&tx, &orgs).await?;
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
    last_admin.keep(&admin, &mut tx).await?;
    let user_json = known.into_wire(&tx.read()).await?;
    tx.commit().await?;
    Ok(Json(user_json))
}

/// Whether the change may affect administrative rights: a new ban or its end, or the withdrawal of the KYC mark. A
/// value that repeats the present one changes nothing.
async fn disempowers(tx: &Tx, known: &KnownUser, patch: &UserPatch) -> Result<bool, AdminError> {
    let records = tx.read().org_user_records(&known.user.external_id, &known.orgs).await?;
    Ok(known.orgs.iter().any(|org| {
        let record = records.iter().find(|record| record.org == *org);
        let (kyc, banned) = record.map_or((false, false), |record| (record.kyc, record.banned));
        patch.banned.is_some_and(|requested| requested != banned) || (kyc && patch.kyc == Some(false))
    }))
}

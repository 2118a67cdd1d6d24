use crate::{
    AdminState,
    error::AdminError,
    scope::{Admin, covers},
    wire::EffectivePermissions,
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::{ApiError, QueryParams};
use gw_policy::access;
use serde::Deserialize;

/// The organization to evaluate.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct InOrg {
    /// The slug of the organization.
    #[serde(default = "default_slug")]
    #[param(required = false, default = "default")]
    org: String,
}

fn default_slug() -> String {
    "default".to_owned()
}

/// Returns everything the user may do in one organization. It is the union of the user's active groups there, as
/// decisions compute it.
#[utoipa::path(get, path = "/api/v1/admin/users/{user_id}/effective-permissions", tag = "diagnostics",
    params(("user_id" = String, Path, format = Uuid), InOrg),
    responses((status = 200, body = EffectivePermissions), (status = 401), (status = 403),
        (status = 404, description = "No such organization in the administrator's scope")))]
pub(crate) async fn effective_permissions(
    admin: Admin,
    State(state): State<AdminState>,
    Path(user): Path<String>,
    QueryParams(InOrg { org }): QueryParams<InOrg>,
) -> Result<Json<EffectivePermissions>, AdminError> {
    let scope = admin.scope()?;
    let user = admin.readable_user(&state.store.read(), &user).await?;
    let pinned = state.feed.pin();
    if !pinned.fresh {
        return Err(ApiError::policy_unavailable().into());
    }
    let has_slug = |candidate: &&std::sync::Arc<gw_policy::snapshot::Organization>| *candidate.slug == *org;
    // An unknown slug and the slug of another organization get the same answer.
    let org = pinned
        .snapshot
        .organizations()
        .find(has_slug)
        .map(|org| org.id)
        .filter(|org| covers(&scope, *org));
    let org = org.ok_or_else(|| AdminError::not_found("organization not found"))?;
    let now = state.clock.now();
    // Before the user accepted a membership, its effect is hidden: it would reveal whether the user belongs to other
    // organizations.
    if !admin.is_super() && !pinned.snapshot.has_accepted(user.id, org, now) {
        return Err(AdminError::not_found("organization not found"));
    }
    let effective = access::effective(&pinned.snapshot, user.id, org, now, &state.policy_settings);
    Ok(Json(EffectivePermissions::new(user.id, org, &effective, now)))
}

use crate::{
    AdminState,
    error::Failure,
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

/// Which organization.
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

/// All that the user may do in one organization: the union of the live groups there, as decisions take it.
#[utoipa::path(get, path = "/api/v1/admin/users/{user_id}/effective-permissions", tag = "diagnostics",
    params(("user_id" = String, Path, format = Uuid), InOrg),
    responses((status = 200, body = EffectivePermissions), (status = 401), (status = 403),
        (status = 404, description = "No such organization within the administrator's reach")))]
pub(crate) async fn effective_permissions(
    admin: Admin,
    State(state): State<AdminState>,
    Path(user): Path<String>,
    QueryParams(InOrg { org }): QueryParams<InOrg>,
) -> Result<Json<EffectivePermissions>, Failure> {
    let scope = admin.scope()?;
    let user = admin.readable_user(&state.store.read(), &user).await?;
    let pinned = state.feed.pin();
    if !pinned.fresh {
        return Err(ApiError::policy_unavailable().into());
    }
    let named = |known: &&std::sync::Arc<gw_policy::snapshot::Organization>| *known.slug == *org;
    // The unknown and the foreign are one answer.
    let org = pinned
        .snapshot
        .organizations()
        .find(named)
        .map(|org| org.id)
        .filter(|org| covers(&scope, *org));
    let org = org.ok_or_else(|| Failure::not_found("organization not found"))?;
    let now = state.clock.now();
    // Until the user agreed, what a membership gives is not told: it would tell whether they belong elsewhere.
    if !admin.is_super() && !pinned.snapshot.has_accepted(user.id, org, now) {
        return Err(Failure::not_found("organization not found"));
    }
    let found = access::effective(&pinned.snapshot, user.id, org, now, &state.knobs);
    Ok(Json(EffectivePermissions::of(user.id, org, &found, now)))
}

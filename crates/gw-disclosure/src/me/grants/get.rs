use crate::{DisclosureState, caller::User, error::OwnerError, me::own_grant, wire::GrantWithRequest};
use axum::{
    Json,
    extract::{Path, State},
};

/// Returns a grant of the caller's data.
#[utoipa::path(get, path = "/api/v1/me/disclosure/grants/{grant_id}", tag = "disclosure", security(("bearer" = [])),
    params(("grant_id" = String, Path, format = Uuid, description = "The grant")),
    responses((status = 200, body = GrantWithRequest), OwnerError))]
pub(crate) async fn get_my_disclosure_grant(
    user: User,
    State(state): State<DisclosureState>,
    Path(id): Path<String>,
) -> Result<Json<GrantWithRequest>, OwnerError> {
    Ok(Json(own_grant(&state, &user, &id).await?.into()))
}

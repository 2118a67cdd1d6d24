use crate::{AdminState, error::AdminError, input, scope::Admin, wire::SharedInfrastructure};
use axum::{
    Json,
    extract::{Path, State},
};

/// Returns one shared contract; super only.
#[utoipa::path(get, path = "/api/v1/admin/shared-infrastructure/{address}", tag = "shared infrastructure",
    params(("address" = String, Path)),
    responses((status = 200, body = SharedInfrastructure), (status = 400), (status = 401), (status = 403),
        (status = 404)))]
pub(crate) async fn get_shared_infra(
    admin: Admin,
    State(state): State<AdminState>,
    Path(address): Path<String>,
) -> Result<Json<SharedInfrastructure>, AdminError> {
    admin.require_super()?;
    let shared = state.store.read().find_shared_infra(input::address(&address)?).await?;
    Ok(Json(
        shared
            .ok_or_else(|| AdminError::not_found("shared contract not found"))?
            .into(),
    ))
}

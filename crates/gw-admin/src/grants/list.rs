use crate::{AdminState, error::AdminError, scope::Admin, wire::ContractGrant};
use axum::{
    Json,
    extract::{Path, State},
};

/// Lists the grants on a contract.
#[utoipa::path(get, path = "/api/v1/admin/orgs/{org_id}/contracts/{address}/grants", tag = "grants",
    params(("org_id" = String, Path, format = Uuid), ("address" = String, Path)),
    responses((status = 200, body = [ContractGrant]), (status = 400), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn list_grants(
    admin: Admin,
    State(state): State<AdminState>,
    Path((org, address)): Path<(String, String)>,
) -> Result<Json<Vec<ContractGrant>>, AdminError> {
    let org = admin.readable_org(&state, &org).await?;
    let contract = admin.contract_of(&state.store.read(), &org, &address).await?;
    let grants = state.store.read().list_grants(contract.id).await?;
    Ok(Json(grants.into_iter().map(ContractGrant::from).collect()))
}

use crate::{AdminState, error::AdminError, scope::Admin, wire::Contract};
use axum::{
    Json,
    extract::{Path, State},
};

/// Returns one contract of the organization.
#[utoipa::path(get, path = "/api/v1/admin/orgs/{org_id}/contracts/{address}", tag = "contracts",
    params(("org_id" = String, Path, format = Uuid), ("address" = String, Path)),
    responses((status = 200, body = Contract), (status = 400), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn get_contract(
    admin: Admin,
    State(state): State<AdminState>,
    Path((org, address)): Path<(String, String)>,
) -> Result<Json<Contract>, AdminError> {
    let org = admin.readable_org(&state, &org).await?;
    Ok(Json(
        admin.contract_of(&state.store.read(), &org, &address).await?.into(),
    ))
}

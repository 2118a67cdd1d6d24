use crate::{AdminState, error::AdminError, scope::Admin};
use axum::extract::{Path, State};
use gw_http::Message;

/// Deletes a contract's registration and the grants on it.
#[utoipa::path(delete, path = "/api/v1/admin/orgs/{org_id}/contracts/{address}", tag = "contracts",
    params(("org_id" = String, Path, format = Uuid), ("address" = String, Path)),
    responses((status = 200, body = Message), (status = 400), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn delete_contract(
    admin: Admin,
    State(state): State<AdminState>,
    Path((org, address)): Path<(String, String)>,
) -> Result<Message, AdminError> {
    let org = admin.writable_org(&state, &org).await?;
    let mut tx = admin.begin(&state).await?;
    let contract = admin.contract_of(&tx.read(), &org, &address).await?;
    // HD41: the organization keeps its view of the contract's blocks up to the head.
    tx.delete_contract(contract.id, state.node.head().map(|head| head.number))
        .await?;
    tx.commit().await?;
    Ok(Message::new("contract deleted"))
}

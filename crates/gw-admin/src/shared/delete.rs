use crate::{AdminState, error::AdminError, input, scope::Admin};
use axum::extract::{Path, State};
use gw_http::Message;

/// Removes a contract from the shared infrastructure; super only.
#[utoipa::path(delete, path = "/api/v1/admin/shared-infrastructure/{address}", tag = "shared infrastructure",
    params(("address" = String, Path)),
    responses((status = 200, body = Message), (status = 400), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn delete_shared_infra(
    admin: Admin,
    State(state): State<AdminState>,
    Path(address): Path<String>,
) -> Result<Message, AdminError> {
    admin.require_super()?;
    let address = input::address(&address)?;
    let mut tx = admin.begin(&state).await?;
    tx.delete_shared_infra(address).await?;
    tx.commit().await?;
    Ok(Message::new("shared contract deleted"))
}

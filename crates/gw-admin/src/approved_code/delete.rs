use crate::{AdminState, error::AdminError, input, scope::Admin};
use axum::extract::{Path, State};
use gw_http::Message;

/// Withdraws the approval of creation code; super only. Contracts created from the code remain; no more can be created
/// from it.
#[utoipa::path(delete, path = "/api/v1/admin/approved-code/{hash}", tag = "approved code",
    params(("hash" = String, Path)),
    responses((status = 200, body = Message), (status = 400), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn withdraw_approval(
    admin: Admin,
    State(state): State<AdminState>,
    Path(hash): Path<String>,
) -> Result<Message, AdminError> {
    admin.require_super()?;
    let hash = input::hash(&hash, "hash")?;
    let mut tx = admin.begin(&state).await?;
    tx.withdraw_approval(hash).await?;
    tx.commit().await?;
    Ok(Message::new("approval withdrawn"))
}

use super::row;
use crate::{AdminState, error::AdminError, input::Preview, scope::Admin};
use axum::extract::{Path, State};
use gw_http::{Message, QueryParams};

/// Removes a directory tenant from the list; super only. Its users are banned, which ends all their tokens. With
/// `dry_run=true` nothing changes, and the answer contains the number of users that would be banned.
#[utoipa::path(delete, path = "/api/v1/admin/directory-tenants/{id}", tag = "directory",
    params(("id" = String, Path, format = Uuid), Preview),
    responses((status = 200, body = Message), (status = 400), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn delete_tenant(
    admin: Admin,
    State(state): State<AdminState>,
    Path(id): Path<String>,
    QueryParams(preview): QueryParams<Preview>,
) -> Result<Message, AdminError> {
    admin.require_super()?;
    let mut tx = admin.begin(&state).await?;
    let removal = tx.delete_tenant(row(&id)?).await?;
    if preview.dry_run {
        tx.rollback().await?;
        return Ok(Message::new(format!(
            "tenant would be deleted; users banned: {}",
            removal.users
        )));
    }
    tx.commit().await?;
    Ok(Message::new(format!("tenant deleted; users banned: {}", removal.users)))
}

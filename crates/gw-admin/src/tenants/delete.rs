use super::row;
use crate::{AdminState, error::Failure, input::Preview, scope::Admin};
use axum::extract::{Path, State};
use gw_http::{Message, QueryParams};

/// Takes a directory tenant off the list; super only. Its users are banned and all their tokens end with it. With
/// `dry_run=true` nothing happens: the answer says how many users it would ban.
#[utoipa::path(delete, path = "/api/v1/admin/directory-tenants/{id}", tag = "directory",
    params(("id" = String, Path, format = Uuid), Preview),
    responses((status = 200, body = Message), (status = 400), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn delete_tenant(
    admin: Admin,
    State(state): State<AdminState>,
    Path(id): Path<String>,
    QueryParams(preview): QueryParams<Preview>,
) -> Result<Message, Failure> {
    admin.require_super()?;
    let mut tx = admin.begin(&state).await?;
    let end = tx.delete_tenant(row(&id)?).await?;
    if preview.dry_run {
        tx.rollback().await?;
        return Ok(Message::new(format!(
            "tenant would be deleted; users banned: {}",
            end.users
        )));
    }
    tx.commit().await?;
    Ok(Message::new(format!("tenant deleted; users banned: {}", end.users)))
}

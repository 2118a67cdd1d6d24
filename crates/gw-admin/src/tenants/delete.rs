use super::row;
use crate::{AdminState, error::Failure, scope::Admin};
use axum::extract::{Path, State};
use gw_http::Message;

/// Takes a directory tenant off the list; super only. Its users are banned and all their tokens end with it.
#[utoipa::path(delete, path = "/api/v1/admin/directory-tenants/{id}", tag = "directory",
    params(("id" = String, Path, format = Uuid)),
    responses((status = 200, body = Message), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn delete_tenant(
    admin: Admin,
    State(state): State<AdminState>,
    Path(id): Path<String>,
) -> Result<Message, Failure> {
    admin.require_super()?;
    let mut tx = state.store.begin(&admin.actor()).await?;
    let end = tx.delete_tenant(row(&id)?).await?;
    tx.commit().await?;
    Ok(Message::new(format!("tenant deleted; users banned: {}", end.users)))
}

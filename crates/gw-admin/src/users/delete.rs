use crate::{AdminState, error::Failure, last_admin::LastAdmin, scope::Admin};
use axum::extract::{Path, State};
use gw_http::{ApiError, Message};
use gw_store::read::Scope;

/// Deletes a user with memberships, links and tokens. A ban outlives the row.
#[utoipa::path(delete, path = "/api/v1/admin/users/{user_id}", tag = "users",
    params(("user_id" = String, Path, format = Uuid)),
    responses((status = 200, body = Message), (status = 401), (status = 403), (status = 404), (status = 409)))]
pub(crate) async fn delete_user(
    admin: Admin,
    State(state): State<AdminState>,
    Path(user): Path<String>,
) -> Result<Message, Failure> {
    admin.require_writer()?;
    let mut tx = state.store.begin(&admin.actor()).await?;
    let user = admin.writable_user(&tx.read(), &user).await?;
    admin.all_orgs_of(&tx.read(), user.id).await?;
    if !admin.is_super() {
        // Spec/80 §6 rule 7 and C4: an administrator of the organization is not deleted by another one.
        let memberships = tx.read().list_memberships(user.id, &Scope::All).await?;
        if memberships.iter().any(|item| item.group.is_org_admin) {
            return Err(ApiError::conflict("the user administers an organization: remove that membership first").into());
        }
    }
    let orgs = tx.read().organizations_of(user.id).await?;
    let before = LastAdmin::of(&tx, &orgs).await?;
    tx.delete_user(user.id).await?;
    before.keep(&admin, &mut tx).await?;
    tx.commit().await?;
    Ok(Message::new("user deleted"))
}

use crate::{
    AdminState,
    error::AdminError,
    last_admin::LastAdmin,
    scope::{Access, Admin, KnownUser},
};
use axum::extract::{Path, State};
use gw_http::Message;
use gw_store::{Tx, read::Scope};

/// Deletes a user. Super deletes the account with memberships, links and tokens; a ban remains. An administrator of an
/// organization ends only the memberships there. The account remains, even if the user has no other organization
/// (HD40).
#[utoipa::path(delete, path = "/api/v1/admin/users/{user_id}", tag = "users",
    params(("user_id" = String, Path, format = Uuid)),
    responses((status = 200, body = Message), (status = 401), (status = 403), (status = 404), (status = 409)))]
pub(crate) async fn delete_user(
    admin: Admin,
    State(state): State<AdminState>,
    Path(user): Path<String>,
) -> Result<Message, AdminError> {
    admin.require_writer()?;
    let mut tx = admin.begin(&state).await?;
    let known = admin.known_user(&tx.read(), &user, None, Access::Write).await?;
    if known.orgs.is_empty() {
        let orgs = tx.read().organizations_of(known.user.id).await?;
        let last_admin = LastAdmin::for_orgs(&tx, &orgs).await?;
        tx.delete_user(known.user.id).await?;
        last_admin.keep(&admin, &mut tx).await?;
    } else {
        end_memberships(&admin, &mut tx, known).await?;
    }
    tx.commit().await?;
    Ok(Message::new("user deleted"))
}

async fn end_memberships(admin: &Admin, tx: &mut Tx, known: KnownUser) -> Result<(), AdminError> {
    let memberships = tx
        .read()
        .list_memberships(known.user.id, &Scope::Orgs(known.orgs.clone()))
        .await?;
    // C4: an administrator of an organization does not delete another one.
    admin.may_disempower_in(&tx.read(), known.user.id, &known.orgs).await?;
    let last_admin = LastAdmin::for_orgs(tx, &known.orgs).await?;
    for item in memberships {
        admin.target_group(&tx.read(), &item.group.id.to_string()).await?;
        tx.remove_membership(item.membership.id).await?;
    }
    last_admin.keep(admin, tx).await
}

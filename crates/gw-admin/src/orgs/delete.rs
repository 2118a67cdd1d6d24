use crate::{AdminState, error::AdminError, scope::Admin};
use axum::extract::{Path, State};
use gw_http::{Message, QueryParams};
use gw_policy::snapshot;
use gw_store::read::{ContractFilter, Paging};
use serde::Deserialize;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Confirmation {
    /// The organization's slug. Required with ADMIN_CONFIRM_DELETES if the organization holds groups or contracts.
    #[serde(default)]
    #[param(required = false)]
    confirm: Option<String>,
}

/// Deletes an organization with its groups, memberships, contracts and grants. Users and their links remain.
#[utoipa::path(delete, path = "/api/v1/admin/orgs/{org_id}", tag = "organizations",
    params(("org_id" = String, Path, format = Uuid), Confirmation),
    responses((status = 200, body = Message), (status = 400), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn delete_org(
    admin: Admin,
    State(state): State<AdminState>,
    Path(org): Path<String>,
    QueryParams(query): QueryParams<Confirmation>,
) -> Result<Message, AdminError> {
    admin.require_super_or_operator()?;
    let org = admin.readable_org_or_operator(&state, &org).await?;
    if org.id == snapshot::Organization::DEFAULT {
        return Err(AdminError::bad_request("the default organization cannot be deleted"));
    }
    let mut tx = admin.begin(&state).await?;
    if state.settings.confirm_deletes && query.confirm.as_deref() != Some(&org.slug) {
        let first_row = Paging { limit: 1, offset: 0 };
        let groups = tx.read().list_groups(org.id, None, first_row).await?.total;
        let contracts = tx
            .read()
            .list_contracts(org.id, &ContractFilter::default(), first_row)
            .await?
            .total;
        if groups + contracts > 0 {
            return Err(AdminError::bad_request(
                "the organization holds groups or contracts: repeat with confirm=<slug>",
            ));
        }
    }
    tx.delete_organization(org.id).await?;
    tx.commit().await?;
    Ok(Message::new("organization deleted"))
}

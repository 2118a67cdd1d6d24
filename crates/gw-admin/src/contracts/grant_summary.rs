use crate::{AdminState, error::AdminError, scope::Admin};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_types::GroupId;
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The groups that hold grants on a contract.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContractGrantSummary {
    count: usize,
    groups: Vec<GroupSummary>,
}

/// A group's id and name.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GroupSummary {
    #[schema(value_type = String, format = Uuid)]
    id: GroupId,
    name: String,
}

/// Maps contract ids to the groups that hold grants on the contract.
#[utoipa::path(get, path = "/api/v1/admin/orgs/{org_id}/contracts/grant-summary", tag = "contracts",
    params(("org_id" = String, Path, format = Uuid)),
    responses((status = 200, body = BTreeMap<String, ContractGrantSummary>), (status = 401), (status = 403),
        (status = 404)))]
pub(crate) async fn grant_summary(
    admin: Admin,
    State(state): State<AdminState>,
    Path(org): Path<String>,
) -> Result<Json<BTreeMap<String, ContractGrantSummary>>, AdminError> {
    let org = admin.readable_org(&state, &org).await?;
    let rows = state.store.read().grant_summary(org.id).await?;
    let summary = rows.into_iter().map(|row| {
        let groups: Vec<_> = row
            .groups
            .into_iter()
            .map(|(id, name)| GroupSummary { id, name })
            .collect();
        (
            row.contract.to_string(),
            ContractGrantSummary {
                count: groups.len(),
                groups,
            },
        )
    });
    Ok(Json(summary.collect()))
}

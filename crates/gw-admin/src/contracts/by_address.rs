use crate::{
    AdminState,
    error::AdminError,
    input,
    scope::Admin,
    wire::{ContractLookupFullResponse, ContractLookupGrantInfo, GroupAccess},
};
use axum::{
    Json,
    extract::{Path, State},
};

/// Looks a contract up by its address. For an administrator of another organization the address looks unregistered.
#[utoipa::path(get, path = "/api/v1/admin/contracts/by-address/{address}", tag = "contracts",
    params(("address" = String, Path)),
    responses((status = 200, body = ContractLookupFullResponse), (status = 400), (status = 401), (status = 403),
        (status = 404)))]
pub(crate) async fn lookup_contract(
    admin: Admin,
    State(state): State<AdminState>,
    Path(address): Path<String>,
) -> Result<Json<ContractLookupFullResponse>, AdminError> {
    let scope = admin.scope()?;
    let address = input::address(&address)?;
    let reads = state.store.read();
    // RT17: a contract of another organization and an unregistered address get the same answer.
    let contract = reads
        .find_contract(address)
        .await?
        .filter(|contract| crate::scope::covers(&scope, contract.org));
    let contract = contract.ok_or_else(|| AdminError::not_found("contract not found"))?;
    let Some(organization) = reads.find_organization(contract.org).await? else {
        return Err(AdminError::not_found("contract not found"));
    };
    let mut grants = Vec::new();
    for grant in reads.list_grants(contract.id).await? {
        let Some(group_access) = reads.find_access(grant.group).await? else {
            continue;
        };
        // Spec/80 §8 rule 7: the answer contains no key material, masked or not.
        let mut access = group_access.access;
        access.rpc_api_key = None;
        grants.push(ContractLookupGrantInfo {
            grant: grant.into(),
            group: group_access.group.into(),
            access: GroupAccess::new(access, None),
        });
    }
    Ok(Json(ContractLookupFullResponse {
        contract: contract.into(),
        organization: organization.into(),
        grants,
    }))
}

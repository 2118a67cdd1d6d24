use super::rules;
use crate::{
    AdminState,
    body::JsonBody,
    error::AdminError,
    input,
    scope::Admin,
    wire::{ContractGrant, ContractGrantCreateRequest},
};
use axum::extract::{Path, State};
use gw_http::Created;
use gw_store::record::NewGrant;

/// Grants a group of the organization rights on one of its contracts. The rules must fit the contract's ABI (F1-F4).
#[utoipa::path(post, path = "/api/v1/admin/orgs/{org_id}/contracts/{address}/grants", tag = "grants",
    params(("org_id" = String, Path, format = Uuid), ("address" = String, Path)),
    request_body = ContractGrantCreateRequest,
    responses((status = 201, body = ContractGrant), (status = 400), (status = 401), (status = 403), (status = 404),
        (status = 409)))]
pub(crate) async fn create_grant(
    admin: Admin,
    State(state): State<AdminState>,
    Path((org, address)): Path<(String, String)>,
    JsonBody(body): JsonBody<ContractGrantCreateRequest>,
) -> Result<Created<ContractGrant>, AdminError> {
    let org = admin.writable_org(&state, &org).await?;
    let mut tx = admin.begin(&state).await?;
    let contract = admin.contract_of(&tx.read(), &org, &address).await?;
    let Some(group) = tx
        .read()
        .find_group(input::id(&body.group_id, "group_id")?)
        .await?
        .filter(|g| g.org == org.id)
    else {
        return Err(AdminError::bad_request(
            "group_id must name a group of the organization",
        ));
    };
    let (mut functions, mut event_rules) = (body.functions, body.event_rules.into());
    let abi = rules::effective_abi(&contract)?;
    rules::check_functions(functions.as_mut(), abi.as_deref())?;
    rules::check_events(&state, &org, &mut event_rules, abi.as_deref())?;
    let new = NewGrant {
        contract: contract.id,
        group: group.id,
        claims: input::claims(body.claims.as_deref().unwrap_or_default())?,
        functions,
        event_rules,
    };
    let created = tx.create_grant(new).await?;
    tx.commit().await?;
    let location = format!(
        "/api/v1/admin/orgs/{}/contracts/{:#x}/grants/{}",
        contract.org, contract.address, created.group
    );
    Ok(Created(location, created.into()))
}

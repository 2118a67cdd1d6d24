use super::rules;
use crate::{
    AdminState,
    body::JsonBody,
    error::AdminError,
    input,
    scope::Admin,
    wire::{ContractGrant, ContractGrantUpdateRequest, EventRulesField},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_store::record::{EventRules, GrantPatch};

/// Changes a grant. An absent member keeps its value; `null` removes a restriction, and for `claims` it removes all
/// claims (F1, C3, decision 19).
#[utoipa::path(put, path = "/api/v1/admin/orgs/{org_id}/contracts/{address}/grants/{group_id}", tag = "grants",
    params(("org_id" = String, Path, format = Uuid), ("address" = String, Path),
        ("group_id" = String, Path, format = Uuid)),
    request_body = ContractGrantUpdateRequest,
    responses((status = 200, body = ContractGrant), (status = 400), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn update_grant(
    admin: Admin,
    State(state): State<AdminState>,
    Path((org, address, group)): Path<(String, String, String)>,
    JsonBody(body): JsonBody<ContractGrantUpdateRequest>,
) -> Result<Json<ContractGrant>, AdminError> {
    let org = admin.writable_org(&state, &org).await?;
    let mut tx = admin.begin(&state).await?;
    let contract = admin.contract_of(&tx.read(), &org, &address).await?;
    let group = admin.group_of(&tx.read(), &org, &group).await?.group.id;
    let mut functions = body.functions;
    let mut event_rules: Option<EventRules> = body
        .event_rules
        .map(|rules| rules.map_or(EventRules::Unset, |field: EventRulesField| field.into()));
    let abi = rules::effective_abi(&contract)?;
    rules::check_functions(functions.as_mut().and_then(Option::as_mut), abi.as_deref())?;
    if let Some(rules) = &mut event_rules {
        rules::check_events(&state, &org, rules, abi.as_deref())?;
    }
    let patch = GrantPatch {
        // `null` clears the claims, as an empty list does.
        claims: body
            .claims
            .map(|claims| input::claims(claims.as_deref().unwrap_or_default()))
            .transpose()?,
        functions,
        event_rules,
    };
    let changed = tx.update_grant(contract.id, group, patch).await?;
    tx.commit().await?;
    Ok(Json(changed.into()))
}

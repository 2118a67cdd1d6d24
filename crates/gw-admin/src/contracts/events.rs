use crate::{
    AdminState,
    error::AdminError,
    scope::Admin,
    wire::{ContractEventsResponse, EventInput, EventSignature},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_store::record::{MustBe, ParamRule};

/// Lists the events of the contract's ABI, in the form that event rules use.
#[utoipa::path(get, path = "/api/v1/admin/orgs/{org_id}/contracts/{address}/events", tag = "contracts",
    params(("org_id" = String, Path, format = Uuid), ("address" = String, Path)),
    responses((status = 200, body = ContractEventsResponse), (status = 400), (status = 401), (status = 403),
        (status = 404)))]
pub(crate) async fn list_events(
    admin: Admin,
    State(state): State<AdminState>,
    Path((org, address)): Path<(String, String)>,
) -> Result<Json<ContractEventsResponse>, AdminError> {
    let org = admin.readable_org(&state, &org).await?;
    let contract = admin.contract_of(&state.store.read(), &org, &address).await?;
    // The snapshot has the effective ABI: the uploaded one, or else the built-in one of the token type (K1).
    let Some(abi) = state
        .feed
        .pin()
        .snapshot
        .contract(contract.address)
        .and_then(|c| c.abi.clone())
    else {
        return Ok(Json(ContractEventsResponse {
            events: Vec::new(),
            message: Some("the contract has no ABI"),
        }));
    };
    let events = abi.json().events().map(|event| EventSignature {
        name: event.name.clone(),
        signature: event.signature(),
        topic0: event.selector().to_string(),
        inputs: event
            .inputs
            .iter()
            .map(|input| EventInput {
                name: input.name.clone(),
                kind: input.ty.clone(),
                indexed: input.indexed,
            })
            .collect(),
        default_param_rules: (0u16..)
            .zip(&event.inputs)
            .filter(|(_, input)| input.ty == "address")
            .map(|(index, _)| ParamRule {
                index,
                must_be: MustBe::Own,
            })
            .collect(),
    });
    Ok(Json(ContractEventsResponse {
        events: events.collect(),
        message: None,
    }))
}

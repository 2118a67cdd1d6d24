use crate::{
    AdminState,
    body::JsonBody,
    error::AdminError,
    scope::Admin,
    wire::{
        Contract, ContractEventsAllowDynamicPayloadRequest, ContractTrustedRouterRequest,
        ContractVisibleToUnlockRequest,
    },
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_store::record::ContractPatch;

/// Lets grant holders named in `visibleTo` see events unmasked. This applies to the contract's events of the
/// transaction that names them (R29).
#[utoipa::path(put, path = "/api/v1/admin/orgs/{org_id}/contracts/{address}/visibleto-unlock", tag = "contracts",
    params(("org_id" = String, Path, format = Uuid), ("address" = String, Path)),
    request_body = ContractVisibleToUnlockRequest,
    responses((status = 200, body = Contract), (status = 400), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn set_visibleto_unlock(
    admin: Admin,
    State(state): State<AdminState>,
    Path((org, address)): Path<(String, String)>,
    JsonBody(body): JsonBody<ContractVisibleToUnlockRequest>,
) -> Result<Json<Contract>, AdminError> {
    let patch = ContractPatch {
        allow_visibleto_unlock: Some(body.allow_visibleto_unlock),
        ..ContractPatch::default()
    };
    super::update::change(&admin, &state, &org, &address, patch).await
}

/// Attests that dynamic event payloads contain no addresses; super only (spec/80 §8).
#[utoipa::path(put, path = "/api/v1/admin/orgs/{org_id}/contracts/{address}/events-allow-dynamic-payload",
    tag = "contracts", params(("org_id" = String, Path, format = Uuid), ("address" = String, Path)),
    request_body = ContractEventsAllowDynamicPayloadRequest,
    responses((status = 200, body = Contract), (status = 400), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn set_events_allow_dynamic_payload(
    admin: Admin,
    State(state): State<AdminState>,
    Path((org, address)): Path<(String, String)>,
    JsonBody(body): JsonBody<ContractEventsAllowDynamicPayloadRequest>,
) -> Result<Json<Contract>, AdminError> {
    admin.require_super()?;
    let patch = ContractPatch {
        events_allow_dynamic_payload: Some(body.events_allow_dynamic_payload),
        ..ContractPatch::default()
    };
    super::update::change(&admin, &state, &org, &address, patch).await
}

/// Marks a contract as a trusted router. Function rules do not apply to its calls into contracts of the organization
/// (F5, HD4). Its administrators vouch that it forwards only what callers may do.
#[utoipa::path(put, path = "/api/v1/admin/orgs/{org_id}/contracts/{address}/trusted-router", tag = "contracts",
    params(("org_id" = String, Path, format = Uuid), ("address" = String, Path)),
    request_body = ContractTrustedRouterRequest,
    responses((status = 200, body = Contract), (status = 400), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn set_trusted_router(
    admin: Admin,
    State(state): State<AdminState>,
    Path((org, address)): Path<(String, String)>,
    JsonBody(body): JsonBody<ContractTrustedRouterRequest>,
) -> Result<Json<Contract>, AdminError> {
    let patch = ContractPatch {
        trusted_router: Some(body.trusted_router),
        ..ContractPatch::default()
    };
    super::update::change(&admin, &state, &org, &address, patch).await
}

use crate::{
    AdminState,
    body::JsonBody,
    error::AdminError,
    input,
    scope::Admin,
    wire::{SystemToggleRequest, SystemToggleResponse},
};
use axum::{Json, extract::State};
use gw_http::ApiError;
use gw_policy::snapshot::SystemToggle;
use gw_types::{Seconds, Timestamp};

/// The longest and the default duration of an override (X9).
const MAX_DURATION: Seconds = Seconds(24 * 60 * 60);

/// Returns whether `eth_call` is traced and authorized frame by frame.
#[utoipa::path(get, path = "/api/v1/admin/system/eth-call-tracing", tag = "system",
    responses((status = 200, body = SystemToggleResponse), (status = 401), (status = 403)))]
pub(crate) async fn get_eth_call_tracing(
    _admin: Admin,
    State(state): State<AdminState>,
) -> Result<Json<SystemToggleResponse>, AdminError> {
    current(&state, SystemToggle::EthCallTracing).await
}

/// Switches tracing of `eth_call` for at most a day; super only. Sends are always traced.
#[utoipa::path(post, path = "/api/v1/admin/system/eth-call-tracing", tag = "system",
    request_body = SystemToggleRequest,
    responses((status = 200, body = SystemToggleResponse), (status = 400), (status = 401), (status = 403)))]
pub(crate) async fn set_eth_call_tracing(
    admin: Admin,
    State(state): State<AdminState>,
    body: Result<JsonBody<SystemToggleRequest>, ApiError>,
) -> Result<Json<SystemToggleResponse>, AdminError> {
    change(&admin, &state, SystemToggle::EthCallTracing, body).await
}

/// Returns whether frames into contracts of the caller's own organization need a grant.
#[utoipa::path(get, path = "/api/v1/admin/system/intra-org-grant-tracing", tag = "system",
    responses((status = 200, body = SystemToggleResponse), (status = 401), (status = 403)))]
pub(crate) async fn get_intra_org_grant_tracing(
    _admin: Admin,
    State(state): State<AdminState>,
) -> Result<Json<SystemToggleResponse>, AdminError> {
    current(&state, SystemToggle::IntraOrgGrantTracing).await
}

/// Switches, for at most a day, whether frames into contracts of the caller's own organization need a grant; super
/// only.
#[utoipa::path(post, path = "/api/v1/admin/system/intra-org-grant-tracing", tag = "system",
    request_body = SystemToggleRequest,
    responses((status = 200, body = SystemToggleResponse), (status = 400), (status = 401), (status = 403)))]
pub(crate) async fn set_intra_org_grant_tracing(
    admin: Admin,
    State(state): State<AdminState>,
    body: Result<JsonBody<SystemToggleRequest>, ApiError>,
) -> Result<Json<SystemToggleResponse>, AdminError> {
    change(&admin, &state, SystemToggle::IntraOrgGrantTracing, body).await
}

async fn change(
    admin: &Admin,
    state: &AdminState,
    toggle: SystemToggle,
    body: Result<JsonBody<SystemToggleRequest>, ApiError>,
) -> Result<Json<SystemToggleResponse>, AdminError> {
    admin.require_super()?;
    let JsonBody(body) = body?;
    let reason = input::text(body.reason.trim(), "reason", 500)?;
    if reason.is_empty() {
        return Err(AdminError::bad_request("reason must have 1 to 500 characters"));
    }
    let mut tx = admin.begin(state).await?;
    let expires_at = expiry(body.expires_at.as_deref(), tx.now())?;
    tx.set_toggle(toggle, body.enabled, reason, expires_at).await?;
    tx.commit().await?;
    current(state, toggle).await
}

fn expiry(text: Option<&str>, now: Timestamp) -> Result<Timestamp, AdminError> {
    let latest = now.plus(MAX_DURATION);
    match input::expiry(text, now)? {
        None => Ok(latest),
        Some(end) if end <= latest => Ok(end),
        Some(_) => Err(AdminError::bad_request("expires_at must be at most 24 hours ahead")),
    }
}

async fn current(state: &AdminState, toggle: SystemToggle) -> Result<Json<SystemToggleResponse>, AdminError> {
    let env_default = state.policy_settings.configured(toggle);
    let now = state.clock.now();
    let change = state
        .store
        .read()
        .find_toggle(toggle)
        .await?
        .filter(|change| change.expires_at > now);
    Ok(Json(match change {
        Some(change) => SystemToggleResponse {
            enabled: change.enabled,
            env_default,
            source: "runtime",
            changed_at: Some(change.changed_at),
            changed_by: Some(change.changed_by),
            reason: Some(change.reason),
            expires_at: Some(change.expires_at),
        },
        None => SystemToggleResponse {
            enabled: env_default,
            env_default,
            source: "env",
            changed_at: None,
            changed_by: None,
            reason: None,
            expires_at: None,
        },
    }))
}

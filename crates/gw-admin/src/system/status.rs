use crate::{
    AdminState,
    error::AdminError,
    scope::Admin,
    wire::{MethodsStatus, NodeStatus, ProxyStatus, SecurityStatus, StatusResponse},
};
use axum::{Json, extract::State};
use gw_evm::wire;
use gw_node::{Answer, RequestBudget};

/// Returns the status of this instance: the latency of its node, and the methods that the operator added to the
/// registry.
#[utoipa::path(get, path = "/api/v1/admin/status", tag = "system",
    responses((status = 200, body = StatusResponse), (status = 401), (status = 403)))]
pub(crate) async fn get_status(
    _admin: Admin,
    State(state): State<AdminState>,
) -> Result<Json<StatusResponse>, AdminError> {
    Ok(Json(StatusResponse {
        proxy: ProxyStatus {
            status: "ok",
            port: state.facts.port.to_string(),
        },
        node: node(&state).await,
        security: SecurityStatus {
            travel_rule_enabled: false,
        },
        methods: MethodsStatus::from_custom_methods(&state.custom_methods),
    }))
}

/// Queries the node in use for its chain id, a call that costs the node almost nothing.
async fn node(state: &AdminState) -> NodeStatus {
    let started_at = state.clock.now();
    let error = match state.node.call(&wire::chain_id(), RequestBudget::Fact).await {
        Ok(Answer::Result(_)) => None,
        Ok(Answer::Error(_)) => Some("the node answers with an error"),
        Err(error) => {
            tracing::warn!(error = &error as &dyn core::error::Error, "the node did not answer");
            Some("the node does not answer")
        }
    };
    let latency_ms = state.clock.now().micros().saturating_sub(started_at.micros()).max(0) / 1000;
    let status = if error.is_none() { "ok" } else { "error" };
    let active = state
        .node
        .statuses()
        .iter()
        .position(|node| node.active)
        .unwrap_or_default();
    let url = state.facts.node_origins.get(active).cloned().unwrap_or_default();
    NodeStatus {
        url,
        status,
        latency_ms,
        error,
    }
}

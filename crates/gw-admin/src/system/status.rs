use crate::{
    AdminState,
    error::Failure,
    scope::Admin,
    wire::{MethodsStatus, NodeStatus, ProxyStatus, SecurityStatus, StatusResponse},
};
use axum::{Json, extract::State};
use gw_evm::wire;
use gw_node::{Answer, Budget};

/// How this instance is, how far away its node is, and which methods the operator added to the registry.
#[utoipa::path(get, path = "/api/v1/admin/status", tag = "system",
    responses((status = 200, body = StatusResponse), (status = 401), (status = 403)))]
pub(crate) async fn get_status(
    _admin: Admin,
    State(state): State<AdminState>,
) -> Result<Json<StatusResponse>, Failure> {
    Ok(Json(StatusResponse {
        proxy: ProxyStatus {
            status: "ok",
            port: state.facts.port.to_string(),
        },
        node: node(&state).await,
        security: SecurityStatus {
            travel_rule_enabled: false,
        },
        methods: MethodsStatus::of(&state.extras),
    }))
}

/// Asked now, for something that costs the node next to nothing.
async fn node(state: &AdminState) -> NodeStatus {
    let began = state.clock.now();
    let error = match state.node.call(&wire::chain_id(), Budget::Fact).await {
        Ok(Answer::Result(_)) => None,
        Ok(Answer::Error(_)) => Some("the node answers with an error"),
        Err(error) => {
            tracing::warn!(error = &error as &dyn core::error::Error, "the node did not answer");
            Some("the node does not answer")
        }
    };
    let latency_ms = state.clock.now().micros().saturating_sub(began.micros()).max(0) / 1000;
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

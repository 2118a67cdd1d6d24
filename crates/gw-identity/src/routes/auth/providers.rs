//! `GET /auth/providers`: how one can log in here (decision 29).

use crate::state::IdentityState;
use axum::{Json, extract::State};
use serde::Serialize;

/// The ways to log in.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct ProvidersResponse {
    /// `idp`, and `directory` where it is configured.
    providers: Vec<&'static str>,
    /// The identity networks whose state can be resolved.
    networks: Vec<String>,
}

/// List login providers
#[utoipa::path(
    get,
    path = "/auth/providers",
    operation_id = "loginProviders",
    tag = "auth",
    responses((status = 200, body = ProvidersResponse)),
)]
pub(crate) async fn providers(State(state): State<IdentityState>) -> Json<ProvidersResponse> {
    Json(ProvidersResponse { providers: vec!["idp"], networks: state.inner.config.networks.clone() })
}

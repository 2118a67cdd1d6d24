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
    let mut providers = vec!["idp"];
    // Also left out while the directory does not answer: a login could not end there (DS-1).
    if state
        .directory
        .as_ref()
        .is_some_and(|directory| directory.is_available())
    {
        providers.push("directory");
    }
    Json(ProvidersResponse {
        providers,
        networks: state.inner.config.networks.clone(),
    })
}

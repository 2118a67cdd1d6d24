//! `GET /auth/providers`: the available login methods (decision 29).

use crate::state::IdentityState;
use axum::{Json, extract::State};
use gw_http::ErrorBody;
use serde::Serialize;

/// The available login methods.
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
    responses((status = 200, body = ProvidersResponse), (status = 400, body = ErrorBody), (status = 429)),
)]
pub(crate) async fn providers(State(state): State<IdentityState>) -> Json<ProvidersResponse> {
    let mut providers = vec!["idp"];
    // Left out while the directory does not answer, because a login could not be completed (DS-1).
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

//! What the viewer may look at.

use crate::{
    error::ExplorerError,
    rows::lower,
    state::ExplorerState,
    view::RequestCaller,
    viewer::ViewerId,
    wire::{OwnAddress, ViewableAddressesResponse},
};
use axum::{Json, extract::State};
use gw_http::QueryParams;
use serde::Deserialize;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct WalletQuery {
    /// A wallet, which is only repeated in the answer: it gives no rights.
    #[param(required = false)]
    wallet: Option<String>,
}

/// The addresses of the viewer. Without a token, `wallet` is needed, and the lists are empty.
#[utoipa::path(get, path = "/api/v1/explorer/viewable-addresses", tag = "explorer", params(WalletQuery),
    responses((status = 200, body = ViewableAddressesResponse), ExplorerError))]
pub(crate) async fn viewable_addresses(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    QueryParams(query): QueryParams<WalletQuery>,
) -> Result<Json<ViewableAddressesResponse>, ExplorerError> {
    let (snapshot, id) = caller.pin(&state)?;
    let user = match id {
        ViewerId::Anonymous if query.wallet.is_none() => {
            return Err(ExplorerError::bad_request("a token or wallet is needed"));
        }
        ViewerId::Anonymous => None,
        ViewerId::User { user, .. } => Some(user),
        ViewerId::Impersonation(impersonation) => Some(impersonation.target),
    };
    let viewer = id.viewer(&snapshot, state.http_context.now(), &state.policy_settings);
    let own = viewer.own_addresses().into_iter();
    Ok(Json(ViewableAddressesResponse {
        own_addresses: own
            .map(|address| OwnAddress {
                address: lower(address),
            })
            .collect(),
        disclosed_addresses: Vec::new(),
        viewer_did: user
            .and_then(|user| snapshot.user(user))
            .map(|user| user.external_id.to_string()),
        viewer_wallet: query.wallet,
    }))
}

//! What the viewer may look at.

use super::{RequestOrigin, grants::read_under};
use crate::{
    error::ExplorerError,
    rows::lower,
    state::ExplorerState,
    view::RequestCaller,
    viewer::ViewerId,
    wire::{DisclosedAddress, OwnAddress, ViewableAddressesResponse},
};
use axum::{Json, extract::State};
use gw_audit::{DisclosureAction, DisclosureData, DisclosureRead};
use gw_http::QueryParams;
use gw_policy::disclosure::{OpenGrant, alias::Side, scope::level_text};
use serde::Deserialize;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct WalletQuery {
    /// A wallet, which is only repeated in the answer: it gives no rights.
    #[param(required = false)]
    wallet: Option<String>,
}

/// The addresses of the viewer, and those that others disclosed to the viewer. Without a token, `wallet` is needed, and
/// the lists are empty.
#[utoipa::path(get, path = "/api/v1/explorer/viewable-addresses", tag = "explorer", params(WalletQuery),
    responses((status = 200, body = ViewableAddressesResponse), ExplorerError))]
pub(crate) async fn viewable_addresses(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    origin: RequestOrigin,
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
    // Under impersonation a grant does not count (HD7).
    let grantee = match id {
        ViewerId::User { user, .. } => snapshot.user(user),
        ViewerId::Anonymous | ViewerId::Impersonation(_) => None,
    };
    let grants = grantee.map(|grantee| {
        let grants = state
            .grants
            .list(&snapshot, &grantee.external_id, state.http_context.now());
        (grantee, grants)
    });
    let (mut disclosed, mut reads) = (Vec::new(), Vec::new());
    for (grantee, grant) in grants
        .iter()
        .flat_map(|(grantee, grants)| grants.iter().map(move |grant| (grantee, grant)))
    {
        let read = read_under(
            grant,
            grantee,
            &origin,
            DisclosureAction::ViewAddresses,
            DisclosureData::Addresses,
        );
        reads.push(DisclosureRead {
            record_count: Some(grant.addresses.len() as u64),
            addresses: grant.addresses.clone(),
            ..read
        });
        disclosed.extend(disclosed_by(grant));
    }
    state.grants.record(reads).await?;
    Ok(Json(ViewableAddressesResponse {
        own_addresses: own
            .map(|address| OwnAddress {
                address: lower(address),
            })
            .collect(),
        disclosed_addresses: disclosed,
        viewer_did: user
            .and_then(|user| snapshot.user(user))
            .map(|user| user.external_id.to_string()),
        viewer_wallet: query.wallet.map(|wallet| wallet.to_lowercase()),
    }))
}

/// The addresses of a grant at its level, ordered by their ids: the order of the addresses would say which alias of one
/// grant is which of another (spec/50 rule 29).
fn disclosed_by(grant: &OpenGrant) -> Vec<DisclosedAddress> {
    let level = grant.grant.scope.level;
    let shown = grant.addresses.iter().map(|address| DisclosedAddress {
        address: grant.names.party(level, Side::Disclosed, *address).to_string(),
        address_id: grant.names.address_id(*address).to_string(),
        owner_did: grant.owner.external_id.to_string(),
        grant_id: grant.grant.id.to_string(),
        disclosure_level: level_text(level),
        expires_at: grant.grant.expires_at.to_rfc3339(),
    });
    let mut shown: Vec<DisclosedAddress> = shown.collect();
    shown.sort_by(|left, right| left.address_id.cmp(&right.address_id));
    shown
}

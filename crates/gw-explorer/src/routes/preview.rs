//! What a grant of disclosure would show, for the owner who decides about a request (spec/50 section 4).
//!
//! The rows are selected and written by the code that answers the grantee. Only one thing differs: which addresses are
//! the grantee's own is not the owner's to know, so none is named `Mine`.

use crate::{
    error::ExplorerError,
    rows::lower,
    state::ExplorerState,
    view::{RequestCaller, View},
    viewer::ViewerId,
    wire::{DisclosurePreviewResponse, GrantTransaction, PreviewedAddress},
};
use axum::{
    Json,
    body::Body,
    extract::{Path, State},
};
use gw_http::{ApiError, read_body};
use gw_policy::{
    Snapshot,
    access::disclosed_addresses,
    disclosure::{ClassCheck, DataClass, OpenGrant, alias::Side, coverage::check_class, scope::level_text},
};
use gw_types::{Address, UserId};
use std::collections::BTreeMap;

/// The most transactions that are shown of an address.
const ROWS: usize = 10;
/// The most addresses that are shown with their transactions.
const ADDRESSES: usize = 20;

/// What the requester would see if the caller, whose data is requested, approved a request with this body: the newest
/// transactions of each address, as the grant would name and mask them. The aliases are made for this answer only.
/// Nothing is granted.
#[utoipa::path(post, path = "/api/v1/explorer/request/{request_id}/preview", tag = "explorer",
    params(("request_id" = String, Path, description = "The request for the caller's data")),
    request_body(content = ref("#/components/schemas/ApproveDisclosureRequestBody"),
        content_type = "application/json", description = "The approval; left out: all that was requested"),
    responses((status = 200, body = DisclosurePreviewResponse), (status = 403), ExplorerError))]
pub(crate) async fn preview_disclosure_request(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    Path(request): Path<String>,
    body: Body,
) -> Result<Json<DisclosurePreviewResponse>, ExplorerError> {
    let (snapshot, viewer) = caller.pin(&state)?;
    owner(&snapshot, viewer)?;
    drop(snapshot);
    let body = read_body(body).await?;
    let (snapshot, viewer) = caller.pin(&state)?;
    let owner_id = owner(&snapshot, viewer)?;
    let mut grant = state.grants.preview(&snapshot, owner_id, &request, &body).await?;
    let view = View::open(&state, &caller, &[]).await?;
    // By the policy of the rows: it may have changed while the request waited.
    owner(&view.snapshot, view.id)?;
    grant.addresses = disclosed_addresses(&view.snapshot, &grant.grant, view.now);
    caller.set_org(grant.grant.org);
    view.preview(&grant).await.map(Json)
}

/// The user whose data may be requested: the viewer. An administrator who impersonates a user gets no preview (HD7).
///
/// # Errors
/// 401 without a token; 404 under impersonation.
fn owner(snapshot: &Snapshot, viewer: ViewerId) -> Result<UserId, ExplorerError> {
    match viewer {
        ViewerId::Anonymous => Err(ApiError::unauthorized("authentication required").into()),
        ViewerId::User { user, .. } if snapshot.user(user).is_some() => Ok(user),
        ViewerId::User { .. } | ViewerId::Impersonation(_) => Err(ExplorerError::not_found("request not found")),
    }
}

impl View {
    async fn preview(&self, grant: &OpenGrant) -> Result<DisclosurePreviewResponse, ExplorerError> {
        let scope = &grant.grant.scope;
        let classes = self.state.policy_settings.disclosure_classes;
        let discloses_transactions = check_class(scope, DataClass::Transactions, classes).is_ok();
        let mut labels = BTreeMap::new();
        let mut addresses = Vec::new();
        for address in grant.addresses.iter().take(ADDRESSES) {
            let (transaction_count, transactions) = if discloses_transactions {
                self.newest_of_grant(grant, *address, &mut labels).await?
            } else {
                (0, Vec::new())
            };
            addresses.push(PreviewedAddress {
                address: lower(*address),
                shown_as: grant.names.party(scope.level, Side::Disclosed, *address).to_string(),
                transaction_count,
                transactions,
            });
        }
        Ok(DisclosurePreviewResponse {
            requester_did: grant.grant.grantee.to_string(),
            disclosure_level: level_text(scope.level),
            scope_methods: scope.methods.clone().unwrap_or_default(),
            expires_at: grant.grant.expires_at.to_rfc3339(),
            discloses_transactions,
            discloses_activity: check_class(scope, DataClass::Activity, ClassCheck::Strict).is_ok(),
            address_count: grant.addresses.len() as u64,
            addresses,
            address_labels: labels,
        })
    }

    /// The number of the transactions of the address that the grant would cover, and the newest of them.
    async fn newest_of_grant(
        &self,
        grant: &OpenGrant,
        address: Address,
        labels: &mut BTreeMap<String, &'static str>,
    ) -> Result<(u64, Vec<GrantTransaction>), ExplorerError> {
        let rows = self.rows_of_grant(grant, address)?;
        let ids = rows.page_before(None, ROWS);
        let (transactions, _) = self.rows_under_grant(grant, address, &ids, |_| false, labels).await?;
        Ok((rows.len(), transactions))
    }
}

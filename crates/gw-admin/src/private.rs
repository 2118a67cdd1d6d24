//! Masking of addresses in admin responses (HD12, HD30): one rule for the whole admin API.
//!
//! An administrator is a viewer like any other: an address that is not Full for them reads `[PRIVATE]`, in every part
//! of a response, including notes and audit values. Contracts that their organizations registered stay in clear,
//! because the administrator manages them. The super token sees everything.
//!
//! [`mask`] wraps every route, so that no handler can leak an address by forgetting the rule. A handler that sorts,
//! counts or filters by an address uses [`AddressView`] itself. Not masked here: responses of the `/rpc` pipeline
//! and of the explorer, which `gw_policy` has already rendered for their viewer, and the names of people.

use crate::{AdminState, record::CallerSlot};
use axum::{
    body::{Body, to_bytes},
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use gw_http::{ApiError, PRIVATE, mask_addresses};
use gw_policy::{PolicySettings, Snapshot, visibility::Viewer};
use gw_store::read::Scope;
use gw_types::{Address, DenyReason, Timestamp, UserId};
use http::header;

/// Replaces a denial reason that tells another organization's contract from an unregistered address (T2, HD40).
/// Organization administrators see the replacement.
pub(crate) const fn reason(reason: DenyReason) -> DenyReason {
    match reason {
        DenyReason::ForeignOrg | DenyReason::CrossOrg | DenyReason::OrgMismatch => DenyReason::Unregistered,
        reason => reason,
    }
}

/// The data API of the explorer below the impersonation path.
pub(crate) const IMPERSONATED_EXPLORER: &str = "/api/v1/admin/impersonate/{did}/in/{org_id}/api/v1/explorer/{*path}";

/// Routes whose responses the `/rpc` pipeline or the explorer has already masked.
const PIPELINE_ROUTES: [&str; 4] = [
    IMPERSONATED_EXPLORER,
    "/api/v1/admin/test-request",
    "/api/v1/admin/orgs/{org_id}/dry-run",
    "/api/v1/admin/impersonate/{did}/in/{org_id}/rpc",
];

/// Responses above this size, in bytes, are masked on a blocking thread.
const BLOCKING_THRESHOLD: usize = 256 * 1024;

/// The addresses that one administrator may see.
#[derive(Debug)]
pub(crate) struct AddressView<'s> {
    snapshot: &'s Snapshot,
    scope: &'s Scope,
    viewer: Viewer<'s>,
}

impl<'s> AddressView<'s> {
    /// The view of the administrator `user` of the organizations in `scope`. Without a user it is the view of an
    /// anonymous caller.
    pub(crate) fn new(
        snapshot: &'s Snapshot,
        scope: &'s Scope,
        user: Option<UserId>,
        now: Timestamp,
        policy_settings: &'s PolicySettings,
    ) -> Self {
        Self {
            snapshot,
            scope,
            viewer: Viewer::new(snapshot, user, now, policy_settings),
        }
    }

    /// Whether the administrator may see the address.
    pub(crate) fn shows(&self, address: Address) -> bool {
        match self.scope {
            Scope::All => true,
            Scope::Orgs(orgs) => {
                let registered = self
                    .snapshot
                    .contract(address)
                    .is_some_and(|contract| orgs.contains(&contract.org));
                registered || self.viewer.sees(address)
            }
        }
    }

    /// The address in lower-case hex, or [`PRIVATE`].
    pub(crate) fn print(&self, address: Address) -> String {
        if self.shows(address) {
            crate::wire::lower(address)
        } else {
            PRIVATE.to_owned()
        }
    }
}

/// Middleware around every admin route that masks addresses in the response.
pub(crate) async fn mask(State(state): State<AdminState>, request: Request, next: Next) -> Response {
    let caller_slot = request.extensions().get::<CallerSlot>().cloned();
    let is_pipeline_route = request
        .extensions()
        .get::<MatchedPath>()
        .is_some_and(|path| PIPELINE_ROUTES.contains(&path.as_str()));
    let response = next.run(request).await;
    let Some((user, scope)) = caller_slot
        .as_ref()
        .and_then(CallerSlot::administrator)
        .filter(|_| !is_pipeline_route)
    else {
        return response;
    };
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = to_bytes(body, usize::MAX).await else {
        return ApiError::internal().into_response();
    };
    let is_large = bytes.len() > BLOCKING_THRESHOLD;
    let mask_body = move || {
        let pinned = state.feed.pin();
        // With a stale policy the administrator's view is not known: mask as for an anonymous caller.
        let user = Some(user).filter(|_| pinned.fresh);
        let view = AddressView::new(
            &pinned.snapshot,
            &scope,
            user,
            state.clock.now(),
            &state.policy_settings,
        );
        mask_addresses(&bytes, |address| view.shows(address)).map_or_else(|| Body::from(bytes), Body::from)
    };
    let masked_body = if is_large {
        tokio::task::spawn_blocking(mask_body).await
    } else {
        Ok(mask_body())
    };
    let Ok(masked_body) = masked_body else {
        return ApiError::internal().into_response();
    };
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, masked_body)
}

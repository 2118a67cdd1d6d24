//! Masks addresses in the responses to administrators, as the admin API does (HD12, HD30): a scope, a reason or a legal
//! basis may contain addresses that are not Full for the administrator who reads it.

use crate::{
    DisclosureState,
    record::{Caller, CallerSlot},
};
use axum::{
    body::{Body, to_bytes},
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use gw_http::{AdminCaller, ApiError, admin::AdminUser, mask_addresses};
use gw_policy::visibility::Viewer;
use gw_types::Address;
use http::header;

/// Middleware around every admin route.
pub(crate) async fn mask(State(state): State<DisclosureState>, request: Request, next: Next) -> Response {
    let slot = request.extensions().get::<CallerSlot>().cloned();
    let response = next.run(request).await;
    let Some(Caller::Admin(AdminCaller::User(admin))) = slot.as_ref().and_then(CallerSlot::caller) else {
        return response;
    };
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = to_bytes(body, usize::MAX).await else {
        return ApiError::internal().into_response();
    };
    let masked = mask_for(&state, admin, &bytes);
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, masked.map_or_else(|| Body::from(bytes), Body::from))
}

/// The text without the addresses that the administrator may not see; `None` if it has none of them.
fn mask_for(state: &DisclosureState, admin: &AdminUser, text: &[u8]) -> Option<Vec<u8>> {
    let pinned = state.feed.pin();
    let snapshot = &pinned.snapshot;
    // With a stale policy the administrator's view is not known: mask as for an anonymous caller.
    let user = Some(admin.user.id).filter(|_| pinned.fresh);
    let viewer = Viewer::new(snapshot, user, state.http_context.now(), &state.policy_settings);
    let administers = |address: Address| {
        let contract = snapshot.contract(address);
        contract.is_some_and(|contract| admin.full.contains(&contract.org) || admin.readonly.contains(&contract.org))
    };
    mask_addresses(text, |address| administers(address) || viewer.sees(address))
}

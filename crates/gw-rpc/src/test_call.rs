//! Test calls (V3): an administrator makes a call with a token, and sees the response and the reason of a denial. The
//! call runs through the same pipeline as any other call.

use crate::{
    dispatch::{RpcResponse, handle_body},
    request::RequestContext,
    state::RpcContext,
};
use gw_http::{
    AuthError,
    simulation::{TestCall, TestResult},
};
use gw_policy::access::NamedOrg;
use serde_json::json;
use std::sync::Arc;

/// Makes a test call.
///
/// # Errors
/// The error of a bad token, before the pipeline.
pub(crate) async fn test_call(state: &Arc<RpcContext>, call: TestCall) -> Result<TestResult, AuthError> {
    let mut request = RequestContext::new(call.client, None);
    if let Some(token) = &call.token {
        request.authenticate_token(&state.http, token.expose(), state.clock().now())?;
    }
    request.named_org = call.org.map_or(NamedOrg::Unnamed, NamedOrg::Org);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": call.method, "params": call.params}).to_string();
    let mut out = Vec::new();
    let (status, reason) = match handle_body(state, &Arc::new(request), body.as_bytes()).await {
        RpcResponse::Single(outcome, id) => {
            outcome.write(&id, &mut out);
            (outcome.status().as_u16(), outcome.reason())
        }
        // The body holds one call, so there is no batch.
        RpcResponse::Batch(body) => {
            out = body.into_text().0.into_bytes();
            (200, None)
        }
        RpcResponse::Empty => (204, None),
    };
    let answer = serde_json::from_slice(&out).unwrap_or_default();
    Ok(TestResult { status, answer, reason })
}

//! The description of `/rpc` for `/openapi.json`.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{OpenApi, ToSchema};

/// A JSON-RPC 2.0 request.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
struct JSONRPCRequestEnvelope {
    /// Always `2.0`.
    jsonrpc: String,
    /// String, number or null; echoed as it came.
    #[schema(value_type = Option<Object>)]
    id: Value,
    method: String,
    /// Positional parameters.
    #[schema(value_type = Vec<Object>)]
    params: Vec<Value>,
    /// On sends: DIDs or linked addresses that may also see the transaction; at most 32 entries.
    #[serde(rename = "visibleTo")]
    visible_to: Option<Vec<String>>,
    /// Alias of `visibleTo`; both lists are united.
    #[serde(rename = "privateFor")]
    private_for: Option<Vec<String>>,
}

/// A JSON-RPC 2.0 answer: `result` or `error`.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
struct JSONRPCResponseEnvelope {
    jsonrpc: String,
    #[schema(value_type = Option<Object>)]
    id: Value,
    #[schema(value_type = Option<Object>)]
    result: Option<Value>,
    error: Option<JSONRPCError>,
}

/// Why there is no result.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
struct JSONRPCError {
    code: i32,
    message: String,
    /// Revert bytes of an execution the caller may see.
    data: Option<String>,
}

/// One call, or a batch of them as a JSON array.
///
/// Anonymous callers get the six metadata methods. Whatever a caller may not do is answered by the same 404, whatever
/// the reason.
#[utoipa::path(post, path = "/rpc", tag = "rpc", request_body = JSONRPCRequestEnvelope,
    params(("X-Org-Id" = Option<String>, Header, description = "The organization to act in")),
    responses((status = 200, body = JSONRPCResponseEnvelope), (status = 400, body = JSONRPCResponseEnvelope),
        (status = 401), (status = 404, body = JSONRPCResponseEnvelope), (status = 413), (status = 429),
        (status = 502), (status = 503)))]
#[expect(dead_code, reason = "carries the description only")]
fn rpc() {}

/// The same, in the organization of the path.
#[utoipa::path(post, path = "/rpc/{org_id}", tag = "rpc", request_body = JSONRPCRequestEnvelope,
    params(("org_id" = String, Path, format = Uuid)),
    responses((status = 200, body = JSONRPCResponseEnvelope), (status = 400, body = JSONRPCResponseEnvelope),
        (status = 401), (status = 404, body = JSONRPCResponseEnvelope), (status = 413), (status = 429),
        (status = 502), (status = 503)))]
#[expect(dead_code, reason = "carries the description only")]
fn rpc_in_org() {}

/// The same by a personal RPC URL, within its scope; it needs no header and takes no Authorization.
#[utoipa::path(post, path = "/rpc/u/{secret}", tag = "rpc", request_body = JSONRPCRequestEnvelope,
    params(("secret" = String, Path, description = "Shown once, when the URL was made")),
    responses((status = 200, body = JSONRPCResponseEnvelope), (status = 400, body = JSONRPCResponseEnvelope),
        (status = 404), (status = 413), (status = 429), (status = 502), (status = 503)))]
#[expect(dead_code, reason = "carries the description only")]
fn rpc_by_personal_url() {}

/// A WebSocket: every message is a call or a batch, and subscriptions deliver.
#[utoipa::path(get, path = "/rpc/ws", tag = "rpc",
    responses((status = 101), (status = 400), (status = 401), (status = 404), (status = 429), (status = 503)))]
#[expect(dead_code, reason = "carries the description only")]
fn rpc_socket() {}

#[derive(Debug, OpenApi)]
#[openapi(paths(rpc, rpc_in_org, rpc_by_personal_url, rpc_socket))]
struct Description;

/// The description of the RPC routes.
pub fn api() -> utoipa::openapi::OpenApi {
    Description::openapi()
}

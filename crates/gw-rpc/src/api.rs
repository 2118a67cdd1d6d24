//! The OpenAPI description of `/rpc`, part of `/openapi.json`.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{OpenApi, ToSchema};

/// A JSON-RPC 2.0 request.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
struct JSONRPCRequestEnvelope {
    /// Always `2.0`.
    jsonrpc: String,
    /// String, number or null; the response repeats it unchanged.
    #[schema(value_type = Value, required = false)]
    id: Value,
    method: String,
    /// Positional parameters.
    #[schema(value_type = Vec<Value>, required = false)]
    params: Vec<Value>,
    /// On sends: DIDs or linked addresses that may also see the transaction; at most 32 entries.
    #[serde(rename = "visibleTo")]
    visible_to: Option<Vec<String>>,
    /// Alias of `visibleTo`; both lists are united.
    #[serde(rename = "privateFor")]
    private_for: Option<Vec<String>>,
}

/// One call, or a batch of them.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
enum JSONRPCRequest {
    Single(JSONRPCRequestEnvelope),
    Batch(Vec<JSONRPCRequestEnvelope>),
}

/// One response, or an array of responses to a batch.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
enum JSONRPCResponse {
    Single(JSONRPCResponseEnvelope),
    Batch(Vec<JSONRPCResponseEnvelope>),
}

/// A JSON-RPC 2.0 response with `result` or `error`.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
struct JSONRPCResponseEnvelope {
    jsonrpc: String,
    #[schema(value_type = Value, required = false)]
    id: Value,
    #[schema(value_type = Value, required = false)]
    result: Option<Value>,
    error: Option<JSONRPCError>,
}

/// A JSON-RPC 2.0 error.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
struct JSONRPCError {
    code: i32,
    message: String,
    /// Revert bytes of an execution the caller may see.
    data: Option<String>,
}

/// One call, or a batch of them as a JSON array.
///
/// Anonymous callers may use the six metadata methods. Every denied call gets the same 404, for any reason.
#[utoipa::path(post, path = "/rpc", tag = "rpc", request_body = JSONRPCRequest,
    params(("X-Org-Id" = Option<String>, Header, description = "The organization to act in")),
    responses((status = 200, body = JSONRPCResponse), (status = 400, body = JSONRPCResponseEnvelope),
        (status = 401), (status = 404, body = JSONRPCResponseEnvelope), (status = 413), (status = 429),
        (status = 502), (status = 503)))]
#[expect(dead_code, reason = "carries the description only")]
fn rpc() {}

/// One call or a batch, in the organization of the path.
#[utoipa::path(post, path = "/rpc/{org_id}", tag = "rpc", request_body = JSONRPCRequest,
    params(("org_id" = String, Path, format = Uuid)),
    responses((status = 200, body = JSONRPCResponse), (status = 400, body = JSONRPCResponseEnvelope),
        (status = 401), (status = 404, body = JSONRPCResponseEnvelope), (status = 413), (status = 429),
        (status = 502), (status = 503)))]
#[expect(dead_code, reason = "carries the description only")]
fn rpc_in_org() {}

/// One call or a batch by a personal RPC URL, within the scope of the URL.
///
/// The request needs no header; one with an Authorization header is rejected.
#[utoipa::path(post, path = "/rpc/u/{secret}", tag = "rpc", request_body = JSONRPCRequest,
    params(("secret" = String, Path, description = "Shown once, when the URL was made")),
    responses((status = 200, body = JSONRPCResponse), (status = 400, body = JSONRPCResponseEnvelope),
        (status = 404), (status = 413), (status = 429), (status = 502), (status = 503)))]
#[expect(dead_code, reason = "carries the description only")]
fn rpc_by_personal_url() {}

/// A WebSocket connection: each message is a call or a batch, and the gateway sends subscription notifications.
#[utoipa::path(get, path = "/rpc/ws", tag = "rpc",
    responses((status = 101), (status = 400), (status = 401), (status = 404), (status = 429), (status = 503)))]
#[expect(dead_code, reason = "carries the description only")]
fn rpc_socket() {}

#[derive(Debug, OpenApi)]
#[openapi(paths(rpc, rpc_in_org, rpc_by_personal_url, rpc_socket))]
struct Description;

/// The OpenAPI description of the RPC routes.
pub fn api() -> utoipa::openapi::OpenApi {
    Description::openapi()
}

//! The middleware that admits private networks only: gate 1 of the admin API and of `/metrics` (80 §1, HD16).

use crate::{client, error::ApiError, http_context::HttpContext};
use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use std::sync::Arc;

/// Middleware: rejects requests from external addresses.
///
/// # Errors
/// 403 for a request from an external address.
pub async fn private_only(
    State(http_context): State<Arc<HttpContext>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let peer = client::peer(request.extensions());
    if http_context
        .network
        .admits(&http_context.proxies, peer, request.headers())
    {
        Ok(next.run(request).await)
    } else {
        Err(ApiError::forbidden("available from localhost / private network only"))
    }
}

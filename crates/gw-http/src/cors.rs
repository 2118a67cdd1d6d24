//! Cross-origin reads (85 §5): listed origins and the gateway's own get credentials, others get no CORS header at all.
//!
//! Not `tower-http`'s layer: it answers the preflight of an unlisted origin with all allow headers but one. This one
//! sends none of them.

use crate::origin::{AllowedOrigins, origin_header};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use pin_project_lite::pin_project;
use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tower::{Layer, Service};

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, DELETE");
const REQUEST_HEADERS: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, x-admin-token, x-org-id, x-correlation-id, x-request-id, x-login-secret, \
     x-disclosure-token, if-match, idempotency-key",
);
const READABLE: HeaderValue = HeaderValue::from_static(
    "x-correlation-id, x-login-secret, x-total-count, x-next-cursor, x-view-as, etag, retry-after, www-authenticate",
);
const TRUE: HeaderValue = HeaderValue::from_static("true");
/// Ten minutes, so that a change of the list soon takes effect.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// Answers preflights, and makes answers readable for the origins of [`AllowedOrigins`].
#[derive(Clone, Debug)]
pub struct Cors {
    origins: Arc<AllowedOrigins>,
}

impl Cors {
    /// Creates a layer for these origins.
    pub fn new(origins: Arc<AllowedOrigins>) -> Self {
        Self { origins }
    }
}

impl<S> Layer<S> for Cors {
    type Service = CorsService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        CorsService {
            inner,
            origins: Arc::clone(&self.origins),
        }
    }
}

/// See [`Cors`].
#[derive(Clone, Debug)]
pub struct CorsService<S> {
    inner: S,
    origins: Arc<AllowedOrigins>,
}

impl<S, B> Service<Request<B>> for CorsService<S>
where
    S: Service<Request<B>>,
    S::Response: IntoResponse,
{
    type Response = Response;
    type Error = S::Error;
    type Future = CorsFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let readable = origin_header(request.headers())
            .filter(|origin| self.origins.may_read(origin))
            // Returns the header unchanged: browsers compare its bytes.
            .and_then(|_| request.headers().get(header::ORIGIN).cloned());
        let preflight = request.method() == Method::OPTIONS
            && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        // Preflights do not reach the inner service.
        let inner = (!preflight).then(|| self.inner.call(request));
        CorsFuture { inner, readable }
    }
}

pin_project! {
    /// See [`Cors`].
    #[derive(Debug)]
    pub struct CorsFuture<F> {
        #[pin]
        inner: Option<F>,
        readable: Option<HeaderValue>,
    }
}

impl<F, R, E> Future for CorsFuture<F>
where
    F: Future<Output = Result<R, E>>,
    R: IntoResponse,
{
    type Output = Result<Response, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let Some(inner) = this.inner.as_pin_mut() else {
            let mut response = StatusCode::NO_CONTENT.into_response();
            let headers = response.headers_mut();
            if allow(headers, this.readable.take()) {
                headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
                headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS);
                headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
            }
            return Poll::Ready(Ok(response));
        };
        let mut response = ready!(inner.poll(cx))?.into_response();
        if allow(response.headers_mut(), this.readable.take()) {
            response
                .headers_mut()
                .insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, READABLE);
        }
        Poll::Ready(Ok(response))
    }
}

fn allow(headers: &mut HeaderMap, readable: Option<HeaderValue>) -> bool {
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    let Some(origin) = readable else { return false };
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, TRUE);
    true
}

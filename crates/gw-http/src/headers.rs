//! The security headers of every answer (85 §5).

use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, Request, StatusCode, header};
use pin_project_lite::pin_project;
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tower::{Layer, Service};

/// Sets the security headers, unless the handler chose its own value.
#[derive(Clone, Copy, Debug)]
pub struct SecureHeaders {
    hsts: bool,
}

impl SecureHeaders {
    /// Creates the layer; HSTS is set in production.
    pub fn new(production: bool) -> Self {
        Self { hsts: production }
    }
}

const ALWAYS: [(HeaderName, HeaderValue); 3] = [
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
];
/// The `WWW-Authenticate` challenge of a 401 that has none.
const BEARER: HeaderValue = HeaderValue::from_static("Bearer realm=\"ledger-gateway\"");
const HSTS: HeaderValue = HeaderValue::from_static("max-age=31536000; includeSubDomains");

impl<S> Layer<S> for SecureHeaders {
    type Service = SecureHeadersService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        SecureHeadersService { inner, hsts: self.hsts }
    }
}

/// See [`SecureHeaders`].
#[derive(Clone, Debug)]
pub struct SecureHeadersService<S> {
    inner: S,
    hsts: bool,
}

impl<S, B> Service<Request<B>> for SecureHeadersService<S>
where
    S: Service<Request<B>>,
    S::Response: IntoResponse,
{
    type Response = Response;
    type Error = S::Error;
    type Future = SecureHeadersFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        SecureHeadersFuture {
            inner: self.inner.call(request),
            hsts: self.hsts,
        }
    }
}

pin_project! {
    /// See [`SecureHeaders`].
    #[derive(Debug)]
    pub struct SecureHeadersFuture<F> {
        #[pin]
        inner: F,
        hsts: bool,
    }
}

impl<F, R, E> Future for SecureHeadersFuture<F>
where
    F: Future<Output = Result<R, E>>,
    R: IntoResponse,
{
    type Output = Result<Response, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut response = ready!(this.inner.poll(cx))?.into_response();
        let unauthorized = response.status() == StatusCode::UNAUTHORIZED;
        let headers = response.headers_mut();
        for (name, value) in ALWAYS {
            headers.entry(name).or_insert(value);
        }
        if unauthorized {
            // RFC 9110 §11.6.1: also for answers that were not made from an `ApiError`.
            headers.entry(header::WWW_AUTHENTICATE).or_insert(BEARER);
        }
        if *this.hsts {
            headers.entry(header::STRICT_TRANSPORT_SECURITY).or_insert(HSTS);
        }
        Poll::Ready(Ok(response))
    }
}

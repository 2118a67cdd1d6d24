//! Writes one log line and one measurement per HTTP request.

use super::metrics::{HTTP_DURATION, HTTP_REQUESTS};
use axum::{
    extract::{MatchedPath, Request},
    response::Response,
};
use gw_http::CorrelationId;
use http::{Method, StatusCode};
use pin_project_lite::pin_project;
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Instant,
};
use tower::{Layer, Service};

/// Label of a path that no route matched. A client must not be able to choose label values.
const UNMATCHED: &str = "unmatched";

/// Layer that logs and measures requests. It belongs inside [`gw_http::Correlate`] and around all other layers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observe;

impl<S> Layer<S> for Observe {
    type Service = ObserveService<S>;

    fn layer(&self, inner: S) -> ObserveService<S> {
        ObserveService { inner }
    }
}

/// Service of [`Observe`].
#[derive(Clone, Debug)]
pub struct ObserveService<S> {
    inner: S,
}

impl<S> Service<Request> for ObserveService<S>
where
    S: Service<Request, Response = Response>,
{
    type Response = Response;
    type Error = S::Error;
    type Future = Observed<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let observation = Observation {
            method: method(request.method()),
            path: request.extensions().get::<MatchedPath>().cloned(),
            id: request.extensions().get::<CorrelationId>().cloned(),
            start: Instant::now(),
            status: None,
        };
        Observed {
            inner: self.inner.call(request),
            observation,
        }
    }
}

pin_project! {
    /// Response future of [`Observe`].
    #[derive(Debug)]
    pub struct Observed<F> {
        #[pin]
        inner: F,
        observation: Observation,
    }
}

impl<F, E> Future for Observed<F>
where
    F: Future<Output = Result<Response, E>>,
{
    type Output = Result<Response, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let response = ready!(this.inner.poll(cx));
        this.observation.status = response.as_ref().ok().map(Response::status);
        Poll::Ready(response)
    }
}

/// One request. Logged and measured on drop, so that a request whose client disconnected is included.
#[derive(Debug)]
struct Observation {
    method: &'static str,
    path: Option<MatchedPath>,
    id: Option<CorrelationId>,
    start: Instant,
    status: Option<StatusCode>,
}

impl Drop for Observation {
    fn drop(&mut self) {
        let path = self.path.as_ref().map_or(UNMATCHED, MatchedPath::as_str);
        let duration = self.start.elapsed();
        // 499: the client disconnected before the response was ready.
        let status = self.status.map_or(499, |status| status.as_u16());
        tracing::info!(
            http.method = self.method,
            http.path = path,
            http.status = status,
            duration_ms = duration.as_micros() as f64 / 1000.0,
            correlation_id = self.id.as_ref().map(CorrelationId::as_str),
            "request answered"
        );
        let labels = [
            ("method", metrics::SharedString::const_str(self.method)),
            ("path", metrics::SharedString::from_owned(path.to_owned())),
            ("status", metrics::SharedString::from_owned(status.to_string())),
        ];
        metrics::counter!(HTTP_REQUESTS, &labels).increment(1);
        let [method, path, _] = labels;
        metrics::histogram!(HTTP_DURATION, &[method, path]).record(duration);
    }
}

/// The method as a label.
fn method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

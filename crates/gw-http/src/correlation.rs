//! One correlation id per request: the client's or a new one, in every answer and every record (70 rule 1).

use crate::error::{ApiError, ErrorFormat};
use axum::{
    extract::FromRequestParts,
    response::{IntoResponse, Response},
};
use gw_types::Entropy;
use http::{HeaderMap, HeaderName, HeaderValue, Request, request::Parts};
use pin_project_lite::pin_project;
use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tower::{Layer, Service};

/// The header that the id is read from and returned in.
pub const HEADER: HeaderName = HeaderName::from_static("x-correlation-id");
const ALTERNATIVE: HeaderName = HeaderName::from_static("x-request-id");
const MAX_LEN: usize = 128;

/// The correlation id of one request: visible ASCII and blanks, at most 128 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CorrelationId(Arc<str>);

impl CorrelationId {
    /// The client's id if it is valid, else a new one.
    pub fn from_headers(headers: &HeaderMap, entropy: &dyn Entropy) -> Self {
        [HEADER, ALTERNATIVE]
            .into_iter()
            .filter_map(|name| headers.get(name)?.to_str().ok())
            .find(|text| (1..=MAX_LEN).contains(&text.len()) && text.bytes().all(|b| (b' '..=b'~').contains(&b)))
            .map_or_else(|| Self(entropy.uuid().to_string().into()), |text| Self(text.into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<S: Sync> FromRequestParts<S> for CorrelationId {
    type Rejection = Infallible;

    /// Empty if the [`Correlate`] layer is missing, which happens only in unit tests.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts
            .extensions
            .get::<Self>()
            .cloned()
            .unwrap_or_else(|| Self("".into())))
    }
}

/// Gives every request a [`CorrelationId`], and every answer the header; errors have the id in their body, too.
#[derive(Clone, Debug)]
pub struct Correlate {
    entropy: Arc<dyn Entropy>,
}

impl Correlate {
    /// Creates a layer that makes ids from `entropy`.
    pub fn new(entropy: Arc<dyn Entropy>) -> Self {
        Self { entropy }
    }
}

impl<S> Layer<S> for Correlate {
    type Service = CorrelateService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        CorrelateService {
            inner,
            entropy: Arc::clone(&self.entropy),
        }
    }
}

/// See [`Correlate`].
#[derive(Clone, Debug)]
pub struct CorrelateService<S> {
    inner: S,
    entropy: Arc<dyn Entropy>,
}

impl<S, B> Service<Request<B>> for CorrelateService<S>
where
    S: Service<Request<B>>,
    S::Response: IntoResponse,
{
    type Response = Response;
    type Error = S::Error;
    type Future = CorrelateFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let id = CorrelationId::from_headers(request.headers(), &*self.entropy);
        request.extensions_mut().insert(id.clone());
        let format = ErrorFormat::accepted(request.headers());
        CorrelateFuture {
            inner: self.inner.call(request),
            id,
            format,
        }
    }
}

pin_project! {
    /// See [`Correlate`].
    #[derive(Debug)]
    pub struct CorrelateFuture<F> {
        #[pin]
        inner: F,
        id: CorrelationId,
        format: ErrorFormat,
    }
}

impl<F, R, E> Future for CorrelateFuture<F>
where
    F: Future<Output = Result<R, E>>,
    R: IntoResponse,
{
    type Output = Result<Response, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut response = ready!(this.inner.poll(cx))?.into_response();
        if let Some(error) = response.extensions_mut().remove::<ApiError>() {
            this.format.write(&error, this.id.as_str(), &mut response);
        }
        if let Ok(value) = HeaderValue::from_str(this.id.as_str()) {
            response.headers_mut().insert(HEADER, value);
        }
        Poll::Ready(Ok(response))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_types::testing::FixedEntropy;

    fn id_from(pairs: &[(&'static str, &[u8])]) -> String {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(*name, HeaderValue::from_bytes(value).unwrap());
        }
        CorrelationId::from_headers(&headers, &FixedEntropy(7))
            .as_str()
            .to_owned()
    }

    #[test]
    fn audit_rule_1_the_clients_id_is_kept_if_decent() {
        let fresh = id_from(&[]);
        assert_eq!(fresh.len(), 36);
        assert_eq!(fresh.as_bytes()[14], b'4', "a version 4 uuid");
        assert_eq!(
            id_from(&[("x-correlation-id", b"abc-1"), ("x-request-id", b"other")]),
            "abc-1"
        );
        assert_eq!(id_from(&[("x-request-id", b"other")]), "other");
        assert_eq!(id_from(&[("x-correlation-id", &[b'x'; 128])]).len(), 128);
        for bad in [&[b'x'; 129][..], b"a\tb", "ü".as_bytes(), b""] {
            assert_eq!(id_from(&[("x-correlation-id", bad)]), fresh, "{bad:?}");
        }
        assert_eq!(
            id_from(&[("x-correlation-id", b"a\tb"), ("x-request-id", b"good")]),
            "good"
        );
    }
}

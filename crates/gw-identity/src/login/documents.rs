//! Fetches credential schema documents (ZK-76).
//!
//! Fetches only the documents that the operator's query names, and documents that those refer to: never an address that
//! a wallet sends.

use axum::body::Bytes;
use gw_http::{AnswerLimits, HttpClient, OutboundError};
use gw_zk::schema::MAX_DOCUMENT;
use http::{HeaderValue, Request, StatusCode, Uri, header};
use http_body_util::Full;
use std::time::Duration;

const DOCUMENT: AnswerLimits = AnswerLimits {
    bytes: MAX_DOCUMENT,
    deadline: Duration::from_secs(10),
};
const MAX_REDIRECTS: usize = 3;

/// Why a document cannot be fetched.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// Neither `https://` nor `ipfs://`.
    #[error("the address is neither `https://` nor `ipfs://`")]
    Address,
    /// The host gave no usable answer.
    #[error("the document cannot be fetched")]
    Fetch(#[from] OutboundError),
    /// The host answered with a status other than 200.
    #[error("the host answered {0}")]
    Status(StatusCode),
    /// Too many redirects, or a redirect to an address that is not https.
    #[error("the host redirects to an address that is not followed")]
    Redirect,
}

/// Fetches documents over https or from an IPFS gateway.
#[derive(Debug)]
pub(crate) struct DocumentSource {
    outbound: HttpClient,
    /// IPFS_GATEWAY, without a slash at its end.
    gateway: String,
}

impl DocumentSource {
    pub(crate) fn new(outbound: HttpClient, gateway: &str) -> Self {
        Self {
            outbound,
            gateway: gateway.trim_end_matches('/').to_owned(),
        }
    }

    /// Fetches the document at `url`, at most 1 MiB.
    pub(crate) async fn fetch(&self, url: &str) -> Result<Bytes, DocumentError> {
        let mut address = self.address(url)?;
        for _ in 0..=MAX_REDIRECTS {
            let mut request = Request::new(Full::new(Bytes::new()));
            *request.uri_mut() = address;
            request.headers_mut().insert(
                header::ACCEPT,
                HeaderValue::from_static("application/ld+json, application/json;q=0.9, */*;q=0.1"),
            );
            let answer = self.outbound.exchange(request, DOCUMENT).await?;
            if !answer.status().is_redirection() {
                return match answer.status() {
                    StatusCode::OK => Ok(answer.into_body()),
                    other => Err(DocumentError::Status(other)),
                };
            }
            let to = answer.headers().get(header::LOCATION).and_then(|to| to.to_str().ok());
            address = to
                .filter(|to| to.starts_with("https://"))
                .and_then(uri)
                .ok_or(DocumentError::Redirect)?;
        }
        Err(DocumentError::Redirect)
    }

    fn address(&self, url: &str) -> Result<Uri, DocumentError> {
        match url.strip_prefix("ipfs://") {
            Some(path) => uri(&format!("{}/ipfs/{path}", self.gateway)),
            None => Some(url).filter(|url| url.starts_with("https://")).and_then(uri),
        }
        .ok_or(DocumentError::Address)
    }
}

fn uri(text: &str) -> Option<Uri> {
    text.parse::<Uri>().ok().filter(|uri| uri.host().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn zk76_only_https_and_ipfs_are_addresses() {
        let source = DocumentSource::new(
            crate::outbound::third_party_client().unwrap(),
            "https://gateway.example/",
        );
        let address = |url| source.address(url).map(|uri| uri.to_string()).ok();
        assert_eq!(
            address("ipfs://Qm1/kyc.json").as_deref(),
            Some("https://gateway.example/ipfs/Qm1/kyc.json")
        );
        assert_eq!(
            address("https://schemas.example/a?b=c").as_deref(),
            Some("https://schemas.example/a?b=c")
        );
        for url in [
            "http://schemas.example/a",
            "file:///etc/passwd",
            "https://",
            "/a",
            "",
            "ipfs:Qm1",
        ] {
            assert_eq!(address(url), None, "{url}");
        }
    }
}

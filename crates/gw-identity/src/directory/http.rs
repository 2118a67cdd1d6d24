//! HTTP requests to the directory: discovery document, keys, and tokens for codes. Every answer has a deadline and a
//! size limit, and redirects are errors (DS-6).

use super::{DirectorySettings, KeySet, KeySetError, keyring::Endpoints};
use gw_http::{AnswerLimits, ConnectionPool, HttpClient, OutboundError};
use gw_types::Secret;
use http::{Method, Request, StatusCode, Uri, header};
use http_body_util::Full;
use serde::Deserialize;
use std::time::Duration;

type Body = Full<axum::body::Bytes>;

/// The limits of one answer.
const ANSWER: AnswerLimits = AnswerLimits {
    bytes: 1024 * 1024,
    deadline: Duration::from_secs(5),
};

/// A client of the directory.
pub(super) struct Http {
    client: HttpClient,
    /// Whether every URL must be https. Only a plain-http authority turns this off.
    https_only: bool,
}

/// Why a request to the directory failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum AskError {
    /// The URL is invalid or not allowed.
    #[error("an address that cannot be asked")]
    Address,
    /// There was no whole answer within the limits.
    #[error("the directory gave no answer")]
    NoAnswer(#[from] OutboundError),
    /// A status other than 200.
    #[error("the directory answered `{0}`")]
    Refused(StatusCode),
    /// The answer has another shape than expected.
    #[error("an answer of another shape")]
    Malformed,
}

/// Why discovery failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum DiscoveryError {
    /// A request failed.
    #[error("no description or no keys")]
    Ask(#[from] AskError),
    /// The document names another issuer.
    #[error("a description of another issuer")]
    Issuer,
    /// The key document is unusable.
    #[error("no usable keys")]
    Keys(#[from] KeySetError),
}

/// OpenID Connect Discovery 1.0.
#[derive(Deserialize)]
struct Description {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
}

#[derive(Deserialize)]
struct TokenAnswer {
    id_token: String,
}

impl Http {
    pub(super) fn new(https_only: bool) -> std::io::Result<Self> {
        let client = HttpClient::new(ConnectionPool {
            connect_timeout: ANSWER.deadline,
            idle_per_host: 4,
            https_only,
        })?;
        Ok(Self { client, https_only })
    }

    /// Fetches the discovery document and the keys.
    pub(super) async fn discover(&self, authority: &str, tenant: &str) -> Result<(Endpoints, KeySet), DiscoveryError> {
        let address = format!("{authority}/{tenant}/v2.0/.well-known/openid-configuration");
        let text = self.get(&address).await?;
        let described: Description = serde_json::from_slice(&text).map_err(|_| AskError::Malformed)?;
        // With one tenant it is that tenant's issuer, with several a template. Each token is checked against its own
        // tenant's issuer.
        let of_authority = described
            .issuer
            .strip_prefix(authority)
            .and_then(|rest| rest.strip_prefix('/'));
        if of_authority.is_none_or(|rest| !rest.ends_with("/v2.0")) {
            return Err(DiscoveryError::Issuer);
        }
        self.uri(&described.authorization_endpoint)?;
        self.uri(&described.token_endpoint)?;
        let keys = KeySet::parse(&self.get(&described.jwks_uri).await?)?;
        let endpoints = Endpoints {
            authorization: described.authorization_endpoint,
            token: described.token_endpoint,
        };
        Ok((endpoints, keys))
    }

    /// Exchanges a code for an id token.
    pub(super) async fn redeem(
        &self,
        endpoint: &str,
        settings: &DirectorySettings,
        code: &str,
        redirect_uri: &str,
        verifier: &str,
    ) -> Result<Secret, AskError> {
        let form = form_urlencoded::Serializer::new(String::new())
            .append_pair("grant_type", "authorization_code")
            .append_pair("client_id", &settings.rules.client_id)
            .append_pair("client_secret", settings.client_secret.expose())
            .append_pair("code", code)
            .append_pair("redirect_uri", redirect_uri)
            .append_pair("code_verifier", verifier)
            .finish();
        let mut request = self.request(Method::POST, endpoint, form.into())?;
        let form_type = http::HeaderValue::from_static("application/x-www-form-urlencoded");
        request.headers_mut().insert(header::CONTENT_TYPE, form_type);
        let answer: TokenAnswer =
            serde_json::from_slice(&self.exchange(request).await?).map_err(|_| AskError::Malformed)?;
        Ok(Secret::new(answer.id_token))
    }

    async fn get(&self, address: &str) -> Result<axum::body::Bytes, AskError> {
        self.exchange(self.request(Method::GET, address, axum::body::Bytes::new())?)
            .await
    }

    fn uri(&self, address: &str) -> Result<Uri, AskError> {
        let uri: Uri = address.parse().map_err(|_| AskError::Address)?;
        let allowed = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => !self.https_only,
            Some(_) | None => false,
        };
        if allowed && uri.host().is_some() {
            Ok(uri)
        } else {
            Err(AskError::Address)
        }
    }

    fn request(&self, method: Method, address: &str, body: axum::body::Bytes) -> Result<Request<Body>, AskError> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.uri(address)?;
        request
            .headers_mut()
            .insert(header::ACCEPT, http::HeaderValue::from_static("application/json"));
        Ok(request)
    }

    async fn exchange(&self, request: Request<Body>) -> Result<axum::body::Bytes, AskError> {
        let answer = self.client.exchange(request, ANSWER).await?;
        match answer.status() {
            StatusCode::OK => Ok(answer.into_body()),
            status => Err(AskError::Refused(status)),
        }
    }
}

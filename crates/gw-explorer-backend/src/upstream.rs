//! Calls to the gateway, each with a deadline and a size limit. Redirects are returned as answers, not followed.

use crate::{
    config::{ProxyConfig, SignInConfig},
    session::{AccessToken, Tokens, refresh_at},
};
use axum::body::Bytes;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use gw_http::{AnswerLimits, ConnectionPool, HttpClient, KeySetError, OutboundError, PublicKeys};
use gw_types::{Seconds, Secret, Timestamp};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use oauth2::{
    AuthUrl, AuthorizationCode, ClientId, ClientSecret, CsrfToken, EndpointNotSet, EndpointSet, PkceCodeChallenge,
    PkceCodeVerifier, RedirectUrl, RequestTokenError, TokenResponse as _, TokenUrl, basic::BasicClient,
};
use serde::Deserialize;
use std::time::Duration;
use url::Url;

/// The connections to the gateway.
pub(crate) const POOL: ConnectionPool = ConnectionPool {
    connect_timeout: Duration::from_secs(3),
    idle_per_host: 32,
    https_only: false,
};
/// The limits of an answer that is forwarded.
const ANSWER: AnswerLimits = AnswerLimits {
    bytes: 8 * 1024 * 1024,
    deadline: Duration::from_secs(30),
};
/// The limits of an answer of a token route.
const TOKENS: AnswerLimits = AnswerLimits {
    bytes: 64 * 1024,
    deadline: Duration::from_secs(10),
};

/// The header with the backend's key (HD16).
const KEY_HEADER: HeaderName = HeaderName::from_static("x-explorer-key");

/// Why the gateway gave no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpstreamError {
    /// There was no whole answer within the limits.
    #[error("the gateway cannot be reached, or its answer cannot be read")]
    Outbound(#[from] OutboundError),
    /// The gateway answered with another status than expected.
    #[error("the gateway answered with status {0}")]
    Status(u16),
    /// The answer is no key set.
    #[error("the gateway's keys cannot be read")]
    Keys(#[from] KeySetError),
    /// The request cannot be formed.
    #[error("the request to the gateway cannot be formed")]
    Request(#[from] http::Error),
}

/// Why a refresh gave no tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RefreshError {
    /// The gateway refused the token.
    #[error("the gateway refused the refresh token")]
    Refused,
    /// The gateway could not be asked.
    #[error("the gateway cannot refresh tokens now")]
    Unavailable,
}

/// Why a code gave no tokens.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExchangeError {
    /// The gateway does not know the client id or its secret.
    #[error("the gateway rejected the client: check SSO_CLIENT_ID and SSO_CLIENT_SECRET")]
    Client,
    /// The gateway refused the code. The text is its `error` member.
    #[error("the gateway refused the code: `{0}`")]
    Refused(String),
    /// The gateway gave no usable answer.
    #[error("the gateway gave no tokens")]
    Unavailable(#[source] Option<UpstreamError>),
}

/// Where the gateway serves a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tree {
    /// At PRIVACY_PROXY_URL.
    Public,
    /// At PRIVACY_PROXY_ADMIN_URL.
    Administration,
}

/// A request that is forwarded.
#[derive(Debug)]
pub(crate) struct Forwarded<'a> {
    pub(crate) tree: Tree,
    pub(crate) method: Method,
    /// Path and query, checked by [`crate::route`].
    pub(crate) target: String,
    pub(crate) content_type: Option<&'a HeaderValue>,
    /// The organization that the user chose (HD39).
    pub(crate) orgs: Vec<&'a HeaderValue>,
    pub(crate) body: Bytes,
    /// The access token of the session.
    pub(crate) bearer: Option<&'a Secret>,
    pub(crate) correlation_id: &'a str,
}

/// A service that requests are forwarded to.
#[derive(Clone, Debug)]
pub(crate) struct Upstream {
    client: HttpClient,
    /// The address of the gateway, without a trailing slash.
    base: String,
    /// The address of its admin API, without a trailing slash.
    admin: String,
    key: Option<HeaderValue>,
}

impl Upstream {
    /// `None` if `key` cannot be a header value.
    pub(crate) fn new(client: HttpClient, base: &Url, admin: &Url, key: Option<&Secret>) -> Option<Self> {
        let key = match key {
            Some(key) => {
                let mut value = HeaderValue::from_str(key.expose()).ok()?;
                value.set_sensitive(true);
                Some(value)
            }
            None => None,
        };
        Some(Self {
            client,
            base: base.as_str().trim_end_matches('/').to_owned(),
            admin: admin.as_str().trim_end_matches('/').to_owned(),
            key,
        })
    }

    /// Forwards a request. No header of the browser's request is forwarded but the type of its body and `X-Org-Id`,
    /// which only narrows what the user sees: in particular no cookie, and no forwarding header, which would make this
    /// backend an external caller (HD16).
    pub(crate) async fn forward(&self, forwarded: Forwarded<'_>) -> Result<Response<Bytes>, UpstreamError> {
        let base = match forwarded.tree {
            Tree::Public => &self.base,
            Tree::Administration => &self.admin,
        };
        let mut request = Request::builder()
            .method(forwarded.method)
            .uri(format!("{base}{}", forwarded.target))
            .header(header::ACCEPT, "application/json");
        if !forwarded.correlation_id.is_empty() {
            request = request.header(gw_http::correlation::HEADER, forwarded.correlation_id);
        }
        if let Some(content_type) = forwarded.content_type {
            request = request.header(header::CONTENT_TYPE, content_type);
        }
        for org in forwarded.orgs {
            request = request.header(gw_http::ORG_HEADER, org);
        }
        if let Some(bearer) = forwarded.bearer {
            request = request.header(header::AUTHORIZATION, format!("Bearer {}", bearer.expose()));
        }
        if let Some(key) = &self.key {
            request = request.header(KEY_HEADER, key);
        }
        let request = request.body(Full::new(forwarded.body))?;
        Ok(self.client.exchange(request, ANSWER).await?)
    }

    /// Fetches the keys by which the gateway's access tokens are verified.
    pub(crate) async fn key_set(&self) -> Result<PublicKeys, UpstreamError> {
        let request = Request::get(format!("{}/.well-known/jwks.json", self.base))
            .header(header::ACCEPT, "application/json")
            .body(Full::default())?;
        let answer = self.client.exchange(request, TOKENS).await?;
        match answer.status() {
            StatusCode::OK => Ok(PublicKeys::parse(answer.body())?),
            status => Err(UpstreamError::Status(status.as_u16())),
        }
    }

    /// Posts a JSON body to a token route.
    async fn post_tokens(&self, path: &str, body: &serde_json::Value) -> Result<Response<Bytes>, UpstreamError> {
        let request = Request::post(format!("{}{path}", self.base))
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body.to_string())))?;
        Ok(self.client.exchange(request, TOKENS).await?)
    }
}

type OauthClient = BasicClient<EndpointSet, EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointSet>;

/// The gateway as the provider of sessions.
#[derive(Clone, Debug)]
pub(crate) struct TokenClient {
    upstream: Upstream,
    oauth: OauthClient,
}

/// The tokens of the gateway's answer to a refresh.
#[derive(Deserialize)]
struct TokenAnswer {
    access_token: String,
    refresh_token: String,
    expires_in: u32,
}

impl TokenClient {
    /// # Errors
    /// If the addresses of the configuration are not addresses.
    pub(crate) fn new(
        upstream: Upstream,
        config: &ProxyConfig,
        sign_in: &SignInConfig,
    ) -> Result<Self, url::ParseError> {
        let below = |base: &Url, path: &str| format!("{}{path}", base.as_str().trim_end_matches('/'));
        let oauth = BasicClient::new(ClientId::new(sign_in.client_id.clone()))
            .set_client_secret(ClientSecret::new(sign_in.client_secret.expose().to_owned()))
            .set_auth_uri(AuthUrl::new(below(&sign_in.public_url, "/oauth/authorize"))?)
            .set_token_uri(TokenUrl::new(below(&config.gateway, "/oauth/token"))?)
            .set_redirect_uri(RedirectUrl::new(sign_in.redirect_uri.as_str().to_owned())?);
        Ok(Self { upstream, oauth })
    }

    /// The address that the browser is sent to (step 2).
    pub(crate) fn authorize_url(&self, state: String, verifier: &Secret) -> String {
        let verifier = PkceCodeVerifier::new(verifier.expose().to_owned());
        let (url, _) = self
            .oauth
            .authorize_url(|| CsrfToken::new(state))
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier))
            .url();
        url.into()
    }

    /// Exchanges a code for tokens (step 6).
    pub(crate) async fn exchange_code(
        &self,
        code: String,
        verifier: &Secret,
        now: Timestamp,
    ) -> Result<Tokens, ExchangeError> {
        let client = self.upstream.client.clone();
        let http = move |request: oauth2::HttpRequest| {
            let client = client.clone();
            async move {
                let request = request.map(|body| Full::new(Bytes::from(body)));
                let response = client.exchange(request, TOKENS).await?;
                Ok::<_, UpstreamError>(response.map(|body| body.to_vec()))
            }
        };
        let answer = self
            .oauth
            .exchange_code(AuthorizationCode::new(code))
            .set_pkce_verifier(PkceCodeVerifier::new(verifier.expose().to_owned()))
            .request_async(&http)
            .await
            .map_err(exchange_error)?;
        let life = answer.expires_in().and_then(|life| u32::try_from(life.as_secs()).ok());
        let (Some(life), Some(refresh)) = (life, answer.refresh_token()) else {
            return Err(ExchangeError::Unavailable(None));
        };
        Ok(tokens(
            answer.access_token().secret().clone(),
            refresh.secret().clone(),
            life,
            now,
        ))
    }

    /// Exchanges a refresh token for new tokens (step 8).
    pub(crate) async fn refresh(&self, refresh: &Secret, now: Timestamp) -> Result<Tokens, RefreshError> {
        let body = serde_json::json!({ "refresh_token": refresh.expose() });
        let answer = match self.upstream.post_tokens("/api/v1/refresh", &body).await {
            Ok(answer) => answer,
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn core::error::Error,
                    "a session could not be refreshed"
                );
                return Err(RefreshError::Unavailable);
            }
        };
        match answer.status() {
            StatusCode::OK => {
                let read: TokenAnswer = serde_json::from_slice(answer.body()).map_err(|_| RefreshError::Unavailable)?;
                Ok(tokens(read.access_token, read.refresh_token, read.expires_in, now))
            }
            StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(RefreshError::Refused),
            status => {
                tracing::warn!(http.status = status.as_u16(), "the gateway did not refresh a session");
                Err(RefreshError::Unavailable)
            }
        }
    }

    /// Ends the login of a session (step 10). Returns whether the gateway confirmed it.
    pub(crate) async fn revoke(&self, refresh: &Secret, access: Option<&Secret>) -> bool {
        let mut body = serde_json::json!({ "refresh_token": refresh.expose() });
        if let (Some(access), Some(members)) = (access, body.as_object_mut()) {
            members.insert("access_token".to_owned(), access.expose().into());
        }
        match self.upstream.post_tokens("/api/v1/revoke", &body).await {
            Ok(answer) if answer.status() == StatusCode::OK => true,
            Ok(answer) => {
                tracing::warn!(
                    http.status = answer.status().as_u16(),
                    "the gateway did not revoke a session"
                );
                false
            }
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn core::error::Error,
                    "a session could not be revoked"
                );
                false
            }
        }
    }
}

type TokenRequestError = RequestTokenError<UpstreamError, oauth2::basic::BasicErrorResponse>;

fn exchange_error(error: TokenRequestError) -> ExchangeError {
    match error {
        RequestTokenError::ServerResponse(answer) => match answer.error() {
            oauth2::basic::BasicErrorResponseType::InvalidClient => ExchangeError::Client,
            kind => ExchangeError::Refused(kind.as_ref().to_owned()),
        },
        RequestTokenError::Request(error) => ExchangeError::Unavailable(Some(error)),
        // The body is dropped: it may contain tokens.
        RequestTokenError::Parse(..) | RequestTokenError::Other(_) => ExchangeError::Unavailable(None),
    }
}

fn tokens(access: String, refresh: String, life: u32, now: Timestamp) -> Tokens {
    Tokens {
        access: AccessToken {
            subject: subject(&access),
            token: Secret::new(access),
            expires_at: now.plus(Seconds(life)),
            refresh_at: refresh_at(now, Seconds(life)),
        },
        refresh: Secret::new(refresh),
    }
}

/// The subject that an access token names. Its signature needs no check here: the token comes from the gateway's own
/// answer, and the gateway checks it again with each request.
fn subject(token: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Claims {
        sub: String,
    }
    let payload = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    serde_json::from_slice::<Claims>(&payload).ok().map(|claims| claims.sub)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);

    fn token_client() -> TokenClient {
        let sign_in = SignInConfig {
            public_url: "https://gate.example/".parse().unwrap(),
            client_id: "explorer".to_owned(),
            client_secret: Secret::new("secret"),
            redirect_uri: "https://explorer.example/api/auth/callback".parse().unwrap(),
            frontend: None,
        };
        let config = ProxyConfig {
            gateway: "http://10.0.0.1:8080".parse().unwrap(),
            admin: "http://10.0.0.1:8080".parse().unwrap(),
            backend_key: None,
            sign_in: None,
        };
        let upstream = Upstream::new(HttpClient::new(POOL).unwrap(), &config.gateway, &config.admin, None).unwrap();
        TokenClient::new(upstream, &config, &sign_in).unwrap()
    }

    /// The challenge is that of RFC 7636 appendix B.
    #[test]
    fn step_2_the_authorization_request_has_every_parameter() {
        let verifier = Secret::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        let url: Url = token_client()
            .authorize_url("the-state".to_owned(), &verifier)
            .parse()
            .unwrap();
        assert_eq!(
            url.as_str().split('?').next(),
            Some("https://gate.example/oauth/authorize")
        );
        let mut parameters: Vec<_> = url.query_pairs().into_owned().collect();
        parameters.sort();
        let expected = [
            ("client_id", "explorer"),
            ("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"),
            ("code_challenge_method", "S256"),
            ("redirect_uri", "https://explorer.example/api/auth/callback"),
            ("response_type", "code"),
            ("state", "the-state"),
        ];
        assert_eq!(
            parameters,
            expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
    }

    #[test]
    fn step_7_the_subject_is_read_from_the_token() {
        let token = format!("x.{}.y", URL_SAFE_NO_PAD.encode(r#"{"sub":"did:test:a","exp":1}"#));
        assert_eq!(subject(&token).as_deref(), Some("did:test:a"));
        for none in [
            "",
            "x",
            "x.y",
            "x.!.y",
            &format!("x.{}.y", URL_SAFE_NO_PAD.encode("{}")),
        ] {
            assert_eq!(subject(none), None, "{none}");
        }
        assert_eq!(
            tokens(token, "r".to_owned(), 60, NOW).access.expires_at,
            NOW.plus(Seconds(60))
        );
    }
}

//! The one shape of REST errors and of plain confirmations (80 §4, 95 `APIError`, `APIMessage`).
//!
//! Feature crates map their own error enums to [`ApiError`] by hand, in one place each; no cause's text gets here.

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use gw_types::Seconds;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $status:ident $text:literal,)*) => {
        /// What kind of failure an [`ApiError`] is: the one mapping to a status.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ErrorCode {
            $($(#[$doc])* $name,)*
        }

        impl ErrorCode {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The HTTP status.
            pub const fn status(self) -> StatusCode {
                match self { $(Self::$name => StatusCode::$status,)* }
            }

            /// The stable word in the body's `code`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

codes! {
    /// The request makes no sense.
    BadRequest = BAD_REQUEST "bad_request",
    /// Nobody, or nobody known, asks.
    Unauthorized = UNAUTHORIZED "unauthorized",
    /// Somebody known asks for what is not theirs.
    Forbidden = FORBIDDEN "forbidden",
    /// Nothing there.
    NotFound = NOT_FOUND "not_found",
    /// The path knows other methods.
    MethodNotAllowed = METHOD_NOT_ALLOWED "method_not_allowed",
    /// It clashes with what is there.
    Conflict = CONFLICT "conflict",
    /// `If-Match` names another version.
    PreconditionFailed = PRECONDITION_FAILED "precondition_failed",
    /// The body is over the limit.
    PayloadTooLarge = PAYLOAD_TOO_LARGE "payload_too_large",
    /// The same idempotency key with another body.
    Unprocessable = UNPROCESSABLE_ENTITY "unprocessable",
    /// Too often.
    RateLimited = TOO_MANY_REQUESTS "rate_limited",
    /// A fault of ours.
    Internal = INTERNAL_SERVER_ERROR "internal_error",
    /// The node or another upstream failed.
    BadGateway = BAD_GATEWAY "upstream_error",
    /// Not now: stale policy, no journal, a store that is down.
    Unavailable = SERVICE_UNAVAILABLE "unavailable",
}

/// A REST error on its way out.
#[derive(Clone, Debug)]
pub struct ApiError {
    code: ErrorCode,
    error: Cow<'static, str>,
    retry_after: Option<Seconds>,
    extra: Map<String, Value>,
    challenge: Option<Challenge>,
}

/// What a 401 says of the token that was shown, beside asking for one (RFC 6750 §3.1, RFC 9470).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Challenge {
    /// The request names its caller in a way that cannot be read.
    InvalidRequest,
    /// The token is expired, revoked or none of ours.
    InvalidToken,
    /// The login behind the token is older than this operation takes.
    LoginTooOld(Seconds),
}

impl Challenge {
    fn text(this: Option<Self>, error: &str) -> String {
        let told = match this {
            None => return format!("Bearer realm=\"{REALM}\""),
            Some(Self::InvalidRequest) => "invalid_request".to_owned(),
            Some(Self::InvalidToken) => "invalid_token".to_owned(),
            Some(Self::LoginTooOld(Seconds(age))) => {
                return format!("Bearer realm=\"{REALM}\", error=\"insufficient_user_authentication\", max_age={age}");
            }
        };
        // Our own texts; none of them has a quote.
        format!("Bearer realm=\"{REALM}\", error=\"{told}\", error_description=\"{error}\"")
    }
}

const REALM: &str = "ledger-gateway";

/// The body of an error.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = APIError)]
pub struct ErrorBody {
    /// What is wrong, for people.
    pub error: String,
    /// What is wrong, for programs.
    pub code: String,
    /// The id under which this request stands in the logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
}

/// A success without a record to show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = APIMessage)]
pub struct Message {
    /// What was done.
    pub message: Cow<'static, str>,
}

impl Message {
    /// A message.
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            message: message.into(),
        }
    }
}

impl IntoResponse for Message {
    fn into_response(self) -> Response {
        Json(self).into_response()
    }
}

impl ApiError {
    /// An error with its text.
    pub fn new(code: ErrorCode, error: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            error: error.into(),
            retry_after: None,
            extra: Map::new(),
            challenge: None,
        }
    }

    /// 400.
    pub fn bad_request(error: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::BadRequest, error)
    }

    /// 401.
    pub fn unauthorized(error: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::Unauthorized, error)
    }

    /// 403.
    pub fn forbidden(error: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::Forbidden, error)
    }

    /// 404.
    pub fn not_found(error: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::NotFound, error)
    }

    /// 409.
    pub fn conflict(error: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::Conflict, error)
    }

    /// 500, without a word on the cause.
    pub fn internal() -> Self {
        Self::new(ErrorCode::Internal, "internal error")
    }

    /// 503 with a second's wait.
    pub fn unavailable(error: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::Unavailable, error).retry_after(Seconds(1))
    }

    /// 503 for a policy snapshot that cannot be trusted (decision 45).
    pub fn policy_unavailable() -> Self {
        Self::unavailable("policy unavailable")
    }

    /// 503 for a journal that takes no record (70 rule 14).
    pub fn audit_unavailable() -> Self {
        Self::unavailable("audit unavailable")
    }

    /// 429.
    pub fn rate_limited(wait: Seconds) -> Self {
        Self::new(ErrorCode::RateLimited, "rate limit exceeded").retry_after(wait)
    }

    /// 413.
    pub fn payload_too_large() -> Self {
        Self::new(ErrorCode::PayloadTooLarge, "request body too large")
    }

    /// With `Retry-After`.
    #[must_use]
    pub fn retry_after(mut self, wait: Seconds) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// With what is wrong with the token, in `WWW-Authenticate`.
    #[must_use]
    pub fn challenging(mut self, challenge: Challenge) -> Self {
        self.challenge = Some(challenge);
        self
    }

    /// With one more member in the body.
    #[must_use]
    pub fn with(mut self, member: &'static str, value: impl Into<Value>) -> Self {
        self.extra.insert(member.to_owned(), value.into());
        self
    }

    /// The kind.
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.error
    }

    /// The body, naming the request by `correlation_id`.
    pub(crate) fn body(&self, correlation_id: Option<&str>) -> Vec<u8> {
        let mut body = self.extra.clone();
        body.insert("error".to_owned(), self.error.as_ref().into());
        body.insert("code".to_owned(), self.code.as_str().into());
        if let Some(id) = correlation_id {
            body.insert("correlation_id".to_owned(), id.into());
        }
        Value::Object(body).to_string().into_bytes()
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (
            self.code.status(),
            [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))],
            self.body(None),
        )
            .into_response();
        // Every 429 carries Retry-After; this is its default.
        let a_second = (self.code == ErrorCode::RateLimited).then_some(Seconds(1));
        if let Some(Seconds(wait)) = self.retry_after.or(a_second) {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from(wait));
        }
        if self.code == ErrorCode::Unauthorized
            && let Ok(value) = HeaderValue::from_str(&Challenge::text(self.challenge, &self.error))
        {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, value);
        }
        // `Correlate` finds it there and writes the body again with the request's id.
        response.extensions_mut().insert(self);
        response
    }
}

/// The answer for paths that lead nowhere.
pub async fn route_not_found() -> ApiError {
    ApiError::not_found("not found")
}

/// The answer for known paths asked with another method.
pub async fn method_not_allowed() -> ApiError {
    ApiError::new(ErrorCode::MethodNotAllowed, "method not allowed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_own_status_and_word() {
        for (i, a) in ErrorCode::ALL.iter().enumerate() {
            assert!(a.status().is_client_error() || a.status().is_server_error());
            for b in &ErrorCode::ALL[i + 1..] {
                assert!(a.status() != b.status() && a.as_str() != b.as_str(), "{a:?} {b:?}");
            }
        }
    }

    /// RFC 9110 §11.6.1: a 401 names the scheme; RFC 6750 §3.1: nothing more where no token was shown.
    #[test]
    fn rts12_a_401_names_the_scheme() {
        let header = |error: ApiError| error.into_response().headers().get("www-authenticate").cloned();
        assert_eq!(header(ApiError::forbidden("no")), None);
        assert_eq!(
            header(ApiError::unauthorized("no")).unwrap(),
            "Bearer realm=\"ledger-gateway\""
        );
        let invalid = ApiError::unauthorized("token expired").challenging(Challenge::InvalidToken);
        let text = "Bearer realm=\"ledger-gateway\", error=\"invalid_token\", error_description=\"token expired\"";
        assert_eq!(header(invalid).unwrap(), text);
        let old = ApiError::unauthorized("log in again").challenging(Challenge::LoginTooOld(Seconds(300)));
        let text = "Bearer realm=\"ledger-gateway\", error=\"insufficient_user_authentication\", max_age=300";
        assert_eq!(header(old).unwrap(), text);
    }

    #[test]
    fn body_holds_text_code_and_extra_members() {
        let error = ApiError::forbidden("humanity_verification_required").with("verify_url", "https://v.example");
        let body: Value = serde_json::from_slice(&error.body(Some("c-1"))).unwrap();
        assert_eq!(
            body,
            serde_json::json!({
                "error": "humanity_verification_required", "code": "forbidden",
                "correlation_id": "c-1", "verify_url": "https://v.example",
            })
        );
        let response = ApiError::rate_limited(Seconds(6)).into_response();
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(response.headers()["retry-after"], "6");
        let bare = ApiError::new(ErrorCode::RateLimited, "too many requests").into_response();
        assert_eq!(
            bare.headers()["retry-after"],
            "1",
            "RFC 6585 section 4: every 429 tells when"
        );
    }
}

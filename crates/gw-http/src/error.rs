//! The JSON format of REST errors and of plain confirmations (80 §4, 95 `APIError`, `APIMessage`).
//!
//! Feature crates map their own error enums to [`ApiError`] by hand, each in one place. The text of a cause never gets
//! here.

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use gw_types::Seconds;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};
use utoipa::openapi::{Content, ObjectBuilder, Ref, RefOr, ResponseBuilder, Schema, Type};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $status:ident $text:literal,)*) => {
        /// The kind of an [`ApiError`], which alone determines the HTTP status.
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

            /// The status and the word together, for the lists of [`DescribedError`].
            pub const fn answer(self) -> (StatusCode, &'static str) {
                (self.status(), self.as_str())
            }
        }
    };
}

codes! {
    /// The request is invalid.
    BadRequest = BAD_REQUEST "bad_request",
    /// The caller is not authenticated.
    Unauthorized = UNAUTHORIZED "unauthorized",
    /// The caller is authenticated but not allowed.
    Forbidden = FORBIDDEN "forbidden",
    /// The object does not exist.
    NotFound = NOT_FOUND "not_found",
    /// The path has other methods.
    MethodNotAllowed = METHOD_NOT_ALLOWED "method_not_allowed",
    /// The request conflicts with the current state.
    Conflict = CONFLICT "conflict",
    /// `If-Match` names another version.
    PreconditionFailed = PRECONDITION_FAILED "precondition_failed",
    /// The body is over the limit.
    PayloadTooLarge = PAYLOAD_TOO_LARGE "payload_too_large",
    /// The same idempotency key with another body.
    Unprocessable = UNPROCESSABLE_ENTITY "unprocessable",
    /// The rate limit is exceeded.
    RateLimited = TOO_MANY_REQUESTS "rate_limited",
    /// An internal fault.
    Internal = INTERNAL_SERVER_ERROR "internal_error",
    /// The node or another upstream failed.
    BadGateway = BAD_GATEWAY "upstream_error",
    /// Temporarily unavailable: stale policy, no journal, a store that is down.
    Unavailable = SERVICE_UNAVAILABLE "unavailable",
}

impl Serialize for ErrorCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl utoipa::PartialSchema for ErrorCode {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(Self::ALL.iter().map(|code| code.as_str())))
            .description(Some("The kind of an error. Each kind has one HTTP status."))
            .into()
    }
}

impl utoipa::ToSchema for ErrorCode {}

/// An error that lists its answers. The API description of an operation is made from the list, and the table test of
/// the error compares it with the answers of all variants.
///
/// [`described_error!`](crate::described_error) implements it, so that `responses(…)` of a handler can name the error.
pub trait DescribedError {
    /// Every answer: the status, and the code in the body.
    const RESPONSES: &'static [(StatusCode, &'static str)];
    /// The schema of the body.
    const BODY: &'static str;

    /// Whether these answers are exactly the listed ones, in any order; for table tests.
    fn lists_exactly(answers: impl IntoIterator<Item = (StatusCode, &'static str)>) -> bool {
        let listed: BTreeSet<_> = Self::RESPONSES.iter().copied().collect();
        listed == answers.into_iter().collect()
    }
}

/// The responses of an error, for the API description. Where a status has several codes, they are named.
pub fn described_responses<E: DescribedError>() -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
    let mut codes: BTreeMap<StatusCode, Vec<&str>> = BTreeMap::new();
    for (status, code) in E::RESPONSES {
        codes.entry(*status).or_default().push(code);
    }
    let response = |(status, codes): (StatusCode, Vec<&str>)| {
        let content = Content::new(Some(Ref::from_schema_name(E::BODY)));
        let description = match &*codes {
            [_, _, ..] => format!("`{}`.", codes.join("` or `")),
            [] | [_] => String::new(),
        };
        let response = ResponseBuilder::new()
            .description(description)
            .content("application/json", content);
        (status.as_str().to_owned(), response.build().into())
    };
    codes.into_iter().map(response).collect()
}

/// Implements [`DescribedError`](crate::DescribedError) for an error, with the schema of its body and its answers.
#[macro_export]
macro_rules! described_error {
    ($error:ty, $body:literal, [$($answer:expr),+ $(,)?]) => {
        impl $crate::DescribedError for $error {
            const RESPONSES: &'static [(::http::StatusCode, &'static str)] = &[$($answer),+];
            const BODY: &'static str = $body;
        }

        impl ::utoipa::IntoResponses for $error {
            fn responses() -> ::std::collections::BTreeMap<
                ::std::string::String,
                ::utoipa::openapi::RefOr<::utoipa::openapi::Response>,
            > {
                $crate::described_responses::<Self>()
            }
        }
    };
}

/// A REST error.
#[derive(Clone, Debug)]
pub struct ApiError {
    code: ErrorCode,
    error: Cow<'static, str>,
    retry_after: Option<Seconds>,
    extra: Map<String, Value>,
    challenge: Option<Challenge>,
}

/// What the `WWW-Authenticate` header of a 401 says about the token, besides asking for one (RFC 6750 §3.1, RFC 9470).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Challenge {
    /// The credentials are malformed.
    InvalidRequest,
    /// The token is expired, revoked or not valid.
    InvalidToken,
    /// The login behind the token is older than the operation accepts.
    LoginTooOld(Seconds),
}

impl Challenge {
    fn text(this: Option<Self>, error: &str) -> String {
        let code = match this {
            None => return format!("Bearer realm=\"{REALM}\""),
            Some(Self::InvalidRequest) => "invalid_request".to_owned(),
            Some(Self::InvalidToken) => "invalid_token".to_owned(),
            Some(Self::LoginTooOld(Seconds(age))) => {
                return format!("Bearer realm=\"{REALM}\", error=\"insufficient_user_authentication\", max_age={age}");
            }
        };
        // Both are the gateway's own texts, which contain no quotes.
        format!("Bearer realm=\"{REALM}\", error=\"{code}\", error_description=\"{error}\"")
    }
}

const REALM: &str = "ledger-gateway";

/// The body of an error.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = APIError)]
pub struct ErrorBody {
    /// What is wrong, in words.
    pub error: String,
    /// A stable code for programs.
    pub code: ErrorCode,
    /// The id of this request in the logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
}

/// A success without a resource to return.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = APIMessage)]
pub struct Message {
    /// What was done.
    pub message: Cow<'static, str>,
}

impl Message {
    /// Creates a confirmation.
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
    /// Creates an error with its text.
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

    /// 500, without the cause.
    pub fn internal() -> Self {
        Self::new(ErrorCode::Internal, "internal error")
    }

    /// 503 with a `Retry-After` of one second.
    pub fn unavailable(error: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::Unavailable, error).retry_after(Seconds(1))
    }

    /// 503 because no current policy snapshot is available (decision 45).
    pub fn policy_unavailable() -> Self {
        Self::unavailable("policy unavailable")
    }

    /// 503 because the journal takes no record (70 rule 14).
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

    /// Sets `Retry-After`.
    #[must_use]
    pub fn retry_after(mut self, wait: Seconds) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Sets what `WWW-Authenticate` says about the token.
    #[must_use]
    pub fn challenging(mut self, challenge: Challenge) -> Self {
        self.challenge = Some(challenge);
        self
    }

    /// Adds a member to the body.
    #[must_use]
    pub fn with(mut self, member: &'static str, value: impl Into<Value>) -> Self {
        self.extra.insert(member.to_owned(), value.into());
        self
    }

    /// The kind of failure.
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    /// The error text.
    pub fn text(&self) -> &str {
        &self.error
    }

    /// The body, with the request's `correlation_id`.
    pub(crate) fn body(&self, correlation_id: Option<&str>) -> Vec<u8> {
        let mut body = self.extra.clone();
        body.insert("error".to_owned(), self.error.as_ref().into());
        body.insert("code".to_owned(), self.code.as_str().into());
        if let Some(id) = correlation_id {
            body.insert("correlation_id".to_owned(), id.into());
        }
        Value::Object(body).to_string().into_bytes()
    }

    /// The same facts as problem details (RFC 9457).
    pub(crate) fn problem(&self, correlation_id: &str) -> Vec<u8> {
        let status = self.code.status();
        let mut body = self.extra.clone();
        body.insert("type".to_owned(), "about:blank".into());
        body.insert("title".to_owned(), status.canonical_reason().unwrap_or_default().into());
        body.insert("status".to_owned(), status.as_u16().into());
        body.insert("detail".to_owned(), self.error.as_ref().into());
        body.insert("code".to_owned(), self.code.as_str().into());
        body.insert("correlation_id".to_owned(), correlation_id.into());
        Value::Object(body).to_string().into_bytes()
    }
}

/// The media type of problem details (RFC 9457).
const PROBLEM_JSON: &str = "application/problem+json";

/// The format of an error's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorFormat {
    /// [`ErrorBody`].
    Json,
    /// Problem details, for clients that ask for them by name.
    Problem,
}

impl ErrorFormat {
    /// The format that a client accepts. Wildcards mean the gateway's own.
    pub(crate) fn accepted(headers: &HeaderMap) -> Self {
        let accept = headers
            .get_all(header::ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok());
        let mut ranges = accept.flat_map(|value| value.split(','));
        let is_problem = |range: &str| {
            let mut parts = range.split(';').map(str::trim);
            let is_named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(PROBLEM_JSON));
            // RFC 9110 section 12.4.2: a quality of 0 means not acceptable.
            is_named && !parts.any(|parameter| matches!(parameter, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
        };
        if ranges.any(is_problem) {
            Self::Problem
        } else {
            Self::Json
        }
    }

    /// Writes an error into the response that it was made into.
    pub(crate) fn write(self, error: &ApiError, correlation_id: &str, response: &mut Response) {
        response.headers_mut().remove(header::CONTENT_LENGTH);
        *response.body_mut() = match self {
            Self::Json => error.body(Some(correlation_id)).into(),
            Self::Problem => {
                response
                    .headers_mut()
                    .insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
                error.problem(correlation_id).into()
            }
        };
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
        // Every 429 has a Retry-After; this is its default.
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
        // `Correlate` takes the error from there and writes the body again with the request's id.
        response.extensions_mut().insert(self);
        response
    }
}

/// The answer for unknown paths.
pub async fn route_not_found() -> ApiError {
    ApiError::not_found("not found")
}

/// The answer for known paths with an unknown method.
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

    /// RFC 9110 §11.6.1: a 401 names the scheme; RFC 6750 §3.1: nothing more if the request had no token.
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

    /// RFC 9457: only a client that names the media type gets problem details.
    #[test]
    fn problem_details_are_for_clients_that_accept_them() {
        let accepted = |values: &[&'static str]| {
            let values = values
                .iter()
                .map(|value| (header::ACCEPT, HeaderValue::from_static(value)));
            ErrorFormat::accepted(&values.collect())
        };
        for plain in [
            &[][..],
            &["*/*"],
            &["application/json"],
            &["application/problem+json;q=0, */*"],
        ] {
            assert_eq!(accepted(plain), ErrorFormat::Json, "{plain:?}");
        }
        for problem in [
            &["application/problem+json"][..],
            &["text/html", "application/json, Application/Problem+JSON;q=0.5"],
        ] {
            assert_eq!(accepted(problem), ErrorFormat::Problem, "{problem:?}");
        }
        let error = ApiError::forbidden("no").with("verify_url", "https://v.example");
        let mut response = error.clone().into_response();
        ErrorFormat::Problem.write(&error, "c-1", &mut response);
        assert_eq!(response.status(), StatusCode::FORBIDDEN);
        assert_eq!(response.headers()["content-type"], PROBLEM_JSON);
        let body: Value = serde_json::from_slice(&error.problem("c-1")).unwrap();
        let expected = serde_json::json!({
            "type": "about:blank", "title": "Forbidden", "status": 403, "detail": "no", "code": "forbidden",
            "correlation_id": "c-1", "verify_url": "https://v.example",
        });
        assert_eq!(body, expected);
    }

    /// House rule 17: the description of an error is made from its list.
    #[test]
    fn an_error_is_described_by_its_list() {
        struct Example;
        described_error!(
            Example,
            "APIError",
            [
                ErrorCode::Conflict.answer(),
                (StatusCode::BAD_REQUEST, "one"),
                (StatusCode::BAD_REQUEST, "two"),
            ]
        );
        let responses = serde_json::to_value(described_responses::<Example>()).unwrap();
        assert_eq!(responses["400"]["description"], "`one` or `two`.");
        assert_eq!(
            responses["409"]["content"]["application/json"]["schema"]["$ref"],
            "#/components/schemas/APIError"
        );
        let mut answers = vec![
            ErrorCode::Conflict.answer(),
            (StatusCode::BAD_REQUEST, "two"),
            (StatusCode::BAD_REQUEST, "one"),
        ];
        assert!(Example::lists_exactly(answers.clone()));
        assert!(!Example::lists_exactly(answers[1..].to_vec()));
        answers.push(ErrorCode::Internal.answer());
        assert!(!Example::lists_exactly(answers));
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

//! The outcomes of a call, and how each is written: the status map of spec/20 §14.

use ::http::StatusCode;
use gw_evm::{ParamError, envelope::EnvelopeError};
use gw_http::AuthError;
use gw_policy::{
    Disclosed,
    access::{Denial, Invalid},
    view::DisclosedError,
};
use gw_types::{DenyReason, OrgId};
use std::borrow::Cow;

/// The code of every denial.
pub const DENIAL_CODE: i32 = -32601;
/// The text of every denial.
pub const DENIAL_MESSAGE: &str = "method not found";

/// The outcome of a call.
#[derive(Debug)]
pub(crate) enum RpcOutcome {
    /// The result that the caller may see.
    Result(Disclosed),
    /// The node's own error, as one of the known texts.
    NodeError(DisclosedError),
    /// The opaque denial.
    Denied(Denial),
    /// The parameters are wrong.
    Invalid(Invalid),
    /// The token is invalid: `{error}` for the whole request.
    Unauthorized(AuthError),
    /// The body is rejected before it is parsed.
    Body(BodyError),
    /// The JSON-RPC envelope is wrong.
    Envelope(EnvelopeError),
    /// The caller makes too many calls, or the node asks for a pause.
    Busy(DenyReason),
    /// The execution has no trace that could be evaluated.
    TracingUnavailable(DenyReason),
    /// The node gave no usable answer.
    NodeUnreachable,
    /// The policy is stale.
    PolicyUnavailable,
    /// The access record cannot be written.
    AuditUnavailable,
    /// The time of the batch ended before this call (HD20).
    BatchTimeout,
    /// A filter or a subscription does not exist, or the caller has too many.
    Subscription(SubscriptionError),
    /// An error of the gateway.
    Internal,
}

/// Why a filter or a subscription is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubscriptionError {
    /// The filter is unknown, expired or another caller's: the answer does not reveal which (WS-2).
    NoFilter,
    /// The connection has no such subscription.
    NoSubscription,
    /// A subscription needs a WebSocket connection.
    NoConnection,
    /// The caller has as many filters as one user may have.
    TooManyFilters,
    /// The connection has as many subscriptions as one connection may have (WS-5).
    TooManySubscriptions,
}

impl SubscriptionError {
    const fn is_limit(self) -> bool {
        matches!(self, Self::TooManyFilters | Self::TooManySubscriptions)
    }

    const fn message(self) -> &'static str {
        match self {
            Self::NoFilter => "filter not found",
            Self::NoSubscription => "subscription not found",
            Self::NoConnection => "notifications not supported",
            Self::TooManyFilters => "too many filters: 32 at most",
            Self::TooManySubscriptions => "too many subscriptions: 16 at most",
        }
    }
}

/// Why a request is rejected before its body is parsed (J2, O2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyError {
    /// The body is larger than the limit.
    TooLarge,
    /// The body is compressed or otherwise encoded.
    Encoded,
    /// The request has both a length and a transfer encoding, which name two ends of the body.
    TwoLengths,
    /// The body ended before its declared end.
    Incomplete,
    /// Path and header name two organizations.
    TwoOrganizations,
    /// The request has both a personal URL and an Authorization header, which name two callers (HD17 PU-2).
    TwoCallers,
}

impl BodyError {
    const fn status(self) -> StatusCode {
        match self {
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Encoded => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TwoLengths | Self::Incomplete | Self::TwoOrganizations | Self::TwoCallers => StatusCode::BAD_REQUEST,
        }
    }

    const fn message(self) -> &'static str {
        match self {
            Self::TooLarge => "request body too large: 1 MiB at most",
            Self::Encoded => "send the body plain, without a content encoding",
            Self::TwoLengths => "a request body has a length or a transfer encoding, not both",
            Self::Incomplete => "request body broke off",
            Self::TwoOrganizations => "path and X-Org-Id name different organizations",
            Self::TwoCallers => "a personal URL takes no Authorization header",
        }
    }
}

/// The error object of a JSON-RPC response.
struct ErrorObject<'a> {
    code: i32,
    message: Cow<'a, str>,
    data: Option<&'a str>,
}

impl RpcOutcome {
    pub(crate) fn denied(reason: DenyReason, org: Option<OrgId>) -> Self {
        Self::Denied(Denial { reason, org })
    }

    pub(crate) fn invalid(error: ParamError, org: Option<OrgId>) -> Self {
        Self::Invalid(Invalid {
            error,
            reason: DenyReason::InvalidRequestShape,
            org,
        })
    }

    /// The HTTP status for the access record, where denials differ by reason.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Result(_) | Self::NodeError(_) => StatusCode::OK,
            Self::Denied(denial) => match denial.reason {
                DenyReason::AuthRequired | DenyReason::UnknownUser => StatusCode::UNAUTHORIZED,
                DenyReason::MethodUnknown => StatusCode::NOT_FOUND,
                _ => StatusCode::FORBIDDEN,
            },
            Self::Unauthorized(_) => StatusCode::UNAUTHORIZED,
            Self::Body(error) => error.status(),
            Self::Invalid(_) | Self::Envelope(_) => StatusCode::BAD_REQUEST,
            Self::Subscription(error) if !error.is_limit() => StatusCode::OK,
            Self::Busy(_) | Self::Subscription(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::TracingUnavailable(_) | Self::PolicyUnavailable | Self::AuditUnavailable | Self::BatchTimeout => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::NodeUnreachable => StatusCode::BAD_GATEWAY,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The HTTP status that the caller gets: `denial` for every denial.
    pub(crate) fn wire_status(&self, denial: StatusCode) -> StatusCode {
        if matches!(self, Self::Denied(_)) {
            denial
        } else {
            self.status()
        }
    }

    /// Whether the call may succeed when it is repeated a second later.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Busy(_)
            | Self::TracingUnavailable(_)
            | Self::PolicyUnavailable
            | Self::AuditUnavailable
            | Self::BatchTimeout => true,
            // A caller who removes a filter may create another one at once.
            Self::Subscription(error) => error.is_limit(),
            Self::Result(_)
            | Self::NodeError(_)
            | Self::Denied(_)
            | Self::Unauthorized(_)
            | Self::Body(_)
            | Self::Invalid(_)
            | Self::Envelope(_)
            | Self::NodeUnreachable
            | Self::Internal => false,
        }
    }

    /// The reason, for the access record.
    pub(crate) fn reason(&self) -> Option<DenyReason> {
        match self {
            Self::Result(_) => None,
            Self::NodeError(_) | Self::NodeUnreachable => Some(DenyReason::UpstreamError),
            Self::Denied(denial) => Some(denial.reason),
            Self::Unauthorized(_) => Some(DenyReason::AuthRequired),
            Self::Invalid(invalid) => Some(invalid.reason),
            Self::Body(BodyError::TwoOrganizations) => Some(DenyReason::OrgMismatch),
            Self::Body(_) | Self::Envelope(_) => Some(DenyReason::InvalidRequestShape),
            Self::Busy(reason) | Self::TracingUnavailable(reason) => Some(*reason),
            Self::PolicyUnavailable => Some(DenyReason::PolicyStale),
            Self::AuditUnavailable => Some(DenyReason::AuditUnavailable),
            Self::BatchTimeout => Some(DenyReason::RateLimited),
            Self::Subscription(error) if error.is_limit() => Some(DenyReason::ConcurrencyLimited),
            Self::Subscription(_) => Some(DenyReason::InvalidRequestShape),
            Self::Internal => Some(DenyReason::InternalError),
        }
    }

    /// The organization under which a denial or an invalid call is recorded.
    pub(crate) fn org(&self) -> Option<OrgId> {
        match self {
            Self::Denied(denial) => denial.org,
            Self::Invalid(invalid) => invalid.org,
            Self::Result(_)
            | Self::NodeError(_)
            | Self::Unauthorized(_)
            | Self::Body(_)
            | Self::Envelope(_)
            | Self::Busy(_)
            | Self::TracingUnavailable(_)
            | Self::NodeUnreachable
            | Self::PolicyUnavailable
            | Self::AuditUnavailable
            | Self::BatchTimeout
            | Self::Subscription(_)
            | Self::Internal => None,
        }
    }

    fn error(&self) -> Option<ErrorObject<'_>> {
        let plain = |code, message: &'static str| {
            Some(ErrorObject {
                code,
                message: message.into(),
                data: None,
            })
        };
        match self {
            Self::Result(_) => None,
            Self::NodeError(error) => Some(ErrorObject {
                code: error.code(),
                message: error.message().into(),
                data: error.data(),
            }),
            Self::Denied(_) | Self::Unauthorized(_) => plain(DENIAL_CODE, DENIAL_MESSAGE),
            Self::Body(error) => plain(-32600, error.message()),
            Self::Invalid(invalid) => Some(ErrorObject {
                code: invalid.error.code(),
                message: invalid.error.message().into(),
                data: None,
            }),
            Self::Envelope(error) => plain(error.kind.code(), error.message),
            Self::Busy(_) => plain(-32005, "too many requests"),
            Self::TracingUnavailable(_) => plain(-32002, "tracing unavailable"),
            Self::NodeUnreachable => plain(-32603, "failed to forward request"),
            Self::PolicyUnavailable => plain(-32603, "policy unavailable"),
            Self::AuditUnavailable => plain(-32603, "audit unavailable"),
            Self::BatchTimeout => plain(-32603, "the batch took too long"),
            Self::Subscription(error) => plain(if error.is_limit() { -32005 } else { -32000 }, error.message()),
            Self::Internal => plain(-32603, "internal error"),
        }
    }

    /// The id to echo if no call was parsed.
    pub(crate) fn id(&self) -> &str {
        if let Self::Envelope(error) = self {
            error.id.as_json()
        } else {
            "null"
        }
    }

    /// The length of the result in bytes.
    pub(crate) fn len(&self) -> usize {
        if let Self::Result(result) = self {
            result.len()
        } else {
            0
        }
    }

    /// Appends the JSON-RPC object for the request with this id.
    pub(crate) fn write(&self, id: &str, out: &mut Vec<u8>) {
        begin(id, out);
        match self.error() {
            None => {
                out.extend_from_slice(RESULT);
                if let Self::Result(result) = self {
                    out.extend_from_slice(result.as_str().as_bytes());
                }
            }
            Some(error) => {
                out.extend_from_slice(br#","error":{"code":"#);
                out.extend_from_slice(error.code.to_string().as_bytes());
                out.extend_from_slice(br#","message":"#);
                write_quoted(&error.message, out);
                if let Some(data) = error.data {
                    out.extend_from_slice(br#","data":"#);
                    write_quoted(data, out);
                }
                out.push(b'}');
            }
        }
        out.push(b'}');
    }

    /// Appends the bytes before a result, for callers that write the result without copying it. The caller appends the
    /// result and one closing brace.
    pub(crate) fn begin_result(id: &str, out: &mut Vec<u8>) {
        begin(id, out);
        out.extend_from_slice(RESULT);
    }
}

const RESULT: &[u8] = br#","result":"#;

fn begin(id: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id.as_bytes());
}

fn write_quoted(text: &str, out: &mut Vec<u8>) {
    // Writing a string into a `Vec` cannot fail.
    let _ = serde_json::to_writer(out, text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(outcome: &RpcOutcome, id: &str) -> String {
        let mut out = Vec::new();
        outcome.write(id, &mut out);
        String::from_utf8(out).unwrap()
    }

    /// Decision 14, house rule 18: the caller gets the same bytes for every reason.
    #[test]
    fn denials_are_byte_identical_for_every_reason() {
        let expected = r#"{"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"method not found"}}"#;
        for reason in DenyReason::ALL {
            for org in [None, Some(OrgId::fixed(9))] {
                let outcome = RpcOutcome::denied(*reason, org);
                assert_eq!(body(&outcome, "\"x\""), expected, "{reason}");
                assert_eq!(outcome.wire_status(StatusCode::NOT_FOUND), 404, "{reason}");
                assert_eq!(outcome.reason(), Some(*reason));
            }
        }
    }

    /// Spec/20 §14, row by row.
    #[test]
    fn status_map() {
        let invalid = |error| RpcOutcome::invalid(error, None);
        let tracing = RpcOutcome::TracingUnavailable(DenyReason::TraceDepthExceeded);
        let rows: [(RpcOutcome, u16, &str); 14] = [
            (RpcOutcome::Result(Disclosed::ZERO), 200, r#""result":"0x0""#),
            (
                RpcOutcome::Body(BodyError::TooLarge),
                413,
                r#"{"code":-32600,"message":"request body too large: 1 MiB at most"}"#,
            ),
            (RpcOutcome::Body(BodyError::Encoded), 415, r#"{"code":-32600,"#),
            (RpcOutcome::Body(BodyError::TwoLengths), 400, r#"{"code":-32600,"#),
            (
                RpcOutcome::Unauthorized(AuthError::Expired),
                401,
                r#"{"code":-32601,"message":"method not found"}"#,
            ),
            (
                invalid(ParamError::invalid("no")),
                400,
                r#"{"code":-32602,"message":"no"}"#,
            ),
            (
                invalid(ParamError::limit("too much")),
                400,
                r#"{"code":-32005,"message":"too much"}"#,
            ),
            (
                RpcOutcome::Busy(DenyReason::RateLimited),
                429,
                r#"{"code":-32005,"message":"too many requests"}"#,
            ),
            (tracing, 503, r#"{"code":-32002,"message":"tracing unavailable"}"#),
            (
                RpcOutcome::NodeUnreachable,
                502,
                r#"{"code":-32603,"message":"failed to forward request"}"#,
            ),
            (
                RpcOutcome::PolicyUnavailable,
                503,
                r#"{"code":-32603,"message":"policy unavailable"}"#,
            ),
            (
                RpcOutcome::AuditUnavailable,
                503,
                r#"{"code":-32603,"message":"audit unavailable"}"#,
            ),
            (
                RpcOutcome::BatchTimeout,
                503,
                r#"{"code":-32603,"message":"the batch took too long"}"#,
            ),
            (
                RpcOutcome::Internal,
                500,
                r#"{"code":-32603,"message":"internal error"}"#,
            ),
        ];
        for (outcome, status, part) in rows {
            assert_eq!(outcome.wire_status(StatusCode::NOT_FOUND), status);
            assert!(body(&outcome, "null").contains(part), "{}", body(&outcome, "null"));
        }
    }
}

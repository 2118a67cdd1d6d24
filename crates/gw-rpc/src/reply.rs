//! How every outcome of a call reads on the wire: the status map of spec/20 §14, in one place.

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

/// How a call ended.
#[derive(Debug)]
pub(crate) enum Reply {
    /// What may leave.
    Result(Disclosed),
    /// The node's error, in known words.
    NodeError(DisclosedError),
    /// The opaque denial.
    Denied(Denial),
    /// The parameters are wrong.
    Invalid(Invalid),
    /// The token is of no use: alone `{error}`, in a batch what every denial says.
    Unauthorized(AuthError),
    /// The bytes are not looked into.
    Body(BodyFault),
    /// The envelope is wrong.
    Envelope(EnvelopeError),
    /// Too many calls at once, or the node asks for a pause.
    Busy(DenyReason),
    /// Nothing can be judged without a trace.
    TracingUnavailable(DenyReason),
    /// The node did not answer, or not usably.
    NodeUnreachable,
    /// The policy is stale.
    PolicyUnavailable,
    /// The record cannot be written.
    AuditUnavailable,
    /// The batch had no time left for this call (HD20).
    OutOfTime,
    /// A filter or a subscription is not there, or there is no room for one.
    Live(LiveFault),
    /// A fault of ours.
    Internal,
}

/// Why a filter or a subscription is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LiveFault {
    /// Somebody else's, expired, or never made: nobody learns which (WS-2).
    NoFilter,
    /// The same of a subscription, which is one connection's.
    NoSubscription,
    /// A subscription needs a connection that stays.
    NoConnection,
    /// The caller has as many filters as anybody may.
    TooManyFilters,
    /// The connection has as many subscriptions as any may (WS-5).
    TooManySubscriptions,
}

impl LiveFault {
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

/// What is wrong with a request before its body is looked into (J2, O2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFault {
    /// Over the limit.
    TooLarge,
    /// Compressed or otherwise encoded.
    Encoded,
    /// A length and a transfer encoding: two ends of one body.
    TwoLengths,
    /// It broke off.
    Incomplete,
    /// Path and header name two organizations.
    TwoOrganizations,
    /// A personal URL and an Authorization header: two callers (HD17 PU-2).
    TwoCallers,
}

impl BodyFault {
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

/// The error object of a reply.
struct ErrorObject<'a> {
    code: i32,
    message: Cow<'a, str>,
    data: Option<&'a str>,
}

impl Reply {
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

    /// The true outcome, as the access record has it.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Result(_) | Self::NodeError(_) => StatusCode::OK,
            Self::Denied(denial) => match denial.reason {
                DenyReason::AuthRequired | DenyReason::UnknownUser => StatusCode::UNAUTHORIZED,
                DenyReason::MethodUnknown => StatusCode::NOT_FOUND,
                _ => StatusCode::FORBIDDEN,
            },
            Self::Unauthorized(_) => StatusCode::UNAUTHORIZED,
            Self::Body(fault) => fault.status(),
            Self::Invalid(_) | Self::Envelope(_) => StatusCode::BAD_REQUEST,
            Self::Live(fault) if !fault.is_limit() => StatusCode::OK,
            Self::Busy(_) | Self::Live(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::TracingUnavailable(_) | Self::PolicyUnavailable | Self::AuditUnavailable | Self::OutOfTime => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::NodeUnreachable => StatusCode::BAD_GATEWAY,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// What the caller is told; the same for every denial.
    pub(crate) fn wire_status(&self, denial: StatusCode) -> StatusCode {
        if matches!(self, Self::Denied(_)) {
            denial
        } else {
            self.status()
        }
    }

    /// Whether asking again in a second may help.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Busy(_)
            | Self::TracingUnavailable(_)
            | Self::PolicyUnavailable
            | Self::AuditUnavailable
            | Self::OutOfTime => true,
            // Whoever gives one back may make another at once.
            Self::Live(fault) => fault.is_limit(),
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

    /// Why, for the access record.
    pub(crate) fn reason(&self) -> Option<DenyReason> {
        match self {
            Self::Result(_) => None,
            Self::NodeError(_) | Self::NodeUnreachable => Some(DenyReason::UpstreamError),
            Self::Denied(denial) => Some(denial.reason),
            Self::Unauthorized(_) => Some(DenyReason::AuthRequired),
            Self::Invalid(invalid) => Some(invalid.reason),
            Self::Body(BodyFault::TwoOrganizations) => Some(DenyReason::OrgMismatch),
            Self::Body(_) | Self::Envelope(_) => Some(DenyReason::InvalidRequestShape),
            Self::Busy(reason) | Self::TracingUnavailable(reason) => Some(*reason),
            Self::PolicyUnavailable => Some(DenyReason::PolicyStale),
            Self::AuditUnavailable => Some(DenyReason::AuditUnavailable),
            Self::OutOfTime => Some(DenyReason::RateLimited),
            Self::Live(fault) if fault.is_limit() => Some(DenyReason::ConcurrencyLimited),
            Self::Live(_) => Some(DenyReason::InvalidRequestShape),
            Self::Internal => Some(DenyReason::InternalError),
        }
    }

    /// Under which organization a refusal is filed.
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
            | Self::OutOfTime
            | Self::Live(_)
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
            Self::Body(fault) => plain(-32600, fault.message()),
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
            Self::OutOfTime => plain(-32603, "the batch took too long"),
            Self::Live(fault) => plain(if fault.is_limit() { -32005 } else { -32000 }, fault.message()),
            Self::Internal => plain(-32603, "internal error"),
        }
    }

    /// The id to echo when there was no call to take one from.
    pub(crate) fn id(&self) -> &str {
        if let Self::Envelope(error) = self {
            error.id.as_json()
        } else {
            "null"
        }
    }

    /// About how long the result is.
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
                quoted(&error.message, out);
                if let Some(data) = error.data {
                    out.extend_from_slice(br#","data":"#);
                    quoted(data, out);
                }
                out.push(b'}');
            }
        }
        out.push(b'}');
    }

    /// Appends what stands before a result, for those who do not copy it; a brace stands behind it.
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

fn quoted(text: &str, out: &mut Vec<u8>) {
    // Writing a string into a `Vec` cannot fail.
    let _ = serde_json::to_writer(out, text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(reply: &Reply, id: &str) -> String {
        let mut out = Vec::new();
        reply.write(id, &mut out);
        String::from_utf8(out).unwrap()
    }

    /// Decision 14, house rule 18: whatever the reason, the caller reads the same bytes.
    #[test]
    fn denials_are_byte_identical_for_every_reason() {
        let expected = r#"{"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"method not found"}}"#;
        for reason in DenyReason::ALL {
            for org in [None, Some(OrgId::fixed(9))] {
                let reply = Reply::denied(*reason, org);
                assert_eq!(body(&reply, "\"x\""), expected, "{reason}");
                assert_eq!(reply.wire_status(StatusCode::NOT_FOUND), 404, "{reason}");
                assert_eq!(reply.reason(), Some(*reason));
            }
        }
    }

    /// Spec/20 §14, row by row.
    #[test]
    fn status_map() {
        let invalid = |error| Reply::invalid(error, None);
        let tracing = Reply::TracingUnavailable(DenyReason::TraceDepthExceeded);
        let rows: [(Reply, u16, &str); 14] = [
            (Reply::Result(Disclosed::ZERO), 200, r#""result":"0x0""#),
            (
                Reply::Body(BodyFault::TooLarge),
                413,
                r#"{"code":-32600,"message":"request body too large: 1 MiB at most"}"#,
            ),
            (Reply::Body(BodyFault::Encoded), 415, r#"{"code":-32600,"#),
            (Reply::Body(BodyFault::TwoLengths), 400, r#"{"code":-32600,"#),
            (
                Reply::Unauthorized(AuthError::Expired),
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
                Reply::Busy(DenyReason::RateLimited),
                429,
                r#"{"code":-32005,"message":"too many requests"}"#,
            ),
            (tracing, 503, r#"{"code":-32002,"message":"tracing unavailable"}"#),
            (
                Reply::NodeUnreachable,
                502,
                r#"{"code":-32603,"message":"failed to forward request"}"#,
            ),
            (
                Reply::PolicyUnavailable,
                503,
                r#"{"code":-32603,"message":"policy unavailable"}"#,
            ),
            (
                Reply::AuditUnavailable,
                503,
                r#"{"code":-32603,"message":"audit unavailable"}"#,
            ),
            (
                Reply::OutOfTime,
                503,
                r#"{"code":-32603,"message":"the batch took too long"}"#,
            ),
            (Reply::Internal, 500, r#"{"code":-32603,"message":"internal error"}"#),
        ];
        for (reply, status, part) in rows {
            assert_eq!(reply.wire_status(StatusCode::NOT_FOUND), status);
            assert!(body(&reply, "null").contains(part), "{}", body(&reply, "null"));
        }
    }
}

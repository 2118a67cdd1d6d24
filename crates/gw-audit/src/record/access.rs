//! The access record (spec/70 section 2, spec/20 L1).

use crate::code::codes;
use gw_types::{DenyReason, Epoch, ExternalId, OrgId, PersonalUrlId};
use std::borrow::Cow;
use std::net::IpAddr;

codes! {
    /// How the caller was authenticated.
    AuthMethod {
        /// Without credentials.
        Anonymous = "anonymous",
        /// A token in the Authorization header.
        Bearer = "bearer",
        /// The session cookie of our own pages.
        Cookie = "cookie",
        /// The platform administrator's token.
        AdminToken = "admin_token",
        /// The key of another service of this installation.
        ServiceKey = "service_key",
        /// A personal RPC URL.
        PersonalUrl = "personal_url",
    }
}

codes! {
    /// The rule that allowed the method.
    MatchedVia {
        /// One of the six metadata methods.
        Metadata = "metadata",
        /// The list for anonymous callers.
        AnonymousList = "anonymous_list",
        /// A group's list names the method.
        Method = "method",
        /// A group's list holds `*`.
        AllMethods = "all_methods",
        /// A configured prefix (spec/20 N3).
        Prefix = "prefix",
    }
}

codes! {
    /// Why the call was traced before it was answered.
    TraceKind {
        /// A simulation.
        Simulation = "simulation",
        /// A send, traced as of the head and of the block after it.
        Send = "send",
        /// A trace the caller asked for.
        Requested = "requested",
    }
}

/// One call or data retrieval, denials included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessRecord {
    /// The DID of the caller; absent for anonymous callers. Personal.
    pub external_id: Option<ExternalId>,
    /// The RPC method, or the name of the operation on other surfaces.
    pub method: Cow<'static, str>,
    /// The HTTP status of the true outcome.
    pub status_code: u16,
    /// The HTTP status that the caller received, if it differs from `status_code`.
    pub response_status: Option<u16>,
    /// The caller's IP address. Personal.
    pub ip_address: Option<IpAddr>,
    /// The correlation id from the caller or, without one, from the gateway.
    pub correlation_id: Option<Cow<'static, str>>,
    /// The redacted parameters as JSON text, if recording them is enabled. Personal.
    pub request_params: Option<String>,
    /// The organization the decision resolved to.
    pub org_id: Option<OrgId>,
    /// Why the call was denied.
    pub denial_reason: Option<DenyReason>,
    /// How the caller was authenticated.
    pub auth_method: AuthMethod,
    /// The personal URL that received the call (HD17 PU-4).
    pub rpc_url_id: Option<PersonalUrlId>,
    /// The time from the first byte to the answer, in microseconds.
    pub duration_us: u64,
    /// Whether the node was called.
    pub node_called: bool,
    /// The time the node took, in milliseconds.
    pub upstream_ms: Option<u32>,
    /// The epoch of the policy that decided the call.
    pub policy_epoch: Option<Epoch>,
    /// The rule that allowed the method.
    pub matched_via: Option<MatchedVia>,
    /// Why the call was traced.
    pub trace_kind: Option<TraceKind>,
}

impl AccessRecord {
    /// A record of `method` with outcome `status_code`; all other fields are absent, zero or false.
    pub fn new(method: impl Into<Cow<'static, str>>, status_code: u16) -> Self {
        Self {
            external_id: None,
            method: method.into(),
            status_code,
            response_status: None,
            ip_address: None,
            correlation_id: None,
            request_params: None,
            org_id: None,
            denial_reason: None,
            auth_method: AuthMethod::Anonymous,
            rpc_url_id: None,
            duration_us: 0,
            node_called: false,
            upstream_ms: None,
            policy_epoch: None,
            matched_via: None,
            trace_kind: None,
        }
    }
}

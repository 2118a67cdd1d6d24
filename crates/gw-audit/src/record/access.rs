//! The access record (spec/70 section 2, spec/20 L1).

use crate::code::codes;
use gw_types::{DenyReason, Epoch, ExternalId, OrgId, PersonalUrlId};
use std::borrow::Cow;
use std::net::IpAddr;

codes! {
    /// How the caller proved who calls.
    AuthMethod {
        /// No token.
        Anonymous = "anonymous",
        /// A token in the Authorization header.
        Bearer = "bearer",
        /// The session cookie of our own pages.
        Cookie = "cookie",
        /// The operator's token.
        AdminToken = "admin_token",
        /// A key of another of our services.
        ServiceKey = "service_key",
        /// A personal RPC URL.
        PersonalUrl = "personal_url",
    }
}

codes! {
    /// What let the method through.
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
    /// For what the call was traced before it was answered.
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
    /// Who called; absent for anonymous callers. Personal.
    pub external_id: Option<ExternalId>,
    /// The method, or what stands for it on other surfaces.
    pub method: Cow<'static, str>,
    /// The true outcome.
    pub status_code: u16,
    /// What the caller was told, where that differs.
    pub response_status: Option<u16>,
    /// Where the call came from. Personal.
    pub ip_address: Option<IpAddr>,
    /// The caller's or our own correlation id.
    pub correlation_id: Option<Cow<'static, str>>,
    /// The redacted parameters, JSON text, if they are recorded at all. Personal.
    pub request_params: Option<String>,
    /// The organization the decision resolved to.
    pub org_id: Option<OrgId>,
    /// Why the call was denied.
    pub denial_reason: Option<DenyReason>,
    /// How the caller proved who calls.
    pub auth_method: AuthMethod,
    /// The personal URL the call came by (HD17 PU-4).
    pub rpc_url_id: Option<PersonalUrlId>,
    /// From the first byte to the answer, in microseconds.
    pub duration_us: u64,
    /// Whether the node was asked.
    pub node_called: bool,
    /// How long the node took, in milliseconds.
    pub upstream_ms: Option<u32>,
    /// The policy the call was judged by.
    pub policy_epoch: Option<Epoch>,
    /// What let the method through.
    pub matched_via: Option<MatchedVia>,
    /// For what the call was traced.
    pub trace_kind: Option<TraceKind>,
}

impl AccessRecord {
    /// A record of `method` ending with `status_code`; everything else absent.
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

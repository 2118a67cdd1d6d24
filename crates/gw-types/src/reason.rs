//! Reasons for denying a call: the single list of decision 49. For the access log only, never for the caller.

use serde::Serialize;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// The operator-facing reason of a denial (spec/20 L2, decision 49).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
        pub enum DenyReason {
            $($(#[$doc])* #[serde(rename = $text)] $name,)*
        }

        impl DenyReason {
            /// Every reason, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Returns the stable code written to the access log.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

reasons! {
    /// No token, and the method is not open to anonymous callers.
    AuthRequired = "auth_required",
    /// The caller's groups do not list the method, or it is blocked.
    MethodNotAllowed = "method_not_allowed",
    /// The method is unknown.
    MethodUnknown = "method_unknown",
    /// `from` is not linked to the caller.
    SenderNotLinked = "sender_not_linked",
    /// The recovered sender is linked to another user (HD13).
    SenderNotOwned = "sender_not_owned",
    /// The request is malformed.
    InvalidRequestShape = "invalid_request_shape",
    /// The target belongs to an organization the caller is not in, found in a trace.
    CrossOrg = "cross_org",
    /// The trace is deeper than the evaluated maximum.
    TraceDepthExceeded = "trace_depth_exceeded",
    /// The node gave no usable trace.
    TracingUnavailable = "tracing_unavailable",
    /// The node has no state before the block of a mined transaction, so the transaction could not be traced.
    StateUnavailable = "state_unavailable",
    /// A creation without the deploy claim.
    DeployClaimRequired = "deploy_claim_required",
    /// The compliance check denied the call.
    ComplianceBlocked = "compliance_blocked",
    /// A rate limit was exceeded.
    RateLimited = "rate_limited",
    /// Too many calls in flight.
    ConcurrencyLimited = "concurrency_limited",
    /// The node failed or could not be reached.
    UpstreamError = "upstream_error",
    /// An error of the gateway.
    InternalError = "internal_error",
    /// KYC is not completed.
    KycRequired = "kyc_required",
    /// The account is banned.
    Banned = "banned",
    /// The token's subject has no user row.
    UnknownUser = "unknown_user",
    /// The caller has several organizations and named none.
    OrgAmbiguous = "org_ambiguous",
    /// The named organization is unknown, not the caller's, or not the target's.
    OrgMismatch = "org_mismatch",
    /// The target belongs to an organization the caller is not in.
    ForeignOrg = "foreign_org",
    /// The target is not registered.
    Unregistered = "unregistered",
    /// The caller holds no grant on the contract.
    ContractNotPermitted = "contract_not_permitted",
    /// The grant does not list the function.
    FunctionNotPermitted = "function_not_permitted",
    /// A parameter rule did not hold.
    ParamRule = "param_rule",
    /// The call reads a historical block.
    HistoryNotPermitted = "history_not_permitted",
    /// The target is a known multicall aggregator.
    Multicall = "multicall",
    /// An upgrade without the upgrade claim.
    UpgradeClaimRequired = "upgrade_claim_required",
    /// The code hash differs from the pinned one.
    CodehashMismatch = "codehash_mismatch",
    /// A delegatecall into shared infrastructure.
    DelegateSharedInfra = "delegate_shared_infra",
    /// The trace does not match the request.
    TraceMismatch = "trace_mismatch",
    /// The policy snapshot is stale.
    PolicyStale = "policy_stale",
    /// The audit journal cannot take the record.
    AuditUnavailable = "audit_unavailable",
    /// A disclosure grant does not cover the request.
    GrantScope = "grant_scope",
}

impl DenyReason {
    /// Returns the reason for metrics. Metrics are readable on the whole internal network, so reasons that distinguish
    /// one target from another share one class (HD40).
    pub const fn class(self) -> &'static str {
        match self {
            Self::SenderNotLinked
            | Self::SenderNotOwned
            | Self::CrossOrg
            | Self::DeployClaimRequired
            | Self::OrgMismatch
            | Self::ForeignOrg
            | Self::Unregistered
            | Self::ContractNotPermitted
            | Self::FunctionNotPermitted
            | Self::ParamRule
            | Self::HistoryNotPermitted
            | Self::Multicall
            | Self::UpgradeClaimRequired
            | Self::CodehashMismatch
            | Self::DelegateSharedInfra
            | Self::TraceMismatch
            | Self::TraceDepthExceeded
            | Self::GrantScope => "not_permitted",
            Self::AuthRequired
            | Self::MethodNotAllowed
            | Self::MethodUnknown
            | Self::InvalidRequestShape
            | Self::TracingUnavailable
            | Self::StateUnavailable
            | Self::ComplianceBlocked
            | Self::RateLimited
            | Self::ConcurrencyLimited
            | Self::UpstreamError
            | Self::InternalError
            | Self::KycRequired
            | Self::Banned
            | Self::UnknownUser
            | Self::OrgAmbiguous
            | Self::PolicyStale
            | Self::AuditUnavailable => self.as_str(),
        }
    }
}

impl core::fmt::Display for DenyReason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HD40: metrics do not reveal whose contract a denied call was about.
    #[test]
    fn hd40_metrics_count_targets_alike() {
        for reason in [
            DenyReason::ForeignOrg,
            DenyReason::Unregistered,
            DenyReason::ContractNotPermitted,
            DenyReason::CrossOrg,
            DenyReason::SenderNotOwned,
        ] {
            assert_eq!(reason.class(), "not_permitted");
        }
        assert_eq!(DenyReason::PolicyStale.class(), "policy_stale");
    }
}

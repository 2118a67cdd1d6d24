//! Security events (spec/70 section 1, stream `security`).

use crate::code::codes;
use gw_types::{Address, ExternalId, OrgId, SessionId, UserId};
use std::borrow::Cow;
use std::net::IpAddr;

codes! {
    /// The kind of security event.
    SecurityKind {
        /// A login succeeded.
        Login = "login",
        /// A login was rejected.
        LoginRefused = "login_refused",
        /// A token was issued to an application of this installation without a login.
        SilentSso = "silent_sso",
        /// A refresh token was presented twice.
        RefreshTokenReuse = "refresh_token_reuse",
        /// A token family was revoked.
        SessionRevoked = "session_revoked",
        /// A user was banned.
        UserBanned = "user_banned",
        /// A ban was lifted.
        UserUnbanned = "user_unbanned",
        /// An address was linked to a user.
        EthAddressLinked = "eth_address_linked",
        /// An address that was linked is already linked to other users.
        EthAddressLinkedCollision = "eth_address_linked_collision",
        /// An address link was removed.
        EthAddressUnlinked = "eth_address_unlinked",
        /// An administrator impersonated a user.
        ViewAs = "view_as",
        /// A mined transaction had effects that its trace had not shown (HD2).
        MinedTraceViolation = "mined_trace_violation",
        /// The node does not show which transaction used the nonce of a send, so the send was not validated (HD36).
        MinedSendNotFound = "mined_send_not_found",
        /// A contract's code is not the approved code.
        CodehashMismatch = "codehash_mismatch",
        /// A verification of the audit log had a finding.
        TamperDetected = "audit.chain.tamper_detected",
        /// Records at the journal's torn end were lost (HD25).
        JournalTorn = "journal_torn",
        /// Records that already had numbers are missing from the journal (HD25).
        JournalLost = "journal_lost",
        /// Another writer uses the shard, so this writer opened a new one (HD24).
        ShardFenced = "shard_fenced",
        /// Records have waited too long to be sealed: the audit store, or one chain in it, does not accept them.
        SealingStalled = "audit.sealing_stalled",
        /// The local clock jumped away from the database's clock and came back.
        ClockJump = "clock_jump",
        /// The journal is nearly full.
        AuditBacklog = "audit.backlog",
        /// Calls were answered without an access record, because the journal was full (spec/70 rule 14). `count` is
        /// their number.
        CallsUnrecorded = "audit.calls_unrecorded",
        /// An answer of the explorer contains rows that are shown only under audit (K10, spec/30 section 2.4).
        /// `external_id` is the viewer, `count` the number of these rows, `reason` the route.
        AuditedRowsShown = "explorer.audited_rows_shown",
        /// The service started with `ORG_ADMIN_VIEW_USER_TXS=true` (K10).
        AuditedRowsEnabled = "explorer.audited_rows_enabled",
        /// The credential of a database lacks privileges that the gateway needs, or has them again.
        DatabasePrivileges = "database_privileges",
        /// A setting changed while the service ran.
        SystemSettingChange = "system_setting_change",
    }
}

/// A security event. Fields that are unknown or do not apply are absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityEvent {
    /// The kind of event.
    pub kind: SecurityKind,
    /// The DID of the affected user. Personal.
    pub external_id: Option<ExternalId>,
    /// The id of the affected user.
    pub user_id: Option<UserId>,
    /// The affected organization.
    pub org_id: Option<OrgId>,
    /// The affected token family.
    pub session_id: Option<SessionId>,
    /// The affected address. Personal.
    pub address: Option<Address>,
    /// The IP address of the request. Personal.
    pub ip_address: Option<IpAddr>,
    /// The correlation id of the request.
    pub correlation_id: Option<Cow<'static, str>>,
    /// The login provider (`zk`, `directory`, `sp`, `mock`).
    pub provider: Option<Cow<'static, str>>,
    /// A code for the reason; never text from a database, a node or a caller.
    pub reason: Option<Cow<'static, str>>,
    /// A number that depends on the kind: other DIDs of a collision, lost records of a torn journal.
    pub count: Option<u64>,
}

impl SecurityEvent {
    /// An event of this kind; all other fields are absent.
    pub const fn new(kind: SecurityKind) -> Self {
        Self {
            kind,
            external_id: None,
            user_id: None,
            org_id: None,
            session_id: None,
            address: None,
            ip_address: None,
            correlation_id: None,
            provider: None,
            reason: None,
            count: None,
        }
    }
}

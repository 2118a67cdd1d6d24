//! Security events (spec/70 section 1, stream security).

use crate::code::codes;
use gw_types::{Address, ExternalId, OrgId, SessionId, UserId};
use std::borrow::Cow;
use std::net::IpAddr;

codes! {
    /// What happened.
    SecurityKind {
        /// A login succeeded.
        Login = "login",
        /// A login was refused.
        LoginRefused = "login_refused",
        /// A token was issued silently to one of our own applications.
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
        /// The address was already linked to others.
        EthAddressLinkedCollision = "eth_address_linked_collision",
        /// An address link ended.
        EthAddressUnlinked = "eth_address_unlinked",
        /// An administrator looked through a user's eyes.
        ViewAs = "view_as",
        /// A mined transaction did what its trace had not shown (HD2).
        MinedTraceViolation = "mined_trace_violation",
        /// A contract's code is not the code that was approved.
        CodehashMismatch = "codehash_mismatch",
        /// A verification of the log found something.
        TamperDetected = "audit.chain.tamper_detected",
        /// Records at the journal's torn end were lost (HD25).
        JournalTorn = "journal_torn",
        /// Records once numbered are not in the journal any more (HD25).
        JournalLost = "journal_lost",
        /// A writer found its shard taken and opened another (HD24).
        ShardFenced = "shard_fenced",
        /// Records have waited too long to be sealed: the audit store, or one chain in it, does not take them.
        SealingStalled = "audit.sealing_stalled",
        /// The local clock jumped away from the database's and came back.
        ClockJump = "clock_jump",
        /// The journal is nearly full.
        AuditBacklog = "audit.backlog",
        /// A setting changed while the service ran.
        SystemSettingChange = "system_setting_change",
    }
}

/// One event. What is not known or does not apply is absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityEvent {
    /// What happened.
    pub kind: SecurityKind,
    /// Whom it concerns. Personal.
    pub external_id: Option<ExternalId>,
    /// The user row it concerns.
    pub user_id: Option<UserId>,
    /// The organization it concerns.
    pub org_id: Option<OrgId>,
    /// The token family it concerns.
    pub session_id: Option<SessionId>,
    /// The address it concerns. Personal.
    pub address: Option<Address>,
    /// Where the request came from. Personal.
    pub ip_address: Option<IpAddr>,
    /// The correlation id of the request.
    pub correlation_id: Option<Cow<'static, str>>,
    /// The login provider (`zk`, `directory`, `sp`, `mock`).
    pub provider: Option<Cow<'static, str>>,
    /// A code saying why; never text of a database, a node or a caller.
    pub reason: Option<Cow<'static, str>>,
    /// How many: other DIDs on a collision, lost records on a torn journal.
    pub count: Option<u64>,
}

impl SecurityEvent {
    /// An event of this kind with everything else absent.
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

//! The settings that change what may be seen or done (spec/30 section 1, decision 52).
//!
//! Read once at start by `gw-server`; every decision takes them as an argument. The defaults are the profile `spec`.

use crate::snapshot::{Snapshot, SystemToggle};
use gw_types::{Seconds, Timestamp};

/// K1: a row with one side hidden from a viewer who takes no part in it (the explorer's rows).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OneSided {
    /// Kept, masked \[S\].
    Mask,
    /// Dropped (strict).
    Drop,
}

/// K2 and K4: which logs of a transaction its participants, and those it was shared with, see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionLogs {
    /// Every log of the transaction \[S\].
    All,
    /// Only those of emitters the viewer holds a grant on (strict).
    Granted,
}

/// K3: a log whose emitter has no ABI for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAbi {
    /// Kept, topics and data masked by the shape of their words (HD31).
    Pass,
    /// The whole log dropped but for administrators of the emitter (strict).
    Drop,
}

/// K5: a `bytes` or `string` field in a decodable event of a contract that does not attest its payload (decision 50).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DynamicFields {
    /// Kept, but for words shaped like an address (HD31).
    Pass,
    /// Zero bytes of equal length.
    Zero,
    /// The whole log dropped.
    Drop,
}

/// K7: a transaction as an organization's administrator sees it who takes no part in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminTx {
    /// Wallet, value, input and signature masked.
    Masked,
    /// The full object \[P\].
    Full,
}

/// K8: balance and nonce of an address that is not Full (decision 5, HD6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressQuery {
    /// Constant zero, for every kind of address.
    Strict,
    /// Constant zero only if linked to somebody else.
    Linked,
    /// The real value \[P\].
    Off,
}

/// K12: a transaction with both sides hidden but a surviving token transfer (the explorer's rows).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Dropped \[S\].
    None,
    /// Kept, both sides `[PRIVATE]`.
    Keep,
}

/// Which methods wait for KYC (decision 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KycGate {
    /// WRITE, deployments and everything that moves value \[S\].
    Writes,
    /// Everything but the six metadata methods \[P\].
    All,
}

/// Whose signed transactions a caller may forward (HD13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawSenderPolicy {
    /// Those of senders linked to the caller or to nobody.
    Unclaimed,
    /// Those of senders linked to the caller.
    Owner,
    /// Anybody's, but for senders proved by a banned or un-KYC'd identity.
    Any,
}

/// Which creations a send may make (HD2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deployments {
    /// Any, with the claim.
    Any,
    /// Those of creation code that a super admin approved: no hostile code comes onto the chain.
    Approved,
}

/// What becomes of a send that did, once mined, what it had not done when it was judged (HD2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MinedTrace {
    /// Its blocks are looked at before anybody reads at them: sender suspended, contracts quarantined, event.
    Quarantine,
    /// They are looked at; an event says what was found.
    Alert,
    /// Nobody looks.
    Off,
}

/// All of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knobs {
    /// K1, `PRIVACY_ONE_SIDED`.
    pub one_sided: OneSided,
    /// K2, `PRIVACY_PARTICIPANT_LOGS`.
    pub participant_logs: TransactionLogs,
    /// K3, `PRIVACY_NO_ABI`.
    pub no_abi: NoAbi,
    /// K4, `PRIVACY_SHARED_LOGS`.
    pub shared_logs: TransactionLogs,
    /// K5, `PRIVACY_DYNAMIC_FIELDS`.
    pub dynamic_fields: DynamicFields,
    /// K6, `PRIVACY_ALIAS_STRIP`: value, input, error and nonce stripped beside an alias.
    pub alias_strip: bool,
    /// K7, `PRIVACY_ADMIN_TX`.
    pub admin_tx: AdminTx,
    /// K8, `ADDRESS_QUERY_STRICT`.
    pub address_query: AddressQuery,
    /// K9, `HIDE_BLOCK_ROOTS`: zero the roots a header carries.
    pub hide_block_roots: bool,
    /// K10, `ORG_ADMIN_VIEW_USER_TXS`.
    pub org_admin_view_user_txs: bool,
    /// K11, `ADMIN_CLAIM_SEES_ALL`: the claim `admin` alone sees all contracts of its organization.
    pub admin_claim_sees_all: bool,
    /// K12, `PRIVACY_ANCHOR`.
    pub anchor: Anchor,
    /// `HIDE_BASE_FEE`: publish the suggested price in place of the base fee (spec/30 section 8).
    pub hide_base_fee: bool,
    /// `KYC_GATE`.
    pub kyc_gate: KycGate,
    /// `RAW_SENDER_POLICY`.
    pub raw_sender_policy: RawSenderPolicy,
    /// `RAW_NONCE_GAP_MAX`: how far above the pending nonce a signed transaction may be.
    pub raw_nonce_gap_max: u64,
    /// `DEPLOYMENTS`.
    pub deployments: Deployments,
    /// `MINED_TRACE`.
    pub mined_trace: MinedTrace,
    /// How long an unmined reservation lives (HD14).
    pub reservation_ttl: Seconds,
    /// `RUNTIME_TRACING_ETH_CALL_ENABLED`: what [`SystemToggle::EthCallTracing`] is without an override.
    pub eth_call_tracing: bool,
    /// `RUNTIME_TRACING_INTRA_ORG_GRANTS_ENABLED`: the same of [`SystemToggle::IntraOrgGrantTracing`].
    pub intra_org_grant_tracing: bool,
}

impl Knobs {
    /// `PRIVACY_PROFILE=spec`: the specification's own choices.
    pub const SPEC: Self = Self {
        one_sided: OneSided::Mask,
        participant_logs: TransactionLogs::All,
        no_abi: NoAbi::Pass,
        shared_logs: TransactionLogs::All,
        dynamic_fields: DynamicFields::Pass,
        alias_strip: true,
        admin_tx: AdminTx::Masked,
        address_query: AddressQuery::Strict,
        hide_block_roots: true,
        org_admin_view_user_txs: false,
        admin_claim_sees_all: true,
        anchor: Anchor::None,
        hide_base_fee: false,
        kyc_gate: KycGate::Writes,
        raw_sender_policy: RawSenderPolicy::Unclaimed,
        raw_nonce_gap_max: 64,
        deployments: Deployments::Any,
        mined_trace: MinedTrace::Quarantine,
        reservation_ttl: Seconds(30 * 60),
        eth_call_tracing: true,
        intra_org_grant_tracing: false,
    };

    /// `PRIVACY_PROFILE=strict`: K1-K6 moved together; each may still be set alone.
    pub const STRICT: Self = Self {
        one_sided: OneSided::Drop,
        participant_logs: TransactionLogs::Granted,
        no_abi: NoAbi::Drop,
        shared_logs: TransactionLogs::Granted,
        dynamic_fields: DynamicFields::Drop,
        ..Self::SPEC
    };
}

impl Knobs {
    /// What the configuration says of a toggle.
    pub const fn configured(&self, toggle: SystemToggle) -> bool {
        match toggle {
            SystemToggle::EthCallTracing => self.eth_call_tracing,
            SystemToggle::IntraOrgGrantTracing => self.intra_org_grant_tracing,
        }
    }

    /// How a toggle stands now (X9): its override, else the configuration.
    pub fn toggle(&self, snapshot: &Snapshot, toggle: SystemToggle, now: Timestamp) -> bool {
        snapshot.toggle(toggle, now).unwrap_or_else(|| self.configured(toggle))
    }
}

impl Default for Knobs {
    fn default() -> Self {
        Self::SPEC
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decisions 3, 5, 13, 17, 50, 52; HD6, HD13: the defaults are what the decisions say.
    #[test]
    fn the_defaults_are_the_profile_spec() {
        let knobs = Knobs::default();
        assert_eq!(knobs, Knobs::SPEC);
        assert_eq!(knobs.address_query, AddressQuery::Strict);
        assert_eq!(knobs.kyc_gate, KycGate::Writes);
        assert_eq!(knobs.dynamic_fields, DynamicFields::Pass);
        assert_eq!(knobs.anchor, Anchor::None);
        assert_eq!(
            (knobs.raw_sender_policy, knobs.raw_nonce_gap_max),
            (RawSenderPolicy::Unclaimed, 64)
        );
        assert_eq!(knobs.mined_trace, MinedTrace::Quarantine);
        assert!(knobs.hide_block_roots && !knobs.hide_base_fee && knobs.admin_claim_sees_all);
    }
}

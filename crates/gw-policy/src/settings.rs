//! The policy settings: configuration that changes what users may see or do (spec/30 section 1, decision 52).
//!
//! `gw-server` reads them once at start; every decision takes them as an argument. The defaults are the profile `spec`.

use crate::{
    disclosure::ClassCheck,
    snapshot::{Snapshot, SystemToggle},
};
use gw_types::{Seconds, Timestamp};

/// K1: an explorer row with one hidden side, for a viewer who is not a participant of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PartialRowMode {
    /// Kept, masked \[S\].
    Mask,
    /// Dropped (strict).
    Drop,
}

/// K2 and K4: which logs of a transaction its participants and the recipients of a share see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionLogs {
    /// Every log of the transaction \[S\].
    All,
    /// Only the logs of emitters that the viewer has a grant on (strict).
    Granted,
}

/// K3: a log that the ABI of its emitter does not describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingAbiMode {
    /// Kept; topics and data are masked by the shape of their words (HD31).
    Pass,
    /// Dropped, except for administrators of the emitter (strict).
    Drop,
}

/// K5: a `bytes` or `string` field in a decodable event of a contract that does not attest its payload (decision 50).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DynamicFields {
    /// Kept, except for words shaped like an address (HD31).
    Pass,
    /// Replaced by zero bytes of equal length.
    Zero,
    /// The whole log is dropped.
    Drop,
}

/// K7: a transaction as shown to an administrator of an organization who is not a participant of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminTx {
    /// Wallet, value, input and signature are masked.
    Masked,
    /// The full object \[P\].
    Full,
}

/// K8: balance and nonce of an address that is not Full (decision 5, HD6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HiddenBalanceMode {
    /// Constant zero, for every kind of address.
    Strict,
    /// Constant zero only if the address is linked to another user.
    Linked,
    /// The real value \[P\].
    Off,
}

/// K12: a transaction with both sides hidden but a surviving token transfer (the explorer's rows).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HiddenTransferMode {
    /// Dropped \[S\].
    None,
    /// Kept, both sides `[PRIVATE]`.
    Keep,
}

/// Which methods require KYC (decision 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KycGate {
    /// WRITE, deployments and everything that moves value \[S\].
    Writes,
    /// Everything except the six metadata methods \[P\].
    All,
}

/// Which senders' signed transactions a caller may forward (HD13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawSenderPolicy {
    /// Senders linked to the caller or to no user.
    Unclaimed,
    /// Senders linked to the caller.
    Owner,
    /// All senders, except those proved by a banned identity or one without KYC.
    Any,
}

/// Which contract creations a send may make (HD2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deployments {
    /// Any creation, with the deploy claim.
    Any,
    /// Only creation code that a super admin approved, so that no hostile code is deployed.
    Approved,
}

/// What happens if a mined send did something that its trace had not shown when it was authorized (HD2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MinedTrace {
    /// Blocks that contain sends are validated before they are read. On a violation the sender is suspended, the
    /// contracts are quarantined and an event is recorded.
    Quarantine,
    /// The blocks of sends are validated, and a violation is only recorded as an event.
    Alert,
    /// The blocks of sends are not validated.
    Off,
}

/// All policy settings. The field docs name the environment variable of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicySettings {
    /// K1, `PRIVACY_ONE_SIDED`.
    pub one_sided: PartialRowMode,
    /// K2, `PRIVACY_PARTICIPANT_LOGS`.
    pub participant_logs: TransactionLogs,
    /// K3, `PRIVACY_NO_ABI`.
    pub no_abi: MissingAbiMode,
    /// K4, `PRIVACY_SHARED_LOGS`.
    pub shared_logs: TransactionLogs,
    /// K5, `PRIVACY_DYNAMIC_FIELDS`.
    pub dynamic_fields: DynamicFields,
    /// K6, `PRIVACY_ALIAS_STRIP`: strip value, input, error and nonce where an alias replaces an address.
    pub alias_strip: bool,
    /// K7, `PRIVACY_ADMIN_TX`.
    pub admin_tx: AdminTx,
    /// K8, `ADDRESS_QUERY_STRICT`.
    pub address_query: HiddenBalanceMode,
    /// K9, `HIDE_BLOCK_ROOTS`: zero the roots in block headers.
    pub hide_block_roots: bool,
    /// K10, `ORG_ADMIN_VIEW_USER_TXS`: organization administrators see their members' transactions.
    pub org_admin_view_user_txs: bool,
    /// K11, `ADMIN_CLAIM_SEES_ALL`: the claim `admin` alone sees all contracts of its organization.
    pub admin_claim_sees_all: bool,
    /// K12, `PRIVACY_ANCHOR`.
    pub anchor: HiddenTransferMode,
    /// `HIDE_BASE_FEE`: publish the suggested gas price instead of the base fee (spec/30 section 8).
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
    /// `DISCLOSURE_STRICT_SCOPE`.
    pub disclosure_classes: ClassCheck,
    /// Lifetime of a reservation whose deployment is not mined (HD14).
    pub reservation_ttl: Seconds,
    /// `RUNTIME_TRACING_ETH_CALL_ENABLED`: [`SystemToggle::EthCallTracing`] without an override.
    pub eth_call_tracing: bool,
    /// `RUNTIME_TRACING_INTRA_ORG_GRANTS_ENABLED`: [`SystemToggle::IntraOrgGrantTracing`] without an override.
    pub intra_org_grant_tracing: bool,
}

impl PolicySettings {
    /// `PRIVACY_PROFILE=spec`: the specification's own choices.
    pub const SPEC: Self = Self {
        one_sided: PartialRowMode::Mask,
        participant_logs: TransactionLogs::All,
        no_abi: MissingAbiMode::Pass,
        shared_logs: TransactionLogs::All,
        dynamic_fields: DynamicFields::Pass,
        alias_strip: true,
        admin_tx: AdminTx::Masked,
        address_query: HiddenBalanceMode::Strict,
        hide_block_roots: true,
        org_admin_view_user_txs: false,
        admin_claim_sees_all: true,
        anchor: HiddenTransferMode::None,
        hide_base_fee: false,
        kyc_gate: KycGate::Writes,
        raw_sender_policy: RawSenderPolicy::Unclaimed,
        raw_nonce_gap_max: 64,
        deployments: Deployments::Any,
        mined_trace: MinedTrace::Quarantine,
        disclosure_classes: ClassCheck::Strict,
        reservation_ttl: Seconds(30 * 60),
        eth_call_tracing: true,
        intra_org_grant_tracing: false,
    };

    /// `PRIVACY_PROFILE=strict`: the strict values of K1 to K6 (K6 has one value in both profiles). Each setting may
    /// still be set individually.
    pub const STRICT: Self = Self {
        one_sided: PartialRowMode::Drop,
        participant_logs: TransactionLogs::Granted,
        no_abi: MissingAbiMode::Drop,
        shared_logs: TransactionLogs::Granted,
        dynamic_fields: DynamicFields::Drop,
        ..Self::SPEC
    };
}

impl PolicySettings {
    /// The configured value of a toggle.
    pub const fn configured(&self, toggle: SystemToggle) -> bool {
        match toggle {
            SystemToggle::EthCallTracing => self.eth_call_tracing,
            SystemToggle::IntraOrgGrantTracing => self.intra_org_grant_tracing,
        }
    }

    /// The current value of a toggle (X9): its override, else the configured value.
    pub fn toggle(&self, snapshot: &Snapshot, toggle: SystemToggle, now: Timestamp) -> bool {
        snapshot.toggle(toggle, now).unwrap_or_else(|| self.configured(toggle))
    }
}

impl Default for PolicySettings {
    fn default() -> Self {
        Self::SPEC
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decisions 3, 5, 13, 17, 50, 52; HD6, HD13: the defaults are those that the decisions prescribe.
    #[test]
    fn the_defaults_are_the_profile_spec() {
        let settings = PolicySettings::default();
        assert_eq!(settings.disclosure_classes, ClassCheck::Strict);
        assert_eq!(settings, PolicySettings::SPEC);
        assert_eq!(settings.address_query, HiddenBalanceMode::Strict);
        assert_eq!(settings.kyc_gate, KycGate::Writes);
        assert_eq!(settings.dynamic_fields, DynamicFields::Pass);
        assert_eq!(settings.anchor, HiddenTransferMode::None);
        assert_eq!(
            (settings.raw_sender_policy, settings.raw_nonce_gap_max),
            (RawSenderPolicy::Unclaimed, 64)
        );
        assert_eq!(settings.mined_trace, MinedTrace::Quarantine);
        assert!(settings.hide_block_roots && !settings.hide_base_fee && settings.admin_claim_sees_all);
    }
}

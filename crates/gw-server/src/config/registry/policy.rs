//! What callers may do, and what they see.

use crate::config::{
    kind::{self, number, words, words_of},
    variable::{Kind, Section::Policy, Variable},
};
use gw_policy::settings::{
    AdminTx, Deployments, DynamicFields, HiddenBalanceMode, HiddenTransferMode, KycGate, MinedTrace, MissingAbiMode,
    PartialRowMode, RawSenderPolicy, TransactionLogs,
};
use std::path::PathBuf;

registry! {
    /// Calls that need a verified (KYC) user: sends and deployments, or everything but the six metadata methods.
    KYC_GATE: KycGate = Variable::new(Policy, &KYC_GATE_KIND).default("writes");
    /// Senders whose signed transactions a caller may submit: addresses that are linked to the caller or to no user
    /// (`unclaimed`), only addresses that are linked to the caller (`owner`), or all addresses (`any`).
    RAW_SENDER_POLICY: RawSenderPolicy = Variable::new(Policy, &RAW_SENDER_KIND).default("unclaimed");
    /// How far above the pending nonce a submitted transaction may be.
    RAW_NONCE_GAP_MAX: u64 =
        Variable::new(Policy, kind!(u64, "a whole number from 0 to 1000000", |t| number(t, 0, 1_000_000)))
            .default("64");
    /// Contracts that a send may create: any, with the claim; or only those whose creation code a super administrator
    /// approved, which keeps hostile code off the chain (docs/production.md).
    DEPLOYMENTS: Deployments = Variable::new(Policy, &DEPLOYMENTS_KIND).default("any");
    /// Reaction to a mined send that did something its trace had not shown. `quarantine`: until the send is cleared,
    /// its sender may not send and all users see the state without it. `alert`: only an event is recorded. `off`: mined
    /// sends are not checked.
    MINED_TRACE: MinedTrace = Variable::new(Policy, &MINED_TRACE_KIND).default("quarantine");
    /// JSON file with methods that are not in the registry: aliases of registered methods, and prefixes whose methods
    /// are passed through without checks (docs/rpc.md).
    EXTRA_RPC_NAMESPACES_FILE: PathBuf = Variable::new(Policy, &kind::PATH)
        .rule("`version` 1 or 2; no name that is blocked, registered or listed twice; read at start only");
    /// Accepts the prefixes of EXTRA_RPC_NAMESPACES_FILE: neither parameters nor results of their methods are checked.
    ALLOW_UNFILTERED_WILDCARDS: bool = Variable::new(Policy, &kind::BOOL).default("false");
    /// HTTP status of a denial on `/rpc`; the body does not depend on it.
    RPC_DENY_HTTP_STATUS: u16 =
        Variable::new(Policy, kind!(u16, "`404` or `200`", |t| number(t, 200, 404).filter(|n| *n == 404 || *n == 200)))
            .default("404");
    /// Defaults of the PRIVACY_* settings that are not set themselves.
    PRIVACY_PROFILE: PrivacyProfile = Variable::new(Policy, &PRIVACY_PROFILE_KIND).default("spec");
    /// Display of a transaction with one hidden side to a viewer who is not a participant (K1). For the explorer.
    PRIVACY_ONE_SIDED: PartialRowMode = Variable::new(Policy, &ONE_SIDED_KIND)
        .derived("by PRIVACY_PROFILE: spec `mask`, strict `drop`");
    /// Logs of a transaction that its participants see (K2).
    PRIVACY_PARTICIPANT_LOGS: TransactionLogs = Variable::new(Policy, &LOGS_KIND)
        .derived("by PRIVACY_PROFILE: spec `all`, strict `granted`");
    /// Logs of a contract without ABI (K3).
    PRIVACY_NO_ABI: MissingAbiMode = Variable::new(Policy, &NO_ABI_KIND)
        .derived("by PRIVACY_PROFILE: spec `pass`, strict `drop`");
    /// Logs that a viewer sees of a transaction shared by `visibleTo` (K4).
    PRIVACY_SHARED_LOGS: TransactionLogs = Variable::new(Policy, &LOGS_KIND)
        .derived("by PRIVACY_PROFILE: spec `all`, strict `granted`");
    /// Opaque fields (`bytes`, `string`) of an event that can be decoded (K5).
    PRIVACY_DYNAMIC_FIELDS: DynamicFields = Variable::new(Policy, &DYNAMIC_FIELDS_KIND)
        .derived("by PRIVACY_PROFILE: spec `pass`, strict `drop`");
    /// Removes value, input, errors and nonce where an alias replaces an address (K6). For the explorer.
    PRIVACY_ALIAS_STRIP: bool = Variable::new(Policy, &kind::BOOL).default("true");
    /// Transactions on `/rpc` for an organization administrator who is not a participant (K7).
    PRIVACY_ADMIN_TX: AdminTx = Variable::new(Policy, &ADMIN_TX_KIND).default("masked");
    /// Balance and nonce of addresses that are not the caller's (K8).
    ADDRESS_QUERY_STRICT: HiddenBalanceMode = Variable::new(Policy, &ADDRESS_QUERY_KIND).default("strict");
    /// Replaces the roots, the bloom and the gas totals of blocks with zeros (K9).
    HIDE_BLOCK_ROOTS: bool = Variable::new(Policy, &kind::BOOL).default("true");
    /// Keeps transactions with two hidden sides for organization administrators (K10). For the explorer.
    ORG_ADMIN_VIEW_USER_TXS: bool = Variable::new(Policy, &kind::BOOL)
        .default("false")
        .rule("each answer that shows one leaves a security event, and the start of the service too");
    /// The `admin` claim gives access to all contracts of its organization (K11).
    ADMIN_CLAIM_SEES_ALL: bool = Variable::new(Policy, &kind::BOOL).default("true");
    /// Display of a transaction with both sides hidden but a visible token transfer (K12). For the explorer.
    PRIVACY_ANCHOR: HiddenTransferMode = Variable::new(Policy, &ANCHOR_KIND).default("none");
    /// Hides the base fee. Gas price and base fee are shown as the node's price rounded up to a power of two, the tip
    /// as one gwei, and the price paid by a typed transaction as its limit or zero. Simulations carry no price, and a
    /// simulation whose code could read the base fee is rejected.
    HIDE_BASE_FEE: bool = Variable::new(Policy, &kind::BOOL).default("false");
    /// Traces `eth_call` and checks every frame. An administrator can switch it for at most a day. Sends are always
    /// traced.
    RUNTIME_TRACING_ETH_CALL_ENABLED: bool = Variable::new(Policy, &kind::BOOL).default("true");
    /// Requires a grant in every frame, also for contracts of the caller's own organization. An administrator can
    /// switch it for at most a day.
    RUNTIME_TRACING_INTRA_ORG_GRANTS_ENABLED: bool = Variable::new(Policy, &kind::BOOL).default("false");
}

words_of!(KycGate, KYC_GATE_KIND, "`writes` or `all`" { Writes = "writes", All = "all" });
words_of!(RawSenderPolicy, RAW_SENDER_KIND, "`unclaimed`, `owner` or `any`" {
    Unclaimed = "unclaimed", Owner = "owner", Any = "any"
});
words_of!(Deployments, DEPLOYMENTS_KIND, "`any` or `approved`" { Any = "any", Approved = "approved" });
words_of!(MinedTrace, MINED_TRACE_KIND, "`quarantine`, `alert` or `off`" {
    Quarantine = "quarantine", Alert = "alert", Off = "off"
});
words_of!(PartialRowMode, ONE_SIDED_KIND, "`mask` or `drop`" { Mask = "mask", Drop = "drop" });
words_of!(TransactionLogs, LOGS_KIND, "`all` or `granted`" { All = "all", Granted = "granted" });
words_of!(MissingAbiMode, NO_ABI_KIND, "`pass` or `drop`" { Pass = "pass", Drop = "drop" });
words_of!(DynamicFields, DYNAMIC_FIELDS_KIND,
    "`pass`, `zero` or `drop`" { Pass = "pass", Zero = "zero", Drop = "drop" });
words_of!(AdminTx, ADMIN_TX_KIND, "`masked` or `full`" { Masked = "masked", Full = "full" });
words_of!(HiddenBalanceMode, ADDRESS_QUERY_KIND, "`strict`, `linked` or `off`" {
    Strict = "strict", Linked = "linked", Off = "off"
});
words_of!(HiddenTransferMode, ANCHOR_KIND, "`none` or `keep`" { None = "none", Keep = "keep" });
words! {
    /// Defaults of the privacy settings (spec/30 section 1).
    PrivacyProfile, PRIVACY_PROFILE_KIND, "`spec` or `strict`" {
        /// The defaults of the specification.
        Spec = "spec",
        /// Stricter defaults that show less.
        Strict = "strict",
    }
}

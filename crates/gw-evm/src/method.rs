//! The closed method registry (spec/20 section 9): a method absent here does not exist, unless the operator's file
//! names it ([`crate::custom_methods`]).

use crate::custom_methods::CustomMethod;
use std::sync::Arc;

macro_rules! registry {
    ($($class:ident { $($name:ident = $text:literal),* $(,)? })*) => {
        /// Every method that may be granted; anything else is blocked or unknown.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Method {
            $($(#[doc = concat!("`", $text, "`")] $name,)*)*
        }

        impl Method {
            /// Every method, in table order.
            pub const ALL: &'static [Self] = &[$($(Self::$name,)*)*];

            /// The canonical name.
            pub const fn as_str(self) -> &'static str {
                match self { $($(Self::$name => $text,)*)* }
            }

            /// The class of the method.
            pub const fn class(self) -> Class {
                match self { $($(Self::$name => Class::$class,)*)* }
            }
        }
    };
}

/// What a method reads or changes; it determines the checks that apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The six metadata methods: open to anonymous callers.
    Meta,
    /// Facts about the chain as a whole.
    Chain,
    /// State of one address.
    State,
    /// Execution without effect.
    Sim,
    /// Event logs.
    Log,
    /// One transaction or receipt.
    Tx,
    /// Blocks and their contents.
    Block,
    /// Sends.
    Write,
    /// Debug traces.
    Trace,
    /// Filters and subscriptions: continued reads of logs and blocks (decision 51).
    Subscription,
}

registry! {
    Meta {
        BlockNumber = "eth_blockNumber",
        ChainId = "eth_chainId",
        GasPrice = "eth_gasPrice",
        NetVersion = "net_version",
        NetListening = "net_listening",
        ClientVersion = "web3_clientVersion",
    }
    Chain {
        Syncing = "eth_syncing",
        MaxPriorityFeePerGas = "eth_maxPriorityFeePerGas",
        FeeHistory = "eth_feeHistory",
        BlobBaseFee = "eth_blobBaseFee",
        ProtocolVersion = "eth_protocolVersion",
        PeerCount = "net_peerCount",
        Sha3 = "web3_sha3",
        Accounts = "eth_accounts",
        Coinbase = "eth_coinbase",
    }
    State {
        GetBalance = "eth_getBalance",
        GetTransactionCount = "eth_getTransactionCount",
        GetCode = "eth_getCode",
        GetStorageAt = "eth_getStorageAt",
        GetProof = "eth_getProof",
    }
    Sim {
        Call = "eth_call",
        EstimateGas = "eth_estimateGas",
        CreateAccessList = "eth_createAccessList",
    }
    Log {
        GetLogs = "eth_getLogs",
    }
    Tx {
        GetTransactionByHash = "eth_getTransactionByHash",
        GetTransactionByBlockHashAndIndex = "eth_getTransactionByBlockHashAndIndex",
        GetTransactionByBlockNumberAndIndex = "eth_getTransactionByBlockNumberAndIndex",
        GetTransactionReceipt = "eth_getTransactionReceipt",
        GetTransactionBySenderAndNonce = "eth_getTransactionBySenderAndNonce",
    }
    Block {
        GetBlockByHash = "eth_getBlockByHash",
        GetBlockByNumber = "eth_getBlockByNumber",
        GetBlockTransactionCountByHash = "eth_getBlockTransactionCountByHash",
        GetBlockTransactionCountByNumber = "eth_getBlockTransactionCountByNumber",
        GetBlockReceipts = "eth_getBlockReceipts",
        GetUncleCountByBlockHash = "eth_getUncleCountByBlockHash",
        GetUncleCountByBlockNumber = "eth_getUncleCountByBlockNumber",
        GetUncleByBlockHashAndIndex = "eth_getUncleByBlockHashAndIndex",
        GetUncleByBlockNumberAndIndex = "eth_getUncleByBlockNumberAndIndex",
    }
    Write {
        SendTransaction = "eth_sendTransaction",
        SendRawTransaction = "eth_sendRawTransaction",
    }
    Trace {
        DebugTraceCall = "debug_traceCall",
        DebugTraceTransaction = "debug_traceTransaction",
    }
    Subscription {
        NewFilter = "eth_newFilter",
        NewBlockFilter = "eth_newBlockFilter",
        GetFilterChanges = "eth_getFilterChanges",
        GetFilterLogs = "eth_getFilterLogs",
        UninstallFilter = "eth_uninstallFilter",
        Subscribe = "eth_subscribe",
        Unsubscribe = "eth_unsubscribe",
    }
}

/// The result of looking up a method name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MethodLookup {
    /// A method of the registry.
    Registered(Method),
    /// A method of the operator's file that is not in the registry (section 13).
    Custom(Arc<CustomMethod>),
    /// A blocked method: nodes may support it, the gateway never serves it.
    Blocked,
    /// Neither registered nor custom nor blocked.
    Unknown,
}

impl MethodLookup {
    /// The registry method whose rules apply to the call. `None` for passthrough, blocked and unknown methods.
    pub fn method(&self) -> Option<Method> {
        match self {
            Self::Registered(method) => Some(*method),
            Self::Custom(custom) => custom.method(),
            Self::Blocked | Self::Unknown => None,
        }
    }
}

impl Method {
    /// Maximum length of a method name in bytes (J4); longer names are unknown.
    pub const NAME_MAX: usize = 128;

    /// The registry method with this name, compared without ASCII case (J6). Names with spaces, escapes or look-alike
    /// characters do not match.
    pub fn by_name(name: &str) -> Option<Self> {
        // A linear search is fast enough: the comparison checks the lengths first.
        Self::ALL
            .iter()
            .copied()
            .find(|method| method.as_str().eq_ignore_ascii_case(name))
    }

    /// Looks `name` up in the registry and among the blocked names, without custom methods.
    pub fn lookup(name: &str) -> MethodLookup {
        if name.len() > Self::NAME_MAX {
            return MethodLookup::Unknown;
        }
        match Self::by_name(name) {
            Some(method) => MethodLookup::Registered(method),
            None if blocked::contains(name) => MethodLookup::Blocked,
            None => MethodLookup::Unknown,
        }
    }
}

pub(crate) mod blocked {
    //! The BLOCKED rows of spec/20 section 9. They are denied like unknown names. The list lets the access record
    //! distinguish methods that nodes support from unknown ones, and keeps custom methods from taking these names.

    /// Whole names. Pending transactions cannot be watched, neither with filters nor with subscriptions (HD18 WS-6).
    const NAMES: &[&str] = &[
        "eth_newpendingtransactionfilter",
        "eth_sign",
        "eth_signtransaction",
        "eth_filltransaction",
        "eth_resend",
        "eth_simulatev1",
        "eth_callmany",
        "eth_callbundle",
        "eth_getblockaccesslist",
        "eth_pendingtransactions",
        "eth_supportedentrypoints",
        "eth_sendbundle",
        "eth_sendrawtransactionconditional",
        "eth_sendrawtransactionsync",
        "rpc_modules",
        "eth_getwork",
        "eth_mining",
        "eth_hashrate",
    ];

    /// Families of methods, by name prefix.
    const PREFIXES: &[&str] = &[
        "admin_",
        "clique_",
        "db_",
        "debug_",
        "eea_",
        "engine_",
        "erigon_",
        "eth_cancel",
        "eth_getheader",
        "eth_getrawtransaction",
        "eth_sendprivate",
        "eth_signtypeddata",
        "eth_submit",
        "flashbots_",
        "ibft_",
        "istanbul_",
        "les_",
        "mev_",
        "miner_",
        "ots_",
        "parity_",
        "perm_",
        "personal_",
        "pimlico_",
        "priv_",
        "qbft_",
        "trace_",
        "txpool_",
    ];

    /// ERC-4337 bundlers name their methods `eth_*UserOperation*`.
    const USER_OPERATION: &str = "useroperation";

    pub(crate) fn contains(name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        NAMES.contains(&name.as_str())
            || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
            || name
                .strip_prefix("eth_")
                .is_some_and(|rest| rest.contains(USER_OPERATION))
    }

    /// Whether a name that starts with `prefix` can be blocked.
    pub(crate) fn overlaps(prefix: &str) -> bool {
        let prefix = prefix.to_ascii_lowercase();
        let families = PREFIXES
            .iter()
            .any(|family| family.starts_with(&prefix) || prefix.starts_with(family));
        families || NAMES.iter().any(|name| name.starts_with(&prefix)) || "eth_".starts_with(&prefix)
    }
}

/// A set of granted methods. `*` is stored as `*` and means every registry method at the time of use (spec/20 G3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MethodSet {
    bits: u64,
    all: bool,
}

impl MethodSet {
    /// No method.
    pub const EMPTY: Self = Self { bits: 0, all: false };
    /// Every registry method (`*`).
    pub const ALL: Self = Self { bits: 0, all: true };

    const fn bit(method: Method) -> u64 {
        1 << (method as u8)
    }

    /// Whether the set holds `method`.
    pub const fn has(self, method: Method) -> bool {
        self.all || self.bits & Self::bit(method) != 0
    }

    /// The set with `method`.
    #[must_use]
    pub const fn with(self, method: Method) -> Self {
        Self {
            bits: self.bits | Self::bit(method),
            all: self.all,
        }
    }

    /// The set without the methods of `other`. `*` without a non-empty set is a list of methods.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        if other.is_empty() {
            return self;
        }
        Method::ALL
            .iter()
            .filter(|method| self.has(**method) && !other.has(**method))
            .copied()
            .collect()
    }

    /// The union of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self {
            bits: self.bits | other.bits,
            all: self.all || other.all,
        }
    }

    /// Whether nothing is granted.
    pub const fn is_empty(self) -> bool {
        self.bits == 0 && !self.all
    }

    /// Whether `*` was granted.
    pub const fn is_all(self) -> bool {
        self.all
    }

    /// The granted registry methods, in table order.
    pub fn iter(self) -> impl Iterator<Item = Method> {
        Method::ALL.iter().copied().filter(move |method| self.has(*method))
    }

    /// The entries as stored: `*` first if granted, then the methods that are listed by name.
    pub fn names(self) -> Vec<&'static str> {
        let methods = Method::ALL
            .iter()
            .filter(|method| self.bits & Self::bit(**method) != 0)
            .map(|m| m.as_str());
        self.all.then_some(Self::WILDCARD).into_iter().chain(methods).collect()
    }

    /// Every registry method, as written in a method list (G3).
    pub const WILDCARD: &'static str = "*";

    /// Reads a method list.
    ///
    /// # Errors
    ///
    /// [`UnknownMethod`] if a name is neither `*` nor a registry method (G3).
    pub fn parse<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, UnknownMethod> {
        names
            .into_iter()
            .try_fold(Self::EMPTY, |set, name| match Method::by_name(name) {
                Some(method) => Ok(set.with(method)),
                None if name == Self::WILDCARD => Ok(set.union(Self::ALL)),
                None => Err(UnknownMethod(name.to_owned())),
            })
    }
}

/// A method list contains a name that cannot be granted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a method that can be granted")]
pub struct UnknownMethod(pub String);

impl FromIterator<Method> for MethodSet {
    fn from_iter<I: IntoIterator<Item = Method>>(methods: I) -> Self {
        methods.into_iter().fold(Self::EMPTY, Self::with)
    }
}

const _: () = assert!(Method::ALL.len() <= 64, "MethodSet keeps one bit per method");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn j6_names_fold_ascii_case_to_the_registry() {
        for method in Method::ALL {
            let name = method.as_str();
            assert_eq!(Method::lookup(name), MethodLookup::Registered(*method));
            assert_eq!(
                Method::lookup(&name.to_ascii_uppercase()),
                MethodLookup::Registered(*method)
            );
        }
    }

    #[test]
    fn j6_spaces_escapes_look_alikes_and_prefixes_are_unknown() {
        for name in [
            "",
            " eth_call",
            "eth_call ",
            "eth_call\n",
            "eth_call\0",
            r"eth\u005fcall",
            "eth_cаll", // a Cyrillic a
            "eth_ca\u{212a}l",
            "eth_cal",
            "eth_callx",
            "eth-call",
            "*",
        ] {
            assert_eq!(Method::lookup(name), MethodLookup::Unknown, "{name:?}");
        }
        assert_eq!(Method::lookup(&"a".repeat(1 << 16)), MethodLookup::Unknown);
    }

    #[test]
    fn section_9_blocked_names_and_families() {
        for name in [
            "eth_newPendingTransactionFilter",
            "eth_sign",
            "eth_signTypedData_v4",
            "personal_unlockAccount",
            "eth_simulateV1",
            "trace_block",
            "debug_traceBlockByNumber",
            "DEBUG_traceblock",
            "eth_getRawTransactionByHash",
            "eth_getHeaderByNumber",
            "txpool_content",
            "eth_estimateUserOperationGas",
            "eth_sendUserOperation",
            "eth_sendPrivateTransaction",
            "eth_cancelBundle",
            "eth_sendRawTransactionSync",
            "engine_newPayloadV4",
            "rpc_modules",
            "eth_submitWork",
        ] {
            assert_eq!(Method::lookup(name), MethodLookup::Blocked, "{name}");
        }
    }

    #[test]
    fn section_9_only_the_debug_rows_belong_to_a_blocked_family() {
        // The registry takes precedence over the blocked family.
        let blocked_rows: Vec<_> = Method::ALL
            .iter()
            .filter(|method| blocked::contains(method.as_str()))
            .collect();
        assert_eq!(blocked_rows, [&Method::DebugTraceCall, &Method::DebugTraceTransaction]);
    }

    #[test]
    fn g3_star_is_every_row_and_unknown_names_are_refused() {
        let all = MethodSet::parse(["*"]).unwrap();
        assert!(Method::ALL.iter().all(|method| all.has(*method)));
        assert_eq!(all.names(), ["*"]);
        assert_eq!(
            MethodSet::parse(["eth_call", "eth_nope"]),
            Err(UnknownMethod("eth_nope".into()))
        );
        assert_eq!(
            MethodSet::parse(["trace_block"]),
            Err(UnknownMethod("trace_block".into()))
        );
    }

    #[test]
    fn g2_lists_match_without_case_and_are_kept_canonical() {
        let set = MethodSet::parse(["ETH_CALL", "eth_getlogs"]).unwrap();
        assert_eq!(set.names(), ["eth_call", "eth_getLogs"]);
        assert_eq!(set.iter().collect::<Vec<_>>(), [Method::Call, Method::GetLogs]);
        assert!(!set.has(Method::GetBalance));
        assert!(MethodSet::parse([]).unwrap().is_empty());
    }
}

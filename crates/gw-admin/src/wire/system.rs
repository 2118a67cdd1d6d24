use gw_evm::CustomMethods;
use gw_types::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The state of a system toggle.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SystemToggleResponse {
    pub(crate) enabled: bool,
    /// The configured value.
    pub(crate) env_default: bool,
    /// The origin of the value: `env` (configuration) or `runtime` (override).
    pub(crate) source: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) changed_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) changed_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// When the override expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) expires_at: Option<Timestamp>,
}

/// Overrides a system toggle for a limited time.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct SystemToggleRequest {
    pub(crate) enabled: bool,
    /// 1 to 500 characters.
    #[serde(default)]
    pub(crate) reason: String,
    /// When the override expires, as RFC 3339: at most 24 hours ahead, which is also the default.
    #[serde(default)]
    pub(crate) expires_at: Option<String>,
}

/// The status of an instance.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StatusResponse {
    pub(crate) proxy: ProxyStatus,
    pub(crate) node: NodeStatus,
    pub(crate) security: SecurityStatus,
    pub(crate) methods: MethodsStatus,
}

/// The status of the gateway itself.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProxyStatus {
    pub(crate) status: &'static str,
    pub(crate) port: String,
}

/// The status of the node in use.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NodeStatus {
    /// Scheme, host and port.
    pub(crate) url: String,
    /// `ok` or `error`.
    pub(crate) status: &'static str,
    pub(crate) latency_ms: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<&'static str>,
}

/// The state of compliance features; this version has none.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SecurityStatus {
    pub(crate) travel_rule_enabled: bool,
}

/// Methods that the operator added to the registry (N4).
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MethodsStatus {
    /// The methods that are aliases of registered methods, by namespace.
    extra_namespaces: BTreeMap<String, Vec<String>>,
    /// The prefix whose methods pass through unexamined, by namespace.
    extra_wildcards: BTreeMap<String, ExtraWildcardInfo>,
}

/// A prefix of passthrough methods, and the methods excluded from it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExtraWildcardInfo {
    prefix: String,
    deny: Vec<String>,
}

impl MethodsStatus {
    pub(crate) fn from_custom_methods(custom_methods: &CustomMethods) -> Self {
        let namespaces = custom_methods.namespaces().iter();
        let names = namespaces.clone().map(|(name, namespace)| {
            (
                name.clone(),
                namespace
                    .methods
                    .iter()
                    .map(|method| method.name().to_owned())
                    .collect(),
            )
        });
        let wildcards = namespaces.filter_map(|(name, namespace)| {
            let wildcard = namespace.wildcard.as_ref()?;
            Some((
                name.clone(),
                ExtraWildcardInfo {
                    prefix: wildcard.prefix.clone(),
                    deny: wildcard.deny.clone(),
                },
            ))
        });
        Self {
            extra_namespaces: names.collect(),
            extra_wildcards: wildcards.collect(),
        }
    }
}

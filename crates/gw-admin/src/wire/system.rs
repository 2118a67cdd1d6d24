use gw_evm::Extras;
use gw_types::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// How a system toggle stands.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SystemToggleResponse {
    pub(crate) enabled: bool,
    /// What the configuration says.
    pub(crate) env_default: bool,
    /// `env` or `runtime`.
    pub(crate) source: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) changed_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) changed_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// When the configuration decides again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) expires_at: Option<Timestamp>,
}

/// Turns a system toggle for a while.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct SystemToggleRequest {
    pub(crate) enabled: bool,
    /// 1 to 500 characters.
    #[serde(default)]
    pub(crate) reason: String,
    /// RFC 3339, at most 24 hours ahead, which is also the default.
    #[serde(default)]
    pub(crate) expires_at: Option<String>,
}

/// How an instance is.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StatusResponse {
    pub(crate) proxy: ProxyStatus,
    pub(crate) node: NodeStatus,
    pub(crate) security: SecurityStatus,
    pub(crate) methods: MethodsStatus,
}

/// The gateway itself.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProxyStatus {
    pub(crate) status: &'static str,
    pub(crate) port: String,
}

/// The node in use.
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

/// Compliance, which is not part of this version.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SecurityStatus {
    pub(crate) travel_rule_enabled: bool,
}

/// Methods beside the registry (N4).
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MethodsStatus {
    /// By namespace, the methods that stand for one of the registry.
    extra_namespaces: BTreeMap<String, Vec<String>>,
    /// By namespace, the prefix whose methods pass through unexamined.
    extra_wildcards: BTreeMap<String, ExtraWildcardInfo>,
}

/// A prefix, and what of it does not pass.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExtraWildcardInfo {
    prefix: String,
    deny: Vec<String>,
}

impl MethodsStatus {
    pub(crate) fn of(extras: &Extras) -> Self {
        let namespaces = extras.namespaces().iter();
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

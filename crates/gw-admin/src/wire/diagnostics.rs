use gw_policy::{access, snapshot};
use gw_store::record;
use gw_types::{B256, Claim, Claims, ContractId, GrantId, GroupId, MembershipId, OrgId, Timestamp, UserId};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::Value;
use std::{borrow::Cow, collections::BTreeMap};
use utoipa::ToSchema;

/// A call to test.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct TestRequestInput {
    /// The access token of the caller to test as; an anonymous caller if absent.
    pub(crate) jwt_token: Option<String>,
    pub(crate) method: String,
    /// The organization the call names; required for administrators of organizations.
    pub(crate) org_id: Option<String>,
    #[serde(default)]
    #[schema(value_type = Vec<Value>)]
    pub(crate) params: Vec<Value>,
    /// Allows sends, which take effect; super only.
    #[serde(default)]
    pub(crate) allow_write: bool,
}

/// The outcome of a tested call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TestRequestResponse {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value)]
    pub(crate) result: Option<Value>,
    /// The error message that the caller gets, and the denial reason in parentheses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// The DID of the caller, or a placeholder for an anonymous caller.
    pub(crate) identity: String,
    pub(crate) latency_ms: i64,
}

/// A call to check for a user. The organization is named by id or slug.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct AccessCheckRequest {
    pub(crate) method: String,
    /// The user whose access is checked; an anonymous caller if absent.
    #[serde(default)]
    pub(crate) user_external_id: Option<String>,
    #[serde(default)]
    pub(crate) org_id: Option<String>,
    #[serde(default)]
    pub(crate) org_slug: Option<String>,
    /// The parameters of the call, as a client would send them.
    #[serde(default)]
    #[schema(value_type = Option<Vec<Value>>)]
    pub(crate) params: Option<Vec<Value>>,
    /// Instead of `params`: the address that the call is about.
    #[serde(default)]
    pub(crate) target_address: Option<String>,
    /// With `target_address`: the function selector, four bytes of hex.
    #[serde(default)]
    pub(crate) function_selector: Option<String>,
    /// Further claims that the user must hold.
    #[serde(default)]
    pub(crate) required_claims: Vec<String>,
}

/// The decision for a checked call, and its explanation.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AccessCheckResult {
    pub(crate) allowed: bool,
    /// Whether the call was denied because it has no user: the caller is not logged in.
    pub(crate) auth_required: bool,
    /// The claims that the user holds, on the target or in the organization.
    pub(crate) claims: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    pub(crate) org_id: Option<OrgId>,
    /// The denial reason: a code of the access log, or `missing_claim`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    pub(crate) user_id: Option<UserId>,
    pub(crate) explanation: Explanation,
}

/// The basis of a decision. It contains nothing about other organizations.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Explanation {
    /// The deciding check; `passed` if all checks passed.
    pub(crate) rule: &'static str,
    /// The deciding check in words.
    pub(crate) text: Cow<'static, str>,
    /// How an allowed call is answered: `forward`, `trace`, `constant_zero` and so on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) plan: Option<&'static str>,
    /// The user's groups in the organization.
    pub(crate) groups: Vec<ExplainedGroup>,
    /// The addresses that the call is about.
    pub(crate) targets: Vec<ExplainedTarget>,
}

/// One of the user's groups, and what it allows.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExplainedGroup {
    #[schema(value_type = String, format = Uuid)]
    group_id: GroupId,
    slug: String,
    #[schema(value_type = String, format = Uuid)]
    membership_id: MembershipId,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    /// Whether the membership and the access are effective now.
    active: bool,
    lists_method: bool,
    claims: Vec<&'static str>,
}

/// An address, and how the user may access it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExplainedTarget {
    #[schema(value_type = String)]
    address: String,
    /// `org_admin`, `grant`, `deployer`, `own_address`, `public`, `shared_infrastructure`, `reservation` or `none`.
    reached_by: &'static str,
    /// The contract at the address, if it is the organization's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    contract_id: Option<ContractId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    contract_name: Option<String>,
    /// The grants on the contract, of the user and of others.
    grants: Vec<ExplainedGrant>,
}

/// A grant, and what it allows.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExplainedGrant {
    #[schema(value_type = String, format = Uuid)]
    grant_id: GrantId,
    #[schema(value_type = String, format = Uuid)]
    group_id: GroupId,
    group_slug: String,
    /// Whether the user holds it through an active membership.
    held: bool,
    /// Whether the grant allows the called function, apart from its parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    opens_function: Option<bool>,
    claims: Vec<&'static str>,
}

impl Explanation {
    pub(crate) fn new(explanation: &access::Explanation<'_>, plan: Option<&'static str>) -> Self {
        let names = |claims: Claims| claims.iter().map(Claim::as_str).collect();
        let group = |explained: &access::GroupExplanation<'_>| ExplainedGroup {
            group_id: explained.group.id,
            slug: explained.group.slug.to_string(),
            membership_id: explained.membership.id,
            expires_at: explained.membership.expires_at,
            active: explained.active,
            lists_method: explained.lists_method,
            claims: names(explained.claims),
        };
        let grant = |explained: &access::GrantExplanation<'_>| ExplainedGrant {
            grant_id: explained.grant.id,
            group_id: explained.group.id,
            group_slug: explained.group.slug.to_string(),
            held: explained.is_held_by_user,
            opens_function: explained.opens_function,
            claims: names(explained.grant.claims),
        };
        let target = |explained: &access::TargetExplanation<'_>| ExplainedTarget {
            address: super::lower(explained.address),
            reached_by: explained.way.as_str(),
            contract_id: explained.contract.map(|contract| contract.id),
            contract_name: explained.contract.map(|contract| contract.name.to_string()),
            grants: explained.grants.iter().map(grant).collect(),
        };
        Self {
            rule: explanation.rule.as_str(),
            text: words(explanation.rule).into(),
            plan,
            groups: explanation.groups.iter().map(group).collect(),
            targets: explanation.targets.iter().map(target).collect(),
        }
    }
}

/// The deciding check in words.
pub(crate) const fn words(rule: access::DecidingCheck) -> &'static str {
    use access::DecidingCheck;
    match rule {
        DecidingCheck::Method => "the method is not served",
        DecidingCheck::Identity => "nobody is logged in, the account is unknown, or it is banned",
        DecidingCheck::Kyc => "KYC is not completed",
        DecidingCheck::Suspension => "sends of this user are suspended until an administrator clears it",
        DecidingCheck::Organization => {
            "the organization is not one the user is an active member of, or not the target's"
        }
        DecidingCheck::MethodList => "no active group of the user in the organization lists the method",
        DecidingCheck::Parameters => "the parameters are not what the method takes",
        DecidingCheck::Multicall => "calls through multicall contracts are not judged",
        DecidingCheck::History => "blocks of the past are for administrators of the organization",
        DecidingCheck::Target => "the address is not within the user's reach",
        DecidingCheck::Grant => "no active group of the user holds a grant on the contract",
        DecidingCheck::Function => "no grant of the user opens the function",
        DecidingCheck::ParamRule => {
            "a parameter is not what the grants demand (an address of the user counts only where it is known to you), \
             or the storage slot is not a standard one"
        }
        DecidingCheck::Claim => "the user lacks the claim",
        DecidingCheck::Sender => "the sender is not linked to the user, or not known to you as the user's",
        DecidingCheck::Pin => "the code of the shared contract is not the pinned one",
        DecidingCheck::Trace => "something the execution enters or reads is not within the user's reach",
        DecidingCheck::Compliance => "compliance refuses",
        DecidingCheck::Limit => "a limit is reached",
        DecidingCheck::Service => "node, policy or journal is not available",
        DecidingCheck::Passed => "every check is passed",
    }
}

/// Everything that a user may do in one organization.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EffectivePermissions {
    /// The user's and the organization's id, joined by a colon.
    id: String,
    #[schema(value_type = String, format = Uuid)]
    user_id: UserId,
    #[schema(value_type = String, format = Uuid)]
    org_id: OrgId,
    allowed_methods: Vec<String>,
    claims: Vec<&'static str>,
    /// Access by contract address.
    contract_access: BTreeMap<String, ContractAccess>,
    #[schema(value_type = String, format = DateTime)]
    computed_at: Timestamp,
    /// When the first underlying membership ends; `null` if none ends.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
}

/// Rights on one contract.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContractAccess {
    claims: Vec<&'static str>,
    /// The allowed functions; `null` means every function.
    #[schema(value_type = Option<Vec<super::rules::FunctionRule>>)]
    functions: Option<Vec<record::FunctionRule>>,
    event_rules: ContractEventRules,
}

/// The events that are visible.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContractEventRules {
    /// Whether every event is visible.
    wildcard: bool,
    #[schema(value_type = Vec<super::rules::EventRule>)]
    rules: Vec<record::EventRule>,
}

impl EffectivePermissions {
    pub(crate) fn new(
        user_id: UserId,
        org_id: OrgId,
        effective: &access::Effective<'_>,
        computed_at: Timestamp,
    ) -> Self {
        let names = |claims: Claims| claims.iter().map(Claim::as_str).collect();
        let access = |rights: &access::ContractRights<'_>| ContractAccess {
            claims: names(rights.claims),
            functions: rights
                .functions
                .as_ref()
                .map(|rules| rules.iter().map(|rule| function(rule)).collect()),
            event_rules: ContractEventRules {
                wildcard: rights.events.is_none(),
                rules: rights.events.iter().flatten().map(|rule| event(rule)).collect(),
            },
        };
        Self {
            id: format!("{user_id}:{org_id}"),
            user_id,
            org_id,
            allowed_methods: effective
                .permissions
                .methods
                .names()
                .iter()
                .chain(&effective.custom_methods)
                .map(ToString::to_string)
                .collect(),
            claims: names(effective.permissions.claims),
            contract_access: effective
                .contracts
                .iter()
                .map(|c| (super::lower(c.contract.address), access(c)))
                .collect(),
            computed_at,
            expires_at: effective.expires_at,
        }
    }
}

fn function(rule: &snapshot::FunctionRule) -> record::FunctionRule {
    record::FunctionRule {
        selector: rule.selector,
        param_rules: rule.params.iter().map(param).collect(),
    }
}

fn event(rule: &snapshot::EventRule) -> record::EventRule {
    let param_rules = rule.params.iter().map(param).collect();
    record::EventRule {
        topic0: rule.topic0,
        name: String::new(),
        param_rules,
    }
}

fn param(rule: &snapshot::ParamRule) -> record::ParamRule {
    let literal = |word: &B256| record::Literal {
        text: format!("{word:#x}"),
        word: *word,
    };
    let must_be = match &rule.must_be {
        snapshot::Constraint::Own => record::MustBe::Own,
        snapshot::Constraint::Org => record::MustBe::Org,
        snapshot::Constraint::Word(word) => record::MustBe::Literal(literal(word)),
        snapshot::Constraint::OneOf(words) => record::MustBe::OneOf(words.iter().map(literal).collect()),
        snapshot::Constraint::Compare(comparison, word) => record::MustBe::Compare(*comparison, literal(word)),
    };
    record::ParamRule {
        index: u16::try_from(rule.index).unwrap_or(u16::MAX),
        must_be,
    }
}

/// A call to simulate as a member, without effects.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct DryRunRequest {
    /// The DID of the member.
    pub(crate) user_did: String,
    pub(crate) rpc: DryRunRpcBlock,
}

/// The call of a dry run.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = DryRunRPCBlock)]
pub(crate) struct DryRunRpcBlock {
    pub(crate) method: String,
    #[serde(default)]
    #[schema(value_type = Vec<Value>)]
    pub(crate) params: Vec<Value>,
}

/// The outcome of a dry run.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DryRunResponseDoc {
    /// `allowed` or `denied`.
    pub(crate) decision: &'static str,
    /// The denial reason: a code of the access log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'static str>,
    /// The response of a read, or the error of its execution. Content that the administrator may not see is left out or
    /// masked.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value)]
    pub(crate) response: Option<Value>,
    /// The call tree of a send, without frames that the member may not see.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value)]
    pub(crate) trace: Option<Value>,
    /// All events of a send.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Value>>)]
    pub(crate) logs_emitted: Option<Vec<Value>>,
    /// The events of a send that the member would see.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Value>>)]
    pub(crate) logs_visible_to_user: Option<Vec<Value>>,
    /// The frame at which the execution was denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stopped_at: Option<StoppedFrame>,
    pub(crate) explanation: Explanation,
}

/// A frame of an execution.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StoppedFrame {
    /// The index of the frame, from 0, in the order in which frames are entered; absent if an account was only read.
    #[serde(skip_serializing_if = "Option::is_none")]
    frame: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<u32>,
    /// The address, if both the member and the administrator may know it.
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
}

impl From<access::DeniedFrame> for StoppedFrame {
    fn from(denied: access::DeniedFrame) -> Self {
        Self {
            frame: denied.frame,
            depth: denied.depth,
            address: denied.address.map(super::lower),
        }
    }
}

/// A read to make as a member, in the form of a JSON-RPC request.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct ViewAsRequest {
    pub(crate) method: String,
    #[serde(default)]
    #[schema(value_type = Vec<Value>)]
    pub(crate) params: Vec<Value>,
    /// Returned unchanged in the response.
    #[serde(default)]
    #[schema(value_type = Value)]
    pub(crate) id: Option<Value>,
    /// `2.0`; accepted because JSON-RPC clients send it.
    #[serde(default, rename = "jsonrpc")]
    #[schema(value_type = Option<String>)]
    pub(crate) _jsonrpc: Option<IgnoredAny>,
}

/// A JSON-RPC response.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ViewAsAnswer {
    pub(crate) jsonrpc: &'static str,
    #[schema(value_type = Value)]
    pub(crate) id: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value)]
    pub(crate) result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value)]
    pub(crate) error: Option<Value>,
}

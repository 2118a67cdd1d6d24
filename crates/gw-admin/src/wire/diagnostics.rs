use gw_policy::{access, snapshot};
use gw_store::record;
use gw_types::{B256, Claim, Claims, ContractId, GrantId, GroupId, MembershipId, OrgId, Timestamp, UserId};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::Value;
use std::{borrow::Cow, collections::BTreeMap};
use utoipa::ToSchema;

/// A call to try.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct TestRequestInput {
    /// An access token of whom the call is tried as; without one it is an anonymous caller's.
    pub(crate) jwt_token: Option<String>,
    pub(crate) method: String,
    /// The organization the call names; required for administrators of organizations.
    pub(crate) org_id: Option<String>,
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    pub(crate) params: Vec<Value>,
    /// Sends take effect: they run only with this, and for super administrators.
    #[serde(default)]
    pub(crate) allow_write: bool,
}

/// What came of it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TestRequestResponse {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(crate) result: Option<Value>,
    /// What the caller is told, and in parentheses why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// Who the call was tried as.
    pub(crate) identity: String,
    pub(crate) latency_ms: i64,
}

/// May somebody do this? The organization is named by id or slug.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct AccessCheckRequest {
    pub(crate) method: String,
    /// Whose right is asked about; without it an anonymous caller's.
    #[serde(default)]
    pub(crate) user_external_id: Option<String>,
    #[serde(default)]
    pub(crate) org_id: Option<String>,
    #[serde(default)]
    pub(crate) org_slug: Option<String>,
    /// The parameters of the call, as a client would send them.
    #[serde(default)]
    #[schema(value_type = Option<Vec<Object>>)]
    pub(crate) params: Option<Vec<Value>>,
    /// In place of `params`: the address the call is about.
    #[serde(default)]
    pub(crate) target_address: Option<String>,
    /// With `target_address`: the function, as four bytes of hex.
    #[serde(default)]
    pub(crate) function_selector: Option<String>,
    /// Claims that must be held besides.
    #[serde(default)]
    pub(crate) required_claims: Vec<String>,
}

/// The decision, by the function that serves callers, and what it stood on.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AccessCheckResult {
    pub(crate) allowed: bool,
    /// Denied for want of a login.
    pub(crate) auth_required: bool,
    /// The claims held: on the target, or in the organization.
    pub(crate) claims: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    pub(crate) org_id: Option<OrgId>,
    /// Why not: a code of the access log, or `missing_claim`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    pub(crate) user_id: Option<UserId>,
    pub(crate) explanation: Explanation,
}

/// What a decision stood on; nothing of other organizations.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Explanation {
    /// The check that settled it, `passed` if all were passed.
    pub(crate) rule: &'static str,
    /// What that check says, in words.
    pub(crate) text: Cow<'static, str>,
    /// How a call that may go on is answered: `forward`, `trace`, `constant_zero` and so on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) plan: Option<&'static str>,
    /// The user's groups in the organization.
    pub(crate) groups: Vec<ExplainedGroup>,
    /// What the call is about.
    pub(crate) targets: Vec<ExplainedTarget>,
}

/// What one of the user's groups contributes.
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
    /// Whether membership and access count now.
    active: bool,
    lists_method: bool,
    claims: Vec<&'static str>,
}

/// What an address is to the user.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExplainedTarget {
    #[schema(value_type = String)]
    address: String,
    /// `org_admin`, `grant`, `deployer`, `own_address`, `public`, `shared_infrastructure`, `reservation` or `none`.
    reached_by: &'static str,
    /// The contract there, if it is the organization's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    contract_id: Option<ContractId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    contract_name: Option<String>,
    /// The grants on the contract, held by the user or not.
    grants: Vec<ExplainedGrant>,
}

/// What one grant contributes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExplainedGrant {
    #[schema(value_type = String, format = Uuid)]
    grant_id: GrantId,
    #[schema(value_type = String, format = Uuid)]
    group_id: GroupId,
    group_slug: String,
    /// Whether the user holds it through an active membership.
    held: bool,
    /// Whether it opens the function that is called, parameters aside.
    #[serde(skip_serializing_if = "Option::is_none")]
    opens_function: Option<bool>,
    claims: Vec<&'static str>,
}

impl Explanation {
    pub(crate) fn of(found: &access::Explanation<'_>, plan: Option<&'static str>) -> Self {
        let names = |claims: Claims| claims.iter().map(Claim::as_str).collect();
        let group = |says: &access::GroupSays<'_>| ExplainedGroup {
            group_id: says.group.id,
            slug: says.group.slug.to_string(),
            membership_id: says.membership.id,
            expires_at: says.membership.expires_at,
            active: says.active,
            lists_method: says.lists_method,
            claims: names(says.claims),
        };
        let grant = |says: &access::GrantSays<'_>| ExplainedGrant {
            grant_id: says.grant.id,
            group_id: says.group.id,
            group_slug: says.group.slug.to_string(),
            held: says.held,
            opens_function: says.opens_function,
            claims: names(says.grant.claims),
        };
        let target = |says: &access::TargetSays<'_>| ExplainedTarget {
            address: super::lower(says.address),
            reached_by: says.way.as_str(),
            contract_id: says.contract.map(|contract| contract.id),
            contract_name: says.contract.map(|contract| contract.name.to_string()),
            grants: says.grants.iter().map(grant).collect(),
        };
        Self {
            rule: found.rule.as_str(),
            text: words(found.rule).into(),
            plan,
            groups: found.groups.iter().map(group).collect(),
            targets: found.targets.iter().map(target).collect(),
        }
    }
}

/// The rule in words.
pub(crate) const fn words(rule: access::Rule) -> &'static str {
    use access::Rule;
    match rule {
        Rule::Method => "the method is not served",
        Rule::Identity => "nobody is logged in, the account is unknown, or it is banned",
        Rule::Kyc => "KYC is not completed",
        Rule::Suspension => "sends of this user are suspended until an administrator clears it",
        Rule::Organization => "the organization is not one the user is an active member of, or not the target's",
        Rule::MethodList => "no active group of the user in the organization lists the method",
        Rule::Parameters => "the parameters are not what the method takes",
        Rule::Multicall => "calls through multicall contracts are not judged",
        Rule::History => "blocks of the past are for administrators of the organization",
        Rule::Target => "the address is not within the user's reach",
        Rule::Grant => "no active group of the user holds a grant on the contract",
        Rule::Function => "no grant of the user opens the function",
        Rule::ParamRule => {
            "a parameter is not what the grants demand (an address of the user counts only where it is known to you), or the storage slot is not a standard one"
        }
        Rule::Claim => "the user lacks the claim",
        Rule::Sender => "the sender is not linked to the user, or not known to you as the user's",
        Rule::Pin => "the code of the shared contract is not the pinned one",
        Rule::Trace => "something the execution enters or reads is not within the user's reach",
        Rule::Compliance => "compliance refuses",
        Rule::Limit => "a limit is reached",
        Rule::Service => "node, policy or journal is not available",
        Rule::Passed => "every check is passed",
    }
}

/// All that somebody may do in one organization.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EffectivePermissions {
    /// User and organization.
    id: String,
    #[schema(value_type = String, format = Uuid)]
    user_id: UserId,
    #[schema(value_type = String, format = Uuid)]
    org_id: OrgId,
    allowed_methods: Vec<String>,
    claims: Vec<&'static str>,
    /// By address of the contract.
    contract_access: BTreeMap<String, ContractAccess>,
    #[schema(value_type = String, format = DateTime)]
    computed_at: Timestamp,
    /// When the first membership it stands on ends; `null` if none does.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
}

/// Rights on one contract.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContractAccess {
    claims: Vec<&'static str>,
    /// `null`: every function.
    #[schema(value_type = Option<Vec<Object>>)]
    functions: Option<Vec<record::FunctionRule>>,
    event_rules: ContractEventRules,
}

/// Which events show.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContractEventRules {
    /// Every event.
    wildcard: bool,
    #[schema(value_type = Vec<Object>)]
    rules: Vec<record::EventRule>,
}

impl EffectivePermissions {
    pub(crate) fn of(user_id: UserId, org_id: OrgId, found: &access::Effective<'_>, computed_at: Timestamp) -> Self {
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
            allowed_methods: found
                .permissions
                .methods
                .names()
                .iter()
                .chain(&found.extras)
                .map(ToString::to_string)
                .collect(),
            claims: names(found.permissions.claims),
            contract_access: found
                .contracts
                .iter()
                .map(|c| (super::lower(c.contract.address), access(c)))
                .collect(),
            computed_at,
            expires_at: found.expires_at,
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
        snapshot::MustBe::Own => record::MustBe::Own,
        snapshot::MustBe::Org => record::MustBe::Org,
        snapshot::MustBe::Word(word) => record::MustBe::Literal(literal(word)),
        snapshot::MustBe::OneOf(words) => record::MustBe::OneOf(words.iter().map(literal).collect()),
        snapshot::MustBe::Compare(comparison, word) => record::MustBe::Compare(*comparison, literal(word)),
    };
    record::ParamRule {
        index: u16::try_from(rule.index).unwrap_or(u16::MAX),
        must_be,
    }
}

/// A call to be run as a member, without effect.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct DryRunRequest {
    /// Whose call it would be.
    pub(crate) user_did: String,
    pub(crate) rpc: DryRunRpcBlock,
}

/// The call.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = DryRunRPCBlock)]
pub(crate) struct DryRunRpcBlock {
    pub(crate) method: String,
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    pub(crate) params: Vec<Value>,
}

/// What would come of it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DryRunResponseDoc {
    /// `allowed` or `denied`.
    pub(crate) decision: &'static str,
    /// Why not: a code of the access log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'static str>,
    /// What a read answers, or how its execution failed. What only the member sees is not there, or masked.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(crate) response: Option<Value>,
    /// The call tree of a send, frames out of the member's reach cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(crate) trace: Option<Value>,
    /// The events of a send.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub(crate) logs_emitted: Option<Vec<Value>>,
    /// Those of them that the member would see.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub(crate) logs_visible_to_user: Option<Vec<Value>>,
    /// Where the execution was stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stopped_at: Option<StoppedFrame>,
    pub(crate) explanation: Explanation,
}

/// A place in an execution.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StoppedFrame {
    /// The frame, counted from 0 in the order they are entered; absent if an account was only looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    frame: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<u32>,
    /// What it is about, if both of you may know.
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
}

impl From<access::StoppedAt> for StoppedFrame {
    fn from(found: access::StoppedAt) -> Self {
        Self {
            frame: found.frame,
            depth: found.depth,
            address: found.address.map(super::lower),
        }
    }
}

/// A read to be made as a member, in the form of a JSON-RPC request.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct ViewAsRequest {
    pub(crate) method: String,
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    pub(crate) params: Vec<Value>,
    /// Echoed.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub(crate) id: Option<Value>,
    /// `2.0`, as clients of JSON-RPC write it.
    #[serde(default, rename = "jsonrpc")]
    #[schema(value_type = Option<String>)]
    pub(crate) _jsonrpc: Option<IgnoredAny>,
}

/// The JSON-RPC answer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ViewAsAnswer {
    pub(crate) jsonrpc: &'static str,
    #[schema(value_type = Option<Object>)]
    pub(crate) id: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(crate) result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(crate) error: Option<Value>,
}

use crate::{
    AdminState,
    body::JsonBody,
    error::AdminError,
    input,
    scope::{Admin, TARGET_DENIED, covers},
    wire::{AccessCheckRequest, AccessCheckResult, Explanation, lower},
};
use axum::{Json, extract::State};
use gw_evm::{
    Call, Class, Method, MethodLookup, ParamError, VisibleTo,
    call::{self, ChainRules},
};
use gw_http::ApiError;
use gw_policy::{
    Snapshot,
    access::{self, AccessRequest, Caller, DecidingCheck, Decision, HeadFacts, Impersonation, NamedOrg, Principal},
    snapshot::User,
};
use gw_store::read::Scope;
use gw_types::{Address, Claim, Claims, DenyReason, ExternalId, OrgId, Timestamp};
use serde_json::{Value, json, value::to_raw_value};
use std::sync::Arc;

/// Checks whether a user may make a call. The decision is that of a real call before its execution is traced. The
/// response names the deciding rule and the groups and grants that it used.
///
/// Administrators of an organization must name it and may check only its members. All other requests get the same 403.
#[utoipa::path(post, path = "/api/v1/admin/access/check", tag = "diagnostics", request_body = AccessCheckRequest,
    responses((status = 200, body = AccessCheckResult), (status = 400), (status = 401), (status = 403),
        (status = 404)))]
pub(crate) async fn check_access(
    admin: Admin,
    State(state): State<AdminState>,
    JsonBody(body): JsonBody<AccessCheckRequest>,
) -> Result<Json<AccessCheckResult>, AdminError> {
    let scope = admin.scope()?;
    let pinned = state.feed.pin();
    if !pinned.fresh {
        return Err(ApiError::policy_unavailable().into());
    }
    let (snapshot, now) = (&*pinned.snapshot, state.clock.now());
    for (name, term) in [
        ("user_external_id", &body.user_external_id),
        ("target_address", &body.target_address),
    ] {
        if let Some(term) = term {
            admin.record_search_term(name, term);
        }
    }
    let checked = CheckedUser::from_body(&admin, &scope, snapshot, &body, now)?;
    let method = body.method.trim();
    if method.is_empty() || method.len() > Method::NAME_MAX {
        return Err(AdminError::bad_request("method must have 1 to 128 characters"));
    }
    let required = input::claims(&body.required_claims)?;
    let lookup = state.custom_methods.lookup(method);
    let mut checked_call = CheckedCall::from_body(&state, &lookup, &body, checked.sender(&admin, snapshot))?;
    let caller = checked.caller(&admin, checked_call.substituted_sender);
    if let (Some(impersonation), Ok(call)) = (caller.impersonation(), &mut checked_call.call) {
        impersonation.hide_signer(snapshot, call);
    }
    let request = AccessRequest {
        caller: &caller,
        lookup,
        call: checked_call.call.as_ref(),
        visible_to: &VisibleTo::default(),
        named_org: checked.org.map_or(NamedOrg::Unnamed, NamedOrg::Org),
        now,
        head: HeadFacts {
            number: state.node.head().map_or(0, |head| head.number),
        },
        policy_settings: &state.policy_settings,
    };
    let decision = access::decide(snapshot, &request);
    let explanation = access::explain(snapshot, &request, &decision);
    let held_claims = checked.user.as_deref().map_or(Claims::NONE, |user| {
        claims_of(&state, snapshot, user, &explanation, &checked_call, now)
    });
    let mut result = AccessCheckResult {
        allowed: false,
        auth_required: false,
        claims: held_claims.iter().map(Claim::as_str).collect(),
        org_id: checked.org.or(explanation.org),
        reason: None,
        user_id: checked.user.as_ref().map(|user| user.id),
        explanation: Explanation::new(&explanation, None),
    };
    match &decision {
        Decision::Allow(permit) => {
            result.allowed = true;
            result.explanation.plan = Some(permit.plan_name());
        }
        // The request has no parameters, so only the method was checked, and it is allowed.
        Decision::Invalid(invalid) if !checked_call.has_params && invalid.reason == DenyReason::InvalidRequestShape => {
            result.allowed = true;
            result.explanation.rule = DecidingCheck::Passed.as_str();
            result.explanation.text = "the method is listed; nothing was said of its parameters".into();
        }
        Decision::Deny(denial) => {
            result.auth_required = denial.reason == DenyReason::AuthRequired;
            result.reason = Some(admin.visible_reason(denial.reason).as_str());
        }
        Decision::Invalid(invalid) => {
            result.reason = Some(invalid.reason.as_str());
            result.explanation.text = invalid.error.message().to_owned().into();
        }
    }
    let missing_claims = required
        .iter()
        .filter(|claim| !held_claims.has(*claim))
        .map(Claim::as_str);
    let missing_claims: Vec<_> = missing_claims.collect();
    if result.allowed && !missing_claims.is_empty() {
        (result.allowed, result.reason, result.explanation.plan) = (false, Some("missing_claim"), None);
        result.explanation.rule = DecidingCheck::Claim.as_str();
        result.explanation.text = format!("the user lacks: {}", missing_claims.join(", ")).into();
    }
    Ok(Json(result))
}

/// The user whose access is checked, and the organization.
struct CheckedUser {
    user: Option<Arc<User>>,
    org: Option<OrgId>,
}

impl CheckedUser {
    /// The caller of the checked call. An administrator who checks another user impersonates them, and so learns
    /// nothing about wallets that are hidden from the administrator (HD7).
    fn caller(&self, admin: &Admin, substituted: Option<Address>) -> Caller {
        let Some(user) = self.user.clone() else {
            return Caller::Anonymous;
        };
        match (admin.user_id(), self.org) {
            (Some(impersonator), Some(org)) if impersonator != user.id => {
                let impersonation = Impersonation::new(impersonator, org);
                Caller::Impersonated(
                    user,
                    substituted.map_or(impersonation, |sender| impersonation.sending_from(sender)),
                )
            }
            _ => Caller::User(user),
        }
    }

    /// Whether the caller is an administrator other than the user. Such a caller must not learn the user's wallets.
    fn is_impersonated(&self, admin: &Admin) -> bool {
        let Some(user) = &self.user else { return false };
        self.org.is_some() && admin.user_id().is_some_and(|impersonator| impersonator != user.id)
    }

    /// Returns the sender that the check assumes. A caller who must not learn the user's wallets gets an address
    /// without an owner: with a real wallet the check would tell whether the target is that wallet (RT10).
    fn sender(&self, admin: &Admin, snapshot: &Snapshot) -> Option<Address> {
        let user = self.user.as_ref()?;
        if self.is_impersonated(admin) {
            return Some(Impersonation::NOBODY);
        }
        let mut links = snapshot.links_of(user.id).iter().map(|link| link.address);
        links.find(|address| access::owns(snapshot, user.id, *address))
    }

    /// Finds the user and the organization that the request names. An organization administrator gets one and the same
    /// 403 for everything outside of their scope (V4).
    fn from_body(
        admin: &Admin,
        scope: &Scope,
        snapshot: &Snapshot,
        body: &AccessCheckRequest,
        now: Timestamp,
    ) -> Result<Self, AdminError> {
        let non_empty = |text: &Option<String>| {
            text.as_deref()
                .map(str::trim)
                .filter(|t| !t.is_empty())
                .map(str::to_owned)
        };
        let org_by_id = non_empty(&body.org_id).map(|text| text.parse::<OrgId>().ok());
        let org_by_slug = non_empty(&body.org_slug).map(|slug| {
            snapshot
                .organizations()
                .find(|org| *org.slug == *slug)
                .map(|org| org.id)
        });
        let org = match (org_by_id, org_by_slug) {
            (Some(by_id), Some(by_slug)) if by_id != by_slug => Some(None),
            (by_id, by_slug) => by_id.or(by_slug),
        };
        let org = org.map(|org| org.filter(|org| snapshot.organization(*org).is_some()));
        let did = non_empty(&body.user_external_id);
        let user = did.map(|did| {
            ExternalId::new(&did)
                .ok()
                .and_then(|did| snapshot.user_by_external(&did))
                .cloned()
        });
        if admin.is_super() {
            let org = match org {
                Some(None) => return Err(AdminError::not_found("organization not found")),
                Some(Some(org)) => Some(org),
                None => None,
            };
            let user = match user {
                Some(None) => return Err(AdminError::not_found("user not found")),
                Some(Some(user)) => Some(user),
                None => None,
            };
            return Ok(Self { user, org });
        }
        let denied = || AdminError::forbidden(TARGET_DENIED);
        let org = org.flatten().filter(|org| covers(scope, *org)).ok_or_else(denied)?;
        let is_member = |user: &Arc<User>| {
            snapshot.has_accepted(user.id, org, now) && Principal::new(snapshot, user.id, now).rights_in(org).is_some()
        };
        let user = match user {
            None => None,
            Some(user) => Some(user.filter(is_member).ok_or_else(denied)?),
        };
        Ok(Self { user, org: Some(org) })
    }
}

/// The call that is checked.
struct CheckedCall {
    call: Result<Call, ParamError>,
    /// Whether the request has parameters or a target.
    has_params: bool,
    target: Option<Address>,
    /// The sender that was filled in for the user.
    substituted_sender: Option<Address>,
}

impl CheckedCall {
    fn from_body(
        state: &AdminState,
        lookup: &MethodLookup,
        body: &AccessCheckRequest,
        sender: Option<Address>,
    ) -> Result<Self, AdminError> {
        let text = |text: &Option<String>| {
            text.as_deref()
                .map(str::trim)
                .filter(|t| !t.is_empty())
                .map(str::to_owned)
        };
        let target = text(&body.target_address)
            .map(|text| input::address(&text))
            .transpose()?;
        let selector = text(&body.function_selector).map(|text| selector(&text)).transpose()?;
        if selector.is_some() && target.is_none() {
            return Err(AdminError::bad_request("function_selector needs a target_address"));
        }
        if body.params.is_some() && target.is_some() {
            return Err(AdminError::bad_request("give params or target_address, not both"));
        }
        let unparsed = |has_params| Self {
            call: Err(ParamError::invalid("not parsed")),
            has_params,
            target,
            substituted_sender: None,
        };
        if let (MethodLookup::Custom(extra), None) = (lookup, lookup.method()) {
            let params = body
                .params
                .clone()
                .or_else(|| target.map(|target| vec![json!(lower(target))]));
            let raw = params
                .as_ref()
                .map(to_raw_value)
                .transpose()
                .map_err(|_| AdminError::bad_request("params must be JSON"))?;
            let call = call::passthrough(extra.name(), raw.as_deref()).map(|parsed| parsed.call);
            let call = call.map_err(|error| AdminError::bad_request(error.message().to_owned()))?;
            return Ok(Self {
                call: Ok(call),
                has_params: params.is_some(),
                target,
                substituted_sender: None,
            });
        }
        let Some(method) = lookup.method() else {
            return Ok(unparsed(body.params.is_some()));
        };
        let mut substituted_sender = None;
        let params = match (&body.params, target) {
            (Some(params), _) => Some(params.clone()),
            (None, Some(target)) => {
                substituted_sender = sender.filter(|_| method.class() == Class::Write);
                Some(
                    params_for_target(method, target, selector.as_deref(), sender).ok_or_else(|| {
                        AdminError::bad_request(format!("`{}` takes no address: give params", method.as_str()))
                    })?,
                )
            }
            (None, None) => None,
        };
        let raw = params
            .as_ref()
            .map(to_raw_value)
            .transpose()
            .map_err(|_| AdminError::bad_request("params must be JSON"))?;
        // No signed transaction can be made up: the call is checked as `eth_sendTransaction` with the same content.
        let read_as = match (method, target) {
            (Method::SendRawTransaction, Some(_)) => Method::SendTransaction,
            (method, _) => method,
        };
        let chain = ChainRules {
            chain_id: state.node.chain_id(),
        };
        let call = call::parse(read_as, raw.as_deref(), chain).map(|parsed| parsed.call);
        match call {
            Err(error) if params.is_some() => Err(AdminError::bad_request(error.message().to_owned())),
            call => Ok(Self {
                call,
                has_params: params.is_some(),
                target,
                substituted_sender,
            }),
        }
    }
}

fn selector(text: &str) -> Result<String, AdminError> {
    let hex_digits = text.strip_prefix("0x").unwrap_or(text);
    if hex_digits.len() != 8 || !hex_digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(AdminError::bad_request("function_selector must be four bytes of hex"));
    }
    Ok(format!("0x{}", hex_digits.to_ascii_lowercase()))
}

/// Parameters of a call of `method` that addresses `target`; `None` if the method takes no address.
fn params_for_target(
    method: Method,
    target: Address,
    selector: Option<&str>,
    sender: Option<Address>,
) -> Option<Vec<Value>> {
    let target = lower(target);
    let data = selector.unwrap_or("0x");
    Some(match method {
        Method::Call | Method::EstimateGas | Method::CreateAccessList => vec![json!({"to": target, "data": data})],
        Method::DebugTraceCall => {
            vec![
                json!({"to": target, "data": data}),
                json!("latest"),
                json!({"tracer": "callTracer"}),
            ]
        }
        Method::SendTransaction | Method::SendRawTransaction => {
            vec![json!({"from": lower(sender.unwrap_or(Impersonation::NOBODY)), "to": target, "data": data})]
        }
        Method::GetBalance | Method::GetTransactionCount | Method::GetCode => vec![json!(target)],
        Method::GetStorageAt => vec![json!(target), json!("0x0")],
        Method::GetProof => vec![json!(target), json!([])],
        Method::GetLogs | Method::NewFilter => vec![json!({"address": target})],
        _ => return None,
    })
}

/// The claims that the user has on the target, if they can reach it, and in the organization.
fn claims_of(
    state: &AdminState,
    snapshot: &Snapshot,
    user: &User,
    explanation: &access::Explanation<'_>,
    checked_call: &CheckedCall,
    now: Timestamp,
) -> Claims {
    let Some(org) = explanation.org else {
        return Claims::NONE;
    };
    let member = Principal::new(snapshot, user.id, now);
    let org_claims = member
        .rights_in(org)
        .map_or(Claims::NONE, |rights| rights.permissions.claims);
    let target = explanation
        .targets
        .first()
        .map(|target| target.address)
        .or(checked_call.target);
    let contract = target
        .and_then(|target| snapshot.contract(target))
        .filter(|contract| contract.org == org);
    match contract.map(|contract| access::contract_access(snapshot, &member, contract, &state.policy_settings)) {
        None => org_claims,
        // The claim `deploy` is a right in the organization; the other claims are rights on the contract.
        Some(rights) => {
            let deploy = org_claims.iter().filter(|claim| *claim == Claim::Deploy).collect();
            rights.map_or(Claims::NONE, |rights| rights.claims).union(deploy)
        }
    }
}

use crate::{
    AdminState,
    body::JsonBody,
    error::Failure,
    input,
    scope::{Admin, TARGET_DENIED, covers},
    wire::{AccessCheckRequest, AccessCheckResult, Explanation, lower},
};
use axum::{Json, extract::State};
use gw_evm::{
    Call, Class, Lookup, Method, ParamError, VisibleTo,
    call::{self, ChainRules},
};
use gw_http::ApiError;
use gw_policy::{
    Snapshot,
    access::{self, Beside, Caller, Decision, HeadFacts, Member, NamedOrg, Question, Rule},
    snapshot::User,
};
use gw_store::read::Scope;
use gw_types::{Address, Claim, Claims, DenyReason, ExternalId, OrgId, Timestamp};
use serde_json::{Value, json, value::to_raw_value};
use std::sync::Arc;

/// May this user make this call? Decided by the function that decides on calls, before any execution is traced; the
/// answer says which rule settled it and which groups and grants it stood on.
///
/// Administrators of an organization name it, and ask about its members. Whatever is outside of that is one refusal.
#[utoipa::path(post, path = "/api/v1/admin/access/check", tag = "diagnostics", request_body = AccessCheckRequest,
    responses((status = 200, body = AccessCheckResult), (status = 400), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn check_access(
    admin: Admin,
    State(state): State<AdminState>,
    JsonBody(body): JsonBody<AccessCheckRequest>,
) -> Result<Json<AccessCheckResult>, Failure> {
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
            admin.looked_for(name, term);
        }
    }
    let who = Who::of(&admin, &scope, snapshot, &body, now)?;
    let method = body.method.trim();
    if method.is_empty() || method.len() > Method::NAME_MAX {
        return Err(Failure::bad("method must have 1 to 128 characters"));
    }
    let required = input::claims(&body.required_claims)?;
    let lookup = state.extras.lookup(method);
    let mut asked = Asked::of(&state, &lookup, &body, who.sender(&admin, snapshot))?;
    let caller = who.caller(&admin, asked.chosen);
    if let (Some(beside), Ok(call)) = (caller.beside(), &mut asked.call) {
        beside.hide_signer(snapshot, call);
    }
    let question = Question {
        caller: &caller,
        lookup,
        call: asked.call.as_ref(),
        visible_to: &VisibleTo::default(),
        named_org: who.org.map_or(NamedOrg::Unnamed, NamedOrg::Org),
        now,
        head: HeadFacts {
            number: state.node.head().map_or(0, |head| head.number),
        },
        knobs: &state.knobs,
    };
    let decision = access::decide(snapshot, &question);
    let found = access::explain(snapshot, &question, &decision);
    let held = who
        .user
        .as_deref()
        .map_or(Claims::NONE, |user| claims(&state, snapshot, user, &found, &asked, now));
    let mut result = AccessCheckResult {
        allowed: false,
        auth_required: false,
        claims: held.iter().map(Claim::as_str).collect(),
        org_id: who.org.or(found.org),
        reason: None,
        user_id: who.user.as_ref().map(|user| user.id),
        explanation: Explanation::of(&found, None),
    };
    match &decision {
        Decision::Allow(permit) => {
            result.allowed = true;
            result.explanation.plan = Some(permit.plan_name());
        }
        // Only the method was asked about, and it is the caller's to use.
        Decision::Invalid(invalid) if !asked.given && invalid.reason == DenyReason::InvalidRequestShape => {
            result.allowed = true;
            result.explanation.rule = Rule::Passed.as_str();
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
    let missing = required.iter().filter(|claim| !held.has(*claim)).map(Claim::as_str);
    let missing: Vec<_> = missing.collect();
    if result.allowed && !missing.is_empty() {
        (result.allowed, result.reason, result.explanation.plan) = (false, Some("missing_claim"), None);
        result.explanation.rule = Rule::Claim.as_str();
        result.explanation.text = format!("the user lacks: {}", missing.join(", ")).into();
    }
    Ok(Json(result))
}

/// Whose right is asked about, and where.
struct Who {
    user: Option<Arc<User>>,
    org: Option<OrgId>,
}

impl Who {
    /// HD7: who asks about somebody else as an administrator learns nothing of wallets that were not disclosed to them.
    fn caller(&self, admin: &Admin, chosen: Option<Address>) -> Caller {
        let Some(user) = self.user.clone() else {
            return Caller::Anonymous;
        };
        match (admin.user_id(), self.org) {
            (Some(operator), Some(org)) if operator != user.id => {
                let beside = Beside::new(operator, org);
                Caller::Beside(user, chosen.map_or(beside, |sender| beside.sending_from(sender)))
            }
            _ => Caller::User(user),
        }
    }

    /// Whether the caller is an administrator other than the user. Such a caller must not learn the user's wallets.
    fn is_watched(&self, admin: &Admin) -> bool {
        let Some(user) = &self.user else { return false };
        self.org.is_some() && admin.user_id().is_some_and(|operator| operator != user.id)
    }

    /// Returns the sender that the check assumes. A caller who must not learn the user's wallets gets an address without an
    /// owner: with a real wallet the check would tell whether the target is that wallet (RT10).
    fn sender(&self, admin: &Admin, snapshot: &Snapshot) -> Option<Address> {
        let user = self.user.as_ref()?;
        if self.is_watched(admin) {
            return Some(Beside::NOBODY);
        }
        let mut links = snapshot.links_of(user.id).iter().map(|link| link.address);
        links.find(|address| access::owns(snapshot, user.id, *address))
    }

    /// V4: one refusal for everything that is not the caller's to ask.
    fn of(
        admin: &Admin,
        scope: &Scope,
        snapshot: &Snapshot,
        body: &AccessCheckRequest,
        now: Timestamp,
    ) -> Result<Self, Failure> {
        let given = |text: &Option<String>| {
            text.as_deref()
                .map(str::trim)
                .filter(|t| !t.is_empty())
                .map(str::to_owned)
        };
        let by_id = given(&body.org_id).map(|text| text.parse::<OrgId>().ok());
        let by_slug = given(&body.org_slug).map(|slug| {
            snapshot
                .organizations()
                .find(|org| *org.slug == *slug)
                .map(|org| org.id)
        });
        let named = match (by_id, by_slug) {
            (Some(one), Some(other)) if one != other => Some(None),
            (one, other) => one.or(other),
        };
        let org = named.map(|org| org.filter(|org| snapshot.organization(*org).is_some()));
        let did = given(&body.user_external_id);
        let user = did.map(|did| {
            ExternalId::new(&did)
                .ok()
                .and_then(|did| snapshot.user_by_external(&did))
                .cloned()
        });
        if admin.is_super() {
            let org = match org {
                Some(None) => return Err(Failure::not_found("organization not found")),
                Some(Some(org)) => Some(org),
                None => None,
            };
            let user = match user {
                Some(None) => return Err(Failure::not_found("user not found")),
                Some(Some(user)) => Some(user),
                None => None,
            };
            return Ok(Self { user, org });
        }
        let refused = || Failure::forbidden(TARGET_DENIED);
        let org = org.flatten().filter(|org| covers(scope, *org)).ok_or_else(refused)?;
        let shares = |user: &Arc<User>| {
            snapshot.has_accepted(user.id, org, now) && Member::new(snapshot, user.id, now).rights_in(org).is_some()
        };
        let user = match user {
            None => None,
            Some(user) => Some(user.filter(shares).ok_or_else(refused)?),
        };
        Ok(Self { user, org: Some(org) })
    }
}

/// The call that is asked about.
struct Asked {
    call: Result<Call, ParamError>,
    /// Whether anything was said of its parameters.
    given: bool,
    target: Option<Address>,
    /// The sender that was put in for the user.
    chosen: Option<Address>,
}

impl Asked {
    fn of(
        state: &AdminState,
        lookup: &Lookup,
        body: &AccessCheckRequest,
        sender: Option<Address>,
    ) -> Result<Self, Failure> {
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
            return Err(Failure::bad("function_selector needs a target_address"));
        }
        if body.params.is_some() && target.is_some() {
            return Err(Failure::bad("give params or target_address, not both"));
        }
        let unparsed = |given| Self {
            call: Err(ParamError::invalid("not parsed")),
            given,
            target,
            chosen: None,
        };
        if let (Lookup::Extra(extra), None) = (lookup, lookup.row()) {
            let params = body
                .params
                .clone()
                .or_else(|| target.map(|target| vec![json!(lower(target))]));
            let raw = params
                .as_ref()
                .map(to_raw_value)
                .transpose()
                .map_err(|_| Failure::bad("params must be JSON"))?;
            let call = call::unexamined(extra.name(), raw.as_deref()).map(|parsed| parsed.call);
            let call = call.map_err(|error| Failure::bad(error.message().to_owned()))?;
            return Ok(Self {
                call: Ok(call),
                given: params.is_some(),
                target,
                chosen: None,
            });
        }
        let Some(method) = lookup.row() else {
            return Ok(unparsed(body.params.is_some()));
        };
        let mut chosen = None;
        let params = match (&body.params, target) {
            (Some(params), _) => Some(params.clone()),
            (None, Some(target)) => {
                chosen = sender.filter(|_| method.class() == Class::Write);
                Some(
                    about(method, target, selector.as_deref(), sender)
                        .ok_or_else(|| Failure::bad(format!("`{}` takes no address: give params", method.as_str())))?,
                )
            }
            (None, None) => None,
        };
        let raw = params
            .as_ref()
            .map(to_raw_value)
            .transpose()
            .map_err(|_| Failure::bad("params must be JSON"))?;
        // A signed send is not made up: it is judged as the send of the same content.
        let read_as = match (method, target) {
            (Method::SendRawTransaction, Some(_)) => Method::SendTransaction,
            (method, _) => method,
        };
        let chain = ChainRules {
            chain_id: state.node.chain_id(),
        };
        let call = call::parse(read_as, raw.as_deref(), chain).map(|parsed| parsed.call);
        match call {
            Err(error) if params.is_some() => Err(Failure::bad(error.message().to_owned())),
            call => Ok(Self {
                call,
                given: params.is_some(),
                target,
                chosen,
            }),
        }
    }
}

fn selector(text: &str) -> Result<String, Failure> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    if digits.len() != 8 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(Failure::bad("function_selector must be four bytes of hex"));
    }
    Ok(format!("0x{}", digits.to_ascii_lowercase()))
}

/// Parameters of a call about this address.
fn about(method: Method, target: Address, selector: Option<&str>, own: Option<Address>) -> Option<Vec<Value>> {
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
            vec![json!({"from": lower(own.unwrap_or(Beside::NOBODY)), "to": target, "data": data})]
        }
        Method::GetBalance | Method::GetTransactionCount | Method::GetCode => vec![json!(target)],
        Method::GetStorageAt => vec![json!(target), json!("0x0")],
        Method::GetProof => vec![json!(target), json!([])],
        Method::GetLogs | Method::NewFilter => vec![json!({"address": target})],
        _ => return None,
    })
}

/// The claims the user holds: on the target if it is within reach, and in the organization.
fn claims(
    state: &AdminState,
    snapshot: &Snapshot,
    user: &User,
    found: &access::Explanation<'_>,
    asked: &Asked,
    now: Timestamp,
) -> Claims {
    let Some(org) = found.org else { return Claims::NONE };
    let member = Member::new(snapshot, user.id, now);
    let in_org = member
        .rights_in(org)
        .map_or(Claims::NONE, |rights| rights.permissions.claims);
    let target = found.targets.first().map(|target| target.address).or(asked.target);
    let contract = target
        .and_then(|target| snapshot.contract(target))
        .filter(|contract| contract.org == org);
    match contract.map(|contract| access::reach(snapshot, &member, contract, &state.knobs)) {
        None => in_org,
        // `deploy` is about the organization, the others about the contract.
        Some(reach) => {
            let deploy = in_org.iter().filter(|claim| *claim == Claim::Deploy).collect();
            reach.map_or(Claims::NONE, |reach| reach.claims).union(deploy)
        }
    }
}

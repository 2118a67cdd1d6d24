use super::impersonation::{Impersonation, Impersonator, MemberCall, Purpose};
use crate::{
    AdminState,
    body::JsonBody,
    error::AdminError,
    scope::Admin,
    wire::{DryRunRequest, DryRunResponseDoc, Explanation, StoppedFrame, words},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_evm::{
    Class, Method, MethodLookup, ParamError, VisibleTo,
    call::{self, ChainRules},
};
use gw_http::{
    ApiError,
    simulation::{ImpersonatedResult, set_placeholder_sender},
};
use gw_policy::{
    Snapshot,
    access::{self, AccessRequest, Caller, DecidingCheck, HeadFacts, NamedOrg},
};
use gw_types::DenyReason;
use serde_json::{Value, value::to_raw_value};
use std::sync::Arc;

/// The methods of a dry-run: reads of accounts, contracts and transactions, and sends, which end at their trace.
const METHODS: [Method; 11] = [
    Method::Call,
    Method::EstimateGas,
    Method::GetBalance,
    Method::GetCode,
    Method::GetStorageAt,
    Method::GetTransactionCount,
    Method::GetLogs,
    Method::GetTransactionByHash,
    Method::GetTransactionReceipt,
    Method::SendTransaction,
    Method::SendRawTransaction,
];

/// Simulates a call of a member through the pipeline of all calls, and explains the decision. A send ends at its trace:
/// nothing takes effect.
///
/// Callers are users who administer the organization. The call is recorded before it is answered. The answer contains
/// only what the administrator may see too; other values that the member sees are left out or masked. A send without
/// `from`, or one that the administrator did not sign, runs from a fixed address without key, links and funds.
#[utoipa::path(post, path = "/api/v1/admin/orgs/{org_id}/dry-run", tag = "diagnostics", request_body = DryRunRequest,
    params(("org_id" = String, Path, format = Uuid)),
    responses((status = 200, body = DryRunResponseDoc), (status = 400), (status = 401), (status = 403),
        (status = 404, description = "No such member"), (status = 429), (status = 502), (status = 503)))]
pub(crate) async fn dry_run(
    admin: Admin,
    State(state): State<AdminState>,
    Path(org): Path<String>,
    body: Result<JsonBody<DryRunRequest>, ApiError>,
) -> Result<Json<DryRunResponseDoc>, AdminError> {
    let impersonator = Impersonator::authorize(&admin, &org)?;
    let JsonBody(body) = body?;
    let (impersonation, snapshot) = impersonator.impersonate(&state, &body.user_did)?;
    let lookup = Method::lookup(body.rpc.method.trim());
    let method = match lookup {
        MethodLookup::Registered(method) if METHODS.contains(&method) => method,
        _ => {
            let names: Vec<_> = METHODS.iter().map(|method| method.as_str()).collect();
            return Err(AdminError::bad_request(format!(
                "a dry-run takes one of: {}",
                names.join(", ")
            )));
        }
    };
    let params = body.rpc.params;
    let call = MemberCall {
        purpose: Purpose::DryRun,
        method: method.as_str().to_owned(),
        recorded_as: method.as_str(),
        params: params.clone(),
    };
    let simulated = impersonation.simulate(&state, &admin, call).await?;
    require_decision(&simulated)?;
    let explanation = explain(&state, &snapshot, &impersonation, method, &params, &simulated);
    Ok(Json(document(&admin, method, simulated, explanation)))
}

/// Checks that the result decides about the member.
///
/// # Errors
/// The error of the request, the node or the gateway that came instead.
fn require_decision(simulated: &ImpersonatedResult) -> Result<(), AdminError> {
    let message = || {
        simulated
            .answer
            .pointer("/error/message")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    match simulated.status {
        400 if simulated.reason == Some(DenyReason::InvalidRequestShape) => Err(AdminError::bad_request(message())),
        429 => Err(ApiError::new(gw_http::ErrorCode::RateLimited, "too many requests").into()),
        502 => Err(ApiError::new(gw_http::ErrorCode::BadGateway, "the node did not answer").into()),
        503 => Err(ApiError::unavailable(message()).into()),
        500 => Err(ApiError::internal().into()),
        _ => Ok(()),
    }
}

/// Explains the decision by the policy; the check that decided is the one that the pipeline named.
fn explain(
    state: &AdminState,
    snapshot: &Snapshot,
    impersonation: &Impersonation,
    method: Method,
    params: &[Value],
    simulated: &ImpersonatedResult,
) -> Explanation {
    let mut params = params.to_vec();
    let mut restriction = access::Impersonation::new(impersonation.impersonator, impersonation.org);
    // The pipeline ran it from this address; it refused a send that needs another.
    if method.class() == Class::Write && set_placeholder_sender(&mut params) == Ok(true) {
        restriction = restriction.sending_from(access::Impersonation::NOBODY);
    }
    let raw = to_raw_value(&params).ok();
    let chain = ChainRules {
        chain_id: state.node.chain_id(),
    };
    let mut call = match &raw {
        Some(raw) => call::parse(method, Some(raw), chain).map(|parsed| parsed.call),
        None => Err(ParamError::invalid("not parsed")),
    };
    if let Ok(call) = &mut call {
        restriction.hide_signer(snapshot, call);
    }
    let caller = Caller::Impersonated(Arc::clone(&impersonation.target), restriction);
    let request = AccessRequest {
        caller: &caller,
        lookup: MethodLookup::Registered(method),
        call: call.as_ref(),
        visible_to: &VisibleTo::default(),
        named_org: NamedOrg::Org(impersonation.org),
        now: state.clock.now(),
        head: HeadFacts {
            number: state.node.head().map_or(0, |head| head.number),
        },
        policy_settings: &state.policy_settings,
    };
    let decision = access::decide(snapshot, &request);
    let plan = match &decision {
        access::Decision::Allow(permit) if simulated.reason.is_none() => Some(permit.plan_name()),
        access::Decision::Allow(_) | access::Decision::Deny(_) | access::Decision::Invalid(_) => None,
    };
    let mut explanation = Explanation::new(&access::explain(snapshot, &request, &decision), plan);
    let rule = match (simulated.reason, &simulated.denied_frame) {
        (Some(_), Some(_)) => DecidingCheck::Trace,
        // The execution failed at the node: no check decided.
        (None | Some(DenyReason::UpstreamError), _) => DecidingCheck::Passed,
        (Some(reason), None) => DecidingCheck::from_reason(reason, &request.lookup),
    };
    explanation.rule = rule.as_str();
    explanation.text = words(rule).into();
    explanation
}

fn document(
    admin: &Admin,
    method: Method,
    simulated: ImpersonatedResult,
    explanation: Explanation,
) -> DryRunResponseDoc {
    // An execution that failed at the node is an answer.
    let execution_failed = simulated.reason == Some(DenyReason::UpstreamError);
    let reason = simulated
        .reason
        .filter(|_| !execution_failed)
        .map(|reason| admin.visible_reason(reason));
    let allowed = reason.is_none();
    let (trace, logs) = simulated
        .effects
        .map_or((None, None), |effects| (Some(effects.trace), Some(effects.logs)));
    let visible = logs.as_ref().map(|logs| {
        logs.iter()
            .filter(|log| log.visible_to_user)
            .map(|log| log.log.clone())
            .collect()
    });
    let response = match simulated.answer.get("error") {
        Some(error) if execution_failed => Some(serde_json::json!({"error": error})),
        Some(_) => None,
        None if method.class() == Class::Write => None,
        None => simulated.answer.get("result").cloned(),
    };
    DryRunResponseDoc {
        decision: if allowed { "allowed" } else { "denied" },
        reason: reason.map(DenyReason::as_str),
        response,
        trace,
        logs_emitted: logs.map(|logs| logs.into_iter().map(|log| log.log).collect()),
        logs_visible_to_user: visible,
        stopped_at: simulated.denied_frame.filter(|_| !allowed).map(StoppedFrame::from),
        explanation,
    }
}

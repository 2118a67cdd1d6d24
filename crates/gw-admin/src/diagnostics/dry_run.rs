use super::{
    BadRehearsal, Rehearsal, Rehearsed,
    shoulder::{Shoulder, Way},
};
use crate::{
    AdminState,
    body::JsonBody,
    error::Failure,
    scope::Admin,
    wire::{DryRunRequest, DryRunResponseDoc, Explanation, StoppedFrame, lower, words},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_evm::{
    Class, Lookup, Method, ParamError, VisibleTo,
    call::{self, ChainRules},
};
use gw_http::ApiError;
use gw_policy::{
    Snapshot,
    access::{self, Beside, Caller, HeadFacts, NamedOrg, Question, Rule},
};
use gw_types::DenyReason;
use serde_json::{Value, value::to_raw_value};
use std::sync::Arc;

/// What may be dry-run: reads of accounts, contracts and transactions, and sends, which end at their trace.
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

/// What would come of a call of this member, through everything that calls of theirs go through; sends end before anything
/// happens. Said is why, and where an execution was stopped.
///
/// For administrators of the organization, in person, and recorded before it is answered. Shown is what the administrator
/// may see too; what only the member sees is not there, or masked. A send without `from`, or
/// signed by somebody else, runs from a fixed address that has no key, no links and no funds.
#[utoipa::path(post, path = "/api/v1/admin/orgs/{org_id}/dry-run", tag = "diagnostics", request_body = DryRunRequest,
    params(("org_id" = String, Path, format = Uuid)),
    responses((status = 200, body = DryRunResponseDoc), (status = 400), (status = 401), (status = 403),
        (status = 404, description = "No such member"), (status = 429), (status = 502), (status = 503)))]
pub(crate) async fn dry_run(
    admin: Admin,
    State(state): State<AdminState>,
    Path(org): Path<String>,
    body: Result<JsonBody<DryRunRequest>, ApiError>,
) -> Result<Json<DryRunResponseDoc>, Failure> {
    let operator = Shoulder::operator(&admin, &org)?;
    let JsonBody(body) = body?;
    let (shoulder, snapshot) = Shoulder::of(&state, operator, &body.user_did)?;
    let lookup = Method::lookup(body.rpc.method.trim());
    let method = match lookup {
        Lookup::Known(method) if METHODS.contains(&method) => method,
        _ => {
            let names: Vec<_> = METHODS.iter().map(|method| method.as_str()).collect();
            return Err(Failure::bad(format!("a dry-run takes one of: {}", names.join(", "))));
        }
    };
    let params = body.rpc.params;
    shoulder
        .record(&state, &admin, Way::DryRun, method.as_str(), &params)
        .await?;
    let call = Rehearsal {
        operator: shoulder.operator,
        target: shoulder.target.id,
        org: shoulder.org,
        method: method.as_str().to_owned(),
        params: params.clone(),
        client: admin.ip(),
    };
    let said = state
        .tester
        .rehearse(call)
        .await
        .map_err(|BadRehearsal(why)| Failure::bad(why))?;
    refused(&said)?;
    let explanation = explain(&state, &snapshot, &shoulder, method, &params, &said);
    Ok(Json(document(&admin, method, said, explanation)))
}

/// What is no decision about the member is an error of the request, the node or the gateway.
fn refused(said: &Rehearsed) -> Result<(), Failure> {
    let text = || {
        said.answer
            .pointer("/error/message")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    match said.status {
        400 if said.reason == Some(DenyReason::InvalidRequestShape) => Err(Failure::bad(text())),
        429 => Err(ApiError::new(gw_http::ErrorCode::RateLimited, "too many requests").into()),
        502 => Err(ApiError::new(gw_http::ErrorCode::BadGateway, "the node did not answer").into()),
        503 => Err(ApiError::unavailable(text()).into()),
        500 => Err(ApiError::internal().into()),
        _ => Ok(()),
    }
}

/// Read off the policy; what settled it is what the pipeline said.
fn explain(
    state: &AdminState,
    snapshot: &Snapshot,
    shoulder: &Shoulder,
    method: Method,
    params: &[Value],
    said: &Rehearsed,
) -> Explanation {
    let mut params = params.to_vec();
    let mut beside = Beside::new(shoulder.operator, shoulder.org);
    // What it ran from.
    if let (Method::SendTransaction, Some(Value::Object(object))) = (method, params.first_mut())
        && !object.contains_key("from")
    {
        object.insert("from".to_owned(), lower(Beside::NOBODY).into());
        beside = beside.sending_from(Beside::NOBODY);
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
        beside.hide_signer(snapshot, call);
    }
    let caller = Caller::Beside(Arc::clone(&shoulder.target), beside);
    let question = Question {
        caller: &caller,
        lookup: Lookup::Known(method),
        call: call.as_ref(),
        visible_to: &VisibleTo::default(),
        named_org: NamedOrg::Org(shoulder.org),
        now: state.clock.now(),
        head: HeadFacts {
            number: state.node.head().map_or(0, |head| head.number),
        },
        knobs: &state.knobs,
    };
    let decision = access::decide(snapshot, &question);
    let plan = match &decision {
        access::Decision::Allow(permit) if said.reason.is_none() => Some(permit.plan_name()),
        access::Decision::Allow(_) | access::Decision::Deny(_) | access::Decision::Invalid(_) => None,
    };
    let mut explanation = Explanation::of(&access::explain(snapshot, &question, &decision), plan);
    let rule = match (said.reason, &said.stopped) {
        (Some(_), Some(_)) => Rule::Trace,
        // The node ran it, and it failed: nothing of policy.
        (None | Some(DenyReason::UpstreamError), _) => Rule::Passed,
        (Some(reason), None) => Rule::of(reason, &question.lookup),
    };
    explanation.rule = rule.as_str();
    explanation.text = words(rule).into();
    explanation
}

fn document(admin: &Admin, method: Method, said: Rehearsed, explanation: Explanation) -> DryRunResponseDoc {
    // The node ran it, and it failed: that is an answer.
    let failed = said.reason == Some(DenyReason::UpstreamError);
    let reason = said
        .reason
        .filter(|_| !failed)
        .map(|reason| admin.visible_reason(reason));
    let allowed = reason.is_none();
    let (trace, logs) = said
        .effects
        .map_or((None, None), |(trace, logs)| (Some(trace), Some(logs)));
    let visible = logs.as_ref().map(|logs| {
        logs.iter()
            .filter(|(_, seen)| *seen)
            .map(|(log, _)| log.clone())
            .collect()
    });
    let response = match said.answer.get("error") {
        Some(error) if failed => Some(serde_json::json!({"error": error})),
        Some(_) => None,
        None if method.class() == Class::Write => None,
        None => said.answer.get("result").cloned(),
    };
    DryRunResponseDoc {
        decision: if allowed { "allowed" } else { "denied" },
        reason: reason.map(DenyReason::as_str),
        response,
        trace,
        logs_emitted: logs.map(|logs| logs.into_iter().map(|(log, _)| log).collect()),
        logs_visible_to_user: visible,
        stopped_at: said.stopped.filter(|_| !allowed).map(StoppedFrame::from),
        explanation,
    }
}

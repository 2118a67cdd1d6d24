//! Impersonation (V1, V2, HD7): an administrator sees how a call of a user is answered, or what a send of the user
//! does. The call runs through the same pipeline as the user's own call, and changes nothing.

use crate::{
    call::RpcCall,
    outcome::RpcOutcome,
    pipeline,
    record::{CallRecord, journal_grant_reads},
    request::RequestContext,
    state::RpcContext,
};
use gw_evm::{
    Class, Method, VisibleTo,
    envelope::{Request, RequestId},
};
use gw_http::{
    ReadOrigin,
    simulation::{
        ImpersonatedCall, ImpersonatedResult, SenderRequired, SimulatedEffects, SimulatedLog, set_placeholder_sender,
    },
};
use gw_policy::{Disclosed, access::Impersonation};
use serde_json::{Value, value::to_raw_value};
use std::sync::Arc;

/// Answers a call as the target user would be answered, as far as the impersonator may see it.
///
/// # Errors
/// [`SenderRequired`] for a send whose sender's funds would show.
pub(crate) async fn simulate_as(
    state: &Arc<RpcContext>,
    impersonated: ImpersonatedCall,
) -> Result<ImpersonatedResult, SenderRequired> {
    let ImpersonatedCall {
        impersonator,
        target,
        org,
        method,
        mut params,
        client,
    } = impersonated;
    let lookup = Method::lookup(&method);
    let mut impersonation = Impersonation::new(impersonator, org);
    // An administrator need not know a wallet of the user to ask what a send of theirs would do.
    if let gw_evm::MethodLookup::Registered(known) = lookup
        && known.class() == Class::Write
        && set_placeholder_sender(&mut params)?
    {
        impersonation = impersonation.sending_from(Impersonation::NOBODY);
    }
    let mut request = RequestContext::new(client, None);
    request.impersonate(target, impersonation);
    let raw = to_raw_value(&params).ok();
    let wire = Request {
        id: RequestId::NULL,
        is_notification: false,
        method: &method,
        params: raw.as_deref(),
        visible_to: VisibleTo::default(),
    };
    let mut rpc_call = RpcCall::new(state, &Arc::new(request), lookup, wire);
    rpc_call.hide_signer(impersonation)?;
    let mut record = CallRecord::default();
    let (outcome, effects) = pipeline::simulate_as(&rpc_call, &mut record).await;
    // The administrator looks, by grants of their own.
    let origin = || ReadOrigin {
        ip_address: Some(client.0),
        correlation_id: None,
    };
    let outcome = journal_grant_reads(state.journal(), &record, origin, outcome).await;
    let effects = effects.filter(|_| matches!(outcome, RpcOutcome::Result(_)));
    let mut out = Vec::new();
    outcome.write("1", &mut out);
    let value = |shown: &Disclosed| serde_json::from_str::<Value>(shown.as_str()).unwrap_or_default();
    Ok(ImpersonatedResult {
        status: outcome.status().as_u16(),
        answer: serde_json::from_slice(&out).unwrap_or_default(),
        reason: outcome.reason(),
        denied_frame: record.denied_frame,
        effects: effects.map(|effects| {
            let logs = effects.logs.iter().map(|log| SimulatedLog {
                log: value(&log.shown),
                visible_to_user: log.to_person,
            });
            SimulatedEffects {
                logs: logs.collect(),
                trace: value(&effects.trace),
            }
        }),
    })
}

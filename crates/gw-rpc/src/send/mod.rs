//! Sends: calls whose plan is [`Plan::Send`](gw_policy::access::Plan::Send) (spec/20 §12).
//!
//! `prepare` traces and checks a send, `forward` writes the intent, submits the transaction and writes the outcome,
//! `rows` writes the rows of a send in the policy store, `recover` settles sends whose outcome is unknown. A worker of
//! the server follows the addresses that a transaction creates, by the reservations written here (R3, R4).
//!
//! Invariants: no transaction goes out before both traces passed under the newest policy and the intent is on disk
//! (HD22). A send runs in a task of its own, including its access record, so that it does not end with its connection
//! (HD21).

mod forward;
mod prepare;
mod recover;
mod rows;

pub use crate::{
    compliance::{ComplianceCheck, NoComplianceRules, PermittedSend},
    send_context::SendContext,
};
pub use recover::resolve_intents;

use crate::{call::CallContext, outcome::RpcOutcome};
use gw_policy::{
    Disclosed,
    view::{self, RunLog},
};

/// The effects of a simulated send, as far as the user and the impersonating administrator both see them (V1).
#[derive(Debug)]
pub(crate) struct Effects {
    pub(crate) trace: Disclosed,
    pub(crate) logs: Vec<RunLog>,
}

/// Checks a send and returns its effects; nothing is sent.
///
/// # Errors
/// The outcome that the send would have.
pub(crate) async fn simulate(context: &mut CallContext<'_>) -> Result<Effects, RpcOutcome> {
    let prepared = prepare::prepare(context).await?;
    let (viewer, verdict) = (context.viewer(), prepared.run());
    Ok(Effects {
        trace: view::call_tree(&viewer, verdict),
        logs: view::run_logs(&viewer, verdict),
    })
}

/// Executes a permitted send. The outcome is the transaction hash, or a rejection.
pub(crate) async fn send(context: &mut CallContext<'_>) -> RpcOutcome {
    let steps = async {
        let prepared = prepare::prepare(context).await?;
        forward::submit_recorded(context, prepared).await
    };
    match steps.await {
        Ok(hash) => RpcOutcome::Result(view::local::hash(hash)),
        Err(outcome) => outcome,
    }
}

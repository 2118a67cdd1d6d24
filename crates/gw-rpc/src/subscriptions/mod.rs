//! The calls about filters and subscriptions, over HTTP and WebSocket (decision 51, HD18), and their updates (`poll`).
//!
//! Invariant: nothing is authorized here. Every poll and every delivery is the answer to an `eth_getLogs` or a block
//! read of the same caller, through the same pipeline, at the moment of delivery (WS-3).

mod poll;

pub(crate) use poll::{header, poll, underlying_read};

use crate::{
    call::{CallContext, RpcCall},
    execute,
    outcome::{RpcOutcome, SubscriptionError},
    registry::{LogCursor, Owner, Updates},
    state::RpcContext,
};
use gw_evm::{Call, Method, SubscriptionCall, SubscriptionId, Topic};
use gw_policy::{Disclosed, view};
use gw_types::DenyReason;

/// Answers a permitted call about filters and subscriptions. A filter belongs to its owner, a subscription to its
/// connection.
pub(crate) async fn answer(context: &mut CallContext<'_>) -> Result<Disclosed, RpcOutcome> {
    let Call::Subscription(call) = context.permit().call() else {
        return Err(RpcOutcome::Internal);
    };
    let call = call.clone();
    let (state, request, owner) = (context.state(), context.request(), owner(context)?);
    let message = || {
        request
            .message
            .as_ref()
            .ok_or(RpcOutcome::Subscription(SubscriptionError::NoConnection))
    };
    match call {
        SubscriptionCall::NewFilter(filter) => create(context, owner, Topic::Logs(filter)).await,
        SubscriptionCall::NewBlockFilter => create(context, owner, Topic::Heads).await,
        SubscriptionCall::Changes(id) => {
            let cursor = state
                .filters
                .find(id, owner, (context.snapshot(), context.now()))
                .map_err(RpcOutcome::Subscription)?;
            let mut cursor = cursor.lock().await;
            Ok(match poll(&mut cursor, &mut context.reads()).await? {
                Updates::Logs(rows) => view::log_array(&rows),
                Updates::Blocks(hashes) => view::local::hashes(&hashes),
            })
        }
        SubscriptionCall::Logs(id) => {
            let cursor = state
                .filters
                .find(id, owner, (context.snapshot(), context.now()))
                .map_err(RpcOutcome::Subscription)?;
            let topic = cursor.lock().await.topic().clone();
            let Topic::Logs(filter) = topic else {
                return Err(RpcOutcome::Subscription(SubscriptionError::NoFilter));
            };
            let read = RpcCall::for_read(state, request, Method::GetLogs, Call::Logs(filter));
            execute::forward(&mut context.reads().authorize(&read)?).await
        }
        SubscriptionCall::Uninstall(id) => {
            let removed = state.filters.remove(id, owner, (context.snapshot(), context.now()));
            Ok(if removed { Disclosed::TRUE } else { Disclosed::FALSE })
        }
        SubscriptionCall::Subscribe(topic) => {
            let message = message()?;
            // A caller who may not read the topic gets the denial of that read now.
            underlying_read(state, request, &topic).authorize()?;
            let cursor = LogCursor::new(topic, context.reads().recent_blocks().await?);
            let id = fresh_id(state);
            message.subscribe(id, cursor).map_err(RpcOutcome::Subscription)?;
            Ok(view::local::live_id(id))
        }
        SubscriptionCall::Unsubscribe(id) => {
            if message()?.unsubscribe(id) {
                Ok(Disclosed::TRUE)
            } else {
                Err(RpcOutcome::Subscription(SubscriptionError::NoSubscription))
            }
        }
    }
}

/// The user and the organization of the permit.
///
/// # Errors
/// The denial of anonymous callers.
fn owner(context: &CallContext<'_>) -> Result<Owner, RpcOutcome> {
    let user = context
        .permit()
        .user()
        .ok_or_else(|| context.denied(DenyReason::AuthRequired))?;
    Ok(Owner {
        user,
        org: context.permit().org(),
    })
}

async fn create(context: &mut CallContext<'_>, owner: Owner, topic: Topic) -> Result<Disclosed, RpcOutcome> {
    let state = context.state();
    // A caller who may not read the topic gets the denial of that read now.
    underlying_read(state, context.request(), &topic).authorize()?;
    let cursor = LogCursor::new(topic, context.reads().recent_blocks().await?);
    let id = fresh_id(state);
    state
        .filters
        .insert(id, owner, cursor, (context.snapshot(), context.now()))
        .map_err(RpcOutcome::Subscription)?;
    Ok(view::local::live_id(id))
}

fn fresh_id(state: &RpcContext) -> SubscriptionId {
    let mut bits = [0; 16];
    state.http.entropy.fill(&mut bits);
    SubscriptionId::new(bits)
}

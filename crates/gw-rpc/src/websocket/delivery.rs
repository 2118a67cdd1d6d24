//! Delivers the updates of a connection's subscriptions.

use super::{connection::Connection, send_queue::CloseReason};
use crate::{
    call::ReadContext,
    outcome::RpcOutcome,
    record::{CallRecord, CallRecorder},
    registry::{Subscription, Updates},
    subscriptions,
};
use gw_evm::SubscriptionId;
use gw_policy::Disclosed;
use std::{sync::Arc, time::Duration};

/// The wait before the next attempt while the node asks for a pause or the policy is stale.
const PAUSE: Duration = Duration::from_secs(1);

/// Delivers to all subscriptions of a connection until it ends.
pub(crate) async fn deliver(connection: &Arc<Connection>) {
    let state = connection.state();
    let mut moves = state.upstream().head_moves();
    loop {
        let mut is_paused = false;
        for subscription in connection.subscriptions().active() {
            is_paused |= !deliver_one(connection, &subscription).await;
        }
        tokio::select! {
            moved = moves.changed() => if moved.is_err() { return },
            () = connection.subscriptions().activated() => {}
            () = tokio::time::sleep(PAUSE), if is_paused => {}
        }
    }
}

/// Delivers the updates of one subscription. Returns false if there was no answer and the delivery must be attempted
/// again.
async fn deliver_one(connection: &Arc<Connection>, subscription: &Subscription) -> bool {
    let state = connection.state();
    // Each delivery is authorized by itself (HD20). A caller who lost the right gets nothing, and the connection is
    // closed.
    let Some(request) = connection.current_identity() else {
        return true;
    };
    // Without a head there are no updates; the next head wakes this task.
    if state.upstream().head().is_none() {
        return true;
    }
    let mut record = CallRecord::default();
    let mut cursor = subscription.cursor.lock().await;
    let read = subscriptions::underlying_read(state, &request, cursor.topic());
    // Wait while the circuit breaker of the caller's upstream key is open. Whether the caller may read at all is
    // checked below.
    if state.breakers.any_open(state.clock().now())
        && let Ok(authorized) = read.authorize()
        && authorized
            .key_id(state)
            .is_ok_and(|key| state.breakers.is_open(key, authorized.now()))
    {
        return false;
    }
    let next = cursor.next();
    let context = &mut ReadContext::new(state, &request, &mut record);
    let notifications = match subscriptions::poll(&mut cursor, context).await {
        Ok(updates) => notifications(context, subscription.id, updates).await,
        Err(outcome) => Err(outcome),
    };
    // The request of a connection does not end, so its unused memory is released after each delivery.
    request.hold.trim();
    let notifications = match notifications {
        Ok(notifications) if notifications.is_empty() => return true,
        Ok(notifications) => notifications,
        // What the caller may not read does not exist for them. The next block brings another attempt.
        Err(RpcOutcome::Denied(_)) => return true,
        // There are more updates than a client can receive.
        Err(RpcOutcome::Invalid(_)) => {
            connection.send_queue().end(CloseReason::Slow);
            return true;
        }
        Err(_) => {
            // The updates of these blocks are still to be delivered.
            cursor.rewind(next);
            return false;
        }
    };
    // WS-5: a delivery is recorded before it leaves.
    let outcome = match CallRecorder::for_internal(state, &request, DELIVERY) {
        Ok(mut recorder) => {
            recorder.record = record;
            recorder.finish(RpcOutcome::Result(Disclosed::NULL), false).await
        }
        Err(unavailable) => unavailable,
    };
    let is_authorized = connection.current_identity().is_some();
    if !matches!(outcome, RpcOutcome::Result(_)) || !is_authorized {
        connection.send_queue().end(CloseReason::Unauthorized);
    } else if connection.subscriptions().contains(subscription.id) {
        notifications
            .into_iter()
            .for_each(|text| connection.send_queue().push(text, None));
    }
    true
}

/// The method name of a delivery, in its notification and in its record.
const DELIVERY: &str = "eth_subscription";

/// One notification per row or block.
async fn notifications(
    context: &mut ReadContext<'_>,
    id: SubscriptionId,
    updates: Updates,
) -> Result<Vec<String>, RpcOutcome> {
    let notification = |result: &Disclosed| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"{DELIVERY}","params":{{"subscription":"{id}","result":{}}}}}"#,
            result.as_str()
        )
    };
    match updates {
        Updates::Logs(rows) => Ok(rows.iter().map(notification).collect()),
        Updates::Blocks(hashes) => {
            let mut texts = Vec::new();
            for hash in hashes {
                let header = subscriptions::header(context, hash).await?;
                texts.extend(header.as_ref().map(notification));
            }
            Ok(texts)
        }
    }
}

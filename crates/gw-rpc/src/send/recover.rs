//! Sends of which nobody knows whether the node took them, or whose rows could not be settled: the chain tells, by the
//! hash (HD22).

use super::{
    SendContext,
    forward::{Log, key_without_hash},
    prepare::Facts,
};
use gw_audit::{Outcome, SendIntent, SendOutcome};
use gw_node::NodeError;
use gw_store::{
    Actor, StoreError,
    record::{SendAccepted, SendRows},
};
use gw_types::{Address, B256, UserId};
use std::time::Duration;
use tokio::task::JoinSet;

const BETWEEN: Duration = Duration::from_secs(1);
/// Asked so often of a node that answers, the transaction counts as never taken; what is released then gives reach and
/// sight to nobody, and a reservation made for it is followed by its own worker.
const TRIES: u32 = 60;

#[derive(Debug, thiserror::Error)]
enum Unresolved {
    #[error("the node did not answer")]
    Node(#[from] NodeError),
    #[error("the store did not answer")]
    Store(#[from] StoreError),
}

/// Settles a send later. Shutdown does not wait for it: the intent stays open until it is settled.
pub(super) fn later(context: &SendContext, log: Log, facts: Facts) {
    let context = context.clone();
    tokio::spawn(async move {
        let outcome = match facts.hash {
            Some(hash) => resolve(&context, facts.user, hash, facts.sender).await,
            // Signed by the node, under a hash it did not tell.
            None => Some(Outcome::Unknown),
        };
        if let Some(outcome) = outcome {
            log.conclude(&context, outcome, None).await;
        }
    });
}

/// Resolves what a crash left open: intents without outcome, found when the journal was opened.
pub async fn resolve_intents(context: &SendContext, intents: Vec<SendIntent>) {
    let mut open = JoinSet::new();
    for intent in intents {
        let context = context.clone();
        open.spawn(async move { resolve_intent(&context, intent).await });
    }
    while open.join_next().await.is_some() {}
}

async fn resolve_intent(context: &SendContext, intent: SendIntent) {
    let snapshot = context.feed.pin().snapshot;
    let user = intent
        .subject
        .as_ref()
        .and_then(|subject| snapshot.user_by_external(subject))
        .map(|user| user.id);
    let outcome = match (user, intent.sender) {
        // Signed by the node: that its nonce is used would not tell by whom.
        (Some(_), Some(sender)) if intent.hash == key_without_hash(sender, intent.nonce) => Some(Outcome::Unknown),
        (Some(user), Some(sender)) => resolve(context, user, intent.hash, sender).await,
        // Erased since: nobody to settle it for.
        (Some(_) | None, _) => Some(Outcome::Unknown),
    };
    let Some(outcome) = outcome else { return };
    let record = SendOutcome {
        hash: intent.hash,
        org_id: intent.org_id,
        outcome,
        node_code: None,
    };
    if let Err(error) = context.journal.append(record) {
        tracing::error!(
            error = &error as &dyn std::error::Error,
            "a resolved send was not recorded"
        );
    }
}

/// Asks until node and store have answered, and the node knows the transaction or surely never took it. `None`: still
/// open, for the next start.
async fn resolve(context: &SendContext, user: UserId, hash: B256, sender: Address) -> Option<Outcome> {
    let mut unknown = 0;
    for attempt in 0..TRIES.saturating_mul(2) {
        if attempt > 0 {
            tokio::time::sleep(BETWEEN).await;
        }
        match once(context, user, hash, sender, unknown + 1 == TRIES).await {
            Ok(Some(outcome)) => return Some(outcome),
            Ok(None) => unknown += 1,
            Err(error) => tracing::warn!(error = &error as &dyn std::error::Error, "a send is still unresolved"),
        }
    }
    None
}

async fn once(
    context: &SendContext,
    user: UserId,
    hash: B256,
    sender: Address,
    last: bool,
) -> Result<Option<Outcome>, Unresolved> {
    let taken = context.node.has_transaction(hash).await?;
    if !taken && !last {
        return Ok(None);
    }
    let snapshot = context.feed.pin().snapshot;
    let visibility = snapshot
        .visibility(hash)
        .iter()
        .find(|row| !row.active && row.sender == user)
        .map(|row| row.id);
    let open = context.store.read().open_reservations(Some(hash)).await?;
    let watched = context.store.read().watched_sends(u64::MAX).await?;
    let watch = watched
        .iter()
        .find(|watched| watched.tx_hash == Some(hash))
        .map(|watched| watched.id);
    let rows = SendRows {
        visibility,
        reservations: open.iter().map(|reservation| reservation.id).collect(),
        watch,
    };
    let mut tx = context.store.begin(&Actor::system()).await?;
    if taken {
        tx.accept_send(SendAccepted {
            rows,
            tx_hash: hash,
            link: Some((user, sender)),
        })
        .await?;
    } else {
        tx.refuse_send(rows).await?;
    }
    tx.commit().await?;
    Ok(Some(if taken { Outcome::Accepted } else { Outcome::Refused }))
}

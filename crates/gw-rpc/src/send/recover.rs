//! Settles sends whose outcome is unknown, or whose rows could not be written, by asking the chain for the hash (HD22).

use super::{
    SendContext,
    forward::{SendJournal, key_without_hash},
    prepare::SendDetails,
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

const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// After this many answers without the transaction it counts as never accepted. Its released rows give no access, and a
/// worker follows its reservations.
const MAX_ATTEMPTS: u32 = 60;

#[derive(Debug, thiserror::Error)]
enum Unresolved {
    #[error("the node did not answer")]
    Node(#[from] NodeError),
    #[error("the store did not answer")]
    Store(#[from] StoreError),
}

/// Settles a send in a background task. Shutdown does not wait for the task: the intent stays open until the send is
/// settled.
pub(super) fn spawn_resolution(context: &SendContext, journal: SendJournal, details: SendDetails) {
    let context = context.clone();
    tokio::spawn(async move {
        let outcome = match details.hash {
            Some(hash) => resolve(&context, details.user, hash, details.sender).await,
            // The node signed the transaction, and its hash is unknown.
            None => Some(Outcome::Unknown),
        };
        if let Some(outcome) = outcome {
            journal.record_outcome(&context, outcome, None).await;
        }
    });
}

/// Resolves intents without outcome. A crash left them; opening the journal found them.
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
        // The node signed the transaction: a used nonce does not show which transaction used it.
        (Some(_), Some(sender)) if intent.hash == key_without_hash(sender, intent.nonce) => Some(Outcome::Unknown),
        (Some(user), Some(sender)) => resolve(context, user, intent.hash, sender).await,
        // The user was erased, and their rows with them.
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
            "the outcome of a resolved send could not be recorded: its intent stays open until the next start"
        );
    }
}

/// Retries until node and store have answered and the node knows the transaction or has certainly not accepted it.
/// `None` leaves the intent open for the next start.
async fn resolve(context: &SendContext, user: UserId, hash: B256, sender: Address) -> Option<Outcome> {
    let mut unknown_count = 0;
    for attempt in 0..MAX_ATTEMPTS.saturating_mul(2) {
        if attempt > 0 {
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
        match resolve_attempt(context, user, hash, sender, unknown_count + 1 == MAX_ATTEMPTS).await {
            Ok(Some(outcome)) => return Some(outcome),
            Ok(None) => unknown_count += 1,
            Err(error) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the outcome of a send is still unknown: retrying"
            ),
        }
    }
    None
}

async fn resolve_attempt(
    context: &SendContext,
    user: UserId,
    hash: B256,
    sender: Address,
    is_last: bool,
) -> Result<Option<Outcome>, Unresolved> {
    let is_known = context.node.has_submitted(hash).await?;
    if !is_known && !is_last {
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
    if is_known {
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
    Ok(Some(if is_known { Outcome::Accepted } else { Outcome::Refused }))
}

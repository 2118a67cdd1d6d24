//! Settles sends whose outcome is unknown, or whose rows could not be written, by asking the chain for the hash (HD22).
//!
//! A node that does not have a transaction proves nothing: it may arrive from elsewhere later. So a send is settled
//! only when the node has it, or when something else used its nonce; until then its rows give no access, and a worker
//! follows its reservations.

use super::{
    SendContext,
    forward::{SendJournal, key_without_hash},
    prepare::SendDetails,
};
use crate::upstream::SendFate;
use gw_audit::{Outcome, SendIntent, SendOutcome};
use gw_node::NodeError;
use gw_store::{
    Actor, StoreError,
    record::{SendAccepted, SendRows},
};
use gw_types::{Address, B256, UserId};
use std::time::Duration;
use tokio::task::JoinSet;

/// The pause between the first attempts. Later pauses double, up to the longest one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(300);
/// How many attempts follow each other after the first pause.
const QUICK_ATTEMPTS: u32 = 60;

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
            Some(hash) => {
                let send = UnsettledSend {
                    user: details.user,
                    hash,
                    sender: details.sender,
                    nonce: details.nonce,
                };
                resolve(&context, &send).await
            }
            // The node signed the transaction, and its hash is unknown.
            None => Outcome::Unknown,
        };
        journal.record_outcome(&context, outcome, None).await;
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
        (Some(_), Some(sender)) if intent.hash == key_without_hash(sender, intent.nonce) => Outcome::Unknown,
        (Some(user), Some(sender)) => {
            let send = UnsettledSend {
                user,
                hash: intent.hash,
                sender,
                nonce: intent.nonce,
            };
            resolve(context, &send).await
        }
        // The user was erased, and their rows with them.
        (Some(_) | None, _) => Outcome::Unknown,
    };
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

/// A send without an outcome.
#[derive(Clone, Copy, Debug)]
struct UnsettledSend {
    user: UserId,
    hash: B256,
    sender: Address,
    nonce: u64,
}

/// The pause after the attempt with this number, counted from zero.
fn pause_after(attempt: u32) -> Duration {
    let doublings = attempt.saturating_sub(QUICK_ATTEMPTS.saturating_sub(1)).min(16);
    FIRST_PAUSE.saturating_mul(1 << doublings).min(MAX_PAUSE)
}

/// Retries without end until node and store have answered, and the node has the transaction or can never mine it.
async fn resolve(context: &SendContext, send: &UnsettledSend) -> Outcome {
    let mut attempt = 0_u32;
    loop {
        match resolve_attempt(context, send).await {
            Ok(Some(outcome)) => return outcome,
            Ok(None) if attempt == QUICK_ATTEMPTS => tracing::warn!(
                tx.hash = %send.hash,
                "the node does not show whether it took a send: the search goes on, with longer pauses"
            ),
            Ok(None) => {}
            Err(error) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the outcome of a send is still unknown: retrying"
            ),
        }
        tokio::time::sleep(pause_after(attempt)).await;
        attempt = attempt.saturating_add(1);
    }
}

async fn resolve_attempt(context: &SendContext, send: &UnsettledSend) -> Result<Option<Outcome>, Unresolved> {
    let UnsettledSend {
        user,
        hash,
        sender,
        nonce,
    } = *send;
    let is_taken = match context.node.find_submitted(hash, sender, nonce).await? {
        SendFate::Taken => true,
        SendFate::Replaced => false,
        SendFate::Unknown => return Ok(None),
    };
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
    if is_taken {
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
    Ok(Some(if is_taken { Outcome::Accepted } else { Outcome::Refused }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HD22: the search never ends, and never becomes a storm.
    #[test]
    fn hd22_the_pauses_of_the_search_grow_to_five_minutes() {
        let pauses: Vec<u64> = [0, 58, 59, 60, 61, 67, 68, 69, u32::MAX]
            .map(|attempt| pause_after(attempt).as_secs())
            .to_vec();
        assert_eq!(pauses, [1, 1, 1, 2, 4, 256, 300, 300, 300]);
    }
}

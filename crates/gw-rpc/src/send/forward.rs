//! From the intent to the outcome: the part that nobody can stop half-way (HD21, HD22).

use super::{
    prepare::{Facts, Ready},
    recover, rows,
};
use crate::{
    execute::{head, unanswered},
    question::Asked,
    record::Found,
    reply::Reply,
    send::SendContext,
    state::Inner,
};
use gw_audit::{Outcome, Record, SendIntent, SendOutcome};
use gw_journal::{JournalError, Reservation};
use gw_node::{Answer, NodeError, Resend};
use gw_policy::{
    sealed::{RawError, Sealed},
    view::{ErrorContext, node_error, sent_hash},
};
use gw_types::{Address, B256};

pub(super) async fn forward(asked: &Asked, ready: Ready, found: &mut Found) -> Result<B256, Reply> {
    let state = asked.state();
    let context = &state.sends;
    let facts = ready.facts.clone();
    // Room for both records before anything has happened; the intent is on disk before anything does.
    let log = Log::begin(context, &facts).await.map_err(|_| Reply::AuditUnavailable)?;
    // W5, R1: before the node hears of it.
    let rows = match rows::start(context, &facts).await {
        Ok(rows) => rows,
        Err(error) => {
            tracing::error!(error = &error as &dyn std::error::Error, "a send could not be prepared");
            log.conclude(context, Outcome::Refused, None).await;
            return Err(Reply::PolicyUnavailable);
        }
    };
    // HD20: the newest policy, once more.
    let fate = match ready.again(asked) {
        Ok(ready) => ask(state, &facts, &ready, found).await,
        Err(reply) => Fate::NotTaken(reply, None),
    };
    match fate {
        Fate::Taken(hash) => {
            match rows::accept(context, &facts, rows, hash).await {
                Ok(()) => log.conclude(context, Outcome::Accepted, None).await,
                // It is out; the open intent says what is still to be written.
                Err(error) => {
                    tracing::error!(
                        error = &error as &dyn std::error::Error,
                        "an accepted send is followed up later"
                    );
                    recover::later(context, log, facts);
                }
            }
            // Decision 41: what follows reads the state after this transaction.
            if let Err(error) = found.upstream(state, context.node.refresh_head()).await {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "the head was not renewed after a send"
                );
            }
            Ok(hash)
        }
        Fate::NotTaken(reply, node_code) => {
            match rows::refuse(context, &facts, rows).await {
                Ok(()) => log.conclude(context, Outcome::Refused, node_code).await,
                Err(error) => {
                    tracing::error!(
                        error = &error as &dyn std::error::Error,
                        "a refused send is released later"
                    );
                    recover::later(context, log, facts);
                }
            }
            Err(reply)
        }
        // The rows stay inactive until the chain tells.
        Fate::Unknown(reply) => {
            recover::later(context, log, facts);
            Err(reply)
        }
    }
}

/// What became of the one thing that cannot be undone.
enum Fate {
    /// The node took it.
    Taken(B256),
    /// It did not, or was never asked.
    NotTaken(Reply, Option<i64>),
    /// Nobody knows.
    Unknown(Reply),
}

async fn ask(state: &Inner, facts: &Facts, ready: &Ready, found: &mut Found) -> Fate {
    let (pin, node) = match (head(state), ready.judged.node(state)) {
        (Ok(head), Ok(node)) => (head.pin(), node),
        (Err(reply), _) | (_, Err(reply)) => return Fate::NotTaken(reply, None),
    };
    let Some(body) = ready.judged.permit.body(&ready.call, pin) else {
        return Fate::NotTaken(Reply::Internal, None);
    };
    // Raw transactions have a hash of their own; what the node signs happens anew wherever it is said.
    let resend = if facts.hash.is_some() {
        Resend::IfUnheard
    } else {
        Resend::Never
    };
    match found.upstream(state, node.send(&body, resend)).await {
        Ok(Answer::Result(result)) => match (facts.hash, sent_hash(&result)) {
            // W6: acceptance is a result that equals our hash; a transaction the node signed has only its word.
            (Some(ours), Some(said)) if ours == said => Fate::Taken(ours),
            (None, Some(said)) => Fate::Taken(said),
            (Some(_) | None, _) => Fate::Unknown(unanswered(state, &NodeError::Unparsable)),
        },
        Ok(Answer::Error(error)) => refused(error),
        Err(error) if error.is_before_sending() => Fate::NotTaken(unanswered(state, &error), None),
        Err(error) => Fate::Unknown(unanswered(state, &error)),
    }
}

/// The node said no; its words are mapped (W7).
fn refused(error: Sealed<RawError>) -> Fate {
    let said = node_error(ErrorContext::TracePassed, error);
    let code = i64::from(said.code());
    Fate::NotTaken(Reply::NodeError(said), Some(code))
}

/// Intent and outcome of one send. Without an outcome the intent stays open, and is resolved by its hash at the next
/// start at the latest (HD22).
#[derive(Debug)]
pub(super) struct Log {
    room: Reservation,
    outcome: SendOutcome,
}

impl Log {
    async fn begin(context: &SendContext, facts: &Facts) -> Result<Self, JournalError> {
        let hash = facts.key();
        let intent = SendIntent {
            hash,
            subject: Some(facts.subject.clone()),
            org_id: facts.org,
            sender: Some(facts.sender),
            nonce: facts.nonce,
            visible_to: facts.recipients.clone(),
            claims: facts.claims,
            creates: facts.creates.clone(),
        };
        let mut room = context.journal.reserve(2)?;
        written(context, &mut room, intent).await?;
        let outcome = SendOutcome {
            hash,
            org_id: facts.org,
            outcome: Outcome::Unknown,
            node_code: None,
        };
        Ok(Self { room, outcome })
    }

    pub(super) async fn conclude(mut self, context: &SendContext, outcome: Outcome, node_code: Option<i64>) {
        let record = SendOutcome {
            outcome,
            node_code,
            ..self.outcome
        };
        if let Err(error) = written(context, &mut self.room, record).await {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "the outcome of a send was not recorded"
            );
        }
    }
}

async fn written(context: &SendContext, room: &mut Reservation, record: impl Into<Record>) -> Result<(), JournalError> {
    let position = context.journal.append_reserved(room, record)?;
    context.journal.durable(position).await
}

impl Facts {
    /// By what the intent is found again: the hash, or for a transaction the node signs sender and nonce.
    fn key(&self) -> B256 {
        self.hash.unwrap_or_else(|| key_without_hash(self.sender, self.nonce))
    }
}

/// Stands where the hash of a transaction would that the node signs.
pub(super) fn key_without_hash(sender: Address, nonce: u64) -> B256 {
    let mut key = sender.to_vec();
    key.extend_from_slice(&nonce.to_be_bytes());
    alloy_primitives::keccak256(key)
}

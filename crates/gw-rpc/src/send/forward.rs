//! From the intent to the outcome of a send. This part always runs to its end, even if the client has gone (HD21,
//! HD22).

use super::{
    prepare::{PreparedSend, SendDetails},
    recover, rows,
};
use crate::{
    call::{CallContext, upstream_failure},
    execute::head,
    outcome::RpcOutcome,
    send::SendContext,
    upstream::SubmissionAnswer,
};
use gw_audit::{Outcome, Record, SendIntent, SendOutcome};
use gw_journal::{JournalError, Reservation};
use gw_node::{NodeError, RetryPolicy};
use gw_policy::view::DisclosedError;
use gw_types::{Address, B256};

/// Writes the intent, submits the transaction to the node, and writes the outcome.
///
/// # Errors
/// The outcome for a send that was rejected, or for which it is unknown whether the node accepted it.
pub(super) async fn submit_recorded(context: &mut CallContext<'_>, prepared: PreparedSend) -> Result<B256, RpcOutcome> {
    let state = context.state();
    let sends = &state.sends;
    let details = prepared.details.clone();
    // Reserve room for both records first. The intent is on disk before anything else happens.
    let journal = SendJournal::begin(sends, &details)
        .await
        .map_err(|_| RpcOutcome::AuditUnavailable)?;
    // W5, R1: the rows are written before the node gets the transaction.
    let rows = match rows::start(sends, &details).await {
        Ok(rows) => rows,
        Err(error) => {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "the rows of a send could not be written: the send is rejected"
            );
            journal.record_outcome(sends, Outcome::Refused, None).await;
            return Err(RpcOutcome::PolicyUnavailable);
        }
    };
    // HD20: authorize the send once more, under the newest policy.
    let submitted = match prepared.reauthorize(context) {
        Ok(prepared) => submit(context, &details, &prepared).await,
        Err(outcome) => SubmitOutcome::Rejected(outcome, None),
    };
    match submitted {
        SubmitOutcome::Accepted(hash) => {
            match rows::accept(sends, &details, rows, hash).await {
                Ok(()) => journal.record_outcome(sends, Outcome::Accepted, None).await,
                // The node has the transaction. The open intent names the rows that are still to be written.
                Err(error) => {
                    tracing::error!(
                        error = &error as &dyn std::error::Error,
                        "the rows of an accepted send could not be written: a background task settles the send"
                    );
                    recover::spawn_resolution(sends, journal, details);
                }
            }
            // Decision 41: the caller's next reads see the state after this transaction.
            if let Err(error) = context.record.time_upstream(state, sends.node.refresh_head()).await {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "the head could not be renewed after a send"
                );
            }
            Ok(hash)
        }
        SubmitOutcome::Rejected(outcome, node_code) => {
            match rows::release(sends, &details, rows).await {
                Ok(()) => journal.record_outcome(sends, Outcome::Refused, node_code).await,
                Err(error) => {
                    tracing::error!(
                        error = &error as &dyn std::error::Error,
                        "the rows of a rejected send could not be removed: a background task settles the send"
                    );
                    recover::spawn_resolution(sends, journal, details);
                }
            }
            Err(outcome)
        }
        // The rows stay inactive until the chain shows the outcome.
        SubmitOutcome::Unknown(outcome) => {
            recover::spawn_resolution(sends, journal, details);
            Err(outcome)
        }
    }
}

/// The outcome of a submission to the node.
enum SubmitOutcome {
    /// The node accepted the transaction.
    Accepted(B256),
    /// The node rejected the transaction, or never got it.
    Rejected(RpcOutcome, Option<i64>),
    /// It is unknown whether the node accepted the transaction.
    Unknown(RpcOutcome),
}

async fn submit(context: &mut CallContext<'_>, details: &SendDetails, prepared: &PreparedSend) -> SubmitOutcome {
    let state = context.state();
    let pin = match head(state) {
        Ok(head) => head.pin(),
        Err(outcome) => return SubmitOutcome::Rejected(outcome, None),
    };
    let Some(body) = context.permit().body(&prepared.call, pin) else {
        return SubmitOutcome::Rejected(RpcOutcome::Internal, None);
    };
    // A raw transaction keeps its hash when it is sent twice; a transaction that the node signs would become a second
    // one.
    let retry = if details.hash.is_some() {
        RetryPolicy::IfUnheard
    } else {
        RetryPolicy::Never
    };
    match context.submit(&body, retry).await {
        Ok(SubmissionAnswer::Hash(returned)) => match (details.hash, returned) {
            // W6: a raw transaction is accepted if the node returns its hash; for a transaction that the node signs,
            // any returned hash counts.
            (Some(expected), Some(returned)) if expected == returned => SubmitOutcome::Accepted(expected),
            (None, Some(returned)) => SubmitOutcome::Accepted(returned),
            (Some(_) | None, _) => SubmitOutcome::Unknown(upstream_failure(state, &NodeError::Unparsable)),
        },
        Ok(SubmissionAnswer::Error(error)) => answered_with_error(details, error),
        Ok(SubmissionAnswer::Failed(error)) if error.is_before_sending() => {
            SubmitOutcome::Rejected(upstream_failure(state, &error), None)
        }
        Ok(SubmissionAnswer::Failed(error)) => SubmitOutcome::Unknown(upstream_failure(state, &error)),
        Err(outcome) => SubmitOutcome::Rejected(outcome, None),
    }
}

/// The node answered with an error; the caller gets it as one of the known texts (W7). If the error does not show that
/// the node rejected the transaction, its hash is searched for (HD22).
fn answered_with_error(details: &SendDetails, error: DisclosedError) -> SubmitOutcome {
    let is_unknown = details.hash.is_some() && !error.shows_rejection();
    let code = i64::from(error.code());
    let outcome = RpcOutcome::NodeError(error);
    if is_unknown {
        SubmitOutcome::Unknown(outcome)
    } else {
        SubmitOutcome::Rejected(outcome, Some(code))
    }
}

/// The journal records of one send: intent and outcome. Without an outcome the intent stays open, and is resolved by
/// its hash at the next start at the latest (HD22).
#[derive(Debug)]
pub(super) struct SendJournal {
    reservation: Reservation,
    outcome: SendOutcome,
}

impl SendJournal {
    async fn begin(sends: &SendContext, details: &SendDetails) -> Result<Self, JournalError> {
        let hash = details.key();
        let intent = SendIntent {
            hash,
            subject: Some(details.subject.clone()),
            org_id: details.org,
            sender: Some(details.sender),
            nonce: details.nonce,
            visible_to: details.recipients.clone(),
            claims: details.claims,
            creates: details.creates.clone(),
        };
        let mut reservation = sends.journal.reserve(2)?;
        append_durably(sends, &mut reservation, intent).await?;
        let outcome = SendOutcome {
            hash,
            org_id: details.org,
            outcome: Outcome::Unknown,
            node_code: None,
        };
        Ok(Self { reservation, outcome })
    }

    pub(super) async fn record_outcome(mut self, sends: &SendContext, outcome: Outcome, node_code: Option<i64>) {
        let record = SendOutcome {
            outcome,
            node_code,
            ..self.outcome
        };
        if let Err(error) = append_durably(sends, &mut self.reservation, record).await {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "the outcome of a send could not be recorded: its intent stays open until the next start"
            );
        }
    }
}

async fn append_durably(
    sends: &SendContext,
    reservation: &mut Reservation,
    record: impl Into<Record>,
) -> Result<(), JournalError> {
    let position = reservation.append(record)?;
    sends.journal.durable(position).await
}

impl SendDetails {
    /// The key that identifies the intent: the hash or, for a transaction that the node signs, a key of sender and
    /// nonce.
    fn key(&self) -> B256 {
        self.hash.unwrap_or_else(|| key_without_hash(self.sender, self.nonce))
    }
}

/// The key of a transaction that the node signs, whose hash is unknown before the submission.
pub(super) fn key_without_hash(sender: Address, nonce: u64) -> B256 {
    let mut key = sender.to_vec();
    key.extend_from_slice(&nonce.to_be_bytes());
    alloy_primitives::keccak256(key)
}

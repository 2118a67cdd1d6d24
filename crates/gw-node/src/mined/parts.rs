//! Reads the parts of a transaction that cannot be read as a whole: each part in a query of its own, so that one that
//! cannot be read does not hide the others.

use super::{BlockListing, UnreadableTransaction, results, trace_budget};
use crate::{error::NodeError, head::Block, message::read_batch, node::Node};
use gw_evm::{
    trace::{changed, emitters, made, touched},
    wire::{self, TraceForm, TraceScope, UpstreamCall},
};
use gw_types::{Address, B256};
use serde_json::value::RawValue;
use std::collections::BTreeSet;

impl Node {
    /// Reads the parts of a transaction that cannot be read as a whole.
    pub(super) async fn read_parts(
        &self,
        listing: &BlockListing,
        hash: B256,
    ) -> Result<UnreadableTransaction, NodeError> {
        let block = listing.block.hash;
        let sent = self
            .sent(block, &[hash])
            .await
            .ok()
            .and_then(|mut sent| sent.pop().flatten());
        let (mut log_emitters, mut candidates) = (BTreeSet::new(), BTreeSet::new());
        candidates.extend(
            sent.as_ref()
                .filter(|sent| sent.to.is_none())
                .map(|sent| sent.sender.create(sent.nonce)),
        );
        if let Some(receipt) = self.result(&wire::receipt(hash)).await? {
            let (emitters, created) = emitters(&receipt);
            log_emitters = emitters;
            candidates.extend(created);
        }
        // The call tree is the largest part; the other parts may still be readable.
        let parts = wire::trace_transaction(hash, TraceScope::Send, TraceForm::Batch);
        let [_, touched_call, diff_call] = parts.as_slice() else {
            return Err(NodeError::Unparsable);
        };
        let diff = self.result(diff_call).await?;
        let changes = diff.as_deref().and_then(changed);
        match &diff {
            Some(diff) => candidates.extend(made(diff)),
            // Without the diff, every touched account that got code in this block may be a contract of this
            // transaction. It counts as one, so that it stays unreadable.
            None => {
                let touched = self
                    .result(touched_call)
                    .await?
                    .map(|touches| touched(&touches))
                    .unwrap_or_default();
                candidates.extend(
                    touched
                        .into_iter()
                        .filter(|(_, had_code)| !had_code)
                        .map(|(address, _)| address),
                );
            }
        }
        let created = self.newly_created(candidates, &listing.block).await?;
        Ok(UnreadableTransaction {
            hash,
            sent,
            changes,
            emitters: log_emitters.into_iter().collect(),
            created,
            is_state_missing: false,
        })
    }

    /// The addresses that have code in this block and had none in its parent. An address counts as such where the node
    /// answers with an error: the transaction shows that it created a contract there.
    async fn newly_created(&self, addresses: BTreeSet<Address>, block: &Block) -> Result<Vec<Address>, NodeError> {
        let addresses: Vec<Address> = addresses.into_iter().collect();
        let now = self.code_at(&addresses, block.hash).await?;
        let before = self.code_at(&addresses, block.parent).await?;
        let created = addresses
            .into_iter()
            .zip(now.into_iter().zip(before))
            .filter(|(_, (now, before))| now.unwrap_or(true) && !before.unwrap_or(false));
        Ok(created.map(|(address, _)| address).collect())
    }

    /// The result of one call; `None` if the answer is an error, too large, too slow, or not readable, or if the node
    /// or a proxy closes the connection in place of an answer. A node that accepts no connection is an error.
    pub(super) async fn result(&self, call: &UpstreamCall) -> Result<Option<Box<RawValue>>, NodeError> {
        match self.exchange(std::slice::from_ref(call), trace_budget(0)).await {
            Ok(body) => Ok(read_batch(&body, 1)
                .ok()
                .and_then(results)
                .and_then(|mut results| results.pop().map(ToOwned::to_owned))),
            // The answer is too large or takes too long to compute, for the node or for a proxy in front of it.
            Err(
                NodeError::TooLarge
                | NodeError::Timeout
                | NodeError::Broken(_)
                | NodeError::Unavailable
                | NodeError::RateLimited(_),
            ) => Ok(None),
            Err(NodeError::Unreachable(error)) if !error.is_connect() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

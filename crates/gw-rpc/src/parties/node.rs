//! The parties of transactions, from the node.

use super::{PartyQuery, PartySource};
use gw_evm::{
    BlockId, Call, TransactionRef,
    wire::{self, Pin, UpstreamCall},
};
use gw_node::{Answer, Node, NodeError, RequestBudget};
use gw_policy::view::{TransactionParties, block_parties, transaction_parties};
use gw_types::B256;

/// The most transactions of one batch, when the answer with whole blocks is too large.
const MAX_TRANSACTIONS_PER_BATCH: usize = 64;

/// The node, with the key and the payer of one caller.
#[derive(Debug)]
pub(crate) struct NodeParties {
    node: Node,
    pin: Pin,
}

impl NodeParties {
    pub(crate) const fn new(node: Node, pin: Pin) -> Self {
        Self { node, pin }
    }

    fn body(&self, query: &PartyQuery) -> Option<UpstreamCall> {
        let call = match query {
            PartyQuery::Block { hash, .. } => Call::Block {
                block: BlockId::Hash {
                    hash: *hash,
                    require_canonical: false,
                },
                full: true,
            },
            PartyQuery::Transaction(hash) => Call::Transaction(TransactionRef::Hash(*hash)),
        };
        wire::body(&call, self.pin)
    }

    /// Makes the queries in one exchange. A query that the node answers with an error has no answer.
    async fn batch(
        &self,
        queries: &[PartyQuery],
        budget: RequestBudget,
    ) -> Result<Vec<(B256, TransactionParties)>, NodeError> {
        let (queries, bodies): (Vec<_>, Vec<_>) = queries
            .iter()
            .filter_map(|query| Some((query, self.body(query)?)))
            .unzip();
        let answers = self.node.batch(&bodies, budget).await?;
        let mut parties = Vec::new();
        for (query, answer) in queries.into_iter().zip(answers) {
            match (query, answer) {
                (PartyQuery::Block { hash, .. }, Answer::Result(block)) => parties.extend(block_parties(*hash, &block)),
                (PartyQuery::Transaction(hash), Answer::Result(transaction)) => {
                    parties.extend(transaction_parties(*hash, &transaction).map(|parties| (*hash, parties)));
                }
                (PartyQuery::Block { .. } | PartyQuery::Transaction(_), Answer::Error(_)) => {}
            }
        }
        Ok(parties)
    }
}

impl PartySource for NodeParties {
    type Error = NodeError;

    async fn find(&self, queries: &[PartyQuery]) -> Result<Vec<(B256, TransactionParties)>, NodeError> {
        match self.batch(queries, RequestBudget::Blocks).await {
            // Large transactions of others in those blocks must not keep a caller from their own logs (HD36).
            Err(NodeError::TooLarge) => {}
            answer => return answer,
        }
        let transactions = queries.iter().flat_map(PartyQuery::needed).copied();
        let queries: Vec<_> = transactions.map(PartyQuery::Transaction).collect();
        let mut parties = Vec::with_capacity(queries.len());
        for queries in queries.chunks(MAX_TRANSACTIONS_PER_BATCH) {
            parties.extend(self.batch(queries, RequestBudget::Forward).await?);
        }
        Ok(parties)
    }
}

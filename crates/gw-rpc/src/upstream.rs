//! The upstream node as this crate reaches it. Every module may read facts about the chain. An answer to a caller's
//! query exists only together with an authorization that was renewed after the answer arrived (HD20).

use gw_evm::wire::UpstreamCall;
use gw_node::{Answer, Head, KeyId, Node, NodeError, NonceUse, RecentBlocks, RetryPolicy};
use gw_policy::view::{DisclosedError, ErrorContext, node_error, sent_hash};
use gw_types::{Address, B256};
use std::sync::Arc;
use tokio::sync::watch;

/// A caller of the node: its upstream key, and the payer for the bytes of its answers.
pub trait NodeCaller {
    /// The outcome for a caller that may not query the node.
    type Denial;

    /// The node with the key and the payer of this caller.
    ///
    /// # Errors
    /// The outcome for a caller whose key cannot be used.
    fn view_of(&self, node: &Node) -> Result<Node, Self::Denial>;
}

/// The authorization of a caller, which is renewed in place.
///
/// It is not `Clone`: [`Upstream::query`] borrows it mutably, so no viewer from before a query can open the answer.
pub trait Authorization: NodeCaller {
    /// Authorizes the call again under the newest policy.
    ///
    /// # Errors
    /// The denial by the newest policy.
    fn renew(&mut self) -> Result<(), Self::Denial>;
}

/// Why a query has no answer.
#[derive(Debug)]
pub enum QueryFailure<E, D> {
    /// The policy denies the call, before the query or after the answer arrived.
    Denied(D),
    /// The node did not answer.
    Failed(E),
}

/// The node's answer to a submitted transaction.
#[derive(Debug)]
pub(crate) enum SubmissionAnswer {
    /// A result, which is the transaction hash if it is readable.
    Hash(Option<B256>),
    /// The node's own error, as one of the known texts (W7).
    Error(DisclosedError),
    /// No answer: whether the node accepted the transaction may be unknown.
    Failed(NodeError),
}

/// What became of a submitted transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendFate {
    /// The node has it, pending or mined.
    Taken,
    /// Something else used its nonce, so it can never be mined.
    Replaced,
    /// The node does not have it, and may still get it.
    Unknown,
}

/// The upstream node. The node itself is private, so that a query for a caller must go through [`Upstream::query`]:
///
/// ```compile_fail,E0616
/// fn node(upstream: &gw_rpc::Upstream) -> &gw_node::Node {
///     &upstream.0
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Upstream(Arc<Node>);

impl Upstream {
    /// The node, from now on behind authorizations.
    pub const fn new(node: Arc<Node>) -> Self {
        Self(node)
    }

    /// Renews the authorization, sends the query that `start_query` makes of it, and renews the authorization again
    /// before it returns the answer.
    ///
    /// What the authorization says is read after the query:
    ///
    /// ```
    /// use gw_node::{Node, NodeError};
    /// use gw_rpc::{Authorization, NodeCaller, QueryFailure, Upstream};
    ///
    /// type Opened<A> = Result<String, QueryFailure<NodeError, <A as NodeCaller>::Denial>>;
    ///
    /// async fn open<A>(upstream: &Upstream, authorization: &mut A) -> Opened<A>
    /// where
    ///     A: Authorization + AsRef<str>,
    /// {
    ///     let nonce = |node: Node, _: &A| async move { node.mined_nonce(Default::default()).await };
    ///     let answer = upstream.query(authorization, nonce).await?;
    ///     let viewer = authorization.as_ref();
    ///     Ok(format!("{viewer} sees {answer}"))
    /// }
    /// ```
    ///
    /// To open an answer with what it said before does not compile:
    ///
    /// ```compile_fail,E0502
    /// use gw_node::{Node, NodeError};
    /// use gw_rpc::{Authorization, NodeCaller, QueryFailure, Upstream};
    ///
    /// type Opened<A> = Result<String, QueryFailure<NodeError, <A as NodeCaller>::Denial>>;
    ///
    /// async fn open<A>(upstream: &Upstream, authorization: &mut A) -> Opened<A>
    /// where
    ///     A: Authorization + AsRef<str>,
    /// {
    ///     let viewer = authorization.as_ref();
    ///     let nonce = |node: Node, _: &A| async move { node.mined_nonce(Default::default()).await };
    ///     let answer = upstream.query(authorization, nonce).await?;
    ///     Ok(format!("{viewer} sees {answer}"))
    /// }
    /// ```
    ///
    /// # Errors
    /// [`QueryFailure::Denied`] by the newest policy, or [`QueryFailure::Failed`] for a node that does not answer,
    /// after which the authorization is not renewed.
    pub async fn query<A, T, E, Query>(
        &self,
        authorization: &mut A,
        start_query: impl FnOnce(Node, &A) -> Query,
    ) -> Result<T, QueryFailure<E, A::Denial>>
    where
        A: Authorization,
        Query: Future<Output = Result<T, E>>,
    {
        authorization.renew().map_err(QueryFailure::Denied)?;
        let node = authorization.view_of(&self.0).map_err(QueryFailure::Denied)?;
        let answer = start_query(node, authorization).await.map_err(QueryFailure::Failed)?;
        authorization.renew().map_err(QueryFailure::Denied)?;
        Ok(answer)
    }

    /// Submits a transaction, once. The authorization is not renewed afterwards: the outcome of the transaction stands,
    /// and the answer contains nothing but that outcome.
    ///
    /// # Errors
    /// The outcome for a caller whose upstream key cannot be used.
    pub(crate) async fn submit<C: NodeCaller>(
        &self,
        caller: &C,
        transaction: &UpstreamCall,
        retry: RetryPolicy,
    ) -> Result<SubmissionAnswer, C::Denial> {
        let node = caller.view_of(&self.0)?;
        Ok(match node.send(transaction, retry).await {
            Ok(Answer::Result(result)) => SubmissionAnswer::Hash(sent_hash(&result)),
            Ok(Answer::Error(error)) => SubmissionAnswer::Error(node_error(ErrorContext::TracePassed, error)),
            Err(error) => SubmissionAnswer::Failed(error),
        })
    }

    /// The id of the upstream key of a caller's queries.
    ///
    /// # Errors
    /// The outcome for a caller whose upstream key cannot be used.
    pub(crate) fn key_id<C: NodeCaller>(&self, caller: &C) -> Result<KeyId, C::Denial> {
        Ok(caller.view_of(&self.0)?.key_id())
    }

    pub(crate) fn chain_id(&self) -> u64 {
        self.0.chain_id()
    }

    /// The followed head; `None` while no node confirms it.
    pub(crate) fn head(&self) -> Option<Arc<Head>> {
        self.0.head()
    }

    /// A receiver that is marked changed whenever the head changes or becomes invalid.
    pub(crate) fn head_moves(&self) -> watch::Receiver<()> {
        self.0.head_moves()
    }

    pub(crate) async fn refresh_head(&self) -> Result<(), NodeError> {
        self.0.refresh_head().await
    }

    pub(crate) async fn advance_head_to(&self, number: u64) -> Result<(), NodeError> {
        self.0.advance_head_to(number).await
    }

    /// Whether this block is the followed head or an ancestor of it.
    pub(crate) async fn follows(&self, number: u64, hash: B256) -> Result<bool, NodeError> {
        self.0.follows(number, hash).await
    }

    pub(crate) async fn recent_blocks(&self) -> Result<Arc<RecentBlocks>, NodeError> {
        self.0.recent_blocks().await
    }

    /// What became of a transaction that the gateway submitted.
    pub(crate) async fn find_submitted(&self, hash: B256, sender: Address, nonce: u64) -> Result<SendFate, NodeError> {
        if self.0.has_transaction(hash).await? {
            return Ok(SendFate::Taken);
        }
        let head = self.0.head().ok_or(NodeError::NoHead)?.block;
        let next = self.0.nonces_at(&[sender], head.hash).await?;
        if next.first().is_none_or(|next| *next <= nonce) {
            return Ok(SendFate::Unknown);
        }
        Ok(match self.0.nonce_use(sender, nonce, &head).await? {
            // The node does not look up transactions that are this old by their hash.
            NonceUse::Transaction { hash: mined, .. } if mined == hash => SendFate::Taken,
            NonceUse::Transaction { .. } | NonceUse::NoTransaction => SendFate::Replaced,
            NonceUse::Unknown => SendFate::Unknown,
        })
    }
}

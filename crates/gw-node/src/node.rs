//! The upstream node as the rest of the gateway sees it: a single node, whichever of the configured nodes is in use
//! (`crate::failover`).

use crate::{
    AnswerBudget, AnswerHold, Block, GroupKeyError, Head, HealthCheckConfig, KeyId, NoRoom, NodeConfig, NodeStatus,
    Payer, RequestBudget,
    endpoint::Endpoint,
    failover,
    head::{self, CHAIN_ID_QUERY, HeadCell},
    key::UpstreamKey,
    message::{self, Answer},
    recent_blocks::RecentBlocks,
};
use bytes::Bytes;
use gw_crypto::KeyCipher;
use gw_evm::{
    Call,
    wire::{self, TraceForm, UpstreamCall},
};
use gw_policy::{
    access::{Permit, Plan},
    sealed::{RawJson, Sealed},
};
use gw_types::{B256, GroupId, Secret};
use std::{
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::{
    sync::{Mutex, watch},
    task::JoinSet,
};

/// The sealed answer to a forwarded call.
pub type SealedAnswer = Answer<Sealed<RawJson>>;

/// Why there is no answer. A JSON-RPC error of the node is an answer, not a `NodeError`.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// No connection, no TLS, or the connection broke before the answer began.
    #[error("the node is not reachable")]
    Unreachable(#[source] hyper_util::client::legacy::Error),
    /// The connection broke during the answer.
    #[error("the connection to the node broke during its answer")]
    Broken(#[source] hyper::Error),
    /// No answer within the deadline.
    #[error("the node did not answer in time")]
    Timeout,
    /// A proxy in front of the node cannot reach it (HTTP 502, 503 or 504 without JSON).
    #[error("the proxy in front of the node cannot reach it")]
    Unavailable,
    /// Another node replaced this one while the request waited.
    #[error("the node was replaced by another one while the request waited")]
    GivenUp,
    /// The answer has more bytes than the request's budget allows.
    #[error("the node's answer exceeds the size limit")]
    TooLarge,
    /// The caller, or all callers together, hold as many bytes of answers as they may.
    #[error("the node's answer was not read: the memory budget for answers is used up")]
    NoRoom(#[from] NoRoom),
    /// The answer is no JSON-RPC answer to the request.
    #[error("the node's answer is not a valid JSON-RPC answer to the request")]
    Unparsable,
    /// A JSON-RPC error in place of a fact: the node does not have it, or keeps no state that old.
    #[error("the node answered a query with a JSON-RPC error")]
    NoAnswer,
    /// HTTP 429 to a request with this key (J8).
    #[error("the node rate-limits the gateway (HTTP 429)")]
    RateLimited(KeyId),
    /// TLS could not be set up.
    #[error("TLS for the node could not be set up")]
    Tls(#[source] std::io::Error),
    /// The call would run code at the node without authorization (HD26).
    #[error("an execution without a permit or a trace was refused before sending")]
    Unjudged,
    /// No head is confirmed.
    #[error("no node has confirmed the head")]
    NoHead,
    /// The newest block of the node is older than the followed head that clients were shown.
    #[error("the node is behind the followed head")]
    Behind,
    /// The node serves another chain than the gateway.
    #[error("the node serves another chain")]
    OtherChain,
    /// The configured nodes serve different chains; the text names them by their positions.
    #[error("the nodes serve different chains: number {one} chain {chain}, number {other} chain {other_chain}")]
    ChainsDiffer {
        /// The position of one node in the list, from one.
        one: usize,
        /// The chain id of that node.
        chain: u64,
        /// The position of another node.
        other: usize,
        /// The chain id of that other node.
        other_chain: u64,
    },
    /// A new block could not be validated; no reads at it before that (HD2).
    #[error("a new block could not be validated")]
    NotValidated(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl NodeError {
    /// Whether the node certainly did not act on the request: it never received it, or rejected it unread.
    pub fn is_before_sending(&self) -> bool {
        match self {
            Self::Unreachable(error) => error.is_connect(),
            Self::RateLimited(_)
            | Self::Unjudged
            | Self::NoHead
            | Self::Behind
            | Self::OtherChain
            | Self::ChainsDiffer { .. }
            | Self::NotValidated(_)
            | Self::Tls(_) => true,
            Self::Broken(_)
            | Self::Timeout
            | Self::Unavailable
            | Self::GivenUp
            | Self::TooLarge
            | Self::NoRoom(_)
            | Self::Unparsable
            | Self::NoAnswer => false,
        }
    }

    /// Whether the transport to the node failed, rather than the node's answer.
    pub(crate) const fn is_of_transport(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Broken(_) | Self::Timeout | Self::Unavailable | Self::GivenUp => true,
            Self::TooLarge
            | Self::NoRoom(_)
            | Self::Unparsable
            | Self::NoAnswer
            | Self::RateLimited(_)
            | Self::Tls(_)
            | Self::Unjudged
            | Self::NoHead
            | Self::Behind
            | Self::OtherChain
            | Self::ChainsDiffer { .. }
            | Self::NotValidated(_) => false,
        }
    }
}

/// An error that may be a transport failure, for retries on another node.
pub(crate) trait Failure: From<NodeError> {
    fn is_of_transport(&self) -> bool;
}

impl Failure for NodeError {
    fn is_of_transport(&self) -> bool {
        self.is_of_transport()
    }
}

/// Whether a send may be repeated on another node after the first one failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryPolicy {
    /// Only if the first node certainly never received it. A signed transaction cannot take effect twice, because its
    /// hash stays the same.
    IfUnheard,
    /// Never: another node would sign the transaction with another key.
    Never,
}

/// Validation that new blocks must pass before anybody reads at them (HD2).
pub trait BlockGate: core::fmt::Debug + Send + Sync {
    /// Validates the block; `last` is the newest block validated before, if there is one.
    fn validate<'a>(&'a self, node: &'a Node, last: Option<Block>, block: Block) -> BlockValidation<'a>;
}

/// The future of a gate's validation of one block.
pub type BlockValidation<'a> = Pin<Box<dyn Future<Output = Result<(), NodeError>> + Send + 'a>>;

/// The upstream node with its followed head and its tracing support.
#[derive(Clone, Debug)]
pub struct Node {
    pub(crate) shared: Arc<Shared>,
    /// The index of the node that this view is pinned to; `None` for whichever node is in use.
    pinned_index: Option<usize>,
    /// The key of a caller's group, used instead of the gateway's own.
    key: Option<Arc<UpstreamKey>>,
    /// The request that answers are charged to; `None` for the gateway itself.
    hold: Option<Arc<AnswerHold>>,
}

/// The state that all views of the node share.
#[derive(Debug)]
pub(crate) struct Shared {
    endpoints: Vec<Endpoint>,
    active: AtomicUsize,
    chain_id: u64,
    pub(crate) head: HeadCell,
    recent_blocks: Mutex<Arc<RecentBlocks>>,
    gate: OnceLock<Arc<dyn BlockGate>>,
    health_checks: HealthCheckConfig,
    group_keys: Option<Arc<KeyCipher>>,
    answers: Arc<AnswerBudget>,
}

impl Shared {
    pub(crate) fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    pub(crate) fn endpoint(&self, index: usize) -> Option<&Endpoint> {
        self.endpoints.get(index)
    }

    pub(crate) fn active(&self) -> usize {
        self.active.load(Ordering::SeqCst)
    }

    pub(crate) fn set_active(&self, index: usize) {
        self.active.store(index, Ordering::SeqCst);
    }

    pub(crate) fn gate(&self) -> Option<&Arc<dyn BlockGate>> {
        self.gate.get()
    }

    pub(crate) const fn health_checks(&self) -> HealthCheckConfig {
        self.health_checks
    }
}

impl Node {
    /// Queries the chain ids of the nodes and starts to follow one of them. The background tasks end when the last
    /// handle is dropped.
    ///
    /// One node that answers is enough; the nodes that answer must agree on their chain.
    ///
    /// # Errors
    /// [`NodeError::ChainsDiffer`] if the nodes serve different chains. The error of the first node if none answers,
    /// and the error of the first poll of the head.
    pub async fn connect(config: &NodeConfig) -> Result<Arc<Self>, NodeError> {
        let endpoints = config.uris().iter().map(|uri| Endpoint::new(config, uri));
        let endpoints = endpoints.collect::<Result<Vec<_>, _>>().map_err(NodeError::Tls)?;
        let has_standbys = endpoints.len() > 1;
        let (chain_id, first, endpoints) = agreed_chain(endpoints).await?;
        let node = Self::unpinned(Arc::new(Shared {
            endpoints,
            active: AtomicUsize::new(first),
            chain_id,
            head: HeadCell::default(),
            recent_blocks: Mutex::default(),
            gate: OnceLock::new(),
            health_checks: config.health_checks(),
            group_keys: config.group_keys(),
            answers: Arc::clone(config.answers()),
        }));
        node.refresh_head().await?;
        // The record of followed blocks begins here.
        node.recent_blocks().await?;
        node.pinned_to(node.shared.active()).probe().await;
        if has_standbys {
            node.check_standbys().await;
            node.switch_to_better().await;
            tokio::spawn(failover::keep_checking_standbys(
                Arc::downgrade(&node.shared),
                config.health_checks().standby,
            ));
        }
        if !has_standbys {
            tokio::spawn(failover::watch_silence(Arc::downgrade(&node.shared)));
        }
        node.shared.show_active();
        tokio::spawn(failover::follow(
            Arc::downgrade(&node.shared),
            config.health_checks().head,
        ));
        tokio::spawn(failover::keep_probing(
            Arc::downgrade(&node.shared),
            config.health_checks().probe,
        ));
        Ok(Arc::new(node))
    }

    /// A view that uses whichever node is in use.
    pub(crate) const fn unpinned(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            pinned_index: None,
            key: None,
            hold: None,
        }
    }

    /// A view that uses only the node with this index.
    pub(crate) fn pinned_to(&self, index: usize) -> Self {
        Self {
            pinned_index: Some(index),
            ..self.clone()
        }
    }

    /// A view for callers whose group has its own key: forwarded calls carry that key. The gateway's own background
    /// requests do not.
    pub fn for_group(&self, group: GroupId, stored: &Secret) -> Result<Self, GroupKeyError> {
        let key = UpstreamKey::of_group(group, stored, self.shared.group_keys.as_deref())?;
        Ok(Self {
            key: Some(Arc::new(key)),
            ..self.clone()
        })
    }

    /// A view for one request: the bytes of answers are charged to the payer.
    #[must_use]
    pub fn charged_to(self, payer: Payer, hold: &Arc<AnswerHold>) -> Self {
        hold.charge_to(&self.shared.answers, payer);
        Self {
            hold: Some(Arc::clone(hold)),
            ..self
        }
    }

    /// The memory budget for answers.
    pub fn answers(&self) -> &Arc<AnswerBudget> {
        &self.shared.answers
    }

    /// The id of the key that requests of this view carry.
    pub fn key_id(&self) -> KeyId {
        let own_key = || self.endpoint().map_or(KeyId::NONE, |node| node.transport.own_key());
        self.key.as_ref().map_or_else(own_key, |key| key.id())
    }

    /// The index of the node that this view uses.
    pub(crate) fn index(&self) -> usize {
        self.pinned_index.unwrap_or_else(|| self.shared.active())
    }

    pub(crate) fn endpoint(&self) -> Option<&Endpoint> {
        self.shared.endpoint(self.index())
    }

    /// The chain id, fixed at start: a node that serves another chain is not used.
    pub fn chain_id(&self) -> u64 {
        self.shared.chain_id
    }

    /// The followed head; `None` while no node confirms it.
    pub fn head(&self) -> Option<Arc<Head>> {
        self.shared.head.load()
    }

    /// The status of every configured node, in order.
    pub fn statuses(&self) -> Vec<NodeStatus> {
        let active = self.shared.active();
        self.shared
            .endpoints
            .iter()
            .enumerate()
            .map(|(index, node)| node.status(index == active))
            .collect()
    }

    /// Polls the head now. Reads after it see everything that the node accepted before (decision 41).
    pub async fn refresh_head(&self) -> Result<(), NodeError> {
        // The head is shared by all callers, so it is polled with the gateway's own key.
        let own_view = Self::unpinned(Arc::clone(&self.shared));
        self.shared.head.renew(async || own_view.poll_head().await).await
    }

    /// Sets the gate for all blocks from now on. The present head must pass it, too; until then there is no head.
    pub fn set_block_gate(&self, gate: Arc<dyn BlockGate>) {
        if self.shared.gate.set(gate).is_ok() {
            self.shared.head.publish(None);
        }
    }

    /// Ensures that the head is at least `number`. Called before a block number is sent to a client, so that no client
    /// is shown a block that it cannot read (decision 41).
    pub async fn advance_head_to(&self, number: u64) -> Result<(), NodeError> {
        if self.head().is_some_and(|head| head.block.number >= number) {
            Ok(())
        } else {
            self.refresh_head().await
        }
    }

    /// A receiver that is marked changed whenever the head changes or becomes invalid.
    pub fn head_moves(&self) -> watch::Receiver<()> {
        self.shared.head.changes()
    }

    /// The newest blocks, ending with the followed head. Subscriptions use them to find new and removed blocks.
    pub async fn recent_blocks(&self) -> Result<Arc<RecentBlocks>, NodeError> {
        let mut recent_blocks = self.shared.recent_blocks.lock().await;
        let head = self.head().ok_or(NodeError::NoHead)?.block;
        if recent_blocks.hash(head.number) != Some(head.hash) || recent_blocks.end() != head.number.saturating_add(1) {
            let extended = recent_blocks.extended(head, |numbers| self.blocks(numbers)).await?;
            *recent_blocks = Arc::new(extended);
        }
        Ok(Arc::clone(&recent_blocks))
    }

    /// Whether the block of this number and hash is an ancestor of the followed head (or the head itself), and so has
    /// been validated. Blocks older than the [recent blocks](Self::recent_blocks) count as ancestors: the record begins
    /// with the first block followed, and reaches far deeper than a reorganization.
    pub async fn follows(&self, number: u64, hash: B256) -> Result<bool, NodeError> {
        let head = self.head().ok_or(NodeError::NoHead)?.block;
        if number >= head.number {
            return Ok((number, hash) == (head.number, head.hash));
        }
        match self.recent_blocks().await {
            Ok(recent_blocks) => Ok(recent_blocks.hash(number).is_none_or(|ancestor| ancestor == hash)),
            // The chain was reorganized while it was read, so its ancestors are not known.
            Err(NodeError::NoHead) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The trace form that the node supports, if any (X11).
    pub fn trace_form(&self) -> Option<TraceForm> {
        self.endpoint().and_then(|node| node.tracing.load())
    }

    /// Makes a call that runs no code; [`NodeError::Unjudged`] if it would run some.
    pub async fn call(&self, call: &UpstreamCall, budget: RequestBudget) -> Result<SealedAnswer, NodeError> {
        require_no_execution(call)?;
        self.exchange_one(call, budget).await
    }

    /// Makes a permitted call, or a narrower one; `None` if the gateway answers it without the node. An execution needs
    /// a permit to run untraced ([`NodeError::Unjudged`]).
    pub fn permitted(
        self,
        permit: &Permit,
        call: &Call,
        pin: wire::Pin,
        budget: RequestBudget,
    ) -> impl Future<Output = Result<Option<SealedAnswer>, NodeError>> + Send + use<> {
        let is_unjudged = matches!(call, Call::Simulate(_)) && permit.plan() != Plan::Untraced;
        let body = permit.body(call, pin);
        async move {
            match body {
                _ if is_unjudged => Err(NodeError::Unjudged),
                Some(body) => self.exchange_one(&body, budget).await.map(Some),
                None => Ok(None),
            }
        }
    }

    async fn exchange_one(&self, call: &UpstreamCall, budget: RequestBudget) -> Result<SealedAnswer, NodeError> {
        let body = self.read(message::single(&call.method, &call.params), budget).await?;
        message::read_single(&body).map(Answer::sealed)
    }

    /// Makes a call that changes the chain. It goes to one node only; `resend` says whether it may go to another one if
    /// the first certainly never received it.
    pub async fn send(&self, call: &UpstreamCall, resend: RetryPolicy) -> Result<SealedAnswer, NodeError> {
        require_no_execution(call)?;
        let node = self.pinned_to(self.index());
        let body = message::single(&call.method, &call.params);
        let answer = match node.post(body.clone(), RequestBudget::Forward).await {
            Err(error)
                if resend == RetryPolicy::IfUnheard
                    && error.is_of_transport()
                    && error.is_before_sending()
                    && self.failed_over(node.index()).await =>
            {
                self.pinned_to(self.index()).post(body, RequestBudget::Forward).await
            }
            answer => answer,
        };
        message::read_single(&answer?).map(Answer::sealed)
    }

    /// Makes several calls in one exchange, none of which runs code ([`NodeError::Unjudged`]). The answers are in the
    /// order of the calls.
    pub async fn batch(&self, calls: &[UpstreamCall], budget: RequestBudget) -> Result<Vec<SealedAnswer>, NodeError> {
        calls.iter().try_for_each(require_no_execution)?;
        let body = self.exchange(calls, budget).await?;
        let answers = message::read_batch(&body, calls.len())?.into_iter();
        Ok(answers.map(|answer| answer.slice_from(&body).sealed()).collect())
    }

    /// Makes several calls in one exchange; returns the whole body of the answers, for [`message::read_batch`].
    pub(crate) async fn exchange(&self, calls: &[UpstreamCall], budget: RequestBudget) -> Result<Bytes, NodeError> {
        self.read(
            message::batch(calls.iter().map(|call| (&*call.method, call.params.as_str()))),
            budget,
        )
        .await
    }

    /// Makes the gateway's own queries, with fixed or typed parameters.
    pub(crate) async fn ask(
        &self,
        calls: &[(&str, &str)],
        budget: RequestBudget,
    ) -> Result<Vec<Answer<Bytes>>, NodeError> {
        let body = self.read(message::batch(calls.iter().copied()), budget).await?;
        Ok(message::read_batch(&body, calls.len())?
            .into_iter()
            .map(|answer| answer.slice_from(&body))
            .collect())
    }

    /// Posts a body without side effects and reads the whole answer.
    async fn read(&self, body: Bytes, budget: RequestBudget) -> Result<Bytes, NodeError> {
        self.with_failover(|node| {
            let body = body.clone();
            async move { node.post(body, budget).await }
        })
        .await
    }

    async fn post(&self, body: Bytes, budget: RequestBudget) -> Result<Bytes, NodeError> {
        let endpoint = self.endpoint().ok_or(NodeError::NoHead)?;
        let hold = self.hold.as_ref().filter(|_| budget.is_callers());
        endpoint
            .transport
            .exchange(body, budget, self.key.as_deref(), hold)
            .await
    }

    /// Runs all of `query` on one node, so that its parts are consistent. If the transport fails and another node is in
    /// use by then, it runs once more, on that node.
    pub(crate) async fn with_failover<T, E, F>(&self, query: impl Fn(Self) -> F) -> Result<T, E>
    where
        E: Failure,
        F: Future<Output = Result<T, E>>,
    {
        if self.pinned_index.is_some() || self.shared.endpoints.len() == 1 {
            return query(self.clone()).await;
        }
        let node = self.pinned_to(self.index());
        let abandoned = async {
            match node.endpoint() {
                Some(endpoint) => endpoint.abandoned().await,
                None => std::future::pending().await,
            }
        };
        let answer = tokio::select! {
            biased;
            answer = query(node.clone()) => answer,
            () = abandoned => Err(NodeError::GivenUp.into()),
        };
        match answer {
            Err(error) if error.is_of_transport() && self.failed_over(node.index()).await => {
                query(self.pinned_to(self.index())).await
            }
            answer => answer,
        }
    }

    /// Whether another node than the one with this index is in use, after a poll of the head if there was none since.
    /// The failure of a call does not prove that its node failed: the call may just be a heavy one.
    async fn failed_over(&self, index: usize) -> bool {
        if self.shared.active() == index && self.shared.endpoints.len() > 1 {
            // The result shows in the active index below.
            let _ = self.boxed_refresh_head().await;
        }
        self.shared.active() != index
    }

    /// [`Self::refresh_head`], boxed because it calls itself indirectly.
    fn boxed_refresh_head(&self) -> BlockValidation<'_> {
        Box::pin(self.refresh_head())
    }
}

/// HD26: executions must use [`Node::trace`] or [`Node::permitted`].
fn require_no_execution(call: &UpstreamCall) -> Result<(), NodeError> {
    if call.is_execution() {
        Err(NodeError::Unjudged)
    } else {
        Ok(())
    }
}

/// The chain id that the answering nodes agree on, the index of the first of them, and all endpoints.
async fn agreed_chain(endpoints: Vec<Endpoint>) -> Result<(u64, usize, Vec<Endpoint>), NodeError> {
    let mut queries = JoinSet::new();
    for (index, endpoint) in endpoints.into_iter().enumerate() {
        queries.spawn(async move {
            let chain = chain_id(&endpoint).await;
            (index, endpoint, chain)
        });
    }
    let mut results = queries.join_all().await;
    results.sort_by_key(|(index, ..)| *index);
    let (mut agreed, mut first_error, mut endpoints) = (None, None, Vec::new());
    for (index, endpoint, chain) in results {
        match (chain, agreed) {
            (Ok(chain), None) => agreed = Some((chain, index)),
            (Ok(other_chain), Some((chain, first))) if chain != other_chain => {
                let (one, other) = (position(first), position(index));
                return Err(NodeError::ChainsDiffer {
                    one,
                    chain,
                    other,
                    other_chain,
                });
            }
            (Ok(_), Some(_)) => {}
            (Err(error), _) => first_error = first_error.or(Some(error)),
        }
        endpoints.push(endpoint);
    }
    match agreed {
        Some((chain, first)) => Ok((chain, first, endpoints)),
        None => Err(first_error.unwrap_or(NodeError::NoHead)),
    }
}

/// The position of a node in the list, from one.
const fn position(index: usize) -> usize {
    index.saturating_add(1)
}

async fn chain_id(endpoint: &Endpoint) -> Result<u64, NodeError> {
    let (method, params) = CHAIN_ID_QUERY;
    let body = endpoint
        .transport
        .exchange(message::single(method, params), RequestBudget::Fact, None, None)
        .await?;
    head::read_chain_id(Some(&message::read_single(&body)?))
}

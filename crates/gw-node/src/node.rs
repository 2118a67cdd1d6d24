//! The upstream node as the rest of the gateway sees it: a single node, whichever of the configured nodes is in use
//! (`crate::failover`).

use crate::{
    answers::{AnswerBudget, AnswerHold, Payer},
    config::{HealthCheckConfig, NodeConfig},
    endpoint::{Endpoint, NodeStatus},
    error::{FailoverError, NodeError},
    head::{Block, Head, HeadCell},
    key::{GroupKeyError, KeyId, UpstreamKey},
    message::{self, Answer},
    recent_blocks::RecentBlocks,
    transport::RequestBudget,
    unreadable::{ControlTransaction, FailureCounts},
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
use tokio::sync::{Mutex, watch};

/// The sealed answer to a forwarded call.
pub type SealedAnswer = Answer<Sealed<RawJson>>;

/// Whether a send may be repeated on another node after the first one failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryPolicy {
    /// Only if the first node certainly never received it. A signed transaction cannot take effect twice, because its
    /// hash stays the same.
    IfUnheard,
    /// Never: another node would sign the transaction with another key.
    Never,
}

/// Validation of new blocks. No call reads at a block before the block passed it (HD2).
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
    trace_failures: FailureCounts,
    lookup_failures: FailureCounts,
    control_transaction: ControlTransaction,
}

impl Shared {
    /// The state of a gateway that follows the endpoint with the index `active`.
    pub(crate) fn new(config: &NodeConfig, endpoints: Vec<Endpoint>, chain_id: u64, active: usize) -> Self {
        Self {
            endpoints,
            active: AtomicUsize::new(active),
            chain_id,
            head: HeadCell::default(),
            recent_blocks: Mutex::default(),
            gate: OnceLock::new(),
            health_checks: config.health_checks(),
            group_keys: config.group_keys(),
            answers: Arc::clone(config.answers()),
            trace_failures: FailureCounts::of_traces(),
            lookup_failures: FailureCounts::of_lookups(),
            control_transaction: ControlTransaction::default(),
        }
    }

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

    pub(crate) const fn trace_failures(&self) -> &FailureCounts {
        &self.trace_failures
    }

    pub(crate) const fn lookup_failures(&self) -> &FailureCounts {
        &self.lookup_failures
    }

    pub(crate) const fn control_transaction(&self) -> &ControlTransaction {
        &self.control_transaction
    }

    pub(crate) const fn health_checks(&self) -> HealthCheckConfig {
        self.health_checks
    }
}

impl Node {
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
    ///
    /// # Errors
    /// [`GroupKeyError`] if the stored key cannot be decrypted or used.
    pub fn for_group(&self, group: GroupId, stored: &Secret) -> Result<Self, GroupKeyError> {
        let key = UpstreamKey::for_group(group, stored, self.shared.group_keys.as_deref())?;
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
    ///
    /// # Errors
    /// [`NodeError`] if no node gives a valid head.
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
    ///
    /// # Errors
    /// [`NodeError`] if no node gives a valid head.
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
    ///
    /// # Errors
    /// [`NodeError::NoHead`] without a head; [`NodeError`] if the blocks cannot be read.
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
    ///
    /// # Errors
    /// [`NodeError::NoHead`] without a head; [`NodeError`] if the blocks cannot be read.
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
    ///
    /// # Errors
    /// [`NodeError::Unjudged`] if the call would run code; [`NodeError`] if the node gives no usable answer.
    pub async fn call(&self, call: &UpstreamCall, budget: RequestBudget) -> Result<SealedAnswer, NodeError> {
        require_no_execution(call)?;
        self.exchange_one(call, budget).await
    }

    /// Makes a permitted call, or a narrower one; `None` if the gateway answers it without the node. An execution needs
    /// a permit to run untraced ([`NodeError::Unjudged`]).
    ///
    /// # Errors
    /// [`NodeError::Unjudged`] for an execution whose permit requires a trace; [`NodeError`] if the node gives no
    /// usable answer.
    pub fn permitted(
        self,
        permit: &Permit,
        call: &Call,
        pin: wire::Pin,
        budget: RequestBudget,
    ) -> impl Future<Output = Result<Option<SealedAnswer>, NodeError>> + Send + use<> {
        let lacks_trace = matches!(call, Call::Simulate(_)) && permit.plan() != Plan::Untraced;
        let body = permit.body(call, pin);
        async move {
            match body {
                _ if lacks_trace => Err(NodeError::Unjudged),
                Some(body) => self.exchange_one(&body, budget).await.map(Some),
                None => Ok(None),
            }
        }
    }

    async fn exchange_one(&self, call: &UpstreamCall, budget: RequestBudget) -> Result<SealedAnswer, NodeError> {
        let body = self.read(message::single(call), budget).await?;
        message::read_single(&body).map(Answer::sealed)
    }

    /// Makes a call that changes the chain. It goes to one node only; `resend` says whether it may go to another one if
    /// the first certainly never received it.
    ///
    /// # Errors
    /// [`NodeError::Unjudged`] if the call would run code; [`NodeError`] if the node gives no usable answer. The
    /// node may have accepted the call unless [`NodeError::is_before_sending`].
    pub async fn send(&self, call: &UpstreamCall, resend: RetryPolicy) -> Result<SealedAnswer, NodeError> {
        require_no_execution(call)?;
        let node = self.pinned_to(self.index());
        let body = message::single(call);
        let answer = match node.post(body.clone(), RequestBudget::Forward).await {
            Err(error)
                if resend == RetryPolicy::IfUnheard
                    && error.is_transport_failure()
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
    ///
    /// # Errors
    /// [`NodeError::Unjudged`] if a call would run code; [`NodeError`] if the node gives no usable answer.
    pub async fn batch(&self, calls: &[UpstreamCall], budget: RequestBudget) -> Result<Vec<SealedAnswer>, NodeError> {
        calls.iter().try_for_each(require_no_execution)?;
        let body = self.exchange(calls, budget).await?;
        let answers = message::read_batch(&body, calls.len())?.into_iter();
        Ok(answers.map(|answer| answer.slice_from(&body).sealed()).collect())
    }

    /// Makes several calls in one exchange; returns the whole body of the answers, for [`message::read_batch`].
    pub(crate) async fn exchange(&self, calls: &[UpstreamCall], budget: RequestBudget) -> Result<Bytes, NodeError> {
        self.read(message::batch(calls), budget).await
    }

    /// Makes the gateway's own queries.
    pub(crate) async fn ask(
        &self,
        calls: &[UpstreamCall],
        budget: RequestBudget,
    ) -> Result<Vec<Answer<Bytes>>, NodeError> {
        let body = self.exchange(calls, budget).await?;
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
        E: FailoverError,
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
            Err(error) if error.is_transport_failure() && self.failed_over(node.index()).await => {
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

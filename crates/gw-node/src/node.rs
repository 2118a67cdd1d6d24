//! The node as the rest of the gateway sees it.

use crate::{
    Block, Budget, Head, NodeConfig,
    head::{self, HeadCell},
    message::{self, Answer},
    probe,
    trail::Trail,
    transport::Transport,
};
use bytes::Bytes;
use gw_evm::wire::{TraceForm, UpstreamCall};
use gw_policy::sealed::{RawJson, Sealed};
use gw_types::U256;
use std::{
    pin::Pin,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};
use tokio::{
    sync::{Mutex, watch},
    time::Instant,
};

/// What a forwarded call brings back.
pub type SealedAnswer = Answer<Sealed<RawJson>>;

/// Why there is no answer. A JSON-RPC error of the node is an answer.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// No connection, no TLS, or it broke before the answer began.
    #[error("the node cannot be reached")]
    Unreachable(#[source] hyper_util::client::legacy::Error),
    /// The connection broke within the answer.
    #[error("the node's answer broke off")]
    Broken(#[source] hyper::Error),
    /// No answer in time.
    #[error("the node did not answer in time")]
    Timeout,
    /// More bytes than allowed.
    #[error("the node's answer is too large")]
    TooLarge,
    /// Not the answer to what was asked.
    #[error("the node's answer is not understood")]
    Unparsable,
    /// HTTP 429.
    #[error("the node limits our rate")]
    RateLimited,
    /// TLS could not be set up.
    #[error("no TLS for the node")]
    Tls(#[source] std::io::Error),
    /// The head cannot be confirmed.
    #[error("the node's head is not known")]
    NoHead,
    /// A new block could not be looked at; nobody reads at it before (HD2).
    #[error("a new block is not validated")]
    NotValidated(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl NodeError {
    /// Whether the node surely did not act on what it was asked: it never heard it, or turned it away unread.
    pub fn is_before_sending(&self) -> bool {
        match self {
            Self::Unreachable(error) => error.is_connect(),
            Self::RateLimited | Self::NoHead | Self::NotValidated(_) | Self::Tls(_) => true,
            Self::Broken(_) | Self::Timeout | Self::TooLarge | Self::Unparsable => false,
        }
    }
}

/// How long the last confirmed head serves while the node does not answer.
const HEAD_GRACE: Duration = Duration::from_secs(5);

/// What new blocks must pass before anybody reads at them (HD2).
pub trait Gate: core::fmt::Debug + Send + Sync {
    /// Lets the block in; `last` is the newest one let in before, if there is one.
    fn admit<'a>(&'a self, node: &'a Node, last: Option<Block>, block: Block) -> Admitting<'a>;
}

/// A gate's work on one block.
pub type Admitting<'a> = Pin<Box<dyn Future<Output = Result<(), NodeError>> + Send + 'a>>;

/// The upstream node, its followed head and what it can trace.
#[derive(Debug)]
pub struct Node {
    transport: Transport,
    chain_id: u64,
    head: HeadCell,
    trail: Mutex<Arc<Trail>>,
    gate: OnceLock<Arc<dyn Gate>>,
    tracing: probe::Tracing,
}

impl Node {
    /// Asks the node who it is and starts to follow it. The upkeep ends when the last handle is dropped.
    pub async fn connect(config: &NodeConfig) -> Result<Arc<Self>, NodeError> {
        let transport = Transport::new(config).map_err(NodeError::Tls)?;
        let chain_id = chain_id(&transport).await?;
        let (head, trail, tracing) = (HeadCell::default(), Mutex::default(), probe::Tracing::default());
        let node = Arc::new(Self { transport, chain_id, head, trail, gate: OnceLock::new(), tracing });
        node.refresh_head().await?;
        node.probe().await;
        tokio::spawn(follow(Arc::downgrade(&node), config.upkeep().head));
        tokio::spawn(keep_probing(Arc::downgrade(&node), config.upkeep().probe));
        Ok(node)
    }

    /// The chain the node served at start. It does not change: a node that says otherwise is no node.
    pub const fn chain_id(&self) -> u64 {
        self.chain_id
    }

    /// The followed head, or `None` while it cannot be confirmed.
    pub fn head(&self) -> Option<Arc<Head>> {
        self.head.load()
    }

    /// Looks at the head now; what follows reads the state after everything accepted before (decision 41).
    pub async fn refresh_head(&self) -> Result<(), NodeError> {
        let look = async || {
            let head = head::read(&self.ask(&head::LOOK, Budget::Fact).await?)?;
            let last = self.head().map(|head| head.block);
            match self.gate.get() {
                Some(gate) if last != Some(head.block) => gate.admit(self, last, head.block).await?,
                Some(_) | None => {}
            }
            Ok(head)
        };
        self.head.renew(look).await
    }

    /// Sets what blocks must pass from now on, the present head included: until it has, there is none.
    pub fn guard(&self, gate: Arc<dyn Gate>) {
        if self.gate.set(gate).is_ok() {
            self.head.publish(None);
        }
    }

    /// A block number is about to leave: the head is raised to it first, so that no client is shown a block it
    /// cannot read (decision 41).
    pub async fn raise(&self, number: u64) -> Result<(), NodeError> {
        if self.head().is_some_and(|head| head.block.number >= number) { Ok(()) } else { self.refresh_head().await }
    }

    /// Marked changed whenever the head is another one, or cannot be confirmed any more.
    pub fn head_moves(&self) -> watch::Receiver<()> {
        self.head.moves()
    }

    /// The newest blocks, ending with the followed head: what streams tell apart blocks by that came and that left.
    pub async fn trail(&self) -> Result<Arc<Trail>, NodeError> {
        let mut known = self.trail.lock().await;
        let head = self.head().ok_or(NodeError::NoHead)?.block;
        if known.hash(head.number) != Some(head.hash) || known.end() != head.number.saturating_add(1) {
            let longer = known.extended(head, |numbers| self.blocks(numbers)).await?;
            *known = Arc::new(longer);
        }
        Ok(Arc::clone(&known))
    }

    /// Which trace the node gives, if any (X11).
    pub fn trace_form(&self) -> Option<TraceForm> {
        self.tracing.load()
    }

    /// One call.
    pub async fn call(&self, call: &UpstreamCall, budget: Budget) -> Result<SealedAnswer, NodeError> {
        let body = self.transport.exchange(message::single(call.method, &call.params), budget).await?;
        message::read_single(&body).map(Answer::sealed)
    }

    /// Several calls in one exchange; the answers come in their order.
    pub async fn batch(&self, calls: &[UpstreamCall], budget: Budget) -> Result<Vec<SealedAnswer>, NodeError> {
        let answers = self.exchange(calls, budget).await?;
        Ok(answers.into_iter().map(Answer::sealed).collect())
    }

    pub(crate) async fn exchange(
        &self,
        calls: &[UpstreamCall],
        budget: Budget,
    ) -> Result<Vec<Answer<Bytes>>, NodeError> {
        let body = message::batch(calls.iter().map(|call| (call.method, call.params.as_str())));
        message::read_batch(&self.transport.exchange(body, budget).await?, calls.len())
    }

    /// Facts of our own, with fixed or typed parameters.
    pub(crate) async fn ask(&self, calls: &[(&str, &str)], budget: Budget) -> Result<Vec<Answer<Bytes>>, NodeError> {
        let body = message::batch(calls.iter().copied());
        message::read_batch(&self.transport.exchange(body, budget).await?, calls.len())
    }

    /// Probes tracing and chain id; a node of another chain gives no trace we can use.
    async fn probe(&self) {
        let same_chain = match chain_id(&self.transport).await {
            Ok(id) => id == self.chain_id,
            Err(_) => false,
        };
        self.tracing.store(if same_chain { probe::probe(self).await } else { None });
    }
}

async fn chain_id(transport: &Transport) -> Result<u64, NodeError> {
    let body = transport.exchange(message::single("eth_chainId", "[]"), Budget::Fact).await?;
    match message::read_single(&body)? {
        Answer::Result(id) => head::small(head::parse::<U256>(&id)?),
        Answer::Error(_) => Err(NodeError::Unparsable),
    }
}

/// Keeps the head fresh while somebody holds the node.
async fn follow(node: Weak<Node>, every: Duration) {
    let mut confirmed = Instant::now();
    loop {
        tokio::time::sleep(every).await;
        let Some(node) = node.upgrade() else { return };
        let began = Instant::now();
        match node.refresh_head().await {
            Ok(()) => confirmed = began,
            Err(error) if confirmed.elapsed() > HEAD_GRACE => {
                if node.head().is_some() {
                    tracing::warn!(error = %error, "the head cannot be confirmed: reads are refused until it can");
                    node.head.publish(None);
                }
            }
            Err(_) => {}
        }
    }
}

async fn keep_probing(node: Weak<Node>, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        let Some(node) = node.upgrade() else { return };
        node.probe().await;
    }
}

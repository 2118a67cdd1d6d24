//! The node as the rest of the gateway sees it: one, whichever of several it is at the moment ([`crate::choice`]).

use crate::{
    AnswerBudget, AnswerHold, Block, Budget, GroupKeyError, Head, KeyCipher, KeyId, NoRoom, NodeConfig, NodeStatus,
    Payer, Upkeep, choice,
    endpoint::Endpoint,
    head::{self, HeadCell, WHO},
    key::UpstreamKey,
    message::{self, Answer},
    trail::Trail,
};
use bytes::Bytes;
use gw_evm::{
    Call,
    wire::{self, TraceForm, UpstreamCall},
};
use gw_policy::{
    access::{Permit, Plan},
    sealed::{RawJson, Sealed},
};
use gw_types::{B256, Secret};
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
    /// What stands in front of the node does not reach it (HTTP 502, 503 or 504 without JSON).
    #[error("what stands in front of the node does not reach it")]
    Unavailable,
    /// Another node was taken in its place while it was waited for.
    #[error("the node was given up for another one")]
    GivenUp,
    /// More bytes than allowed.
    #[error("the node's answer is too large")]
    TooLarge,
    /// The caller, or all callers together, hold as many bytes of answers as they may.
    #[error("the node's answer was not read")]
    NoRoom(#[from] NoRoom),
    /// Not the answer to what was asked.
    #[error("the node's answer is not understood")]
    Unparsable,
    /// An error in place of a fact: it does not have it, or keeps no state that old.
    #[error("the node answers a question with an error")]
    NoAnswer,
    /// HTTP 429 to what was asked by this key (J8).
    #[error("the node limits our rate")]
    RateLimited(KeyId),
    /// TLS could not be set up.
    #[error("no TLS for the node")]
    Tls(#[source] std::io::Error),
    /// It would run code at the node, and nobody judged that (HD26).
    #[error("an execution without a permit or a trace was not asked for")]
    Unjudged,
    /// The head cannot be confirmed.
    #[error("the node's head is not known")]
    NoHead,
    /// Its newest block is older than what clients were shown.
    #[error("the node is behind the followed head")]
    Behind,
    /// It is not on the chain the gateway stands for.
    #[error("the node serves another chain")]
    OtherChain,
    /// The nodes of one list serve different chains; they are named by their places.
    #[error("the nodes serve different chains: number {one} chain {chain}, number {other} chain {other_chain}")]
    ChainsDiffer {
        /// The place of one node, from one.
        one: usize,
        /// Its chain.
        chain: u64,
        /// The place of another.
        other: usize,
        /// Its chain.
        other_chain: u64,
    },
    /// A new block could not be looked at; nobody reads at it before (HD2).
    #[error("a new block is not validated")]
    NotValidated(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl NodeError {
    /// Whether the node surely did not act on what it was asked: it never heard it, or turned it away unread.
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

    /// Whether the way to the node failed, rather than the node's answer.
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

/// An error that may be the node's.
pub(crate) trait Failure: From<NodeError> {
    fn is_of_transport(&self) -> bool;
}

impl Failure for NodeError {
    fn is_of_transport(&self) -> bool {
        self.is_of_transport()
    }
}

/// What may be done with a send whose node failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resend {
    /// Another node may have it if the first surely never heard it: under its own hash it cannot happen twice.
    IfUnheard,
    /// No other node: what a node signs with its own key is that node's.
    Never,
}

/// What new blocks must pass before anybody reads at them (HD2).
pub trait Gate: core::fmt::Debug + Send + Sync {
    /// Lets the block in; `last` is the newest one let in before, if there is one.
    fn admit<'a>(&'a self, node: &'a Node, last: Option<Block>, block: Block) -> Admitting<'a>;
}

/// A gate's work on one block.
pub type Admitting<'a> = Pin<Box<dyn Future<Output = Result<(), NodeError>> + Send + 'a>>;

/// The upstream node, its followed head and what it can trace.
#[derive(Clone, Debug)]
pub struct Node {
    pub(crate) shared: Arc<Shared>,
    /// The one node this view asks; without it, whichever is in use.
    via: Option<usize>,
    /// The key of a caller's group, in place of our own.
    key: Option<Arc<UpstreamKey>>,
    /// The request that answers are read for; without it, the gateway's own.
    hold: Option<Arc<AnswerHold>>,
}

/// What all views of the node share.
#[derive(Debug)]
pub(crate) struct Shared {
    endpoints: Vec<Endpoint>,
    active: AtomicUsize,
    chain_id: u64,
    pub(crate) head: HeadCell,
    trail: Mutex<Arc<Trail>>,
    gate: OnceLock<Arc<dyn Gate>>,
    upkeep: Upkeep,
    group_keys: Option<Arc<KeyCipher>>,
    answers: Arc<AnswerBudget>,
}

impl Shared {
    pub(crate) fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    pub(crate) fn endpoint(&self, place: usize) -> Option<&Endpoint> {
        self.endpoints.get(place)
    }

    pub(crate) fn active(&self) -> usize {
        self.active.load(Ordering::SeqCst)
    }

    pub(crate) fn set_active(&self, place: usize) {
        self.active.store(place, Ordering::SeqCst);
    }

    pub(crate) fn gate(&self) -> Option<&Arc<dyn Gate>> {
        self.gate.get()
    }

    pub(crate) const fn upkeep(&self) -> Upkeep {
        self.upkeep
    }
}

impl Node {
    /// Asks the nodes who they are and starts to follow one of them. The upkeep ends when the last handle is dropped.
    ///
    /// One that answers is enough; those that do must agree on their chain.
    pub async fn connect(config: &NodeConfig) -> Result<Arc<Self>, NodeError> {
        let endpoints = config.uris().iter().map(|uri| Endpoint::new(config, uri));
        let endpoints = endpoints.collect::<Result<Vec<_>, _>>().map_err(NodeError::Tls)?;
        let several = endpoints.len() > 1;
        let (chain_id, first, endpoints) = agreed_chain(endpoints).await?;
        let node = Self::on(Arc::new(Shared {
            endpoints,
            active: AtomicUsize::new(first),
            chain_id,
            head: HeadCell::default(),
            trail: Mutex::default(),
            gate: OnceLock::new(),
            upkeep: config.upkeep(),
            group_keys: config.group_keys(),
            answers: Arc::clone(config.answers()),
        }));
        node.refresh_head().await?;
        // From here on it is known which blocks were followed.
        node.trail().await?;
        node.via(node.shared.active()).probe().await;
        if several {
            node.look_around().await;
            node.reconsider().await;
            tokio::spawn(choice::keep_looking_around(
                Arc::downgrade(&node.shared),
                config.upkeep().standby,
            ));
        }
        if !several {
            tokio::spawn(choice::watch_silence(Arc::downgrade(&node.shared)));
        }
        node.shared.show_active();
        tokio::spawn(choice::follow(Arc::downgrade(&node.shared), config.upkeep().head));
        tokio::spawn(choice::keep_probing(
            Arc::downgrade(&node.shared),
            config.upkeep().probe,
        ));
        Ok(Arc::new(node))
    }

    /// A view of whichever node is in use.
    pub(crate) const fn on(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            via: None,
            key: None,
            hold: None,
        }
    }

    /// A view of the node at this place.
    pub(crate) fn via(&self, place: usize) -> Self {
        Self {
            via: Some(place),
            ..self.clone()
        }
    }

    /// The node as callers reach it whose group has a key of its own: what is asked for them is asked by that key. What
    /// the gateway asks for itself is not.
    pub fn for_group(&self, stored: &Secret) -> Result<Self, GroupKeyError> {
        let key = UpstreamKey::of_group(stored, self.shared.group_keys.as_deref())?;
        Ok(Self {
            key: Some(Arc::new(key)),
            ..self.clone()
        })
    }

    /// The node as this request asks it: what is read of its answers is charged to the payer.
    #[must_use]
    pub fn charged_to(self, payer: Payer, hold: &Arc<AnswerHold>) -> Self {
        hold.charge_to(&self.shared.answers, payer);
        Self {
            hold: Some(Arc::clone(hold)),
            ..self
        }
    }

    /// How many bytes of answers are held.
    pub fn answers(&self) -> &Arc<AnswerBudget> {
        &self.shared.answers
    }

    /// By which key the node is asked.
    pub fn key_id(&self) -> KeyId {
        let own = || self.endpoint().map_or(KeyId::NONE, |node| node.transport.own_key());
        self.key.as_ref().map_or_else(own, |key| key.id())
    }

    /// The place of the node this view asks.
    pub(crate) fn place(&self) -> usize {
        self.via.unwrap_or_else(|| self.shared.active())
    }

    pub(crate) fn endpoint(&self) -> Option<&Endpoint> {
        self.shared.endpoint(self.place())
    }

    /// The chain served at start. It does not change: a node that says otherwise is no node.
    pub fn chain_id(&self) -> u64 {
        self.shared.chain_id
    }

    /// The followed head, or `None` while it cannot be confirmed.
    pub fn head(&self) -> Option<Arc<Head>> {
        self.shared.head.load()
    }

    /// How every node of the list is, in its order.
    pub fn statuses(&self) -> Vec<NodeStatus> {
        let active = self.shared.active();
        self.shared
            .endpoints
            .iter()
            .enumerate()
            .map(|(place, node)| node.status(place == active))
            .collect()
    }

    /// Looks at the head now; what follows reads the state after everything accepted before (decision 41).
    pub async fn refresh_head(&self) -> Result<(), NodeError> {
        // Everybody's head: looked at by our own key.
        let own = Self::on(Arc::clone(&self.shared));
        self.shared.head.renew(async || own.look().await).await
    }

    /// Sets what blocks must pass from now on, the present head included: until it has, there is none.
    pub fn guard(&self, gate: Arc<dyn Gate>) {
        if self.shared.gate.set(gate).is_ok() {
            self.shared.head.publish(None);
        }
    }

    /// A block number is about to leave: the head is raised to it first, so that no client is shown a block it
    /// cannot read (decision 41).
    pub async fn raise(&self, number: u64) -> Result<(), NodeError> {
        if self.head().is_some_and(|head| head.block.number >= number) {
            Ok(())
        } else {
            self.refresh_head().await
        }
    }

    /// Marked changed whenever the head is another one, or cannot be confirmed any more.
    pub fn head_moves(&self) -> watch::Receiver<()> {
        self.shared.head.moves()
    }

    /// The newest blocks, ending with the followed head: what streams tell apart blocks by that came and that left.
    pub async fn trail(&self) -> Result<Arc<Trail>, NodeError> {
        let mut known = self.shared.trail.lock().await;
        let head = self.head().ok_or(NodeError::NoHead)?.block;
        if known.hash(head.number) != Some(head.hash) || known.end() != head.number.saturating_add(1) {
            let longer = known.extended(head, |numbers| self.blocks(numbers)).await?;
            *known = Arc::new(longer);
        }
        Ok(Arc::clone(&known))
    }

    /// Whether the block of this number and hash is one of those that lead to the followed head, and so has been let in.
    /// Blocks older than the [trail](Self::trail) are taken to be: it begins with the first block followed, and reaches far
    /// deeper than a reorganization.
    pub async fn follows(&self, number: u64, hash: B256) -> Result<bool, NodeError> {
        let head = self.head().ok_or(NodeError::NoHead)?.block;
        if number >= head.number {
            return Ok((number, hash) == (head.number, head.hash));
        }
        match self.trail().await {
            Ok(trail) => Ok(trail.hash(number).is_none_or(|known| known == hash)),
            // The chain left the followed head while it was read: which blocks lead there nobody can say.
            Err(NodeError::NoHead) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Which trace the node gives, if any (X11).
    pub fn trace_form(&self) -> Option<TraceForm> {
        self.endpoint().and_then(|node| node.tracing.load())
    }

    /// One call that runs no code ([`NodeError::Unjudged`]).
    pub async fn call(&self, call: &UpstreamCall, budget: Budget) -> Result<SealedAnswer, NodeError> {
        runs_nothing(call)?;
        self.exchange_one(call, budget).await
    }

    /// A permitted call, or a narrower one; `None` where the gateway answers it without the node. An execution needs a
    /// permit to run without a trace ([`NodeError::Unjudged`]).
    pub async fn permitted(
        &self,
        permit: &Permit,
        call: &Call,
        pin: wire::Pin,
        budget: Budget,
    ) -> Result<Option<SealedAnswer>, NodeError> {
        if matches!(call, Call::Simulate(_)) && permit.plan() != Plan::Untraced {
            return Err(NodeError::Unjudged);
        }
        match permit.body(call, pin) {
            Some(body) => self.exchange_one(&body, budget).await.map(Some),
            None => Ok(None),
        }
    }

    async fn exchange_one(&self, call: &UpstreamCall, budget: Budget) -> Result<SealedAnswer, NodeError> {
        let body = self.read(message::single(&call.method, &call.params), budget).await?;
        message::read_single(&body).map(Answer::sealed)
    }

    /// One call that changes the chain. It goes to one node only: to another one at most if the first was never reached.
    pub async fn send(&self, call: &UpstreamCall, resend: Resend) -> Result<SealedAnswer, NodeError> {
        runs_nothing(call)?;
        let on = self.via(self.place());
        let body = message::single(&call.method, &call.params);
        let said = match on.post(body.clone(), Budget::Forward).await {
            Err(error)
                if resend == Resend::IfUnheard
                    && error.is_of_transport()
                    && error.is_before_sending()
                    && self.has_left(on.place()).await =>
            {
                self.via(self.place()).post(body, Budget::Forward).await
            }
            said => said,
        };
        message::read_single(&said?).map(Answer::sealed)
    }

    /// Several calls in one exchange, none of which runs code ([`NodeError::Unjudged`]); the answers come in their order.
    pub async fn batch(&self, calls: &[UpstreamCall], budget: Budget) -> Result<Vec<SealedAnswer>, NodeError> {
        calls.iter().try_for_each(runs_nothing)?;
        let body = self.exchange(calls, budget).await?;
        let answers = message::read_batch(&body, calls.len())?.into_iter();
        Ok(answers.map(|answer| answer.cut_from(&body).sealed()).collect())
    }

    /// Several calls in one exchange; the whole body of their answers, for [`message::read_batch`].
    pub(crate) async fn exchange(&self, calls: &[UpstreamCall], budget: Budget) -> Result<Bytes, NodeError> {
        self.read(
            message::batch(calls.iter().map(|call| (&*call.method, call.params.as_str()))),
            budget,
        )
        .await
    }

    /// Facts of our own, with fixed or typed parameters.
    pub(crate) async fn ask(&self, calls: &[(&str, &str)], budget: Budget) -> Result<Vec<Answer<Bytes>>, NodeError> {
        let body = self.read(message::batch(calls.iter().copied()), budget).await?;
        Ok(message::read_batch(&body, calls.len())?
            .into_iter()
            .map(|answer| answer.cut_from(&body))
            .collect())
    }

    /// Posts what has no effect and reads the whole answer.
    async fn read(&self, body: Bytes, budget: Budget) -> Result<Bytes, NodeError> {
        self.reading(|on| {
            let body = body.clone();
            async move { on.post(body, budget).await }
        })
        .await
    }

    async fn post(&self, body: Bytes, budget: Budget) -> Result<Bytes, NodeError> {
        let endpoint = self.endpoint().ok_or(NodeError::NoHead)?;
        let hold = self.hold.as_ref().filter(|_| budget.is_callers());
        endpoint
            .transport
            .exchange(body, budget, self.key.as_deref(), hold)
            .await
    }

    /// Asks one node all of `question`, so that its parts fit together. If the way to it fails and another node is in
    /// use by then, that one is asked instead, once.
    pub(crate) async fn reading<T, E, F>(&self, question: impl Fn(Self) -> F) -> Result<T, E>
    where
        E: Failure,
        F: Future<Output = Result<T, E>>,
    {
        if self.via.is_some() || self.shared.endpoints.len() == 1 {
            return question(self.clone()).await;
        }
        let on = self.via(self.place());
        let given_up = async {
            match on.endpoint() {
                Some(endpoint) => endpoint.abandoned().await,
                None => std::future::pending().await,
            }
        };
        let said = tokio::select! {
            biased;
            said = question(on.clone()) => said,
            () = given_up => Err(NodeError::GivenUp.into()),
        };
        match said {
            Err(error) if error.is_of_transport() && self.has_left(on.place()).await => {
                question(self.via(self.place())).await
            }
            said => said,
        }
    }

    /// Whether another node than the one at this place is in use, after a look at the head if there was none since.
    /// A call that failed does not tell that its node did: it may just be a heavy one.
    async fn has_left(&self, place: usize) -> bool {
        if self.shared.active() == place && self.shared.endpoints.len() > 1 {
            // What it comes to is asked for below.
            let _ = self.renewed().await;
        }
        self.shared.active() != place
    }

    /// [`Self::refresh_head`] for those that it goes through itself.
    fn renewed(&self) -> Admitting<'_> {
        Box::pin(self.refresh_head())
    }
}

/// HD26: executions go by [`Node::trace`] or [`Node::permitted`].
fn runs_nothing(call: &UpstreamCall) -> Result<(), NodeError> {
    if call.is_execution() {
        Err(NodeError::Unjudged)
    } else {
        Ok(())
    }
}

/// The chain of the nodes that answer, and the first of them.
async fn agreed_chain(endpoints: Vec<Endpoint>) -> Result<(u64, usize, Vec<Endpoint>), NodeError> {
    let mut asked = JoinSet::new();
    for (place, endpoint) in endpoints.into_iter().enumerate() {
        asked.spawn(async move {
            let chain = chain_id(&endpoint).await;
            (place, endpoint, chain)
        });
    }
    let mut answered = asked.join_all().await;
    answered.sort_by_key(|(place, ..)| *place);
    let (mut agreed, mut failed, mut endpoints) = (None, None, Vec::new());
    for (place, endpoint, chain) in answered {
        match (chain, agreed) {
            (Ok(chain), None) => agreed = Some((chain, place)),
            (Ok(other_chain), Some((chain, first))) if chain != other_chain => {
                let (one, other) = (place_name(first), place_name(place));
                return Err(NodeError::ChainsDiffer {
                    one,
                    chain,
                    other,
                    other_chain,
                });
            }
            (Ok(_), Some(_)) => {}
            (Err(error), _) => failed = failed.or(Some(error)),
        }
        endpoints.push(endpoint);
    }
    match agreed {
        Some((chain, first)) => Ok((chain, first, endpoints)),
        None => Err(failed.unwrap_or(NodeError::NoHead)),
    }
}

/// Nodes are told apart by their place in the list, from one.
const fn place_name(place: usize) -> usize {
    place.saturating_add(1)
}

async fn chain_id(endpoint: &Endpoint) -> Result<u64, NodeError> {
    let (method, params) = WHO;
    let body = endpoint
        .transport
        .exchange(message::single(method, params), Budget::Fact, None, None)
        .await?;
    head::read_chain_id(Some(&message::read_single(&body)?))
}

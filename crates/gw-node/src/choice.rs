//! Which of several nodes is in use: one at a time, for the head, traces, reads and sends alike, so that all of them come
//! from one view of the chain.
//!
//! Another one takes its place when it cannot be reached, does not answer in time or breaks; when it has confirmed no
//! head for half the grace for whatever other reason; and when it gives no traces and the other one does. The first of
//! the list is preferred: it is used again after it was well for a while.
//!
//! Invariant: the head does not go back because of a change. A node that is behind the followed head is not taken while
//! there is one, which is until the grace has run out; then the gateway has refused reads already, and what follows is
//! told like a reorganization. A block of the new node passes the gate as any new block does, before the node is in use.
//! A node of another chain is never used.

use crate::{
    Block, Budget, Head, Node, NodeError,
    endpoint::Endpoint,
    head::{self, LOOK, WHO},
    message::Answer,
    node::Shared,
    probe,
};
use bytes::Bytes;
use std::{
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::{task::JoinSet, time::Instant};

/// So long the only node may leave the question for its head unanswered before its last head counts no more.
const SILENCE: Duration = Duration::from_secs(3);

impl Shared {
    /// Uses the node at this place from now on.
    fn choose(&self, place: usize) {
        if let Some(endpoint) = self.endpoint(place) {
            endpoint.give_up(false);
        }
        self.set_active(place);
        self.show_active();
    }

    pub(crate) fn show_active(&self) {
        for place in 0..self.endpoints().len() {
            let is = if place == self.active() { 1.0 } else { 0.0 };
            metrics::gauge!("ledger_gateway_node_active", "node" => ordinal(place)).set(is);
        }
    }
}

/// Nodes are named by their place in `NODE_URL`, from one.
fn ordinal(place: usize) -> String {
    place.saturating_add(1).to_string()
}

impl Node {
    /// Looks at the head of the node in use, and takes another one if that fails. Under the lock of the head.
    pub(crate) async fn look(&self) -> Result<Head, NodeError> {
        let place = self.shared.active();
        let on = self.via(place);
        let failed = match on.look_and_admit().await {
            Ok(head) => return Ok(head),
            Err(failed) => failed,
        };
        let several = self.shared.endpoints().len() > 1;
        let half = self.shared.upkeep().grace / 2;
        let gone = failed.is_of_transport()
            || matches!(failed, NodeError::OtherChain)
            || on.endpoint().is_none_or(|node| node.is_unconfirmed_for(half));
        if several && gone {
            self.take_over(place, failed).await
        } else {
            Err(failed)
        }
    }

    /// The same on the node of this view only.
    async fn look_and_admit(&self) -> Result<Head, NodeError> {
        let looked = async {
            let head = if self.endpoint().is_some_and(Endpoint::is_foreign) {
                self.look_aside().await?
            } else {
                head::read(&self.ask_for_head().await?)?
            };
            self.admit(head.block).await?;
            Ok(head)
        };
        let looked = looked.await;
        if let Some(endpoint) = self.endpoint() {
            match &looked {
                Ok(head) => endpoint.seen(head.block),
                Err(_) => endpoint.missed(),
            }
        }
        looked
    }

    async fn ask_for_head(&self) -> Result<Vec<Answer<Bytes>>, NodeError> {
        let endpoint = self.endpoint().ok_or(NodeError::NoHead)?;
        endpoint.asked();
        let answers = self.ask(&LOOK, self.look_budget()).await;
        if !answers.as_ref().is_err_and(NodeError::is_of_transport) {
            endpoint.answered();
        }
        answers
    }

    /// Lets the gate see the block, if it is another one than the followed.
    async fn admit(&self, block: Block) -> Result<(), NodeError> {
        let last = self.head().map(|head| head.block);
        match self.shared.gate() {
            Some(gate) if last != Some(block) => gate.admit(self, last, block).await,
            Some(_) | None => Ok(()),
        }
    }

    /// Whether there is another node to wait for.
    fn look_budget(&self) -> Budget {
        if self.shared.endpoints().len() > 1 {
            Budget::Look
        } else {
            Budget::Block
        }
    }

    /// Looks at a node that is not in use, and at its chain.
    async fn look_aside(&self) -> Result<Head, NodeError> {
        let Some(endpoint) = self.endpoint() else {
            return Err(NodeError::NoHead);
        };
        let [block, price] = LOOK;
        let answers = self.ask(&[block, price, WHO], Budget::Look).await;
        let read = answers.and_then(|answers| Ok((head::read(&answers)?, head::read_chain_id(answers.get(2))?)));
        match read {
            Ok((head, chain)) if chain == self.chain_id() => {
                endpoint.turned_ours();
                endpoint.seen(head.block);
                Ok(head)
            }
            Ok((_, chain)) => {
                self.found_foreign(chain);
                Err(NodeError::OtherChain)
            }
            Err(error) => {
                endpoint.missed();
                Err(error)
            }
        }
    }

    fn found_foreign(&self, chain: u64) {
        if let Some(endpoint) = self.endpoint()
            && endpoint.turned_foreign()
        {
            let (node, ours) = (self.place().saturating_add(1), self.chain_id());
            tracing::error!(node, chain, ours, "a node serves another chain: it is not used");
        }
    }

    /// Takes the best of the other nodes; `failed` is why, and the answer if there is none.
    async fn take_over(&self, from: usize, failed: NodeError) -> Result<Head, NodeError> {
        let mut looks = JoinSet::new();
        for place in (0..self.shared.endpoints().len()).filter(|place| *place != from) {
            let on = self.via(place);
            looks.spawn(async move {
                let seen = on.look_aside().await;
                (on, seen)
            });
        }
        let mut well: Vec<(Node, Head)> = Vec::new();
        while let Some(looked) = looks.join_next().await {
            if let Ok((on, Ok(head))) = looked {
                well.push((on, head));
            }
        }
        well.sort_by_key(|(on, _)| (on.trace_form().is_none(), on.place()));
        for (on, head) in well {
            match self.change_to(&on, head).await {
                Ok(()) => {
                    if let Some(left) = self.shared.endpoint(from) {
                        left.give_up(true);
                    }
                    metrics::counter!("ledger_gateway_node_failovers_total").increment(1);
                    let (from, node) = (from.saturating_add(1), on.place().saturating_add(1));
                    tracing::warn!(
                        error = &failed as &dyn std::error::Error,
                        from,
                        node,
                        "another node is used"
                    );
                    return Ok(head);
                }
                Err(error) => {
                    let node = on.place().saturating_add(1);
                    tracing::debug!(
                        error = &error as &dyn std::error::Error,
                        node,
                        "this node is not used instead"
                    );
                }
            }
        }
        Err(failed)
    }

    /// Uses the node of this other view from now on, if the head need not go back for it and its block may be read.
    async fn change_to(&self, on: &Self, head: Head) -> Result<(), NodeError> {
        if self
            .head()
            .is_some_and(|followed| head.block.number < followed.block.number)
        {
            return Err(NodeError::Behind);
        }
        on.admit(head.block).await?;
        self.shared.choose(on.place());
        Ok(())
    }

    /// Probes the node of this view: whether it is of our chain, and what it traces.
    pub(crate) async fn probe(&self) {
        let Some(endpoint) = self.endpoint() else { return };
        let chain = self
            .ask(&[WHO], Budget::Fact)
            .await
            .and_then(|answers| head::read_chain_id(answers.first()));
        let form = match (chain, endpoint.head()) {
            (Ok(chain), Some(head)) if chain == self.chain_id() => {
                endpoint.turned_ours();
                probe::probe(self, head.pin()).await
            }
            (Ok(chain), _) if chain != self.chain_id() => {
                self.found_foreign(chain);
                None
            }
            (Ok(_) | Err(_), _) => None,
        };
        endpoint.tracing.store(form);
        endpoint.overriding.store(false);
    }

    /// Looks at the nodes that are not in use, and at what is new among them.
    pub(crate) async fn look_around(&self) {
        for place in (0..self.shared.endpoints().len()).filter(|place| *place != self.shared.active()) {
            let on = self.via(place);
            let Some(endpoint) = on.endpoint() else { continue };
            let was_well = endpoint.well_since().is_some();
            match on.look_aside().await {
                Ok(_) if !was_well => on.probe().await,
                Ok(_) => {}
                Err(error) if was_well => {
                    let node = place.saturating_add(1);
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        node,
                        "a standby node is not well"
                    );
                }
                Err(_) => {}
            }
        }
        for (place, endpoint) in self.shared.endpoints().iter().enumerate() {
            let is = if endpoint.well_since().is_some() { 1.0 } else { 0.0 };
            metrics::gauge!("ledger_gateway_node_up", "node" => ordinal(place)).set(is);
        }
    }

    /// Changes to a better node than the one in use, if there is one.
    pub(crate) async fn reconsider(&self) {
        let Some(better) = self.better() else { return };
        let change = async || {
            let on = self.via(better);
            let changed = async {
                let head = on.look_aside().await?;
                self.change_to(&on, head).await.map(|()| head)
            };
            match changed.await {
                Ok(head) => {
                    tracing::info!(node = better.saturating_add(1), "a better node is used");
                    Ok(head)
                }
                Err(_) => self.look().await,
            }
        };
        if let Err(error) = self.shared.head.renew(change).await {
            tracing::debug!(error = &error as &dyn std::error::Error, "no node confirms the head");
        }
    }

    /// A node that is to be used instead: one that traces, where this one does not; one that is preferred and was well
    /// for a while.
    fn better(&self) -> Option<usize> {
        let active = self.shared.active();
        let traces = |place: usize| {
            self.shared
                .endpoint(place)
                .is_some_and(|node| node.tracing.load().is_some())
        };
        let is_better = |place: &usize| {
            let Some(since) = self.shared.endpoint(*place).and_then(|node| node.well_since()) else {
                return false;
            };
            let settled = *place < active && since.elapsed() >= self.shared.upkeep().settle;
            match (traces(active), traces(*place)) {
                (false, true) => true,
                (true, true) | (false, false) => settled,
                (true, false) => false,
            }
        };
        let others = (0..self.shared.endpoints().len()).filter(|place| *place != active);
        others.filter(is_better).min_by_key(|place| (!traces(*place), *place))
    }
}

/// Keeps the head fresh while somebody holds a node.
pub(crate) async fn follow(shared: Weak<Shared>, every: Duration) {
    let mut confirmed = Instant::now();
    loop {
        tokio::time::sleep(every).await;
        let Some(node) = held(&shared) else { return };
        let began = Instant::now();
        match node.refresh_head().await {
            Ok(()) => confirmed = began,
            Err(error) if confirmed.elapsed() > node.shared.upkeep().grace => {
                if node.head().is_some() {
                    tracing::warn!(error = %error, "the head cannot be confirmed: reads are refused until it can");
                    node.shared.head.publish(None);
                }
            }
            Err(_) => {}
        }
    }
}

/// Gives up the head of the only node when it does not answer for [`SILENCE`], which a look that waits for it would notice
/// much later. Asks nothing. Where there are several, another one is taken by then.
pub(crate) async fn watch_silence(shared: Weak<Shared>) {
    loop {
        tokio::time::sleep(SILENCE / 8).await;
        let Some(node) = held(&shared) else { return };
        let long = SILENCE.min(node.shared.upkeep().grace);
        let Some(endpoint) = node.endpoint().filter(|endpoint| endpoint.is_silent_for(long)) else {
            continue;
        };
        endpoint.missed();
        if node.head().is_some() {
            tracing::warn!("the node does not answer: reads are refused until it does");
            node.shared.head.publish(None);
        }
    }
}

pub(crate) async fn keep_probing(shared: Weak<Shared>, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        let Some(node) = held(&shared) else { return };
        for place in 0..node.shared.endpoints().len() {
            node.via(place).probe().await;
        }
        node.reconsider().await;
    }
}

pub(crate) async fn keep_looking_around(shared: Weak<Shared>, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        let Some(node) = held(&shared) else { return };
        node.look_around().await;
        node.reconsider().await;
    }
}

fn held(shared: &Weak<Shared>) -> Option<Node> {
    shared.upgrade().map(|shared: Arc<Shared>| Node::on(shared))
}

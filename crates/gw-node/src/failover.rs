//! Selection of the node in use. One node at a time serves the head, traces, reads and sends, so that all of them come
//! from one view of the chain.
//!
//! Another node replaces it when it is unreachable, does not answer in time or breaks a connection; when it has
//! confirmed no head for half of the grace period for any other reason; and when it gives no traces and the other one
//! does. Nodes earlier in the list are preferred: such a node is used again after it was healthy for a while.
//!
//! Invariant: the head does not go back because of a failover. A node that is behind the followed head is not used
//! while there is a followed head, which is until the grace period has passed. By then the gateway refuses reads, and
//! the change to the older head is reported like a reorganization. A block of the new node passes the block gate, as
//! any new block does, before the node is used. A node of another chain is never used: the chain id is asked for again
//! before a block is followed that does not continue the followed head. A node that shows an ancestor of the followed
//! head as its newest block is behind, and confirms no head; so is one address behind which a replica lags.

use crate::{
    endpoint::Endpoint,
    error::NodeError,
    head::{self, Block, Head},
    message::Answer,
    node::{Node, Shared},
    probe,
    transport::RequestBudget,
};
use bytes::Bytes;
use gw_evm::wire;
use std::{
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::{task::JoinSet, time::Instant};

/// How long a single node may leave the request for its head unanswered before its last head becomes invalid.
const SILENCE: Duration = Duration::from_secs(3);

/// The pause before an unanswered probe of a node is repeated.
const PROBE_RETRY: Duration = Duration::from_millis(500);

impl Shared {
    /// Uses the node with this index from now on.
    fn activate(&self, index: usize) {
        if let Some(endpoint) = self.endpoint(index) {
            endpoint.abandon(false);
        }
        self.set_active(index);
        self.show_active();
    }

    pub(crate) fn show_active(&self) {
        for index in 0..self.endpoints().len() {
            let gauge = if index == self.active() { 1.0 } else { 0.0 };
            metrics::gauge!("ledger_gateway_node_active", "node" => ordinal(index)).set(gauge);
        }
    }
}

/// The label of a node in metrics: its position in `NODE_URL`, from one.
fn ordinal(index: usize) -> String {
    index.saturating_add(1).to_string()
}

impl Node {
    /// Polls the head of the node in use, and fails over to another node if that fails. The caller holds the lock of
    /// the head.
    pub(crate) async fn poll_head(&self) -> Result<Head, NodeError> {
        let index = self.shared.active();
        let node = self.pinned_to(index);
        let error = match node.poll_and_validate().await {
            Ok(head) => return Ok(head),
            Err(error) => error,
        };
        let has_standbys = self.shared.endpoints().len() > 1;
        let half_grace = self.shared.health_checks().grace / 2;
        let is_lost = error.is_transport_failure()
            || matches!(error, NodeError::OtherChain)
            || node.endpoint().is_none_or(|node| node.is_unconfirmed_for(half_grace));
        let is_other_chain = matches!(error, NodeError::OtherChain);
        let head = if has_standbys && is_lost {
            self.fail_over(index, error).await
        } else {
            Err(error)
        };
        if is_other_chain && head.is_err() {
            // Queries by hash or number would be answered from the other chain.
            self.shared.head.publish(None);
        }
        head
    }

    /// Polls the head of the node of this view only, and validates its block.
    async fn poll_and_validate(&self) -> Result<Head, NodeError> {
        let poll = async {
            let head = if self.endpoint().is_some_and(Endpoint::is_wrong_chain) {
                self.check_standby().await?
            } else {
                let head = head::read(&self.query_head().await?)?;
                self.require_our_chain(head.block).await?;
                head
            };
            if self.shared.head.is_behind(head.block) {
                return Err(NodeError::Behind);
            }
            self.validate_head(head.block).await?;
            Ok(head)
        };
        let head = poll.await;
        if let Some(endpoint) = self.endpoint() {
            match &head {
                Ok(head) => endpoint.mark_healthy(head.block),
                // One address may lead to several replicas, of which one lags behind.
                Err(NodeError::Behind) => {}
                Err(_) => endpoint.mark_failed(),
            }
        }
        head
    }

    /// Asks for the chain id again if this block neither is nor continues the followed head: another node, of another
    /// chain, may answer at the address since the last poll.
    async fn require_our_chain(&self, block: Block) -> Result<(), NodeError> {
        let continues = |head: &Head| [block.hash, block.parent].contains(&head.hash);
        if self.head().is_some_and(|head| continues(&head)) {
            return Ok(());
        }
        let answers = self.ask(&[wire::chain_id()], self.head_budget()).await?;
        let chain = head::read_chain_id(answers.first())?;
        if chain == self.chain_id() {
            return Ok(());
        }
        self.report_wrong_chain(chain);
        Err(NodeError::OtherChain)
    }

    async fn query_head(&self) -> Result<Vec<Answer<Bytes>>, NodeError> {
        let endpoint = self.endpoint().ok_or(NodeError::NoHead)?;
        endpoint.mark_head_requested();
        let answers = self.ask(&head::head_query(), self.head_budget()).await;
        if !answers.as_ref().is_err_and(NodeError::is_transport_failure) {
            endpoint.mark_head_answered();
        }
        answers
    }

    /// Passes the block through the gate, unless it is the followed block.
    async fn validate_head(&self, block: Block) -> Result<(), NodeError> {
        let last = self.head().map(|head| head.block);
        match self.shared.gate() {
            Some(gate) if last != Some(block) => gate.validate(self, last, block).await,
            Some(_) | None => Ok(()),
        }
    }

    /// The budget of a poll: short if another node can replace this one.
    fn head_budget(&self) -> RequestBudget {
        if self.shared.endpoints().len() > 1 {
            RequestBudget::Look
        } else {
            RequestBudget::Block
        }
    }

    /// Checks the head and the chain of a node that is not in use.
    async fn check_standby(&self) -> Result<Head, NodeError> {
        let Some(endpoint) = self.endpoint() else {
            return Err(NodeError::NoHead);
        };
        let [block, price] = head::head_query();
        let answers = self.ask(&[block, price, wire::chain_id()], RequestBudget::Look).await;
        let result = answers.and_then(|answers| Ok((head::read(&answers)?, head::read_chain_id(answers.get(2))?)));
        match result {
            Ok((head, chain)) if chain == self.chain_id() => {
                endpoint.mark_chain_ok();
                endpoint.mark_healthy(head.block);
                Ok(head)
            }
            Ok((_, chain)) => {
                self.report_wrong_chain(chain);
                Err(NodeError::OtherChain)
            }
            Err(error) => {
                endpoint.mark_failed();
                Err(error)
            }
        }
    }

    fn report_wrong_chain(&self, chain: u64) {
        if let Some(endpoint) = self.endpoint()
            && endpoint.mark_wrong_chain()
        {
            let (node, ours) = (self.index().saturating_add(1), self.chain_id());
            tracing::error!(
                node,
                chain,
                ours,
                "a node serves another chain and is not used: check NODE_URL"
            );
        }
    }

    /// Replaces the node with the index `from` by the best of the other nodes. `failed` is the reason, and the error if
    /// no node can replace it.
    async fn fail_over(&self, from: usize, failed: NodeError) -> Result<Head, NodeError> {
        let mut checks = JoinSet::new();
        for index in (0..self.shared.endpoints().len()).filter(|index| *index != from) {
            let node = self.pinned_to(index);
            checks.spawn(async move {
                let result = node.check_standby().await;
                (node, result)
            });
        }
        let mut healthy: Vec<(Node, Head)> = Vec::new();
        while let Some(checked) = checks.join_next().await {
            if let Ok((node, Ok(head))) = checked {
                healthy.push((node, head));
            }
        }
        healthy.sort_by_key(|(node, _)| (node.trace_form().is_none(), node.index()));
        for (node, head) in healthy {
            match self.switch_to(&node, head).await {
                Ok(()) => {
                    if let Some(replaced) = self.shared.endpoint(from) {
                        replaced.abandon(true);
                    }
                    metrics::counter!("ledger_gateway_node_failovers_total").increment(1);
                    let (from, node) = (from.saturating_add(1), node.index().saturating_add(1));
                    tracing::warn!(
                        error = &failed as &dyn std::error::Error,
                        from,
                        node,
                        "the node in use failed and was replaced by another one"
                    );
                    return Ok(head);
                }
                Err(error) => {
                    let node = node.index().saturating_add(1);
                    tracing::debug!(
                        error = &error as &dyn std::error::Error,
                        node,
                        "a standby node cannot replace the failed one"
                    );
                }
            }
        }
        Err(failed)
    }

    /// Uses the node of this view from now on, unless the head would go back or its block does not pass the gate.
    async fn switch_to(&self, node: &Self, head: Head) -> Result<(), NodeError> {
        if self
            .head()
            .is_some_and(|followed| head.block.number < followed.block.number)
        {
            return Err(NodeError::Behind);
        }
        node.validate_head(head.block).await?;
        self.shared.activate(node.index());
        Ok(())
    }

    /// Probes the node of this view: whether it serves our chain, and which trace form it supports. A probe that the
    /// node did not answer changes nothing and is due again.
    pub(crate) async fn probe(&self) {
        let Some(endpoint) = self.endpoint() else { return };
        let probed = async {
            let answers = self.ask(&[wire::chain_id()], RequestBudget::Fact).await?;
            let chain = head::read_chain_id(answers.first())?;
            if chain != self.chain_id() {
                self.report_wrong_chain(chain);
                return Ok(None);
            }
            endpoint.mark_chain_ok();
            let head = endpoint.head().ok_or(NodeError::NoHead)?;
            probe::probe(self, head.pin()).await
        };
        match probed.await {
            Ok(form) => {
                endpoint.tracing.store(form);
                endpoint.overriding.store(false);
            }
            Err(error) => {
                endpoint.tracing.set_due();
                let node = self.index().saturating_add(1);
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    node,
                    "the node did not answer the probe of its tracing support: what was known stays"
                );
            }
        }
    }

    /// Checks the nodes that are not in use, and probes those that became healthy.
    pub(crate) async fn check_standbys(&self) {
        for index in (0..self.shared.endpoints().len()).filter(|index| *index != self.shared.active()) {
            let standby = self.pinned_to(index);
            let Some(endpoint) = standby.endpoint() else { continue };
            let was_healthy = endpoint.healthy_since().is_some();
            match standby.check_standby().await {
                Ok(_) if !was_healthy => standby.probe().await,
                Ok(_) => {}
                Err(error) if was_healthy => {
                    let node = index.saturating_add(1);
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        node,
                        "a standby node failed its health check"
                    );
                }
                Err(_) => {}
            }
        }
        for (index, endpoint) in self.shared.endpoints().iter().enumerate() {
            let gauge = if endpoint.healthy_since().is_some() { 1.0 } else { 0.0 };
            metrics::gauge!("ledger_gateway_node_up", "node" => ordinal(index)).set(gauge);
        }
    }

    /// Switches to a better node than the one in use, if there is one.
    pub(crate) async fn switch_to_better(&self) {
        let Some(better) = self.preferred_candidate() else {
            return;
        };
        let switch = async || {
            let node = self.pinned_to(better);
            let switched = async {
                let head = node.check_standby().await?;
                self.switch_to(&node, head).await.map(|()| head)
            };
            match switched.await {
                Ok(head) => {
                    tracing::info!(
                        node = better.saturating_add(1),
                        "the gateway switched to a preferred node"
                    );
                    Ok(head)
                }
                Err(_) => self.poll_head().await,
            }
        };
        if let Err(error) = self.shared.head.renew(switch).await {
            tracing::debug!(error = &error as &dyn std::error::Error, "no node confirmed the head");
        }
    }

    /// The index of a node to switch to: one that gives traces, if the node in use gives none; otherwise an earlier
    /// node of the list that was healthy for a while.
    fn preferred_candidate(&self) -> Option<usize> {
        let active = self.shared.active();
        let traces = |index: usize| {
            self.shared
                .endpoint(index)
                .is_some_and(|node| node.tracing.load().is_some())
        };
        let is_better = |index: &usize| {
            let Some(healthy_since) = self.shared.endpoint(*index).and_then(|node| node.healthy_since()) else {
                return false;
            };
            let is_settled = *index < active && healthy_since.elapsed() >= self.shared.health_checks().settle;
            match (traces(active), traces(*index)) {
                (false, true) => true,
                (true, true) | (false, false) => is_settled,
                (true, false) => false,
            }
        };
        let others = (0..self.shared.endpoints().len()).filter(|index| *index != active);
        others.filter(is_better).min_by_key(|index| (!traces(*index), *index))
    }
}

/// Polls the head at this interval while a handle of the node exists.
pub(crate) async fn follow(shared: Weak<Shared>, interval: Duration) {
    let mut confirmed_at = Instant::now();
    loop {
        tokio::time::sleep(interval).await;
        let Some(node) = upgrade(&shared) else { return };
        let started_at = Instant::now();
        match node.refresh_head().await {
            Ok(()) => confirmed_at = started_at,
            Err(error) if confirmed_at.elapsed() > node.shared.health_checks().grace => {
                if node.head().is_some() {
                    tracing::warn!(error = %error, "no node confirmed the head in time: reads are refused until one \
                         does");
                    node.shared.head.publish(None);
                }
            }
            Err(_) => {}
        }
    }
}

/// Invalidates the head of a single node that has not answered for [`SILENCE`]. A poll that waits for its deadline
/// would notice much later. It sends no requests. With several nodes, another one is in use by then.
pub(crate) async fn watch_silence(shared: Weak<Shared>) {
    loop {
        tokio::time::sleep(SILENCE / 8).await;
        let Some(node) = upgrade(&shared) else { return };
        let limit = SILENCE.min(node.shared.health_checks().grace);
        let Some(endpoint) = node.endpoint().filter(|endpoint| endpoint.is_silent_for(limit)) else {
            continue;
        };
        endpoint.mark_failed();
        if node.head().is_some() {
            tracing::warn!("the node does not answer: reads are refused until it does");
            node.shared.head.publish(None);
        }
    }
}

/// Probes all nodes at this interval; a node that did not answer is probed again once it confirms a head.
pub(crate) async fn keep_probing(shared: Weak<Shared>, interval: Duration) {
    let mut probed_at = Instant::now();
    loop {
        tokio::time::sleep(interval.min(PROBE_RETRY)).await;
        let Some(node) = upgrade(&shared) else { return };
        let is_due = probed_at.elapsed() >= interval;
        if is_due {
            probed_at = Instant::now();
        }
        let mut has_probed = false;
        for (index, endpoint) in node.shared.endpoints().iter().enumerate() {
            if is_due || (endpoint.tracing.is_due() && endpoint.healthy_since().is_some()) {
                node.pinned_to(index).probe().await;
                has_probed = true;
            }
        }
        if has_probed {
            node.switch_to_better().await;
        }
    }
}

pub(crate) async fn keep_checking_standbys(shared: Weak<Shared>, interval: Duration) {
    loop {
        tokio::time::sleep(interval).await;
        let Some(node) = upgrade(&shared) else { return };
        node.check_standbys().await;
        node.switch_to_better().await;
    }
}

fn upgrade(shared: &Weak<Shared>) -> Option<Node> {
    shared.upgrade().map(|shared: Arc<Shared>| Node::unpinned(shared))
}

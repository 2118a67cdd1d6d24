//! The state of identities, read from the State contract of their network (spec/10 section 2.6, DI-5 to DI-7).
//!
//! Which networks there are is data. What the contract says is read by `gw_zk::state`; here are the calls: deadlines,
//! fail-over, the chain's id, and what is remembered for how long.
//!
//! Invariant: an address whose chain id was not confirmed within the hour is never believed.

mod memory;

use crate::{
    foreign_node::{self as call, Reply},
    outbound::Outbound,
};
use gw_types::{Address, Clock, Seconds, Timestamp};
use gw_zk::{
    Fr,
    did::{Id, Network},
    state::{self, Outcome, Root, State, StateError},
};
use http::Uri;
use memory::Memory;
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio_util::sync::CancellationToken;

/// Between two looks at a chain's id (DI-5).
const CHAIN_CHECK: Seconds = Seconds(3600);

/// Where the identities of one network have their state.
#[derive(Clone)]
pub struct ResolverConfig {
    /// What it is called here: `idp:main`, `altnet:main`, or the network's own key.
    pub name: String,
    /// The network.
    pub network: &'static Network,
    /// The State contract.
    pub contract: Address,
    /// The nodes to ask, in this order. Never printed: a path may be a key.
    pub nodes: Vec<Uri>,
}

impl core::fmt::Debug for ResolverConfig {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "ResolverConfig({})", self.name)
    }
}

/// All resolvers of this service.
#[derive(Debug)]
pub struct Resolvers {
    rows: Vec<Resolver>,
    /// `None` on a machine without trusted certificates: nothing can be read there.
    outbound: Option<Outbound>,
    clock: Arc<dyn Clock>,
}

#[derive(Debug)]
struct Resolver {
    config: ResolverConfig,
    nodes: Vec<Node>,
    roots: Memory<Fr, Root>,
    states: Memory<(Id, Fr), State>,
}

struct Node {
    uri: Uri,
    /// When its chain was found to be the right one.
    confirmed: Mutex<Option<Timestamp>>,
}

impl core::fmt::Debug for Node {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Node(…)")
    }
}

/// What the contract said, and when it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fact<T> {
    /// What it said.
    pub(crate) said: T,
    /// When it was asked.
    pub(crate) read: Timestamp,
}

/// Why a look-up gives no fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LookupError {
    /// No resolver for the network.
    #[error("the network has no state resolver")]
    NoResolver,
    /// The contract's answer, or the want of one.
    #[error(transparent)]
    State(#[from] StateError),
}

impl Resolvers {
    /// The resolvers of `rows`; the first row of a network counts.
    pub fn new(rows: Vec<ResolverConfig>, clock: Arc<dyn Clock>) -> Self {
        let outbound = Outbound::new()
            .inspect_err(|error| {
                tracing::error!(
                    error = error as &dyn core::error::Error,
                    "no wallet can log in: no trusted certificates"
                );
            })
            .ok();
        let node = |uri: &Uri| Node {
            uri: uri.clone(),
            confirmed: Mutex::new(None),
        };
        let rows = rows
            .into_iter()
            .map(|config| Resolver {
                nodes: config.nodes.iter().map(node).collect(),
                roots: Memory::default(),
                states: Memory::default(),
                config,
            })
            .collect();
        Self { rows, outbound, clock }
    }

    /// The names of the networks whose state can be read (decision 29).
    pub fn names(&self) -> Vec<String> {
        self.rows.iter().map(|row| row.config.name.clone()).collect()
    }

    /// Confirms the chain of every node, at once and then every hour, until the end.
    pub async fn keep_checking(&self, end: &CancellationToken) {
        loop {
            for row in &self.rows {
                for node in &row.nodes {
                    if let Err(error) = self.confirm(row, node).await {
                        warn(row, &error);
                    }
                }
            }
            tokio::select! {
                () = end.cancelled() => return,
                () = tokio::time::sleep(Duration::from_secs(CHAIN_CHECK.0.into())) => {}
            }
        }
    }

    /// The name of the resolver an identity's state is read by.
    pub(crate) fn name_of(&self, id: Id) -> Option<&str> {
        self.row(id).map(|row| row.config.name.as_str())
    }

    /// The root of the tree of all identities, as the network of `id` knows it (ZK-51, ZK-52).
    pub(crate) async fn root(&self, id: Id, root: Fr) -> Result<Fact<Root>, LookupError> {
        let row = self.row(id).ok_or(LookupError::NoResolver)?;
        let now = self.clock.now();
        if let Some(fact) = row.roots.get(&root, now) {
            return Ok(fact);
        }
        let said = self
            .ask(row, &state::root_call(&root), |outcome| {
                state::read_root(&root, outcome)
            })
            .await?;
        let life = match said {
            Root::Current => Seconds(150),
            Root::Replaced(_) => Seconds(300),
        };
        Ok(row.roots.put(root, said, now, life))
    }

    /// The state of `id`, as its network knows it (ZK-70, ZK-71, DI-7).
    pub(crate) async fn state(&self, id: Id, of: Fr) -> Result<Fact<State>, LookupError> {
        let row = self.row(id).ok_or(LookupError::NoResolver)?;
        let now = self.clock.now();
        if let Some(fact) = row.states.get(&(id, of), now) {
            return Ok(fact);
        }
        let said = self
            .ask(row, &state::state_call(&id, &of), |outcome| {
                state::read_state(&id, &of, outcome)
            })
            .await?;
        let life = if said.replaced.is_none() {
            Seconds(1800)
        } else {
            Seconds(3600)
        };
        Ok(row.states.put((id, of), said, now, life))
    }

    fn row(&self, id: Id) -> Option<&Resolver> {
        self.rows
            .iter()
            .find(|row| row.config.network.byte == id.network_byte())
    }

    /// Asks one node after the other until one gives something to read.
    async fn ask<T>(
        &self,
        row: &Resolver,
        data: &[u8],
        read: impl Fn(Outcome<'_>) -> Result<T, StateError>,
    ) -> Result<T, StateError> {
        for node in &row.nodes {
            let reply = match (&self.outbound, self.confirmed(row, node).await) {
                (Some(outbound), Ok(())) => call::contract(outbound, &node.uri, row.config.contract, data).await,
                (None, _) => Err(call::CallError::NoTrust),
                (_, Err(error)) => Err(error),
            };
            let said = match &reply {
                Ok(Reply::Returned(bytes)) => read(Outcome::Returned(bytes)),
                Ok(Reply::Reverted { data, message }) => read(Outcome::Reverted { data, message }),
                Err(error) => {
                    warn(row, error);
                    continue;
                }
            };
            match said {
                Err(StateError::Fault) => {
                    tracing::warn!(network = row.config.name, "the state contract's answer cannot be read")
                }
                said => return said,
            }
        }
        Err(StateError::Fault)
    }

    async fn confirmed(&self, row: &Resolver, node: &Node) -> Result<(), call::CallError> {
        let at = *node.confirmed.lock().unwrap_or_else(PoisonError::into_inner);
        match at {
            Some(at) if self.clock.now() < at.plus(CHAIN_CHECK) => Ok(()),
            Some(_) | None => self.confirm(row, node).await,
        }
    }

    async fn confirm(&self, row: &Resolver, node: &Node) -> Result<(), call::CallError> {
        let now = self.clock.now();
        let Some(outbound) = &self.outbound else {
            return Err(call::CallError::NoTrust);
        };
        let chain = call::chain_id(outbound, &node.uri).await;
        let right = chain.as_ref().is_ok_and(|chain| *chain == row.config.network.chain_id);
        // A node that cannot be reached now may be on the chain it was on; one on another chain is not.
        if right || chain.is_ok() {
            *node.confirmed.lock().unwrap_or_else(PoisonError::into_inner) = right.then_some(now);
        }
        let expected = row.config.network.chain_id;
        chain.and_then(|found| {
            if right {
                Ok(())
            } else {
                Err(call::CallError::Chain { expected, found })
            }
        })
    }
}

fn warn(row: &Resolver, error: &call::CallError) {
    tracing::warn!(
        network = row.config.name,
        error = error as &dyn core::error::Error,
        "a node of the state resolver gave no answer"
    );
}

#[cfg(test)]
pub(crate) mod tests;

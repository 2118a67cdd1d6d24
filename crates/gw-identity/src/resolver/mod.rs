//! The state of identities, read from the State contract of their network (spec/10 section 2.6, DI-5 to DI-7).
//!
//! The networks are configuration. `gw_zk::state` reads the contract's answers; this module makes the calls: deadlines,
//! failover, chain id checks and caching.
//!
//! Invariant: an answer is used only if the chain id of its node was confirmed within the last hour.

mod memory;

use crate::{
    external_node::{self as call, Reply},
    outbound::third_party_client,
};
use gw_http::HttpClient;
use gw_types::{Address, Clock, Seconds, Timestamp};
use gw_zk::{
    Fr,
    did::{Id, Network},
    state::{self, CallResult, Root, State, StateError},
};
use http::Uri;
use memory::Memory;
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio_util::sync::CancellationToken;

/// Time between two checks of a node's chain id (DI-5).
const CHAIN_CHECK: Seconds = Seconds(3600);

/// The State contract of one network, and the nodes to read it from.
#[derive(Clone)]
pub struct ResolverConfig {
    /// The resolver's name: `idp:main`, `altnet:main`, or the network's own key.
    pub name: String,
    /// The network.
    pub network: &'static Network,
    /// The State contract.
    pub contract: Address,
    /// The nodes, in order of preference. Never printed: the path of a URL may be an API key.
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
    /// `None` on a machine without trusted certificates: no state can be read there.
    outbound: Option<HttpClient>,
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
    /// When its chain id was last confirmed.
    confirmed: Mutex<Option<Timestamp>>,
}

impl core::fmt::Debug for Node {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Node(…)")
    }
}

/// An answer of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fact<T> {
    /// The answer.
    pub(crate) value: T,
    /// When it was asked.
    pub(crate) read: Timestamp,
}

/// Why a lookup failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LookupError {
    /// No resolver for the network.
    #[error("the network has no state resolver")]
    NoResolver,
    /// The error that the contract answered, or no usable answer of any node.
    #[error(transparent)]
    State(#[from] StateError),
}

impl Resolvers {
    /// Creates the resolvers of `rows`. If several rows have the same network, the first counts.
    pub fn new(rows: Vec<ResolverConfig>, clock: Arc<dyn Clock>) -> Self {
        let outbound = third_party_client()
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

    /// Confirms the chain id of every node, at once and then every hour, until `end`.
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

    /// The name of the resolver that serves the network of `id`.
    pub(crate) fn name_of(&self, id: Id) -> Option<&str> {
        self.row(id).map(|row| row.config.name.as_str())
    }

    /// Looks up a root of the tree of all identities (GIST) in the network of `id` (ZK-51, ZK-52).
    pub(crate) async fn root(&self, id: Id, root: Fr) -> Result<Fact<Root>, LookupError> {
        let row = self.row(id).ok_or(LookupError::NoResolver)?;
        let now = self.clock.now();
        if let Some(fact) = row.roots.get(&root, now) {
            return Ok(fact);
        }
        let value = self
            .ask(row, &state::root_call(&root), |outcome| {
                state::read_root(&root, outcome)
            })
            .await?;
        let life = match value {
            Root::Current => Seconds(150),
            Root::Replaced(_) => Seconds(300),
        };
        Ok(row.roots.put(root, value, now, life))
    }

    /// Looks up the state `of` of identity `id` in its network (ZK-70, ZK-71, DI-7).
    pub(crate) async fn state(&self, id: Id, hash: Fr) -> Result<Fact<State>, LookupError> {
        let row = self.row(id).ok_or(LookupError::NoResolver)?;
        let now = self.clock.now();
        if let Some(fact) = row.states.get(&(id, hash), now) {
            return Ok(fact);
        }
        let value = self
            .ask(row, &state::state_call(&id, &hash), |outcome| {
                state::read_state(&id, &hash, outcome)
            })
            .await?;
        let life = if value.replaced.is_none() {
            Seconds(1800)
        } else {
            Seconds(3600)
        };
        Ok(row.states.put((id, hash), value, now, life))
    }

    fn row(&self, id: Id) -> Option<&Resolver> {
        self.rows
            .iter()
            .find(|row| row.config.network.byte == id.network_byte())
    }

    /// Asks the nodes in order until one gives a readable answer.
    async fn ask<T>(
        &self,
        row: &Resolver,
        data: &[u8],
        read: impl Fn(CallResult<'_>) -> Result<T, StateError>,
    ) -> Result<T, StateError> {
        for node in &row.nodes {
            let reply = match (&self.outbound, self.confirmed(row, node).await) {
                (Some(outbound), Ok(())) => call::contract(outbound, &node.uri, row.config.contract, data).await,
                (None, _) => Err(call::CallError::NoTrust),
                (_, Err(error)) => Err(error),
            };
            let value = match &reply {
                Ok(Reply::Returned(bytes)) => read(CallResult::Returned(bytes)),
                Ok(Reply::Reverted { data, message }) => read(CallResult::Reverted { data, message }),
                Err(error) => {
                    warn(row, error);
                    continue;
                }
            };
            match value {
                Err(StateError::Fault) => {
                    tracing::warn!(network = row.config.name, "the state contract's answer cannot be read")
                }
                value => return value,
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
        // An unreachable node keeps its confirmation. A node on another chain loses it.
        if right || chain.is_ok() {
            *node.confirmed.lock().unwrap_or_else(PoisonError::into_inner) = right.then_some(now);
        }
        let expected = row.config.network.chain_id;
        chain.and_then(|actual| {
            if right {
                Ok(())
            } else {
                Err(call::CallError::Chain { expected, actual })
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

//! Connects to the configured nodes, which must serve one chain, and starts to follow one of them.

use crate::{
    config::NodeConfig,
    endpoint::Endpoint,
    error::NodeError,
    failover, head, message,
    node::{Node, Shared},
    transport::RequestBudget,
};
use gw_evm::wire;
use std::sync::Arc;
use tokio::task::JoinSet;

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
        let node = Self::unpinned(Arc::new(Shared::new(config, endpoints, chain_id, first)));
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
    let body = endpoint
        .transport
        .exchange(message::single(&wire::chain_id()), RequestBudget::Fact, None, None)
        .await?;
    head::read_chain_id(Some(&message::read_single(&body)?))
}

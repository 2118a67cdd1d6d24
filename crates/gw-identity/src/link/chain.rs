//! Our own chain, as far as links need it.

use futures_util::future::BoxFuture;
use gw_types::{Address, B256};

/// Our own chain, as far as links need it.
pub trait Chain: Send + Sync + core::fmt::Debug {
    /// Its id, once the node has told it.
    fn id(&self) -> Option<u64>;

    /// Whether the contract at `wallet` takes `signature` for its own on `hash` (ERC-1271); `None` where there is no
    /// contract.
    fn contract_signature<'a>(
        &'a self,
        wallet: Address,
        hash: B256,
        signature: &'a [u8],
    ) -> BoxFuture<'a, Result<Option<bool>, ChainAway>>;
}

/// The node gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the node gave no answer")]
pub struct ChainAway;

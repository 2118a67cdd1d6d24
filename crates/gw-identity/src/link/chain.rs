//! The gateway's own chain as far as links need it, and the ERC-1271 question to a contract wallet (LK-4, HD26).

use futures_util::future::BoxFuture;
use gw_http::PolicySource;
use gw_policy::{
    PolicySettings,
    access::{WalletAnswer, WalletQuestion, WalletTrace, evaluate_wallet_signature},
};
use gw_types::{Timestamp, UserId};

/// The gateway's own chain, as far as links need it.
pub trait Chain: Send + Sync + core::fmt::Debug {
    /// The chain id, once the node has given it.
    fn id(&self) -> Option<u64>;

    /// Traces the question on the state of the newest validated block. If the node does not run it or its trace cannot
    /// be used, the result has no trace, which counts as a "no" of the wallet.
    fn trace_wallet<'a>(&'a self, question: &'a WalletQuestion)
    -> BoxFuture<'a, Result<WalletTrace, ChainUnavailable>>;
}

/// The node gave no answer, or no current policy snapshot is available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the node gave no answer")]
pub struct ChainUnavailable;

/// Asks the wallet whether it accepts the signature, on behalf of `user`, and evaluates the trace by the newest policy.
///
/// Every address is asked, even if the answer is known to be no: the time must not reveal who registered the contract.
///
/// # Errors
/// [`ChainUnavailable`] if the node gives no trace or the policy is stale.
pub async fn ask_wallet(
    chain: &dyn Chain,
    policy: &PolicySource,
    policy_settings: &PolicySettings,
    user: UserId,
    question: &WalletQuestion,
    now: Timestamp,
) -> Result<WalletAnswer, ChainUnavailable> {
    let traced = chain.trace_wallet(question).await?;
    let snapshot = policy.pin().ok_or(ChainUnavailable)?;
    Ok(evaluate_wallet_signature(
        &snapshot,
        user,
        question,
        &traced,
        now,
        policy_settings,
    ))
}

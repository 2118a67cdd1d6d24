//! Our own chain, as far as links need it, and the question to a contract wallet (LK-4, HD26).

use futures_util::future::BoxFuture;
use gw_http::PolicySource;
use gw_policy::{
    Knobs,
    access::{WalletAnswer, WalletQuestion, WalletTrace, judge_wallet_signature},
};
use gw_types::{Timestamp, UserId};

/// Our own chain, as far as links need it.
pub trait Chain: Send + Sync + core::fmt::Debug {
    /// Its id, once the node has told it.
    fn id(&self) -> Option<u64>;

    /// Traces the question on the state of the newest validated block. An execution that the node would not run, or whose
    /// trace cannot be used, is no trace: it says no.
    fn trace_wallet<'a>(&'a self, question: &'a WalletQuestion) -> BoxFuture<'a, Result<WalletTrace, ChainAway>>;
}

/// The node gave no answer, or policy cannot be trusted at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the node gave no answer")]
pub struct ChainAway;

/// Asks the wallet on behalf of `user`, and judges what the node ran for it by the newest policy.
///
/// Every wallet is asked, whatever it is: how long the answer takes tells nothing of who registered it.
pub async fn ask_wallet(
    chain: &dyn Chain,
    policy: &PolicySource,
    knobs: &Knobs,
    user: UserId,
    question: &WalletQuestion,
    now: Timestamp,
) -> Result<WalletAnswer, ChainAway> {
    let traced = chain.trace_wallet(question).await?;
    let snapshot = policy.pin().ok_or(ChainAway)?;
    Ok(judge_wallet_signature(&snapshot, user, question, &traced, now, knobs))
}

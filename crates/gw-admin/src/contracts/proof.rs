//! What proves that an organization's member created a contract (K3, K4).

use crate::AdminState;
use gw_node::{NoTrace, NodeError};
use gw_policy::access::owns;
use gw_store::record::Organization;
use gw_types::{Address, B256};

/// Why the chain could not be asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProofError {
    #[error("the node did not answer")]
    Node(#[from] NodeError),
    #[error("the creating transaction could not be traced")]
    Trace(#[from] NoTrace),
}

/// Whether the transaction proves that a member of the organization created the contract (K3, K4). It must have succeeded
/// and have created the contract, directly or through a factory. A wallet of an active member must have sent it, and that
/// member must have joined before. The address must hold code, and no user may have linked it.
pub(super) async fn deployed_by_member(
    state: &AdminState,
    org: &Organization,
    address: Address,
    hash: B256,
) -> Result<bool, ProofError> {
    let snapshot = state.feed.pin().snapshot;
    let Some(mined) = state.node.mined(hash).await?.filter(|mined| mined.succeeded) else {
        return Ok(false);
    };
    let now = state.clock.now();
    // RT24: who came later brings nothing along, and who never agreed nothing at all.
    let seconds = i64::try_from(state.node.block_time(mined.block_hash).await?).unwrap_or(i64::MAX);
    let member = |user| {
        let mut held = snapshot
            .active_memberships(user, now)
            .filter(|(held, _)| held.is_accepted(now));
        held.any(|(held, group)| group.org == org.id && held.since.secs() <= seconds)
    };
    let links = snapshot.links_at(mined.sender);
    if !links
        .iter()
        .any(|link| owns(&snapshot, link.user, mined.sender) && member(link.user))
    {
        return Ok(false);
    }
    if mined.created != Some(address) && !state.node.created_by(hash).await?.contains(&address) {
        return Ok(false);
    }
    // Who claims at once is not told to wait for the head to be followed.
    if state
        .node
        .head()
        .is_none_or(|head| head.block.number < mined.block_number)
    {
        state.node.refresh_head().await?;
    }
    let head = state.node.head().ok_or(NodeError::NoHead)?;
    let has_code = state.node.has_code(address, head.hash).await?;
    // HD28: what a withheld transaction made is not there, by the policy of the block that was let in.
    let newest = state.feed.pin().snapshot;
    let has_code = has_code && newest.convictions(hash).is_empty() && newest.shown_code(address, head.number).is_none();
    // Last of all: before, the answer for a hidden wallet would come sooner than one for a random address (HD30).
    Ok(has_code && snapshot.links_at(address).is_empty() && !snapshot.is_tagged_shared(address))
}

/// The first block that can be the organization's which a contract is registered for now, if the address was ever
/// registered before (HD41): the one after the newest. The store tells whether it matters, and refuses where the node did
/// not say.
pub(super) async fn first_block(state: &AdminState, address: Address) -> Option<u64> {
    if !state.feed.pin().snapshot.was_registered(address) {
        return None;
    }
    state.node.refresh_head().await.ok()?;
    state.node.head()?.number.checked_add(1)
}

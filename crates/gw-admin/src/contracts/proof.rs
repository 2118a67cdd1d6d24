//! The proof that a member of an organization created a contract (K3, K4).

use crate::AdminState;
use gw_node::{NoTrace, NodeError};
use gw_policy::access::owns;
use gw_store::record::Organization;
use gw_types::{Address, B256};

/// Why the proof could not be checked.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProofError {
    #[error("the node did not answer")]
    Node(#[from] NodeError),
    #[error("the creating transaction could not be traced")]
    Trace(#[from] NoTrace),
}

/// Whether the transaction proves that a member of the organization created the contract (K3, K4). It must have
/// succeeded and have created the contract, directly or through a factory. A wallet of an active member must have sent
/// it, and that member must have joined before. The address must hold code, and no user may have linked it.
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
    // RT24: a contract that a user created before joining does not count, and neither does a membership that the user
    // never accepted.
    let mined_at = i64::try_from(state.node.block_time(mined.block_hash).await?).unwrap_or(i64::MAX);
    let was_member = |user| {
        let mut memberships = snapshot
            .active_memberships(user, now)
            .filter(|(membership, _)| membership.is_accepted(now));
        memberships.any(|(membership, group)| group.org == org.id && membership.since.secs() <= mined_at)
    };
    let links = snapshot.links_at(mined.sender);
    if !links
        .iter()
        .any(|link| owns(&snapshot, link.user, mined.sender) && was_member(link.user))
    {
        return Ok(false);
    }
    if mined.created != Some(address) && !state.node.created_by(hash).await?.contains(&address) {
        return Ok(false);
    }
    // A claim right after the transaction must not wait until the follower sees its block.
    if state
        .node
        .head()
        .is_none_or(|head| head.block.number < mined.block_number)
    {
        state.node.refresh_head().await?;
    }
    let head = state.node.head().ok_or(NodeError::NoHead)?;
    let has_code = state.node.has_code(address, head.hash).await?;
    // HD28: by the policy of a validated block, a contract that a withheld transaction created does not exist.
    let newest_snapshot = state.feed.pin().snapshot;
    let has_code = has_code
        && newest_snapshot.convictions(hash).is_empty()
        && newest_snapshot.shown_code(address, head.number).is_none();
    // This check is the last one: otherwise the answer for a hidden wallet would be faster than for a random address
    // (HD30).
    Ok(has_code && snapshot.links_at(address).is_empty() && !snapshot.is_tagged_shared(address))
}

/// The first block from which a contract counts as the organization's, if its address was registered before (HD41): the
/// block after the head. `None` if the address was never registered or the node did not answer. The store decides
/// whether the value is needed, and refuses a registration that needs it.
pub(super) async fn first_block(state: &AdminState, address: Address) -> Option<u64> {
    if !state.feed.pin().snapshot.was_registered(address) {
        return None;
    }
    state.node.refresh_head().await.ok()?;
    state.node.head()?.number.checked_add(1)
}

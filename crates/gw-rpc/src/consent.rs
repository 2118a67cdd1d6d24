//! Agreeing to a membership by naming its organization (HD32, decision 62).
//!
//! The first call that names an organization accepts its invitation. That call waits for one write, as a send does; the
//! calls after it find the membership in the snapshot. A call that names none agrees to nothing, whatever it stands on.

use crate::{origin::Origin, state::Inner};
use gw_policy::{
    Snapshot,
    access::{Caller, NamedOrg},
    snapshot::User,
};
use gw_store::{Actor, Missing, StoreError};
use gw_types::{OrgId, Timestamp, UserId};
use std::sync::Arc;

/// Accepts the invitation of the organization that the request names, if there is one. Answers when the acceptance is in
/// force; if it cannot be stored, the membership goes on to count for nothing.
pub(crate) async fn accept_named(state: &Arc<Inner>, origin: &Origin) {
    let NamedOrg::Org(org) = origin.named else { return };
    let (pinned, now) = (state.feed().pin(), state.clock().now());
    // A personal URL is used by pages, an impersonation by somebody else: neither is an act of the user.
    let Ok(Caller::User(user)) = origin.caller(&pinned.snapshot, now) else {
        return;
    };
    if pinned.fresh && waits(&pinned.snapshot, user.id, org, now) {
        let accepting = state
            .sends
            .tasks
            .spawn(accept(Arc::clone(state), actor(&user, origin), user.id, org));
        // A task that is gone has stored nothing, or everything.
        let _ = accepting.await;
    }
}

/// Whether a membership in the organization waits for the user's agreement. One that a ban makes void is not accepted by
/// the way.
fn waits(snapshot: &Snapshot, user: UserId, org: OrgId, now: Timestamp) -> bool {
    let mut pending = snapshot
        .memberships(user)
        .iter()
        .filter(|membership| membership.is_pending(now));
    pending.any(|membership| snapshot.group(membership.group).is_some_and(|group| group.org == org))
        && !snapshot.is_banned_in(user, org)
}

fn actor(user: &User, origin: &Origin) -> Actor {
    let correlation = origin.correlation_id.as_ref().map(|id| id.as_str().to_owned());
    Actor::user(user.id, &user.external_id).from_request(Some(origin.client.0), correlation)
}

async fn accept(state: Arc<Inner>, actor: Actor, user: UserId, org: OrgId) {
    let accepted = async {
        let mut tx = state.sends.store.begin(&actor).await?;
        tx.accept_memberships(user, org).await?;
        tx.commit().await
    };
    match accepted.await {
        // Another call of the user was first.
        Ok(_) | Err(StoreError::NotFound(Missing::Membership)) => {}
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, user.id = %user, org.id = %org, "an invitation could not be accepted by its use");
        }
    }
}

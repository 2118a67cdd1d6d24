//! Accepts an invitation to an organization when the user names the organization in a call (HD32, decision 62).
//!
//! The first call that names an organization accepts its invitation and waits for that write; later calls find the
//! membership in the snapshot. A call that names no organization accepts no invitation, whichever membership permits
//! the call.

use crate::{request::RequestContext, state::RpcContext};
use gw_policy::{
    Snapshot,
    access::{Caller, NamedOrg},
    snapshot::User,
};
use gw_store::{Actor, Missing, StoreError};
use gw_types::{OrgId, Timestamp, UserId};
use std::sync::Arc;

/// Accepts the invitation to the organization that the request names, if there is one, and returns when the acceptance
/// is in force. If it cannot be stored, the membership stays pending.
pub(crate) async fn accept_named(state: &Arc<RpcContext>, request: &RequestContext) {
    let NamedOrg::Org(org) = request.named_org else { return };
    let (pinned, now) = (state.feed().pin(), state.clock().now());
    // Web pages use a personal URL, and an administrator uses an impersonation: neither call is an act of the user.
    let Ok(Caller::User(user)) = request.caller(&pinned.snapshot, now) else {
        return;
    };
    if pinned.fresh && has_pending_membership(&pinned.snapshot, user.id, org, now) {
        let task = state
            .sends
            .tasks
            .spawn(accept(Arc::clone(state), actor(&user, request), user.id, org));
        // The task writes in one transaction: if it fails, it has stored the whole acceptance or nothing.
        let _ = task.await;
    }
}

/// Whether the user has a pending membership in the organization, and is not banned there.
fn has_pending_membership(snapshot: &Snapshot, user: UserId, org: OrgId, now: Timestamp) -> bool {
    let mut pending = snapshot
        .memberships(user)
        .iter()
        .filter(|membership| membership.is_pending(now));
    pending.any(|membership| snapshot.group(membership.group).is_some_and(|group| group.org == org))
        && !snapshot.is_banned_in(user, org)
}

fn actor(user: &User, request: &RequestContext) -> Actor {
    let correlation = request.correlation_id.as_ref().map(|id| id.as_str().to_owned());
    Actor::user(user.id, &user.external_id).from_request(Some(request.client.0), correlation)
}

async fn accept(state: Arc<RpcContext>, actor: Actor, user: UserId, org: OrgId) {
    let transaction = async {
        let mut tx = state.sends.store.begin(&actor).await?;
        tx.accept_memberships(user, org).await?;
        tx.commit().await
    };
    match transaction.await {
        // Another call of the user has accepted the invitation first.
        Ok(_) | Err(StoreError::NotFound(Missing::Membership)) => {}
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(
                error,
                user.id = %user,
                org.id = %org,
                "an invitation could not be accepted: the next call that names the organization tries again"
            );
        }
    }
}

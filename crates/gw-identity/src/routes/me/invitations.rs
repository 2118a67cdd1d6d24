//! `/me/invitations` and the answers to an invitation: accepting a membership, or ending it (HD32, decision 62).

use crate::{
    error::{spawn_tracked, storage},
    routes::RequestInfo,
    state::IdentityState,
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::{ApiError, Authenticated, ErrorBody, Message};
use gw_policy::{access::active_orgs, snapshot::Organization};
use gw_store::{Actor, Missing, StoreError};
use gw_types::OrgId;
use serde::Serialize;

/// The organizations that wait for the caller's acceptance.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct MyInvitationsResponse {
    invitations: Vec<InvitationResponse>,
}

/// One invitation.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct InvitationResponse {
    /// The organization's id.
    id: String,
    /// Its name.
    name: String,
    /// Its slug.
    slug: String,
    /// Whether the caller has rights there already, which is so until the caller accepts any other organization. Its
    /// administrators have no rights over the caller before the caller accepts.
    in_force: bool,
}

/// My invitations
#[utoipa::path(
    get,
    path = "/me/invitations",
    operation_id = "myInvitations",
    tag = "me",
    security(("bearer" = [])),
    responses(
        (status = 200, body = MyInvitationsResponse),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 503, body = ErrorBody),
    ),
)]
pub(crate) async fn list(
    State(state): State<IdentityState>,
    caller: Authenticated,
) -> Result<Json<MyInvitationsResponse>, ApiError> {
    let (snapshot, user, now) = (&caller.snapshot, caller.user.id, state.edge.now());
    let pending = snapshot
        .memberships(user)
        .iter()
        .filter(|membership| membership.is_pending(now));
    let mut orgs: Vec<OrgId> = pending
        .filter_map(|membership| snapshot.group(membership.group))
        .map(|group| group.org)
        .collect();
    orgs.sort_unstable();
    orgs.dedup();
    let active = active_orgs(snapshot, user, now);
    let invitations = orgs
        .into_iter()
        .filter_map(|id| snapshot.organization(id))
        .map(|org| InvitationResponse {
            id: org.id.to_string(),
            name: org.name.to_string(),
            slug: org.slug.to_string(),
            in_force: active.contains(&org.id),
        })
        .collect();
    Ok(Json(MyInvitationsResponse { invitations }))
}

/// Why an invitation or membership did not change.
#[derive(Debug, thiserror::Error)]
enum InvitationError {
    /// The organization is unknown, or the caller has no membership there.
    #[error("unknown")]
    Unknown,
    /// Administrators cannot leave their organization by themselves.
    #[error("the caller administers the organization")]
    Administers,
    /// The store failed.
    #[error("the store failed")]
    Store(#[source] StoreError),
}

impl From<StoreError> for InvitationError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound(Missing::Membership) => Self::Unknown,
            StoreError::Rule("administers_organization") => Self::Administers,
            other => Self::Store(other),
        }
    }
}

impl From<InvitationError> for ApiError {
    fn from(error: InvitationError) -> Self {
        match error {
            InvitationError::Unknown => Self::not_found("invitation not found"),
            InvitationError::Administers => {
                Self::conflict("you administer this organization: have that membership ended first")
            }
            InvitationError::Store(error) => storage(&error),
        }
    }
}

/// Accept an invitation
///
/// After that, the organization's administrators have their rights over the caller, and the caller has every right of
/// the groups. The first call that names the organization, at `/rpc/{org_id}` or by `X-Org-Id`, also accepts.
#[utoipa::path(
    post,
    path = "/me/orgs/{org_id}/accept",
    operation_id = "acceptInvitation",
    tag = "me",
    security(("bearer" = [])),
    params(("org_id" = String, Path, format = Uuid)),
    responses(
        (status = 200, body = Message),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
        (status = 503, body = ErrorBody),
    ),
)]
pub(crate) async fn accept(
    State(state): State<IdentityState>,
    caller: Authenticated,
    provenance: RequestInfo,
    Path(org): Path<String>,
) -> Result<Message, ApiError> {
    let org: OrgId = org.parse().map_err(|_| InvitationError::Unknown)?;
    let actor = provenance.actor(Actor::user(caller.user.id, &caller.user.external_id));
    let (worker, user) = (state.clone(), caller.user.id);
    spawn_tracked(&state.tasks, async move {
        let mut tx = worker.store.begin(&actor).await?;
        tx.accept_memberships(user, org).await?;
        tx.commit().await?;
        Ok::<_, InvitationError>(())
    })
    .await?;
    Ok(Message::new("invitation accepted"))
}

/// Leave an organization
///
/// Declines its invitation, or ends the caller's memberships there. Administrators of the organization cannot leave
/// this way.
#[utoipa::path(
    delete,
    path = "/me/orgs/{org_id}",
    operation_id = "leaveOrganization",
    tag = "me",
    security(("bearer" = [])),
    params(("org_id" = String, Path, format = Uuid)),
    responses(
        (status = 200, body = Message),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody),
        (status = 503, body = ErrorBody),
    ),
)]
pub(crate) async fn leave(
    State(state): State<IdentityState>,
    caller: Authenticated,
    provenance: RequestInfo,
    Path(org): Path<String>,
) -> Result<Message, ApiError> {
    let org = org
        .parse()
        .ok()
        .filter(|org| ![Organization::DEFAULT, Organization::ANONYMOUS].contains(org));
    let org: OrgId = org.ok_or(InvitationError::Unknown)?;
    let actor = provenance.actor(Actor::user(caller.user.id, &caller.user.external_id));
    let (worker, user) = (state.clone(), caller.user.id);
    spawn_tracked(&state.tasks, async move {
        let mut tx = worker.store.begin(&actor).await?;
        tx.leave_organization(user, org).await?;
        tx.commit().await?;
        Ok::<_, InvitationError>(())
    })
    .await?;
    Ok(Message::new("organization left"))
}

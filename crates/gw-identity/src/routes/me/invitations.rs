//! `/me/invitations` and the answers to an invitation: accepting a membership, or ending it (HD32, decision 62).

use crate::{
    error::{spawn_tracked, storage},
    request_info::RequestInfo,
    state::IdentityState,
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::{ApiError, AuthenticatedUser, ErrorCode, Message, Page, PageQuery, Paged, described_error};
use gw_policy::{access::active_orgs, snapshot::Organization};
use gw_store::{Actor, Missing, StoreError};
use gw_types::OrgId;
use serde::Serialize;

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

/// List my invitations
///
/// The organizations that wait for the caller's acceptance.
#[utoipa::path(
    get,
    path = "/me/invitations",
    operation_id = "myInvitations",
    tag = "me",
    security(("bearer" = [])),
    params(PageQuery),
    responses((status = 200, body = Paged<InvitationResponse>)),
)]
pub(crate) async fn list(
    State(state): State<IdentityState>,
    caller: AuthenticatedUser,
    page: Page<1000>,
) -> Result<Json<Paged<InvitationResponse>>, ApiError> {
    let (snapshot, user, now) = (&caller.snapshot, caller.user.id, state.http_context.now());
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
    Ok(Json(page.of_all(invitations)))
}

/// Why an invitation was not accepted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InvitationError {
    /// The organization is unknown, or the caller has no membership there.
    #[error("unknown")]
    Unknown,
    /// The store failed.
    #[error("the store failed")]
    Store(#[source] StoreError),
}

impl From<StoreError> for InvitationError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound(Missing::Membership) => Self::Unknown,
            other => Self::Store(other),
        }
    }
}

impl From<InvitationError> for ApiError {
    fn from(error: InvitationError) -> Self {
        match error {
            InvitationError::Unknown => Self::not_found("invitation not found"),
            InvitationError::Store(error) => storage(&error),
        }
    }
}

described_error!(
    InvitationError,
    "APIError",
    [
        ErrorCode::NotFound.answer(),
        ErrorCode::Internal.answer(),
        ErrorCode::Unavailable.answer(),
    ]
);

/// Why a membership was not ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LeaveError {
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

impl From<StoreError> for LeaveError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound(Missing::Membership) => Self::Unknown,
            StoreError::Rule("administers_organization") => Self::Administers,
            other => Self::Store(other),
        }
    }
}

impl From<LeaveError> for ApiError {
    fn from(error: LeaveError) -> Self {
        match error {
            LeaveError::Unknown => Self::not_found("invitation not found"),
            LeaveError::Administers => {
                Self::conflict("you administer this organization: have that membership ended first")
            }
            LeaveError::Store(error) => storage(&error),
        }
    }
}

described_error!(
    LeaveError,
    "APIError",
    [
        ErrorCode::NotFound.answer(),
        ErrorCode::Conflict.answer(),
        ErrorCode::Internal.answer(),
        ErrorCode::Unavailable.answer(),
    ]
);

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
        InvitationError,
    ),
)]
pub(crate) async fn accept(
    State(state): State<IdentityState>,
    caller: AuthenticatedUser,
    request_info: RequestInfo,
    Path(org): Path<String>,
) -> Result<Message, ApiError> {
    let org: OrgId = org.parse().map_err(|_| InvitationError::Unknown)?;
    let actor = request_info.actor(Actor::user(caller.user.id, &caller.user.external_id));
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
        LeaveError,
    ),
)]
pub(crate) async fn leave(
    State(state): State<IdentityState>,
    caller: AuthenticatedUser,
    request_info: RequestInfo,
    Path(org): Path<String>,
) -> Result<Message, ApiError> {
    let org = org
        .parse()
        .ok()
        .filter(|org| ![Organization::DEFAULT, Organization::ANONYMOUS].contains(org));
    let org: OrgId = org.ok_or(LeaveError::Unknown)?;
    let actor = request_info.actor(Actor::user(caller.user.id, &caller.user.external_id));
    let (worker, user) = (state.clone(), caller.user.id);
    spawn_tracked(&state.tasks, async move {
        let mut tx = worker.store.begin(&actor).await?;
        tx.leave_organization(user, org).await?;
        tx.commit().await?;
        Ok::<_, LeaveError>(())
    })
    .await?;
    Ok(Message::new("organization left"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_http::DescribedError;
    use http::StatusCode;

    fn answer(error: impl Into<ApiError>, status: u16, text: &str) -> (StatusCode, &'static str) {
        let answer: ApiError = error.into();
        assert_eq!((answer.code().status().as_u16(), answer.text()), (status, text));
        answer.code().answer()
    }

    /// House rule 17.
    #[test]
    fn every_error_of_an_acceptance_has_its_status_and_text() {
        let table = [
            (InvitationError::Unknown, 404, "invitation not found"),
            (
                StoreError::NotFound(Missing::Membership).into(),
                404,
                "invitation not found",
            ),
            (StoreError::Detached.into(), 500, "internal error"),
            (
                StoreError::NotPrimary.into(),
                503,
                "the policy store is temporarily unavailable",
            ),
        ];
        let answers = table.map(|(error, status, text)| {
            // A new variant stops the build here: add it to the table.
            match error {
                InvitationError::Unknown | InvitationError::Store(_) => {}
            }
            answer(error, status, text)
        });
        assert!(InvitationError::lists_exactly(answers));
    }

    /// House rule 17.
    #[test]
    fn every_error_of_leaving_has_its_status_and_text() {
        let table = [
            (LeaveError::Unknown, 404, "invitation not found"),
            (
                StoreError::NotFound(Missing::Membership).into(),
                404,
                "invitation not found",
            ),
            (
                StoreError::Rule("administers_organization").into(),
                409,
                "you administer this organization: have that membership ended first",
            ),
            (StoreError::Detached.into(), 500, "internal error"),
            (
                StoreError::NotPrimary.into(),
                503,
                "the policy store is temporarily unavailable",
            ),
        ];
        let answers = table.map(|(error, status, text)| {
            // A new variant stops the build here: add it to the table.
            match error {
                LeaveError::Unknown | LeaveError::Administers | LeaveError::Store(_) => {}
            }
            answer(error, status, text)
        });
        assert!(LeaveError::lists_exactly(answers));
    }
}

use super::LoginSession;
use crate::{
    AdminState,
    error::AdminError,
    scope::Admin,
    wire::{SessionInfoResponse, SessionListResponse},
};
use axum::{Json, extract::State};
use gw_http::{Page, PageQuery, QueryParams};
use gw_policy::Snapshot;
use gw_store::read::Scope;
use gw_types::Timestamp;
use serde::Deserialize;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct Filter {
    /// `pending`, `failed` or `completed`.
    #[param(required = false)]
    state: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StateFilter {
    Pending,
    Failed,
    Completed,
}

impl StateFilter {
    fn parse(text: &str) -> Result<Self, AdminError> {
        match text {
            "pending" => Ok(Self::Pending),
            "failed" => Ok(Self::Failed),
            "completed" => Ok(Self::Completed),
            _ => Err(AdminError::bad_request(
                "state must be `pending`, `failed` or `completed`",
            )),
        }
    }

    const fn for_session(session: &LoginSession) -> Self {
        match (&session.completed_at, &session.failure) {
            (Some(_), _) => Self::Completed,
            (None, Some(_)) => Self::Failed,
            (None, None) => Self::Pending,
        }
    }
}

/// Lists the login sessions of the last ten minutes, with the exact reason of a refusal and without their tokens.
///
/// An administrator of an organization sees the sessions of its users. The user of a session without a proof is not
/// known.
#[utoipa::path(get, path = "/api/v1/admin/sessions", tag = "sessions", params(Filter, PageQuery),
    responses((status = 200, body = SessionListResponse), (status = 400), (status = 401), (status = 403),
        (status = 503)))]
pub(crate) async fn list_sessions(
    admin: Admin,
    State(state): State<AdminState>,
    QueryParams(filter): QueryParams<Filter>,
    page: Page<1000>,
) -> Result<Json<SessionListResponse>, AdminError> {
    let scope = admin.scope()?;
    let state_filter = filter
        .state
        .as_deref()
        .filter(|text| !text.is_empty())
        .map(StateFilter::parse)
        .transpose()?;
    let (snapshot, now) = (state.feed.pin().snapshot, state.clock.now());
    let mut sessions = state.sessions.list().await?;
    sessions.retain(|session| {
        is_shown(&snapshot, &scope, now, session)
            && state_filter.is_none_or(|state| state == StateFilter::for_session(session))
    });
    let total = sessions.len();
    let skipped = usize::try_from(page.offset).unwrap_or(usize::MAX);
    let page_rows = sessions
        .into_iter()
        .skip(skipped)
        .take(usize::try_from(page.limit).unwrap_or(usize::MAX));
    let super_admin = admin.is_super();
    Ok(Json(SessionListResponse {
        sessions: page_rows.map(|s| SessionInfoResponse::new(s, super_admin)).collect(),
        total,
    }))
}

fn is_shown(snapshot: &Snapshot, scope: &Scope, now: Timestamp, session: &LoginSession) -> bool {
    let Scope::Orgs(orgs) = scope else { return true };
    let user = session
        .subject
        .as_ref()
        .and_then(|subject| snapshot.user_by_external(subject));
    user.is_some_and(|user| orgs.iter().any(|org| snapshot.has_accepted(user.id, *org, now)))
}

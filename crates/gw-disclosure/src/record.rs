//! The access record of every request (spec/70 rule 29), and the caller of a request for all that need it later.

use crate::DisclosureState;
use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use gw_audit::{AccessRecord, AuthMethod};
use gw_http::{AdminCaller, ApiError, AuthError, AuthenticatedUser, HttpContext, RequestRecorder};
use gw_policy::access::identify;
use gw_types::{ExternalId, OrgId};
use http::StatusCode;
use std::sync::{Arc, OnceLock};

/// Whoever makes a request.
#[derive(Clone, Debug)]
pub(crate) enum Caller {
    /// On an admin route.
    Admin(AdminCaller),
    /// An owner or a grantee.
    User(AuthenticatedUser),
    /// The holder of a token of this grantee.
    Token(ExternalId),
}

/// Carries the caller of one request from its extractors to its record.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallerSlot(Arc<Details>);

#[derive(Debug, Default)]
struct Details {
    caller: OnceLock<Caller>,
    org: OnceLock<OrgId>,
}

impl Caller {
    /// Authorizes the caller again by the newest policy (HD20).
    ///
    /// # Errors
    /// 401 or 403 if the caller lost rights since the request began; 503 if policy is stale.
    pub(crate) fn reauthorize(&self, context: &HttpContext) -> Result<(), ApiError> {
        match self {
            Self::Admin(admin) => admin.reauthorize(context),
            Self::User(user) => {
                let snapshot = context.policy.pin().ok_or(AuthError::PolicyStale)?;
                let facts = user.claims.facts();
                identify(&snapshot, &facts)
                    .map(drop)
                    .map_err(|error| AuthError::from(error).into())
            }
            // The token was looked up after the last wait.
            Self::Token(_) => Ok(()),
        }
    }

    fn describe(&self) -> (Option<ExternalId>, AuthMethod) {
        let method = |by_cookie| {
            if by_cookie {
                AuthMethod::Cookie
            } else {
                AuthMethod::Bearer
            }
        };
        match self {
            Self::Admin(AdminCaller::Super | AdminCaller::Operator) => (None, AuthMethod::AdminToken),
            Self::Admin(AdminCaller::User(admin)) => (Some(admin.user.external_id.clone()), method(admin.by_cookie)),
            Self::User(user) => (Some(user.user.external_id.clone()), method(user.by_cookie)),
            Self::Token(grantee) => (Some(grantee.clone()), AuthMethod::Bearer),
        }
    }
}

impl CallerSlot {
    pub(crate) fn set(&self, caller: Caller) {
        // Every extractor of a request finds the same caller, so the first one is kept.
        let _first = self.0.caller.set(caller);
    }

    /// Files the record under an organization. Only requests that succeed are filed (HD12).
    pub(crate) fn set_org(&self, org: OrgId) {
        let _first = self.0.org.set(org);
    }

    pub(crate) fn caller(&self) -> Option<&Caller> {
        self.0.caller.get()
    }

    /// Authorizes the caller again by the newest policy (HD20).
    ///
    /// # Errors
    /// As [`Caller::reauthorize`]; 401 without a caller, because a handler extracts it before the body.
    pub(crate) fn reauthorize(&self, context: &HttpContext) -> Result<(), ApiError> {
        let missing = || ApiError::unauthorized("authentication required");
        self.caller().ok_or_else(missing)?.reauthorize(context)
    }
}

/// Middleware around every route that writes the access record.
pub(crate) async fn record(State(state): State<DisclosureState>, mut request: Request, next: Next) -> Response {
    let slot = CallerSlot::default();
    request.extensions_mut().insert(slot.clone());
    let complete = {
        let state = state.clone();
        move |record: &mut AccessRecord, status: StatusCode| {
            if let Some(caller) = slot.caller() {
                (record.external_id, record.auth_method) = caller.describe();
                record.org_id = slot.0.org.get().copied().filter(|_| status.is_success());
            }
            record.policy_epoch = Some(state.feed.pin().snapshot.epoch());
        }
    };
    let recorder = RequestRecorder {
        context: &state.http_context,
        journal: &state.journal,
        tasks: &state.tasks,
    };
    recorder.record(request, next, complete).await
}

/// Middleware that refuses requests at once while the policy snapshot is not fresh (RTO8): a query would only wait for
/// the store. It runs inside [`record()`], so that refusals are recorded.
pub(crate) async fn require_fresh_policy(
    State(state): State<DisclosureState>,
    request: Request,
    next: Next,
) -> Response {
    if state.feed.pin().fresh {
        next.run(request).await
    } else {
        ApiError::policy_unavailable().into_response()
    }
}

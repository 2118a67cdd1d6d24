//! The access records of admin requests (spec/70 §1, rule 29): caller, organization and search terms.

use crate::AdminState;
use axum::{
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use gw_audit::{AccessRecord, AuthMethod};
use gw_http::{AdminCaller, ApiError, HttpContext, RequestRecorder, admin::AdminUser};
use gw_store::read::Scope;
use gw_types::{ExternalId, OrgId, UserId};
use http::StatusCode;
use serde_json::{Map, Value};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Carries the caller and the search terms of one request from its extractors and handlers to its record.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallerSlot(Arc<RequestDetails>);

#[derive(Debug, Default)]
struct RequestDetails {
    caller: OnceLock<Caller>,
    terms: Mutex<Vec<(String, String)>>,
}

/// The caller, in the form that records and masking need.
#[derive(Debug)]
struct Caller {
    external_id: Option<ExternalId>,
    auth_method: AuthMethod,
    administrator: Option<AdminUser>,
}

impl CallerSlot {
    pub(crate) fn set(&self, caller: &AdminCaller) {
        let caller = match caller {
            AdminCaller::Super | AdminCaller::Operator => Caller {
                external_id: None,
                auth_method: AuthMethod::AdminToken,
                administrator: None,
            },
            AdminCaller::User(admin) => Caller {
                external_id: Some(admin.user.external_id.clone()),
                auth_method: if admin.by_cookie {
                    AuthMethod::Cookie
                } else {
                    AuthMethod::Bearer
                },
                administrator: Some(admin.clone()),
            },
        };
        // Every extractor of a request resolves the same caller, so the first one is kept.
        let _first = self.0.caller.set(caller);
    }

    /// The administrator and the organizations they read; `None` for a platform token.
    pub(crate) fn administrator(&self) -> Option<(UserId, Scope)> {
        let admin = self.0.caller.get()?.administrator.as_ref()?;
        Some((admin.user.id, crate::scope::orgs_of(admin)))
    }

    /// Authorizes the caller again by the newest policy (HD20).
    ///
    /// # Errors
    /// 401 or 403 if the administrator lost their rights since the request began.
    pub(crate) fn reauthorize(&self, http_context: &HttpContext) -> Result<(), ApiError> {
        match self.0.caller.get() {
            Some(Caller {
                administrator: Some(admin),
                ..
            }) => admin.reauthorize(http_context),
            Some(Caller {
                administrator: None, ..
            }) => Ok(()),
            // Handlers extract `Admin` before the body; a route that does not is refused.
            None => Err(ApiError::unauthorized("admin authentication required")),
        }
    }

    /// Adds a search term to the access record of the request. The record holds a keyed digest of it.
    pub(crate) fn record_search_term(&self, name: &str, term: &str) {
        let mut terms = self.0.terms.lock().unwrap_or_else(PoisonError::into_inner);
        terms.push((name.to_owned(), term.to_owned()));
    }
}

/// The search terms of a request as keyed digests: its query, the addresses and DIDs in its path, and the terms that
/// its handler added. An auditor with the key can compare a digest with a guess; the term cannot be read (HD12, RT3).
fn terms(state: &AdminState, template: &str, uri: &http::Uri, caller_slot: &CallerSlot) -> Option<String> {
    let cipher = state.key_cipher.as_ref()?;
    let query = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let query = query.filter(|(name, _)| !matches!(&**name, "limit" | "offset" | "cursor" | "envelope"));
    let query = query.map(|(name, value)| (name.into_owned(), value.into_owned()));
    let in_path = template
        .split('/')
        .zip(uri.path().split('/'))
        .filter_map(|(part, value)| match part {
            "{address}" | "{did}" => Some((part.trim_matches(['{', '}']).to_owned(), value.to_owned())),
            _ => None,
        });
    let handler_terms = std::mem::take(&mut *caller_slot.0.terms.lock().unwrap_or_else(PoisonError::into_inner));
    let mut digests_by_name = Map::new();
    for (name, value) in query.chain(in_path).chain(handler_terms) {
        let name: String = name.chars().take(64).collect();
        let digests = digests_by_name.entry(name).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(digests) = digests
            && digests.len() < MAX_TERMS
        {
            digests.push(cipher.digest(value.to_ascii_lowercase().as_bytes()).into());
        }
        if digests_by_name.len() >= MAX_TERMS {
            break;
        }
    }
    (!digests_by_name.is_empty()).then(|| Value::Object(digests_by_name).to_string())
}

/// Most names in a record, and most values of a name.
const MAX_TERMS: usize = 16;

/// Middleware around every admin route that writes the access record.
pub(crate) async fn record(State(state): State<AdminState>, mut request: Request, next: Next) -> Response {
    let caller_slot = CallerSlot::default();
    request.extensions_mut().insert(caller_slot.clone());
    let template = request
        .extensions()
        .get::<MatchedPath>()
        .map_or("unmatched", MatchedPath::as_str)
        .to_owned();
    let uri = request.uri().clone();
    let complete = {
        let state = state.clone();
        move |record: &mut AccessRecord, status: StatusCode| {
            if let Some(caller) = caller_slot.0.caller.get() {
                record.external_id.clone_from(&caller.external_id);
                record.auth_method = caller.auth_method;
                record.request_params = terms(&state, &template, &uri, &caller_slot);
                // HD12: the record is filed under the organization only if the request succeeded.
                record.org_id = org_of(&template, uri.path()).filter(|_| status.is_success());
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
pub(crate) async fn require_fresh_policy(State(state): State<AdminState>, request: Request, next: Next) -> Response {
    if state.feed.pin().fresh {
        next.run(request).await
    } else {
        ApiError::policy_unavailable().into_response()
    }
}

/// The organization in the path, if the route has one.
fn org_of(template: &str, path: &str) -> Option<OrgId> {
    let index = template.split('/').position(|part| part == "{org_id}")?;
    path.split('/').nth(index)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_organization_of_a_path() {
        let id = OrgId::fixed(7);
        let template = "/api/v1/admin/orgs/{org_id}/groups";
        assert_eq!(org_of(template, &format!("/api/v1/admin/orgs/{id}/groups")), Some(id));
        assert_eq!(org_of(template, "/api/v1/admin/orgs/x/groups"), None);
        assert_eq!(org_of("/api/v1/admin/logs", "/api/v1/admin/logs"), None);
    }
}

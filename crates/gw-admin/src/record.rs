//! One access record per administrative request, reads and refusals included (spec/70 §1, rule 29).
//!
//! Room for the record is taken before the handler runs: a journal that is full refuses the request before it has
//! had any effect (HD22). The record is written before the answer leaves; after a mutation it is also fsynced
//! (decision 10).

use crate::AdminState;
use axum::{
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use gw_audit::{AccessRecord, AuthMethod};
use gw_http::{AdminCaller, ApiError, CorrelationId, Edge, admin::AdminUser};
use gw_store::read::Scope;
use gw_types::{ExternalId, OrgId, UserId};
use http::Method;
use serde_json::{Map, Value};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tracing::Instrument as _;

/// Carries the caller and the search terms of one request from its extractors and handlers to its record.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallerSlot(Arc<RequestDetails>);

#[derive(Debug, Default)]
struct RequestDetails {
    caller: OnceLock<Caller>,
    terms: Mutex<Vec<(String, String)>>,
}

/// A caller as records and masks need them.
#[derive(Debug)]
struct Caller {
    external_id: Option<ExternalId>,
    auth_method: AuthMethod,
    administrator: Option<AdminUser>,
}

impl CallerSlot {
    pub(crate) fn is(&self, caller: &AdminCaller) {
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
        // A second extractor of one request finds the same caller.
        let _first = self.0.caller.set(caller);
    }

    /// The administrator by name and the organizations they read, if it is not a token of the platform.
    pub(crate) fn administrator(&self) -> Option<(UserId, Scope)> {
        let admin = self.0.caller.get()?.administrator.as_ref()?;
        Some((admin.user.id, crate::scope::orgs_of(admin)))
    }

    /// Whether the caller is by the newest policy still who they were when they came in (HD20).
    pub(crate) fn reauthorize(&self, edge: &Edge) -> Result<(), ApiError> {
        match self.0.caller.get() {
            Some(Caller {
                administrator: Some(admin),
                ..
            }) => admin.reauthorize(edge),
            Some(Caller {
                administrator: None, ..
            }) => Ok(()),
            // Handlers extract `Admin` before the body; a route that does not is refused.
            None => Err(ApiError::unauthorized("admin authentication required")),
        }
    }

    /// Adds what was looked for to the record of the request, as a keyed digest.
    pub(crate) fn looked_for(&self, name: &str, term: &str) {
        let mut terms = self.0.terms.lock().unwrap_or_else(PoisonError::into_inner);
        terms.push((name.to_owned(), term.to_owned()));
    }
}

/// What a request looked for: its query, the addresses and people in its path, and what its handler added. An auditor
/// with the key can compare a digest with a guess; nobody can read it (HD12, RT3).
fn terms(state: &AdminState, template: &str, uri: &http::Uri, who: &CallerSlot) -> Option<String> {
    let cipher = state.key_cipher.as_ref()?;
    let query = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let query = query.filter(|(name, _)| !matches!(&**name, "limit" | "offset"));
    let query = query.map(|(name, value)| (name.into_owned(), value.into_owned()));
    let in_path = template
        .split('/')
        .zip(uri.path().split('/'))
        .filter_map(|(part, value)| match part {
            "{address}" | "{did}" => Some((part.trim_matches(['{', '}']).to_owned(), value.to_owned())),
            _ => None,
        });
    let added = std::mem::take(&mut *who.0.terms.lock().unwrap_or_else(PoisonError::into_inner));
    let mut found = Map::new();
    for (name, value) in query.chain(in_path).chain(added) {
        let name: String = name.chars().take(64).collect();
        let digests = found.entry(name).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(digests) = digests
            && digests.len() < MOST_TERMS
        {
            digests.push(cipher.digest(value.to_ascii_lowercase().as_bytes()).into());
        }
        if found.len() >= MOST_TERMS {
            break;
        }
    }
    (!found.is_empty()).then(|| Value::Object(found).to_string())
}

/// The most names, and values of a name, that a record holds.
const MOST_TERMS: usize = 16;

/// The middleware around every administrative route. The request runs to its record even if its client goes away (HD21).
pub(crate) async fn record(State(state): State<AdminState>, request: Request, next: Next) -> Response {
    let tasks = state.tasks.clone();
    let work = answer_and_record(state, request, next).in_current_span();
    tasks
        .spawn(work)
        .await
        .unwrap_or_else(|_| ApiError::internal().into_response())
}

async fn answer_and_record(state: AdminState, mut request: Request, next: Next) -> Response {
    let Ok(mut room) = state.journal.reserve(1) else {
        return ApiError::audit_unavailable().into_response();
    };
    let began = state.clock.now();
    let who = CallerSlot::default();
    request.extensions_mut().insert(who.clone());
    let mutates = !matches!(*request.method(), Method::GET | Method::HEAD);
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let path = matched.as_ref().map_or("unmatched", MatchedPath::as_str);
    let method = format!("{} {path}", request.method());
    let org = org_of(path, request.uri().path());
    let uri = request.uri().clone();
    let ip = state.edge.client(request.extensions(), request.headers()).0;
    let correlation_id = request
        .extensions()
        .get::<CorrelationId>()
        .map(|id| id.as_str().to_owned());

    let answer = next.run(request).await;

    let mut record = AccessRecord::new(method, answer.status().as_u16());
    if let Some(caller) = who.0.caller.get() {
        record.external_id.clone_from(&caller.external_id);
        record.auth_method = caller.auth_method;
        record.request_params = terms(&state, path, &uri, &who);
        // HD12: filed under an organization only for those who got in.
        record.org_id = org.filter(|_| answer.status().is_success());
    }
    record.ip_address = Some(ip);
    record.correlation_id = correlation_id.map(Into::into);
    record.policy_epoch = Some(state.feed.pin().snapshot.epoch());
    record.duration_us = u64::try_from(state.clock.now().micros().saturating_sub(began.micros())).unwrap_or(0);
    let written = match state.journal.append_reserved(&mut room, record) {
        Ok(position) if mutates => state.journal.durable(position).await,
        Ok(_) => Ok(()),
        Err(error) => Err(error),
    };
    match written {
        Ok(()) => answer,
        Err(_) => ApiError::audit_unavailable().into_response(),
    }
}

/// Refuses at once while the policy store cannot be confirmed (RTO8): a query would only wait for it. It stands below
/// [`record()`], so that refusals are recorded.
pub(crate) async fn require_fresh_policy(State(state): State<AdminState>, request: Request, next: Next) -> Response {
    if state.feed.pin().fresh {
        next.run(request).await
    } else {
        ApiError::policy_unavailable().into_response()
    }
}

/// The organization in the path, if the route has one.
fn org_of(template: &str, path: &str) -> Option<OrgId> {
    let at = template.split('/').position(|part| part == "{org_id}")?;
    path.split('/').nth(at)?.parse().ok()
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

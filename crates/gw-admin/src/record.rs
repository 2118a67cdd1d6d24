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
use gw_http::{AdminCaller, ApiError, CorrelationId};
use gw_types::{ExternalId, OrgId};
use http::Method;
use std::sync::{Arc, OnceLock};

/// Who turned out to be calling; filled by the extractor that found out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Who(Arc<OnceLock<(Option<ExternalId>, AuthMethod)>>);

impl Who {
    pub(crate) fn is(&self, caller: &AdminCaller) {
        let who = match caller {
            AdminCaller::Super | AdminCaller::Operator => (None, AuthMethod::AdminToken),
            AdminCaller::User(admin) => (Some(admin.user.external_id.clone()), AuthMethod::Bearer),
        };
        // A second extractor of one request finds the same caller.
        let _first = self.0.set(who);
    }
}

/// The middleware around every administrative route.
pub(crate) async fn record(State(state): State<AdminState>, mut request: Request, next: Next) -> Response {
    let Ok(mut room) = state.journal.reserve(1) else {
        return ApiError::audit_unavailable().into_response();
    };
    let began = state.clock.now();
    let who = Who::default();
    request.extensions_mut().insert(who.clone());
    let mutates = !matches!(*request.method(), Method::GET | Method::HEAD);
    let path = request.extensions().get::<MatchedPath>().map_or("unmatched", MatchedPath::as_str);
    let method = format!("{} {path}", request.method());
    let org = org_of(path, request.uri().path());
    let ip = state.edge.client(request.extensions(), request.headers()).0;
    let correlation_id = request.extensions().get::<CorrelationId>().map(|id| id.as_str().to_owned());

    let answer = next.run(request).await;

    let mut record = AccessRecord::new(method, answer.status().as_u16());
    if let Some((external_id, auth_method)) = who.0.get() {
        record.external_id.clone_from(external_id);
        record.auth_method = *auth_method;
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

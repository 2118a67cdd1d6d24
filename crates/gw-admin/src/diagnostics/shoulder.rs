//! Looking over somebody's shoulder: who may, and that it is recorded before anything is seen (spec/20 V1, V2; HD7).

use crate::{
    AdminState,
    error::Failure,
    scope::{Admin, ORG_DENIED},
};
use gw_audit::{SecurityEvent, SecurityKind};
use gw_http::ApiError;
use gw_policy::{Snapshot, access::Member, snapshot::User};
use gw_store::record::Impersonation;
use gw_types::{ExternalId, OrgId, UserId};
use serde_json::Value;
use std::sync::Arc;

/// An administrator of an organization and a member of it.
#[derive(Debug)]
pub(super) struct Shoulder {
    pub(super) operator: UserId,
    pub(super) target: Arc<User>,
    pub(super) org: OrgId,
}

/// How somebody looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    DryRun,
    ViewAs,
}

impl Way {
    const fn as_str(self) -> &'static str {
        match self {
            Self::DryRun => "dry_run",
            Self::ViewAs => "view_as",
        }
    }
}

impl Shoulder {
    /// The person who asks, and the organization they administer in full: an accountable person is needed, so no token of
    /// a machine will do (spec/80 section 2 rule 5).
    pub(super) fn operator(admin: &Admin, org: &str) -> Result<(UserId, OrgId), Failure> {
        let operator = admin.require_person()?;
        let org = org.parse::<OrgId>().ok().filter(|org| admin.may_read(*org));
        let org = org.ok_or_else(|| Failure::forbidden(ORG_DENIED))?;
        admin.require_writer_of(org)?;
        Ok((operator, org))
    }

    /// The member whose shoulder it is; whoever is none is not found, known elsewhere or not.
    pub(super) fn of(
        state: &AdminState,
        (operator, org): (UserId, OrgId),
        did: &str,
    ) -> Result<(Self, Arc<Snapshot>), Failure> {
        let pinned = state.feed.pin();
        if !pinned.fresh {
            return Err(ApiError::policy_unavailable().into());
        }
        let (snapshot, now) = (pinned.snapshot, state.clock.now());
        let user = ExternalId::new(did.trim())
            .ok()
            .and_then(|did| snapshot.user_by_external(&did))
            .cloned();
        let member = |user: &Arc<User>| {
            snapshot.has_accepted(user.id, org, now) && Member::new(&snapshot, user.id, now).rights_in(org).is_some()
        };
        let target = user
            .filter(member)
            .ok_or_else(|| Failure::not_found("user not found"))?;
        if target.id == operator {
            return Err(Failure::bad("you are this user: make the call yourself"));
        }
        Ok((Self { operator, target, org }, snapshot))
    }

    /// Records what is about to be seen, in the audit trail and among the security events. What cannot be recorded is not
    /// seen.
    pub(super) async fn record(
        &self,
        state: &AdminState,
        admin: &Admin,
        way: Way,
        what: &str,
        params: &[Value],
    ) -> Result<(), Failure> {
        let unavailable = |_| Failure::from(ApiError::audit_unavailable());
        let params = Value::from(params).to_string();
        let cipher = state
            .key_cipher
            .as_ref()
            .ok_or_else(|| Failure::from(ApiError::audit_unavailable()))?;
        let entry = Impersonation {
            user: self.target.id,
            external_id: self.target.external_id.clone(),
            org: self.org,
            way: way.as_str(),
            what: what.to_owned(),
            params_digest: cipher.digest(params.as_bytes()),
        };
        let mut tx = state.store.begin(&admin.actor()).await.map_err(unavailable)?;
        admin.reauthorize_in(state, &tx).await?;
        tx.note_impersonation(&entry);
        tx.commit().await.map_err(unavailable)?;
        let event = SecurityEvent {
            external_id: Some(self.target.external_id.clone()),
            user_id: Some(self.target.id),
            org_id: Some(self.org),
            ip_address: Some(admin.ip()),
            correlation_id: admin.correlation_id().map(|id| id.to_owned().into()),
            reason: Some(way.as_str().into()),
            ..SecurityEvent::new(SecurityKind::ViewAs)
        };
        let written = match state.journal.append(event) {
            Ok(position) => state.journal.durable(position).await,
            Err(error) => Err(error),
        };
        written.map_err(|_| ApiError::audit_unavailable().into())
    }
}

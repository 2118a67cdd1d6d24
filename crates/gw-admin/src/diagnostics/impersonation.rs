//! An administrator looks at what a member sees: who may, and the records that are written before anything is shown
//! (spec/20 V1, V2; HD7).

use crate::{
    AdminState,
    error::AdminError,
    scope::{Admin, ORG_DENIED},
};
use gw_audit::{SecurityEvent, SecurityKind};
use gw_http::{
    ApiError, ClientAddress,
    simulation::{ImpersonatedCall, ImpersonatedResult},
};
use gw_policy::{Snapshot, access::Principal, snapshot::User};
use gw_store::record;
use gw_types::{ExternalId, OrgId, UserId};
use serde_json::Value;
use std::sync::Arc;

/// A person who administers an organization in full.
#[derive(Clone, Copy, Debug)]
pub(super) struct Impersonator {
    user: UserId,
    org: OrgId,
}

/// An administrator of an organization and a member of it.
#[derive(Debug)]
pub(super) struct Impersonation {
    pub(super) impersonator: UserId,
    pub(super) target: Arc<User>,
    pub(super) org: OrgId,
}

/// A call to make as the member.
#[derive(Debug)]
pub(super) struct MemberCall {
    pub(super) purpose: Purpose,
    pub(super) method: String,
    /// The method as the records name it.
    pub(super) recorded_as: &'static str,
    pub(super) params: Vec<Value>,
}

/// What is about to be shown, as the records name it.
#[derive(Debug)]
pub(super) struct ShownCall<'a> {
    pub(super) purpose: Purpose,
    /// The method, or the route without the values in its path.
    pub(super) name: &'a str,
    /// The parameters. The records contain a keyed digest of them.
    pub(super) params: &'a str,
}

/// What the impersonation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    DryRun,
    ViewAs,
}

impl Purpose {
    const fn as_str(self) -> &'static str {
        match self {
            Self::DryRun => "dry_run",
            Self::ViewAs => "view_as",
        }
    }
}

impl Impersonator {
    /// The caller, if they administer the organization. An accountable person is needed: a token of a machine does not
    /// suffice (spec/80 section 2 rule 5).
    pub(super) fn authorize(admin: &Admin, org: &str) -> Result<Self, AdminError> {
        let user = admin.require_person()?;
        let org = org.parse::<OrgId>().ok().filter(|org| admin.may_read(*org));
        let org = org.ok_or_else(|| AdminError::forbidden(ORG_DENIED))?;
        admin.require_writer_of(org)?;
        Ok(Self { user, org })
    }

    /// The impersonation of the user with this DID, and the snapshot that it was judged on. A user who is not a member
    /// is not found, whether the gateway knows them or not.
    pub(super) fn impersonate(
        self,
        state: &AdminState,
        did: &str,
    ) -> Result<(Impersonation, Arc<Snapshot>), AdminError> {
        let Self {
            user: impersonator,
            org,
        } = self;
        let pinned = state.feed.pin();
        if !pinned.fresh {
            return Err(ApiError::policy_unavailable().into());
        }
        let (snapshot, now) = (pinned.snapshot, state.clock.now());
        let user = ExternalId::new(did.trim())
            .ok()
            .and_then(|did| snapshot.user_by_external(&did))
            .cloned();
        let is_member = |user: &Arc<User>| {
            snapshot.has_accepted(user.id, org, now) && Principal::new(&snapshot, user.id, now).rights_in(org).is_some()
        };
        let target = user
            .filter(is_member)
            .ok_or_else(|| AdminError::not_found("user not found"))?;
        if target.id == impersonator {
            return Err(AdminError::bad_request("you are this user: make the call yourself"));
        }
        Ok((
            Impersonation {
                impersonator,
                target,
                org,
            },
            snapshot,
        ))
    }
}

impl Impersonation {
    /// Records the call, then makes it.
    ///
    /// # Errors
    /// An error if it cannot be recorded, or if it would show what its sender holds.
    pub(super) async fn simulate(
        &self,
        state: &AdminState,
        admin: &Admin,
        member_call: MemberCall,
    ) -> Result<ImpersonatedResult, AdminError> {
        let shown = ShownCall {
            purpose: member_call.purpose,
            name: member_call.recorded_as,
            params: &Value::from(member_call.params.as_slice()).to_string(),
        };
        self.record(state, admin, shown).await?;
        let MemberCall { method, params, .. } = member_call;
        let call = ImpersonatedCall {
            impersonator: self.impersonator,
            target: self.target.id,
            org: self.org,
            method,
            params,
            client: ClientAddress(admin.ip()),
        };
        let result = state.calls.simulate_as(call).await;
        result.map_err(|error| AdminError::bad_request(error.to_string()))
    }

    /// Records what is about to be shown, in the audit trail and among the security events.
    ///
    /// # Errors
    /// An error if it cannot be recorded: nothing may be shown then.
    pub(super) async fn record(
        &self,
        state: &AdminState,
        admin: &Admin,
        call: ShownCall<'_>,
    ) -> Result<(), AdminError> {
        let unavailable = |_| AdminError::from(ApiError::audit_unavailable());
        let cipher = state
            .key_cipher
            .as_ref()
            .ok_or_else(|| AdminError::from(ApiError::audit_unavailable()))?;
        let entry = record::Impersonation {
            user: self.target.id,
            external_id: self.target.external_id.clone(),
            org: self.org,
            way: call.purpose.as_str(),
            what: call.name.to_owned(),
            params_digest: cipher.digest(call.params.as_bytes()),
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
            reason: Some(call.purpose.as_str().into()),
            ..SecurityEvent::new(SecurityKind::ViewAs)
        };
        let written = match state.journal.append(event) {
            Ok(position) => state.journal.durable(position).await,
            Err(error) => Err(error),
        };
        written.map_err(|_| ApiError::audit_unavailable().into())
    }
}

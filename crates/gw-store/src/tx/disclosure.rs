//! Requests and grants of disclosure: the state machines of spec/50 section 3, each transition with its audit entry and
//! its webhook event.
//!
//! Invariant: a decision is never overwritten, and a request never has two grants. Mutations do not interleave, each
//! update names the status from which it starts, and a unique index allows one grant per request (rule 10).

use super::{DisclosureError, Tx, audit::Action, disclosure_audit::GrantChange};
use crate::{
    Conflict, StoreError,
    entity::{disclosure_grants, disclosure_requests, users},
    read::{decidable, overdue_grants, overdue_requests, spent_secrets},
    record::{
        DisclosureApproval, DisclosureGrant, DisclosureRequest, DisclosureSweep, GrantWithRequest, MAX_KEPT_GRANTS,
        MAX_LEGAL_BASIS, MAX_ORG_GRANTS, MAX_OWNER_GRANTS, MAX_REASON, NewDisclosureRequest, WebhookEventType,
    },
    row,
};
use gw_crypto::KeyCipher;
use gw_policy::{
    disclosure::{
        GrantLimits, GrantStatus, RequestActor, RequestStatus, Transition, TransitionError, Trigger, duration,
        scope::{self, level_text},
    },
    snapshot::DisclosureScope,
};
use gw_types::{
    DisclosureGrantId, DisclosureRequestId, ExternalId, GrantSecret, Level, OrgId, SealedGrantSecret, Seconds,
    Timestamp, UserId,
};
use sea_orm::{
    ActiveModelTrait, ActiveValue::Set, ColumnTrait, Condition, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder,
    QuerySelect, sea_query::Expr,
};

/// The reason of grants and requests that end with their owner's or grantee's account.
const USER_DELETED: &str = "user deleted";
/// The reason of grants and requests that end with their organization.
const ORG_DELETED: &str = "organization deleted";

impl Tx {
    /// Creates a pending request.
    ///
    /// # Errors
    /// The [`DisclosureError`] of the first rule that the input breaks; [`DisclosureError::Store`] if the database
    /// fails.
    pub async fn create_disclosure_request(
        &mut self,
        new: NewDisclosureRequest,
    ) -> Result<DisclosureRequest, DisclosureError> {
        let request = self.insert_disclosure_request(new).await?;
        self.add_request_event(WebhookEventType::Requested, &request, None)
            .await?;
        Ok(request)
    }

    /// Grants a disclosure that nobody requested: creates a request and approves it.
    ///
    /// # Errors
    /// As [`Tx::create_disclosure_request`] and [`Tx::approve_disclosure`].
    pub async fn grant_disclosure(
        &mut self,
        new: NewDisclosureRequest,
        approval: &DisclosureApproval,
        limits: GrantLimits,
        cipher: &KeyCipher,
    ) -> Result<GrantWithRequest, DisclosureError> {
        let owner = new.target;
        let request = self.insert_disclosure_request(new).await?;
        let granted = self.approve(request.id, owner, approval, limits, cipher).await?;
        self.add_request_event(WebhookEventType::Granted, &granted.request, Some(granted.grant.id))
            .await?;
        Ok(granted)
    }

    async fn insert_disclosure_request(
        &mut self,
        new: NewDisclosureRequest,
    ) -> Result<DisclosureRequest, DisclosureError> {
        let scope = scope::requested(&new.scope)?;
        check_reason(Some(&new.reason))?;
        if new.reason.trim().is_empty() {
            return Err(DisclosureError::ReasonRequired);
        }
        match new.legal_basis.as_deref() {
            Some(basis) if basis.chars().count() > MAX_LEGAL_BASIS => return Err(DisclosureError::LegalBasisLength),
            None | Some("") if new.requires_legal_basis_for_full && scope.level == Level::Full => {
                return Err(DisclosureError::LegalBasisRequired);
            }
            None | Some(_) => {}
        }
        let expires_at = duration::request_end(new.expires_in_hours, self.now)?;
        let target = users::Entity::find_by_id(new.target.0).one(&self.db).await?;
        let target = target.ok_or(DisclosureError::TargetNotMember)?;
        if !self.read().organizations_of(new.target).await?.contains(&new.org) {
            return Err(DisclosureError::TargetNotMember);
        }
        let requester_did = self.requester_did(new.requester, new.requester_did).await?;
        if requester_did
            .as_ref()
            .is_some_and(|did| did.as_str() == target.external_id)
        {
            return Err(DisclosureError::RequesterIsTarget);
        }
        let row = disclosure_requests::ActiveModel {
            id: Set(self.new_id()),
            requester_user_id: Set(new.requester.map(|user| user.0)),
            requester_did: Set(requester_did.map(|did| did.as_str().to_owned())),
            target_user_id: Set(new.target.0),
            org_id: Set(new.org.0),
            disclosure_level: Set(level_text(scope.level).to_owned()),
            scope: Set(row::scope_column(&scope)?),
            reason: Set(new.reason),
            legal_basis: Set(new.legal_basis),
            status: Set(RequestStatus::Pending.as_str().to_owned()),
            requested_at: Set(self.now.micros()),
            expires_at: Set(expires_at.map(gw_types::Timestamp::micros)),
            decided_at: Set(None),
            decided_by_user_id: Set(None),
            decision_reason: Set(None),
        };
        let request = DisclosureRequest::try_from(row.insert(&self.db).await?)?;
        self.record_audit(Action::Create, Some(request.org), None, Some(&request));
        Ok(request)
    }

    /// Approves a request: it becomes approved, and gets its grant with a new secret, which is encrypted with `cipher`.
    ///
    /// # Errors
    /// [`DisclosureError::UnknownRequest`], [`DisclosureError::NotOwner`], [`DisclosureError::Transition`] if it is not
    /// pending or has expired, [`DisclosureError::Scope`] if the approval discloses more than was requested,
    /// [`DisclosureError::Duration`], [`DisclosureError::TooManyGrants`], [`DisclosureError::TooManyOwnerGrants`],
    /// [`DisclosureError::TooManyKeptGrants`], [`DisclosureError::ReasonLength`], [`DisclosureError::Secret`];
    /// [`DisclosureError::Store`] if the database fails.
    pub async fn approve_disclosure(
        &mut self,
        id: DisclosureRequestId,
        owner: UserId,
        approval: &DisclosureApproval,
        limits: GrantLimits,
        cipher: &KeyCipher,
    ) -> Result<GrantWithRequest, DisclosureError> {
        let approved = self.approve(id, owner, approval, limits, cipher).await?;
        self.add_request_event(WebhookEventType::Approved, &approved.request, Some(approved.grant.id))
            .await?;
        Ok(approved)
    }

    async fn approve(
        &mut self,
        id: DisclosureRequestId,
        owner: UserId,
        approval: &DisclosureApproval,
        limits: GrantLimits,
        cipher: &KeyCipher,
    ) -> Result<GrantWithRequest, DisclosureError> {
        let request = self.owned_request(id, owner).await?;
        let GrantTerms { scope, expires_at } = request.terms(approval, limits, self.now)?;
        if self.read().count_kept_disclosures(owner).await? >= MAX_KEPT_GRANTS {
            return Err(DisclosureError::TooManyKeptGrants);
        }
        if let Some(grantee) = &request.requester_did {
            let active = self
                .read()
                .count_active_disclosures(grantee, request.org, owner)
                .await?;
            if active.of_owner >= MAX_OWNER_GRANTS {
                return Err(DisclosureError::TooManyOwnerGrants);
            }
            if active.of_org >= MAX_ORG_GRANTS {
                return Err(DisclosureError::TooManyGrants);
            }
        }
        let grant_id = DisclosureGrantId(self.new_id());
        let secret = self.new_sealed_secret(grant_id, cipher)?;
        let decided = self
            .decide(&request, RequestStatus::Approved, owner, approval.reason.as_deref())
            .await?;
        let row = disclosure_grants::ActiveModel {
            id: Set(grant_id.0),
            request_id: Set(id.0),
            owner_user_id: Set(request.target.0),
            grantee_did: Set(request.requester_did.as_ref().map(|did| did.as_str().to_owned())),
            org_id: Set(request.org.0),
            disclosure_level: Set(level_text(scope.level).to_owned()),
            scope: Set(row::scope_column(&scope)?),
            include_future_addresses: Set(approval.include_future_addresses),
            granted_at: Set(self.now.micros()),
            expires_at: Set(expires_at.micros()),
            revoked_at: Set(None),
            revoked_reason: Set(None),
            ended_at: Set(None),
            secret: Set(Some(secret.0.to_vec())),
        };
        let row = row.insert(&self.db).await.map_err(StoreError::from);
        let row = row.map_err(|error| match error {
            StoreError::Conflict(Conflict::DisclosureGrant) => TransitionError::NotPending.into(),
            error => DisclosureError::Store(error),
        })?;
        let grant = DisclosureGrant::try_from(row)?;
        self.record_grant(Action::Create, None, Some(&grant));
        Ok(GrantWithRequest {
            grant,
            request: decided,
        })
    }

    /// Rejects a request.
    ///
    /// # Errors
    /// [`DisclosureError::UnknownRequest`], [`DisclosureError::NotOwner`], [`DisclosureError::Transition`],
    /// [`DisclosureError::ReasonLength`]; [`DisclosureError::Store`] if the database fails.
    pub async fn reject_disclosure(
        &mut self,
        id: DisclosureRequestId,
        owner: UserId,
        reason: Option<&str>,
    ) -> Result<DisclosureRequest, DisclosureError> {
        let request = self.owned_request(id, owner).await?;
        request
            .state()
            .transition(Trigger::Reject, RequestActor::Owner, self.now)?;
        check_reason(reason)?;
        let rejected = self.decide(&request, RequestStatus::Rejected, owner, reason).await?;
        self.add_request_event(WebhookEventType::Rejected, &rejected, None)
            .await?;
        Ok(rejected)
    }

    /// Deletes a pending request, for an administrator with full rights in its organization, which the caller checks.
    ///
    /// # Errors
    /// [`DisclosureError::UnknownRequest`], [`DisclosureError::Transition`]; [`DisclosureError::Store`] if the database
    /// fails.
    pub async fn delete_disclosure_request(
        &mut self,
        id: DisclosureRequestId,
    ) -> Result<DisclosureRequest, DisclosureError> {
        let request = self.request(id).await?;
        request
            .state()
            .transition(Trigger::Delete, RequestActor::FullAdmin, self.now)?;
        let deleted = disclosure_requests::Entity::delete_many()
            .filter(disclosure_requests::Column::Id.eq(id.0))
            .filter(decidable(self.now))
            .exec(&self.db)
            .await?;
        if deleted.rows_affected != 1 {
            return Err(TransitionError::DeleteNotPending.into());
        }
        self.record_audit(Action::Delete, Some(request.org), Some(&request), None);
        self.add_request_event(WebhookEventType::Withdrawn, &request, None)
            .await?;
        Ok(request)
    }

    /// Revokes an approved request and its grant, for the owner. A grant that has expired stays so.
    ///
    /// # Errors
    /// [`DisclosureError::UnknownRequest`], [`DisclosureError::NotOwner`], [`DisclosureError::Transition`],
    /// [`DisclosureError::ReasonLength`]; [`DisclosureError::Store`] if the database fails.
    pub async fn revoke_disclosure(
        &mut self,
        id: DisclosureRequestId,
        owner: UserId,
        reason: Option<&str>,
    ) -> Result<DisclosureRequest, DisclosureError> {
        let request = self.owned_request(id, owner).await?;
        request
            .state()
            .transition(Trigger::Revoke, RequestActor::Owner, self.now)?;
        check_reason(reason)?;
        self.require_unexpired(request.id).await?;
        Ok(self.end_approval(&request, reason).await?)
    }

    /// Revokes a grant and its request, for an administrator with full rights in its organization, which the caller
    /// checks. A second revocation keeps the first time and reason.
    ///
    /// # Errors
    /// [`DisclosureError::UnknownGrant`], [`DisclosureError::GrantExpired`], [`DisclosureError::ReasonLength`];
    /// [`DisclosureError::Store`] if the database fails.
    pub async fn revoke_disclosure_grant(
        &mut self,
        id: DisclosureGrantId,
        reason: Option<&str>,
    ) -> Result<(), DisclosureError> {
        let grant = disclosure_grants::Entity::find_by_id(id.0).one(&self.db).await?;
        let grant = DisclosureGrant::try_from(grant.ok_or(DisclosureError::UnknownGrant)?)?;
        let request = self.request(grant.request).await?;
        check_reason(reason)?;
        let transition = request
            .state()
            .transition(Trigger::RevokeGrant, RequestActor::FullAdmin, self.now)?;
        match transition {
            Transition::Revoke => {
                self.require_unexpired(request.id).await?;
                Ok(self.end_approval(&request, reason).await.map(drop)?)
            }
            Transition::Approve | Transition::Reject | Transition::Delete | Transition::Expire | Transition::Keep => {
                Ok(())
            }
        }
    }

    /// Records what has ended: at most `limit` pending requests and `limit` grants; and destroys at most `limit`
    /// secrets of grants that ended `kept` ago or earlier (rule 29). Nothing depends on the time of a sweep except the
    /// destruction: every use checks the end.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn sweep_disclosures(&mut self, kept: Seconds, limit: u64) -> Result<DisclosureSweep, StoreError> {
        let mut sweep = DisclosureSweep::default();
        let requests = disclosure_requests::Entity::find()
            .filter(overdue_requests(self.now))
            .order_by_asc(disclosure_requests::Column::Id)
            .limit(limit);
        for row in requests.all(&self.db).await? {
            let request = DisclosureRequest::try_from(row)?;
            self.expire(&request).await?;
            sweep.requests += 1;
        }
        let ended = disclosure_grants::Entity::find()
            .filter(overdue_grants(self.now))
            .order_by_asc(disclosure_grants::Column::Id)
            .limit(limit);
        for row in ended.all(&self.db).await? {
            let before = DisclosureGrant::try_from(row.clone())?;
            let mut row = row.into_active_model();
            row.ended_at = Set(Some(before.state().end().micros()));
            let after = DisclosureGrant::try_from(row.update(&self.db).await?)?;
            self.record_grant(Action::Update, None, Some(&after));
            self.add_grant_end_event(after.org, after.request, after.id).await?;
            sweep.grants += 1;
        }
        let spent = disclosure_grants::Entity::find()
            .filter(spent_secrets(self.now, kept))
            .order_by_asc(disclosure_grants::Column::Id)
            .limit(limit);
        for row in spent.all(&self.db).await? {
            let before = DisclosureGrant::try_from(row.clone())?;
            let mut row = row.into_active_model();
            row.secret = Set(None);
            let after = DisclosureGrant::try_from(row.update(&self.db).await?)?;
            self.record_grant(Action::Update, Some(&before), Some(&after));
            sweep.destroyed_secrets += 1;
        }
        Ok(sweep)
    }

    /// Encrypts the secrets of these grants anew, those that need the previous encryption key. Returns their number. A
    /// secret that no configured key opens stays as it is.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn renew_grant_secrets(
        &mut self,
        grants: &[DisclosureGrantId],
        cipher: &KeyCipher,
    ) -> Result<u64, StoreError> {
        let mut count = 0;
        for id in grants {
            let Some(row) = disclosure_grants::Entity::find_by_id(id.0).one(&self.db).await? else {
                continue;
            };
            let grant = DisclosureGrant::try_from(row.clone())?;
            let Some(stored) = row.secret.as_deref().and_then(row::sealed_secret) else {
                continue;
            };
            let entropy = &*self.store.config.entropy;
            let Ok(Some(renewed)) = cipher.renewed_grant_secret(*id, &stored, entropy) else {
                continue;
            };
            let mut row = row.into_active_model();
            row.secret = Set(Some(renewed.0.to_vec()));
            row.update(&self.db).await?;
            let entry = GrantChange {
                grant: &grant,
                status: grant.status_at(self.now),
                is_renewed: true,
            };
            self.record_audit(Action::Update, Some(grant.org), None, Some(&entry));
            count += 1;
        }
        Ok(count)
    }

    /// Ends the requests and grants of an organization that is about to be deleted.
    pub(super) async fn end_disclosures_of_org(&mut self, org: OrgId) -> Result<(), StoreError> {
        self.end_disclosures(disclosure_requests::Column::OrgId.eq(org.0).into(), ORG_DELETED)
            .await
    }

    /// Ends the requests and grants of a user who is about to be deleted, as owner and as grantee.
    pub(super) async fn end_disclosures_of_user(&mut self, user: UserId, did: &ExternalId) -> Result<(), StoreError> {
        use disclosure_requests::Column as C;
        let side = Condition::any()
            .add(C::TargetUserId.eq(user.0))
            .add(C::RequesterDid.eq(did.as_str()));
        self.end_disclosures(side, USER_DELETED).await
    }

    async fn end_disclosures(&mut self, which: Condition, reason: &str) -> Result<(), StoreError> {
        use disclosure_requests::Column as C;
        let open = [RequestStatus::Pending, RequestStatus::Approved].map(RequestStatus::as_str);
        let rows = disclosure_requests::Entity::find()
            .filter(which)
            .filter(C::Status.is_in(open))
            .order_by_asc(C::Id)
            .all(&self.db)
            .await?;
        for row in rows {
            let request = DisclosureRequest::try_from(row)?;
            if request.status == RequestStatus::Pending {
                self.expire(&request).await?;
            } else {
                self.end_approval(&request, Some(reason)).await?;
            }
        }
        Ok(())
    }

    /// Stores the owner's decision of a request.
    async fn decide(
        &mut self,
        request: &DisclosureRequest,
        status: RequestStatus,
        owner: UserId,
        reason: Option<&str>,
    ) -> Result<DisclosureRequest, DisclosureError> {
        use disclosure_requests::Column as C;
        let changed = disclosure_requests::Entity::update_many()
            .col_expr(C::Status, Expr::value(status.as_str()))
            .col_expr(C::DecidedAt, Expr::value(self.now.micros()))
            .col_expr(C::DecidedByUserId, Expr::value(owner.0))
            .col_expr(C::DecisionReason, Expr::value(reason.map(str::to_owned)))
            .filter(C::Id.eq(request.id.0))
            .filter(decidable(self.now))
            .exec(&self.db)
            .await?;
        if changed.rows_affected != 1 {
            return Err(TransitionError::NotPending.into());
        }
        let decided = self.request(request.id).await?;
        self.record_audit(Action::Update, Some(request.org), Some(request), Some(&decided));
        Ok(decided)
    }

    /// Revokes an approved request with its grant.
    async fn require_unexpired(&self, request: DisclosureRequestId) -> Result<(), DisclosureError> {
        let row = disclosure_grants::Entity::find()
            .filter(disclosure_grants::Column::RequestId.eq(request.0))
            .one(&self.db)
            .await?;
        let grant = row.map(DisclosureGrant::try_from).transpose()?;
        match grant.map(|grant| grant.status_at(self.now)) {
            Some(GrantStatus::Expired) => Err(DisclosureError::GrantExpired),
            Some(GrantStatus::Active | GrantStatus::Revoked) | None => Ok(()),
        }
    }

    async fn end_approval(
        &mut self,
        request: &DisclosureRequest,
        reason: Option<&str>,
    ) -> Result<DisclosureRequest, StoreError> {
        let grant = self.end_grant(request.id, reason).await?;
        let revoked = self.set_status(request, RequestStatus::Revoked, Action::Revoke).await?;
        self.add_request_event(WebhookEventType::Revoked, &revoked, grant)
            .await?;
        Ok(revoked)
    }

    /// Stores that a request ended without a decision.
    async fn expire(&mut self, request: &DisclosureRequest) -> Result<(), StoreError> {
        let expired = self.set_status(request, RequestStatus::Expired, Action::Update).await?;
        self.add_request_event(WebhookEventType::RequestExpired, &expired, None)
            .await
    }

    /// Revokes the grant of a request, if it is active. Returns the grant, active or not.
    async fn end_grant(
        &mut self,
        request: DisclosureRequestId,
        reason: Option<&str>,
    ) -> Result<Option<DisclosureGrantId>, StoreError> {
        let row = disclosure_grants::Entity::find()
            .filter(disclosure_grants::Column::RequestId.eq(request.0))
            .one(&self.db)
            .await?;
        let Some(row) = row else { return Ok(None) };
        let before = DisclosureGrant::try_from(row.clone())?;
        if before.status_at(self.now) != GrantStatus::Active {
            return Ok(Some(before.id));
        }
        let mut row = row.into_active_model();
        row.revoked_at = Set(Some(self.now.micros()));
        row.revoked_reason = Set(reason.map(str::to_owned));
        row.ended_at = Set(Some(self.now.micros()));
        let after = DisclosureGrant::try_from(row.update(&self.db).await?)?;
        self.record_grant(Action::Revoke, Some(&before), Some(&after));
        Ok(Some(after.id))
    }

    /// Stores a status that is no decision of the owner.
    async fn set_status(
        &mut self,
        request: &DisclosureRequest,
        status: RequestStatus,
        action: Action,
    ) -> Result<DisclosureRequest, StoreError> {
        use disclosure_requests::Column as C;
        disclosure_requests::Entity::update_many()
            .col_expr(C::Status, Expr::value(status.as_str()))
            .filter(C::Id.eq(request.id.0))
            .filter(C::Status.eq(request.status.as_str()))
            .exec(&self.db)
            .await?;
        let after = DisclosureRequest {
            status,
            ..request.clone()
        };
        self.record_audit(action, Some(request.org), Some(request), Some(&after));
        Ok(after)
    }

    async fn request(&self, id: DisclosureRequestId) -> Result<DisclosureRequest, DisclosureError> {
        let row = disclosure_requests::Entity::find_by_id(id.0).one(&self.db).await?;
        Ok(row.ok_or(DisclosureError::UnknownRequest)?.try_into()?)
    }

    async fn owned_request(
        &self,
        id: DisclosureRequestId,
        owner: UserId,
    ) -> Result<DisclosureRequest, DisclosureError> {
        let request = self.request(id).await?;
        if request.target == owner {
            Ok(request)
        } else {
            Err(DisclosureError::NotOwner)
        }
    }

    /// Returns the DID of the grantee (rule 8).
    async fn requester_did(
        &self,
        user: Option<UserId>,
        did: Option<ExternalId>,
    ) -> Result<Option<ExternalId>, DisclosureError> {
        let Some(user) = user else { return Ok(did) };
        let stored = self.read().find_user(user).await?;
        let stored = stored.ok_or(DisclosureError::UnknownRequester)?.external_id;
        if did.is_some_and(|did| did != stored) {
            return Err(DisclosureError::RequesterMismatch);
        }
        Ok(Some(stored))
    }

    fn new_sealed_secret(
        &self,
        grant: DisclosureGrantId,
        cipher: &KeyCipher,
    ) -> Result<SealedGrantSecret, DisclosureError> {
        let entropy = &*self.store.config.entropy;
        let mut bytes = [0; 32];
        entropy.fill(&mut bytes);
        cipher
            .seal_grant_secret(grant, &GrantSecret::new(bytes), entropy)
            .map_err(|_| DisclosureError::Secret)
    }

    fn record_grant(&mut self, action: Action, before: Option<&DisclosureGrant>, after: Option<&DisclosureGrant>) {
        let now = self.now;
        let change = |grant| GrantChange {
            grant,
            status: grant.status_at(now),
            is_renewed: false,
        };
        let (before, after) = (before.map(change), after.map(change));
        let org = after.as_ref().or(before.as_ref()).map(|change| change.grant.org);
        self.record_audit(action, org, before.as_ref(), after.as_ref());
    }
}

/// What a grant covers, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantTerms {
    /// What it covers.
    pub scope: DisclosureScope,
    /// When it ends.
    pub expires_at: Timestamp,
}

impl DisclosureRequest {
    /// The grant that this approval makes at `now`, as far as the request decides it.
    ///
    /// # Errors
    /// [`DisclosureError::Transition`] if the request is not pending or has expired, [`DisclosureError::ReasonLength`],
    /// [`DisclosureError::Scope`] if the approval discloses more than was requested, [`DisclosureError::Duration`].
    pub fn terms(
        &self,
        approval: &DisclosureApproval,
        limits: GrantLimits,
        now: Timestamp,
    ) -> Result<GrantTerms, DisclosureError> {
        self.state().transition(Trigger::Approve, RequestActor::Owner, now)?;
        check_reason(approval.reason.as_deref())?;
        Ok(GrantTerms {
            scope: scope::approved(&self.scope, &approval.scope)?,
            expires_at: duration::grant_end(approval.duration_hours, limits, now)?,
        })
    }
}

fn check_reason(reason: Option<&str>) -> Result<(), DisclosureError> {
    if reason.is_some_and(|reason| reason.chars().count() > MAX_REASON) {
        return Err(DisclosureError::ReasonLength);
    }
    Ok(())
}

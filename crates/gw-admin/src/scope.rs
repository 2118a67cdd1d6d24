//! What a caller may read and change: the scope and opacity rules of spec/80 §2 and §3.
//!
//! The super token gets a 404 for an unknown object. All other callers get a 403 with the same bytes for an unknown
//! object and for an object of another organization.

use crate::{
    AdminState,
    error::AdminError,
    input,
    private::{self, AddressView},
    record::CallerSlot,
    wire,
};
use axum::extract::{FromRef, FromRequestParts};
use gw_http::{AdminCaller, ApiError, CorrelationId, HttpContext, KnownQueries, Page, admin::AdminUser};
use gw_policy::snapshot;
use gw_store::{
    Actor, Queries, Tx,
    read::{GroupWithAccess, Paging, Scope},
    record::{Contract, Organization, User},
};
use gw_types::{Claim, DenyReason, GroupId, OrgId, UserId};
use http::request::Parts;
use std::{net::IpAddr, sync::Arc};

/// The 403 text for an organization.
pub(crate) const ORG_DENIED: &str = "access denied to this organization";
/// The 403 text for a user and for the objects of a user.
pub(crate) const TARGET_DENIED: &str = "access denied to target resource";
/// The 403 text for a group named in a body.
pub(crate) const GROUP_DENIED: &str = "access denied to target group";

/// The administrator of a request, and where the request came from.
#[derive(Debug)]
pub(crate) struct Admin {
    caller: AdminCaller,
    ip: IpAddr,
    correlation_id: Option<String>,
    caller_slot: Option<CallerSlot>,
}

impl<S> FromRequestParts<S> for Admin
where
    S: Send + Sync,
    Arc<HttpContext>: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let context = Arc::<HttpContext>::from_ref(state);
        let client = context.client(&parts.extensions, &parts.headers);
        let caller = AdminCaller::authenticate(&context, client, &parts.headers)?;
        let caller_slot = parts.extensions.get::<CallerSlot>().cloned();
        if let Some(caller_slot) = &caller_slot {
            caller_slot.set(&caller);
        }
        // The query is checked after authentication, so that callers without access learn no parameter names.
        if let Some(known) = parts.extensions.get::<KnownQueries>() {
            known.check_request(parts)?;
        }
        let correlation_id = parts.extensions.get::<CorrelationId>().map(|id| id.as_str().to_owned());
        Ok(Self {
            caller,
            ip: client.0,
            correlation_id,
            caller_slot,
        })
    }
}

/// Converts a page of the HTTP API to the store's paging.
pub(crate) fn paging<const DEFAULT: u32>(page: Page<DEFAULT>) -> Paging {
    Paging {
        limit: u64::from(page.limit),
        offset: page.offset,
    }
}

/// The organizations whose rows the administrator reads.
pub(crate) fn orgs_of(admin: &AdminUser) -> Scope {
    Scope::Orgs(admin.full.iter().chain(&admin.readonly).copied().collect())
}

/// Whether an object is requested for reading or for changing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// A user, and the organizations on whose behalf the caller reads or changes them.
#[derive(Debug)]
pub(crate) struct KnownUser {
    pub(crate) user: User,
    /// Empty for the platform: the account itself.
    pub(crate) orgs: Vec<OrgId>,
}

impl KnownUser {
    /// The user as these organizations know them: their own records. What the platform knows about the user is included
    /// only if the user accepted a membership.
    pub(crate) async fn into_wire(self, reads: &Queries<'_>) -> Result<wire::User, AdminError> {
        let Self { user, orgs } = self;
        if orgs.is_empty() {
            return Ok(user.into());
        }
        let records = reads.org_user_records(&user.external_id, &orgs).await?;
        let memberships = reads.list_memberships(user.id, &Scope::Orgs(orgs)).await?;
        let memberships: Vec<_> = memberships.into_iter().map(|item| item.membership).collect();
        Ok(wire::User::in_orgs(user, &memberships, &records))
    }
}

/// Whether rows of `org` are in `scope`.
pub(crate) fn covers(scope: &Scope, org: OrgId) -> bool {
    match scope {
        Scope::All => true,
        Scope::Orgs(orgs) => orgs.contains(&org),
    }
}

impl Admin {
    pub(crate) fn is_super(&self) -> bool {
        self.caller.is_super()
    }

    /// The id of the administrator; `None` for a platform token.
    pub(crate) fn user_id(&self) -> Option<UserId> {
        match &self.caller {
            AdminCaller::User(admin) => Some(admin.user.id),
            AdminCaller::Super | AdminCaller::Operator => None,
        }
    }

    /// Requires a person rather than a platform token: a person is accountable (spec/80 section 2 rule 5).
    pub(crate) fn require_person(&self) -> Result<UserId, ApiError> {
        self.caller.require_user().map(|admin| admin.user.id)
    }

    /// The organization of the administrator if there is exactly one; the default for a missing `org_id`.
    pub(crate) fn only_org(&self) -> Result<OrgId, AdminError> {
        match &self.caller {
            AdminCaller::User(admin) if admin.full.len() == 1 => admin.full.first().copied(),
            AdminCaller::User(_) | AdminCaller::Super | AdminCaller::Operator => None,
        }
        .ok_or_else(|| AdminError::bad_request("org_id is required"))
    }

    /// Whether the caller may read the administration of the organization.
    pub(crate) fn may_read(&self, org: OrgId) -> bool {
        self.caller.may_read(org)
    }

    /// Requires a caller who administers this organization in full. Rights in other organizations do not count.
    pub(crate) fn require_writer_of(&self, org: OrgId) -> Result<(), ApiError> {
        if self.caller.may_write(org) {
            Ok(())
        } else {
            Err(read_only())
        }
    }

    /// The addresses that this caller may see.
    pub(crate) fn address_view<'s>(
        &self,
        state: &'s AdminState,
        snapshot: &'s snapshot::Snapshot,
        scope: &'s Scope,
    ) -> AddressView<'s> {
        AddressView::new(
            snapshot,
            scope,
            self.user_id(),
            state.clock.now(),
            &state.policy_settings,
        )
    }

    /// Adds a search term to the access record of the request. The record holds a keyed digest of it.
    pub(crate) fn record_search_term(&self, name: &str, term: &str) {
        if let Some(caller_slot) = &self.caller_slot {
            caller_slot.record_search_term(name, term);
        }
    }

    /// The correlation id of the request.
    pub(crate) fn correlation_id(&self) -> Option<&str> {
        self.correlation_id.as_deref()
    }

    /// The client address of the administrator.
    pub(crate) fn ip(&self) -> IpAddr {
        self.ip
    }

    /// The actor of audit entries.
    pub(crate) fn actor(&self) -> Actor {
        let actor = match &self.caller {
            AdminCaller::Super => Actor::named(Actor::SUPER_ADMIN),
            AdminCaller::Operator => Actor::named(Actor::OPERATOR),
            AdminCaller::User(admin) => Actor::user(admin.user.id, &admin.user.external_id),
        };
        actor.from_request(Some(self.ip), self.correlation_id.clone())
    }

    /// Starts a mutation by this administrator and authorizes them again by everything committed before it. No other
    /// mutation changes the policy until it ends (HD20).
    pub(crate) async fn begin(&self, state: &AdminState) -> Result<Tx, AdminError> {
        let tx = state.store.begin(&self.actor()).await?;
        self.reauthorize_in(state, &tx).await?;
        Ok(tx)
    }

    /// Authorizes the administrator again by the policy of an open mutation (HD20).
    ///
    /// # Errors
    /// 401 or 403 if the administrator lost rights since the request began.
    pub(crate) async fn reauthorize_in(&self, state: &AdminState, tx: &Tx) -> Result<(), AdminError> {
        if state.feed.epoch() < tx.head() {
            state.feed.catch_up_to(tx.head()).await;
        }
        Ok(self.caller.reauthorize(&state.http_context)?)
    }

    /// The denial reason that this administrator may read. Organization administrators read one reason for another
    /// organization's contract and for an unregistered address (T2, HD30).
    pub(crate) fn visible_reason(&self, reason: DenyReason) -> DenyReason {
        if self.is_super() {
            reason
        } else {
            private::reason(reason)
        }
    }

    pub(crate) fn require_super(&self) -> Result<(), ApiError> {
        self.caller.require_super()
    }

    /// Requires super or the operator token: the operator also manages the life cycle of organizations.
    pub(crate) fn require_super_or_operator(&self) -> Result<(), ApiError> {
        match self.caller {
            AdminCaller::Super | AdminCaller::Operator => Ok(()),
            AdminCaller::User(_) => Err(ApiError::forbidden("insufficient permissions")),
        }
    }

    /// Requires a caller who may change at least one organization.
    pub(crate) fn require_writer(&self) -> Result<(), ApiError> {
        match &self.caller {
            AdminCaller::Super => Ok(()),
            AdminCaller::Operator => Err(ApiError::forbidden("insufficient permissions")),
            AdminCaller::User(admin) if admin.full.is_empty() => Err(read_only()),
            AdminCaller::User(_) => Ok(()),
        }
    }

    /// The organizations whose rows the caller reads. The operator token reads no tenant's data.
    pub(crate) fn scope(&self) -> Result<Scope, ApiError> {
        match &self.caller {
            AdminCaller::Super => Ok(Scope::All),
            AdminCaller::Operator => Err(ApiError::forbidden("insufficient permissions")),
            AdminCaller::User(admin) => Ok(orgs_of(admin)),
        }
    }

    /// As [`Self::scope`], for the organization records themselves: the operator token manages all of them.
    pub(crate) fn scope_or_operator(&self) -> Scope {
        self.scope().unwrap_or(Scope::All)
    }

    fn denied_org(&self) -> AdminError {
        if self.is_super() {
            AdminError::not_found("organization not found")
        } else {
            AdminError::forbidden(ORG_DENIED)
        }
    }

    /// The error for a user, membership or link that does not exist or that the caller may not know of.
    pub(crate) fn unknown_target(&self, what: &'static str) -> AdminError {
        if self.is_super() {
            AdminError::not_found(what)
        } else {
            AdminError::forbidden(TARGET_DENIED)
        }
    }

    async fn org(
        &self,
        state: &AdminState,
        org: &str,
        allowed: impl Fn(OrgId) -> bool,
    ) -> Result<Organization, AdminError> {
        let Ok(id) = org.parse::<OrgId>() else {
            return Err(self.denied_org());
        };
        if !allowed(id) {
            return Err(AdminError::forbidden(ORG_DENIED));
        }
        state
            .store
            .read()
            .find_organization(id)
            .await?
            .ok_or_else(|| self.denied_org())
    }

    /// An organization whose administration the caller may read.
    pub(crate) async fn readable_org(&self, state: &AdminState, org: &str) -> Result<Organization, AdminError> {
        self.org(state, org, |id| self.caller.may_read(id)).await
    }

    /// As [`Self::readable_org`]; the operator token may name any organization.
    pub(crate) async fn readable_org_or_operator(
        &self,
        state: &AdminState,
        org: &str,
    ) -> Result<Organization, AdminError> {
        if matches!(self.caller, AdminCaller::Operator) {
            return self.org(state, org, |_| true).await;
        }
        self.readable_org(state, org).await
    }

    /// An organization that the caller may change. Of the system organizations only the default one may be changed.
    pub(crate) async fn writable_org(&self, state: &AdminState, org: &str) -> Result<Organization, AdminError> {
        let org = self.writable_or_system_org(state, org).await?;
        if org.id == snapshot::Organization::ANONYMOUS {
            return Err(AdminError::forbidden("system rows cannot be changed"));
        }
        Ok(org)
    }

    /// As [`Self::writable_org`], with all system organizations: for the access of their groups (A3).
    pub(crate) async fn writable_or_system_org(
        &self,
        state: &AdminState,
        org: &str,
    ) -> Result<Organization, AdminError> {
        let org = self.readable_org(state, org).await?;
        if self.caller.may_write(org.id) {
            Ok(org)
        } else {
            Err(read_only().into())
        }
    }

    /// A group of an organization that the caller may see. A group of another organization is unknown here.
    pub(crate) async fn group_of(
        &self,
        reads: &Queries<'_>,
        org: &Organization,
        group: &str,
    ) -> Result<GroupWithAccess, AdminError> {
        let group_access = match group.parse::<GroupId>() {
            Ok(id) => reads.find_access(id).await?,
            Err(_) => None,
        };
        group_access.filter(|g| g.group.org == org.id).ok_or_else(|| {
            if self.is_super() {
                AdminError::not_found("group not found")
            } else {
                AdminError::forbidden(TARGET_DENIED)
            }
        })
    }

    /// A group named in a body, of any organization that the caller may change. Administrator groups need super.
    pub(crate) async fn target_group(&self, reads: &Queries<'_>, group: &str) -> Result<GroupWithAccess, AdminError> {
        let id = input::id::<GroupId>(group, "group_id")?;
        let group = reads
            .find_access(id)
            .await?
            .filter(|g| self.caller.may_write(g.group.org));
        let group = group.ok_or_else(|| {
            if self.is_super() {
                AdminError::not_found("group not found")
            } else {
                AdminError::forbidden(GROUP_DENIED)
            }
        })?;
        self.require_super_for_admin_group(&group)?;
        Ok(group)
    }

    /// Requires super if the group makes its members administrators (C4, spec/80 §6 rule 5).
    pub(crate) fn require_super_for_admin_group(&self, group: &GroupWithAccess) -> Result<(), AdminError> {
        if group.group.is_org_admin || group.access.claims.has(Claim::Admin) {
            self.require_super()?;
        }
        Ok(())
    }

    /// Requires super for a change that ends administrative rights by this group, read-only ones included (C4). This
    /// covers the end of a membership and every other way to end the rights.
    pub(crate) fn may_disempower(&self, group: &GroupWithAccess) -> Result<(), AdminError> {
        if group.group.is_org_readonly_admin {
            self.require_super()?;
        }
        self.require_super_for_admin_group(group)
    }

    /// Requires super for a change that ends the administrative powers of all members of a group (C4).
    pub(crate) async fn may_disempower_all(
        &self,
        reads: &Queries<'_>,
        group: &GroupWithAccess,
    ) -> Result<(), AdminError> {
        if group.group.is_org_readonly_admin && reads.has_members(group.group.id).await? {
            self.require_super()?;
        }
        self.require_super_for_admin_group(group)
    }

    /// Requires super for a ban or a withdrawn KYC mark if the user has administrative rights in these organizations
    /// (C4).
    pub(crate) async fn may_disempower_in(
        &self,
        reads: &Queries<'_>,
        user: UserId,
        orgs: &[OrgId],
    ) -> Result<(), AdminError> {
        if self.is_super() {
            return Ok(());
        }
        for item in reads.list_memberships(user, &Scope::Orgs(orgs.to_vec())).await? {
            if item.membership.has_ended(reads.now()) {
                continue;
            }
            if let Some(group) = reads.find_access(item.group.id).await? {
                self.may_disempower(&group)?;
            }
        }
        Ok(())
    }

    /// A user who accepted a membership in an organization whose administration the caller may read (HD32).
    pub(crate) async fn readable_user(&self, reads: &Queries<'_>, user: &str) -> Result<User, AdminError> {
        let scope = self.scope()?;
        self.user(reads, user, |org| covers(&scope, org)).await
    }

    /// A user who accepted a membership in an organization that the caller may change.
    pub(crate) async fn writable_user(&self, reads: &Queries<'_>, user: &str) -> Result<User, AdminError> {
        self.user(reads, user, |org| self.caller.may_write(org)).await
    }

    async fn user(
        &self,
        reads: &Queries<'_>,
        user: &str,
        in_scope: impl Fn(OrgId) -> bool,
    ) -> Result<User, AdminError> {
        let user = match user.parse::<UserId>() {
            Ok(id) => reads.find_user(id).await?,
            Err(_) => None,
        };
        let Some(user) = user else {
            return Err(self.unknown_target("user not found"));
        };
        if self.is_super() || reads.organizations_of(user.id).await?.into_iter().any(in_scope) {
            return Ok(user);
        }
        Err(self.unknown_target("user not found"))
    }

    /// Requires super for a change that binds in every organization (A11). Whether the user is a member of other
    /// organizations makes no difference: otherwise the answer would reveal it (HD40).
    pub(crate) fn require_platform_wide(&self) -> Result<(), AdminError> {
        if self.is_super() {
            Ok(())
        } else {
            Err(AdminError::forbidden(TARGET_DENIED))
        }
    }

    /// A user whom one of the caller's organizations knows, whether the user accepted a membership or not. Only what
    /// the organizations themselves gave to and noted about the user may be shown or changed. `org` names one of the
    /// organizations.
    pub(crate) async fn known_user(
        &self,
        reads: &Queries<'_>,
        user: &str,
        org: Option<&str>,
        access: Access,
    ) -> Result<KnownUser, AdminError> {
        let unknown = || self.unknown_target("user not found");
        let user = match user.parse::<UserId>() {
            Ok(id) => reads.find_user(id).await?,
            Err(_) => None,
        };
        let user = user.ok_or_else(unknown)?;
        let requested_org = match org.filter(|text| !text.is_empty()) {
            Some(text) => Some(text.parse::<OrgId>().map_err(|_| self.denied_org())?),
            None => None,
        };
        if self.is_super() {
            if let Some(org) = requested_org
                && reads.find_organization(org).await?.is_none()
            {
                return Err(self.denied_org());
            }
            return Ok(KnownUser {
                user,
                orgs: requested_org.into_iter().collect(),
            });
        }
        let in_scope = |org: &OrgId| match access {
            Access::Read => self.caller.may_read(*org),
            Access::Write => self.caller.may_write(*org),
        };
        let mut orgs = reads.organizations_knowing(user.id).await?;
        orgs.retain(|org| in_scope(org) && requested_org.is_none_or(|requested| requested == *org));
        if orgs.is_empty() {
            Err(unknown())
        } else {
            Ok(KnownUser { user, orgs })
        }
    }

    /// A contract of an organization that the caller may see.
    pub(crate) async fn contract_of(
        &self,
        reads: &Queries<'_>,
        org: &Organization,
        address: &str,
    ) -> Result<Contract, AdminError> {
        let address = input::address(address)?;
        let contract = reads.find_contract(address).await?;
        contract
            .filter(|c| c.org == org.id)
            .ok_or_else(|| AdminError::not_found("contract not found"))
    }
}

fn read_only() -> ApiError {
    ApiError::forbidden("mutating actions are restricted for read-only admins")
}

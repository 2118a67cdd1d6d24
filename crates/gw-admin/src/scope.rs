//! What a caller may touch: the scope and opacity rules of spec/80 §2 and §3, in one place.
//!
//! For the super token the unknown is an honest 404. For everybody else the unknown and the foreign are one 403,
//! byte for byte.

use crate::{
    AdminState,
    error::Failure,
    input,
    private::{self, AddressView},
    record::CallerSlot,
    wire,
};
use axum::extract::{FromRef, FromRequestParts};
use gw_http::{AdminCaller, ApiError, CorrelationId, Edge, KnownQueries, Page, admin::AdminUser};
use gw_policy::snapshot;
use gw_store::{
    Actor, Reads, Tx,
    read::{GroupWithAccess, Paging, Scope},
    record::{Contract, Organization, User},
};
use gw_types::{Claim, DenyReason, GroupId, OrgId, UserId};
use http::request::Parts;
use std::{net::IpAddr, sync::Arc};

/// The refusal for an organization.
pub(crate) const ORG_DENIED: &str = "access denied to this organization";
/// The refusal for a user, or something of a user.
pub(crate) const TARGET_DENIED: &str = "access denied to target resource";
/// The refusal for a group named in a body.
pub(crate) const GROUP_DENIED: &str = "access denied to target group";

/// The administrator of a request, and where the request came from.
#[derive(Debug)]
pub(crate) struct Admin {
    caller: AdminCaller,
    ip: IpAddr,
    correlation_id: Option<String>,
    who: Option<CallerSlot>,
}

impl<S> FromRequestParts<S> for Admin
where
    S: Send + Sync,
    Arc<Edge>: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let edge = Arc::<Edge>::from_ref(state);
        let client = edge.client(&parts.extensions, &parts.headers);
        let caller = AdminCaller::of(&edge, client, &parts.headers)?;
        let who = parts.extensions.get::<CallerSlot>().cloned();
        if let Some(who) = &who {
            who.is(&caller);
        }
        // Here rather than in front: who may not come in at all is not told how to ask.
        if let Some(known) = parts.extensions.get::<KnownQueries>() {
            known.check_request(parts)?;
        }
        let correlation_id = parts.extensions.get::<CorrelationId>().map(|id| id.as_str().to_owned());
        Ok(Self {
            caller,
            ip: client.0,
            correlation_id,
            who,
        })
    }
}

/// The store's form of a page.
pub(crate) fn paging<const DEFAULT: u32>(page: Page<DEFAULT>) -> Paging {
    Paging {
        limit: u64::from(page.limit),
        offset: page.offset,
    }
}

/// The organizations whose rows a person reads.
pub(crate) fn orgs_of(admin: &AdminUser) -> Scope {
    Scope::Orgs(admin.full.iter().chain(&admin.readonly).copied().collect())
}

/// What is to be done with what is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// A user, and for which organizations the caller asks about them.
#[derive(Debug)]
pub(crate) struct KnownUser {
    pub(crate) user: User,
    /// None of them: for the platform.
    pub(crate) orgs: Vec<OrgId>,
}

impl KnownUser {
    /// The user as these organizations know them: their own record, and what the platform says of them only once the user
    /// agreed to be a member.
    pub(crate) async fn shown(self, reads: &Reads<'_>) -> Result<wire::User, Failure> {
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

    /// Which user the administrator is, if it is one.
    pub(crate) fn user_id(&self) -> Option<UserId> {
        match &self.caller {
            AdminCaller::User(admin) => Some(admin.user.id),
            AdminCaller::Super | AdminCaller::Operator => None,
        }
    }

    /// Somebody accountable: a person, not a token of a machine (spec/80 section 2 rule 5).
    pub(crate) fn require_person(&self) -> Result<UserId, ApiError> {
        self.caller.require_user().map(|admin| admin.user.id)
    }

    /// The organization of an administrator of one.
    pub(crate) fn only_org(&self) -> Result<OrgId, Failure> {
        match &self.caller {
            AdminCaller::User(admin) if admin.full.len() == 1 => admin.full.first().copied(),
            AdminCaller::User(_) | AdminCaller::Super | AdminCaller::Operator => None,
        }
        .ok_or_else(|| Failure::bad("org_id is required"))
    }

    /// Whether the administration of the organization is theirs to read.
    pub(crate) fn may_read(&self, org: OrgId) -> bool {
        self.caller.may_read(org)
    }

    /// Somebody who administers this organization in full; powers in another one do not count.
    pub(crate) fn require_writer_of(&self, org: OrgId) -> Result<(), ApiError> {
        if self.caller.may_write(org) {
            Ok(())
        } else {
            Err(read_only())
        }
    }

    /// What this caller may be told of addresses.
    pub(crate) fn address_view<'s>(
        &self,
        state: &'s AdminState,
        snapshot: &'s snapshot::Snapshot,
        scope: &'s Scope,
    ) -> AddressView<'s> {
        AddressView::new(snapshot, scope, self.user_id(), state.clock.now(), &state.knobs)
    }

    /// Adds what was looked for to the record of the request, as a keyed digest.
    pub(crate) fn looked_for(&self, name: &str, term: &str) {
        if let Some(who) = &self.who {
            who.looked_for(name, term);
        }
    }

    /// The correlation id of the request.
    pub(crate) fn correlation_id(&self) -> Option<&str> {
        self.correlation_id.as_deref()
    }

    /// Where the administrator is.
    pub(crate) fn ip(&self) -> IpAddr {
        self.ip
    }

    /// For audit entries.
    pub(crate) fn actor(&self) -> Actor {
        let actor = match &self.caller {
            AdminCaller::Super => Actor::named(Actor::SUPER_ADMIN),
            AdminCaller::Operator => Actor::named(Actor::OPERATOR),
            AdminCaller::User(admin) => Actor::user(admin.user.id, &admin.user.external_id),
        };
        actor.from_request(Some(self.ip), self.correlation_id.clone())
    }

    /// Starts a mutation by this administrator, judged inside it by everything that was committed before: nothing else
    /// changes the policy until it ends (HD20).
    pub(crate) async fn begin(&self, state: &AdminState) -> Result<Tx, Failure> {
        let tx = state.store.begin(&self.actor()).await?;
        self.reauthorize_in(state, &tx).await?;
        Ok(tx)
    }

    /// Authorizes the administrator again by the policy of an open mutation (HD20).
    ///
    /// # Errors
    /// 401 or 403 if the administrator lost rights since the request began.
    pub(crate) async fn reauthorize_in(&self, state: &AdminState, tx: &Tx) -> Result<(), Failure> {
        if state.feed.epoch() < tx.head() {
            state.feed.catch_up_to(tx.head()).await;
        }
        Ok(self.caller.reauthorize(&state.edge)?)
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

    /// The life cycle of organizations is the operator's too.
    pub(crate) fn require_super_or_operator(&self) -> Result<(), ApiError> {
        match self.caller {
            AdminCaller::Super | AdminCaller::Operator => Ok(()),
            AdminCaller::User(_) => Err(ApiError::forbidden("insufficient permissions")),
        }
    }

    /// Somebody who may change anything at all.
    pub(crate) fn require_writer(&self) -> Result<(), ApiError> {
        match &self.caller {
            AdminCaller::Super => Ok(()),
            AdminCaller::Operator => Err(ApiError::forbidden("insufficient permissions")),
            AdminCaller::User(admin) if admin.full.is_empty() => Err(read_only()),
            AdminCaller::User(_) => Ok(()),
        }
    }

    /// Whose rows the caller reads. The operator reads no tenant's data.
    pub(crate) fn scope(&self) -> Result<Scope, ApiError> {
        match &self.caller {
            AdminCaller::Super => Ok(Scope::All),
            AdminCaller::Operator => Err(ApiError::forbidden("insufficient permissions")),
            AdminCaller::User(admin) => Ok(orgs_of(admin)),
        }
    }

    /// The same for organization records themselves, which the operator manages.
    pub(crate) fn scope_or_operator(&self) -> Scope {
        self.scope().unwrap_or(Scope::All)
    }

    fn denied_org(&self) -> Failure {
        if self.is_super() {
            Failure::not_found("organization not found")
        } else {
            Failure::forbidden(ORG_DENIED)
        }
    }

    /// The answer for a user, membership or link that is not there, or not the caller's to know of.
    pub(crate) fn unknown_target(&self, what: &'static str) -> Failure {
        if self.is_super() {
            Failure::not_found(what)
        } else {
            Failure::forbidden(TARGET_DENIED)
        }
    }

    async fn org(
        &self,
        state: &AdminState,
        org: &str,
        allowed: impl Fn(OrgId) -> bool,
    ) -> Result<Organization, Failure> {
        let Ok(id) = org.parse::<OrgId>() else {
            return Err(self.denied_org());
        };
        if !allowed(id) {
            return Err(Failure::forbidden(ORG_DENIED));
        }
        state
            .store
            .read()
            .find_organization(id)
            .await?
            .ok_or_else(|| self.denied_org())
    }

    /// An organization whose administration the caller may read.
    pub(crate) async fn readable_org(&self, state: &AdminState, org: &str) -> Result<Organization, Failure> {
        self.org(state, org, |id| self.caller.may_read(id)).await
    }

    /// The same, and any for the operator.
    pub(crate) async fn readable_org_or_operator(
        &self,
        state: &AdminState,
        org: &str,
    ) -> Result<Organization, Failure> {
        if matches!(self.caller, AdminCaller::Operator) {
            return self.org(state, org, |_| true).await;
        }
        self.readable_org(state, org).await
    }

    /// An organization that the caller may change; never a system one but the default organization.
    pub(crate) async fn writable_org(&self, state: &AdminState, org: &str) -> Result<Organization, Failure> {
        let found = self.writable_or_system_org(state, org).await?;
        if found.id == snapshot::Organization::ANONYMOUS {
            return Err(Failure::forbidden("system rows cannot be changed"));
        }
        Ok(found)
    }

    /// The same, system organizations included: for the access of their groups (A3).
    pub(crate) async fn writable_or_system_org(&self, state: &AdminState, org: &str) -> Result<Organization, Failure> {
        let found = self.readable_org(state, org).await?;
        if self.caller.may_write(found.id) {
            Ok(found)
        } else {
            Err(read_only().into())
        }
    }

    /// A group of an organization that the caller was let into; a group of another one is unknown here.
    pub(crate) async fn group_of(
        &self,
        reads: &Reads<'_>,
        org: &Organization,
        group: &str,
    ) -> Result<GroupWithAccess, Failure> {
        let found = match group.parse::<GroupId>() {
            Ok(id) => reads.find_access(id).await?,
            Err(_) => None,
        };
        found.filter(|g| g.group.org == org.id).ok_or_else(|| {
            if self.is_super() {
                Failure::not_found("group not found")
            } else {
                Failure::forbidden(TARGET_DENIED)
            }
        })
    }

    /// A group named in a body, of any organization that the caller may change.
    pub(crate) async fn target_group(&self, reads: &Reads<'_>, group: &str) -> Result<GroupWithAccess, Failure> {
        let id = input::id::<GroupId>(group, "group_id")?;
        let found = reads
            .find_access(id)
            .await?
            .filter(|g| self.caller.may_write(g.group.org));
        let found = found.ok_or_else(|| {
            if self.is_super() {
                Failure::not_found("group not found")
            } else {
                Failure::forbidden(GROUP_DENIED)
            }
        })?;
        self.may_touch(&found)?;
        Ok(found)
    }

    /// C4, spec/80 §6 rule 5: groups that make administrators are super's, in every way.
    pub(crate) fn may_touch(&self, group: &GroupWithAccess) -> Result<(), Failure> {
        if group.group.is_org_admin || group.access.claims.has(Claim::Admin) {
            self.require_super()?;
        }
        Ok(())
    }

    /// C4: the powers of administrators, read-only ones too, end by super's act only: a membership in a group that gives
    /// them, and in every other way.
    pub(crate) fn may_disempower(&self, group: &GroupWithAccess) -> Result<(), Failure> {
        if group.group.is_org_readonly_admin {
            self.require_super()?;
        }
        self.may_touch(group)
    }

    /// Requires super for a change that ends the administrative powers of all members of a group (C4).
    pub(crate) async fn may_disempower_all(&self, reads: &Reads<'_>, group: &GroupWithAccess) -> Result<(), Failure> {
        if group.group.is_org_readonly_admin && reads.has_members(group.group.id).await? {
            self.require_super()?;
        }
        self.may_touch(group)
    }

    /// The same for what is done to a person in these organizations, by a ban or by a withdrawn KYC mark.
    pub(crate) async fn may_disempower_in(
        &self,
        reads: &Reads<'_>,
        user: UserId,
        orgs: &[OrgId],
    ) -> Result<(), Failure> {
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

    /// A user that agreed to be a member of an organization whose administration the caller may read (HD32).
    pub(crate) async fn readable_user(&self, reads: &Reads<'_>, user: &str) -> Result<User, Failure> {
        let scope = self.scope()?;
        self.user(reads, user, |org| covers(&scope, org)).await
    }

    /// A user that agreed to be a member of an organization the caller may change.
    pub(crate) async fn writable_user(&self, reads: &Reads<'_>, user: &str) -> Result<User, Failure> {
        self.user(reads, user, |org| self.caller.may_write(org)).await
    }

    async fn user(&self, reads: &Reads<'_>, user: &str, mine: impl Fn(OrgId) -> bool) -> Result<User, Failure> {
        let found = match user.parse::<UserId>() {
            Ok(id) => reads.find_user(id).await?,
            Err(_) => None,
        };
        let Some(found) = found else {
            return Err(self.unknown_target("user not found"));
        };
        if self.is_super() || reads.organizations_of(found.id).await?.into_iter().any(mine) {
            return Ok(found);
        }
        Err(self.unknown_target("user not found"))
    }

    /// A11: what binds everywhere is super's. Whether the user belongs elsewhere too makes no difference, or the answer
    /// would tell (HD40).
    pub(crate) fn require_platform_wide(&self) -> Result<(), Failure> {
        if self.is_super() {
            Ok(())
        } else {
            Err(Failure::forbidden(TARGET_DENIED))
        }
    }

    /// A user whose name an organization of the caller's holds, whether the user agreed to that or not: of them only what
    /// the organizations themselves gave and noted may be shown or changed. `named` picks one of the organizations.
    pub(crate) async fn known_user(
        &self,
        reads: &Reads<'_>,
        user: &str,
        named: Option<&str>,
        to: Access,
    ) -> Result<KnownUser, Failure> {
        let unknown = || self.unknown_target("user not found");
        let found = match user.parse::<UserId>() {
            Ok(id) => reads.find_user(id).await?,
            Err(_) => None,
        };
        let user = found.ok_or_else(unknown)?;
        let named = match named.filter(|text| !text.is_empty()) {
            Some(text) => Some(text.parse::<OrgId>().map_err(|_| self.denied_org())?),
            None => None,
        };
        if self.is_super() {
            if let Some(org) = named
                && reads.find_organization(org).await?.is_none()
            {
                return Err(self.denied_org());
            }
            return Ok(KnownUser {
                user,
                orgs: named.into_iter().collect(),
            });
        }
        let mine = |org: &OrgId| match to {
            Access::Read => self.caller.may_read(*org),
            Access::Write => self.caller.may_write(*org),
        };
        let mut orgs = reads.organizations_knowing(user.id).await?;
        orgs.retain(|org| mine(org) && named.is_none_or(|named| named == *org));
        if orgs.is_empty() {
            Err(unknown())
        } else {
            Ok(KnownUser { user, orgs })
        }
    }

    /// A contract of an organization that the caller was let into.
    pub(crate) async fn contract_of(
        &self,
        reads: &Reads<'_>,
        org: &Organization,
        address: &str,
    ) -> Result<Contract, Failure> {
        let address = input::address(address)?;
        let found = reads.find_contract(address).await?;
        found
            .filter(|c| c.org == org.id)
            .ok_or_else(|| Failure::not_found("contract not found"))
    }
}

fn read_only() -> ApiError {
    ApiError::forbidden("mutating actions are restricted for read-only admins")
}

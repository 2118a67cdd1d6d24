//! Requests and grants of disclosure (spec/50 section 4).

use super::{Page, Paging, Queries, Scope, Weigh, all, contains, one};
use crate::{
    StoreError,
    entity::{disclosure_grants, disclosure_requests, users},
    record::{DisclosureGrant, DisclosureRequest, DisclosureRequestDetails, GrantWithRequest},
};
use gw_policy::disclosure::{GrantStatus, RequestStatus, scope::level_text};
use gw_types::{DisclosureGrantId, DisclosureRequestId, ExternalId, Level, OrgId, Seconds, Timestamp, UserId};
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect, sea_query::SimpleExpr,
};
use std::collections::HashMap;
use uuid::Uuid;

/// The numbers of active grants to one grantee.
#[derive(Clone, Copy, Debug)]
pub struct ActiveGrants {
    /// Of an organization.
    pub of_org: u64,
    /// Of an owner, in all organizations.
    pub of_owner: u64,
}

/// Filter for requests and for grants. Its members are ANDed.
#[derive(Clone, Debug)]
pub struct DisclosureFilter {
    /// The visible organizations.
    pub scope: Scope,
    /// The owner.
    pub target: Option<UserId>,
    /// The grantee.
    pub requester: Option<RequesterFilter>,
    /// The status of requests; ignored for grants.
    pub request_status: Option<RequestStatus>,
    /// The status of grants; ignored for requests.
    pub grant_status: Option<GrantStatus>,
    /// The level of the scope.
    pub level: Option<Level>,
    /// Created or granted at or after this moment.
    pub from: Option<Timestamp>,
    /// Created or granted at or before this moment.
    pub to: Option<Timestamp>,
    /// Grants whose end is at or before this moment; ignored for requests.
    pub ends_before: Option<Timestamp>,
}

/// Filter for the DID of the grantee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequesterFilter {
    /// This DID, case-sensitive.
    Is(ExternalId),
    /// DIDs that contain this text, ignoring case.
    Contains(String),
}

impl DisclosureFilter {
    /// Everything in scope.
    pub const fn all(scope: Scope) -> Self {
        Self {
            scope,
            target: None,
            requester: None,
            request_status: None,
            grant_status: None,
            level: None,
            from: None,
            to: None,
            ends_before: None,
        }
    }

    /// Everything about the data of one owner, in every organization.
    pub fn for_owner(owner: UserId) -> Self {
        Self {
            target: Some(owner),
            ..Self::all(Scope::All)
        }
    }

    /// Everything for one grantee, in every organization.
    pub fn for_grantee(grantee: ExternalId) -> Self {
        Self {
            requester: Some(RequesterFilter::Is(grantee)),
            ..Self::all(Scope::All)
        }
    }
}

impl Queries<'_> {
    /// Returns a request with its details.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_disclosure_request(
        &self,
        id: DisclosureRequestId,
    ) -> Result<Option<DisclosureRequestDetails>, StoreError> {
        let row = disclosure_requests::Entity::find_by_id(id.0).one(&self.conn).await?;
        let request: Option<DisclosureRequest> = one(row)?;
        Ok(self.with_details(request.into_iter().collect()).await?.pop())
    }

    /// Returns a grant with its request.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_disclosure_grant(&self, id: DisclosureGrantId) -> Result<Option<GrantWithRequest>, StoreError> {
        let row = disclosure_grants::Entity::find_by_id(id.0).one(&self.conn).await?;
        let grant: Option<DisclosureGrant> = one(row)?;
        Ok(self.with_requests(grant.into_iter().collect()).await?.pop())
    }

    /// Lists requests, newest first.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_disclosure_requests(
        &self,
        filter: &DisclosureFilter,
        paging: Paging,
    ) -> Result<Page<DisclosureRequestDetails>, StoreError> {
        use disclosure_requests::Column as C;
        let requester = filter.requester.as_ref().map(|requester| match requester {
            RequesterFilter::Is(did) => C::RequesterDid.eq(did.as_str()),
            RequesterFilter::Contains(text) => contains(C::RequesterDid, text),
        });
        let select = disclosure_requests::Entity::find()
            .filter(
                Condition::all()
                    .add_option(filter.scope.holds(C::OrgId))
                    .add_option(filter.target.map(|target| C::TargetUserId.eq(target.0)))
                    .add_option(requester)
                    .add_option(filter.request_status.map(|status| self.has_status(status)))
                    .add_option(filter.level.map(|level| C::DisclosureLevel.eq(level_text(level))))
                    .add_option(filter.from.map(|at| C::RequestedAt.gte(at.micros())))
                    .add_option(filter.to.map(|at| C::RequestedAt.lte(at.micros()))),
            )
            .order_by_desc(C::RequestedAt)
            .order_by_desc(C::Id);
        let page: Page<DisclosureRequest> = self.page(select, paging).await?;
        Ok(Page {
            rows: self.with_details(page.rows).await?,
            total: page.total,
        })
    }

    /// Lists grants, newest first.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_disclosure_grants(
        &self,
        filter: &DisclosureFilter,
        paging: Paging,
    ) -> Result<Page<GrantWithRequest>, StoreError> {
        use disclosure_grants::Column as C;
        let requester = filter.requester.as_ref().map(|requester| match requester {
            RequesterFilter::Is(did) => C::GranteeDid.eq(did.as_str()),
            RequesterFilter::Contains(text) => contains(C::GranteeDid, text),
        });
        let now = self.now.micros();
        let status = filter.grant_status.map(|status| match status {
            GrantStatus::Active => active(now),
            GrantStatus::Revoked => Condition::all().add(C::RevokedAt.is_not_null()),
            GrantStatus::Expired => Condition::all().add(C::RevokedAt.is_null()).add(C::ExpiresAt.lte(now)),
        });
        let select = disclosure_grants::Entity::find()
            .filter(
                Condition::all()
                    .add_option(filter.scope.holds(C::OrgId))
                    .add_option(filter.target.map(|target| C::OwnerUserId.eq(target.0)))
                    .add_option(requester)
                    .add_option(status)
                    .add_option(filter.level.map(|level| C::DisclosureLevel.eq(level_text(level))))
                    .add_option(filter.from.map(|at| C::GrantedAt.gte(at.micros())))
                    .add_option(filter.to.map(|at| C::GrantedAt.lte(at.micros())))
                    .add_option(filter.ends_before.map(|at| C::ExpiresAt.lte(at.micros()))),
            )
            .order_by_desc(C::GrantedAt)
            .order_by_desc(C::Id);
        let page: Page<DisclosureGrant> = self.page(select, paging).await?;
        Ok(Page {
            rows: self.with_requests(page.rows).await?,
            total: page.total,
        })
    }

    /// The numbers of active grants to a grantee: of an organization, and of an owner.
    ///
    /// # Errors
    /// Any database error.
    pub async fn count_active_disclosures(
        &self,
        grantee: &ExternalId,
        org: OrgId,
        owner: UserId,
    ) -> Result<ActiveGrants, StoreError> {
        let count = async |is_counted: SimpleExpr| {
            disclosure_grants::Entity::find()
                .filter(disclosure_grants::Column::GranteeDid.eq(grantee.as_str()))
                .filter(is_counted)
                .filter(active(self.now.micros()))
                .count(&self.conn)
                .await
        };
        Ok(ActiveGrants {
            of_org: count(disclosure_grants::Column::OrgId.eq(org.0)).await?,
            of_owner: count(disclosure_grants::Column::OwnerUserId.eq(owner.0)).await?,
        })
    }

    /// The number of an owner's grants whose secrets are kept: active ones, and those that ended lately.
    ///
    /// # Errors
    /// Any database error.
    pub async fn count_kept_disclosures(&self, owner: UserId) -> Result<u64, StoreError> {
        let kept = disclosure_grants::Entity::find()
            .filter(disclosure_grants::Column::OwnerUserId.eq(owner.0))
            .filter(disclosure_grants::Column::Secret.is_not_null());
        Ok(kept.count(&self.conn).await?)
    }

    /// Whether a sweep would change something: a request or a grant has ended and that is not recorded, or a secret is
    /// to be destroyed `kept` after the end of its grant.
    ///
    /// # Errors
    /// Any database error.
    pub async fn has_overdue_disclosures(&self, kept: Seconds) -> Result<bool, StoreError> {
        let requests = disclosure_requests::Entity::find().filter(overdue_requests(self.now));
        let ended = disclosure_grants::Entity::find().filter(overdue_grants(self.now));
        let secrets = disclosure_grants::Entity::find().filter(spent_secrets(self.now, kept));
        Ok(requests.one(&self.conn).await?.is_some()
            || ended.one(&self.conn).await?.is_some()
            || secrets.one(&self.conn).await?.is_some())
    }

    /// Condition for requests with this status now (spec/50 section 3).
    fn has_status(&self, status: RequestStatus) -> Condition {
        use disclosure_requests::Column as C;
        let stored = C::Status.eq(status.as_str());
        match status {
            RequestStatus::Pending => Condition::all().add(stored).add(has_ended(self.now).not()),
            RequestStatus::Expired => Condition::any().add(stored).add(overdue_requests(self.now)),
            RequestStatus::Approved | RequestStatus::Rejected | RequestStatus::Revoked => Condition::all().add(stored),
        }
    }

    async fn with_details(
        &self,
        requests: Vec<DisclosureRequest>,
    ) -> Result<Vec<DisclosureRequestDetails>, StoreError> {
        if requests.is_empty() {
            return Ok(Vec::new());
        }
        let people = requests
            .iter()
            .flat_map(|request| [Some(request.target), request.decided_by])
            .flatten()
            .map(|user| user.0);
        let names: Vec<(Uuid, String)> = users::Entity::find()
            .select_only()
            .column(users::Column::Id)
            .column(users::Column::ExternalId)
            .filter(users::Column::Id.is_in(people))
            .into_tuple()
            .all(&self.conn)
            .await?;
        let names: HashMap<Uuid, ExternalId> = names
            .into_iter()
            .filter_map(|(id, name)| Some((id, ExternalId::new(&name).ok()?)))
            .collect();
        let grants: Vec<(Uuid, Uuid)> = disclosure_grants::Entity::find()
            .select_only()
            .column(disclosure_grants::Column::RequestId)
            .column(disclosure_grants::Column::Id)
            .filter(disclosure_grants::Column::RequestId.is_in(requests.iter().map(|request| request.id.0)))
            .filter(active(self.now.micros()))
            .into_tuple()
            .all(&self.conn)
            .await?;
        let grants: HashMap<Uuid, Uuid> = grants.into_iter().collect();
        Ok(requests
            .into_iter()
            .map(|request| DisclosureRequestDetails {
                target_did: names.get(&request.target.0).cloned(),
                decided_by_did: request.decided_by.and_then(|user| names.get(&user.0).cloned()),
                active_grant: grants.get(&request.id.0).map(|id| (*id).into()),
                request: self.with_current_status(request),
            })
            .collect())
    }

    async fn with_requests(&self, grants: Vec<DisclosureGrant>) -> Result<Vec<GrantWithRequest>, StoreError> {
        if grants.is_empty() {
            return Ok(Vec::new());
        }
        let ids = grants.iter().map(|grant| grant.request.0);
        let rows = disclosure_requests::Entity::find()
            .filter(disclosure_requests::Column::Id.is_in(ids))
            .all(&self.conn)
            .await?;
        let requests: Vec<DisclosureRequest> = all(rows)?;
        let mut requests: HashMap<_, _> = requests.into_iter().map(|request| (request.id, request)).collect();
        // A foreign key makes sure that every grant has its request.
        Ok(grants
            .into_iter()
            .filter_map(|grant| {
                let request = self.with_current_status(requests.remove(&grant.request)?);
                Some(GrantWithRequest { grant, request })
            })
            .collect())
    }

    fn with_current_status(&self, request: DisclosureRequest) -> DisclosureRequest {
        DisclosureRequest {
            status: request.state().status_at(self.now),
            ..request
        }
    }
}

/// Condition for active grants.
fn active(now: i64) -> Condition {
    Condition::all()
        .add(disclosure_grants::Column::RevokedAt.is_null())
        .add(disclosure_grants::Column::ExpiresAt.gt(now))
}

/// Condition for requests whose end has passed, decided or not.
fn has_ended(now: Timestamp) -> Condition {
    use disclosure_requests::Column as C;
    Condition::all()
        .add(C::ExpiresAt.is_not_null())
        .add(C::ExpiresAt.lte(now.micros()))
}

/// Condition for requests that ended without a decision, and are not stored as expired.
pub(crate) fn overdue_requests(now: Timestamp) -> Condition {
    Condition::all()
        .add(disclosure_requests::Column::Status.eq(RequestStatus::Pending.as_str()))
        .add(has_ended(now))
}

/// Condition for requests that can be decided (rule 10).
pub(crate) fn decidable(now: Timestamp) -> Condition {
    Condition::all()
        .add(disclosure_requests::Column::Status.eq(RequestStatus::Pending.as_str()))
        .add(has_ended(now).not())
}

/// Condition for grants whose end has passed and is not recorded.
pub(crate) fn overdue_grants(now: Timestamp) -> Condition {
    Condition::all()
        .add(disclosure_grants::Column::EndedAt.is_null())
        .add(disclosure_grants::Column::ExpiresAt.lte(now.micros()))
}

/// Condition for grants whose secret is to be destroyed (rule 29).
pub(crate) fn spent_secrets(now: Timestamp, kept: Seconds) -> Condition {
    Condition::all()
        .add(disclosure_grants::Column::EndedAt.lte(now.minus(kept).micros()))
        .add(disclosure_grants::Column::Secret.is_not_null())
}

impl Weigh for disclosure_requests::Model {
    fn weight(&self) -> usize {
        self.reason.len() + self.decision_reason.as_deref().map_or(0, str::len) + self.scope.to_string().len()
    }
}

impl Weigh for disclosure_grants::Model {
    fn weight(&self) -> usize {
        self.scope.to_string().len() + self.revoked_reason.as_deref().map_or(0, str::len)
    }
}

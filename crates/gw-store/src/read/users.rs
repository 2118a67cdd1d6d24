//! Users and memberships.

use super::{
    Page, Paging, Queries, Scope, all,
    groups::{accepted, live, memberships_to_groups},
    one,
};
use crate::{
    StoreError,
    entity::{address_links, group_access, groups, memberships, org_user_records, users},
    record::{Group, Membership, OrgUserRecord, User},
    row,
};
use gw_types::{Address, ExternalId, GroupId, MembershipId, OrgId, Timestamp, UserId};
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, JoinType, QueryFilter, QueryOrder, QuerySelect, QueryTrait,
    sea_query::{ExprTrait, Query, SelectStatement, SimpleExpr},
};
use std::collections::HashMap;
use uuid::Uuid;

/// Filter for users (spec/80 section 7).
#[derive(Clone, Debug)]
pub struct UserFilter {
    /// The visible users: members of these organizations.
    pub scope: Scope,
    /// Members of this organization.
    pub org: Option<OrgId>,
    /// The searched user.
    pub search: Option<UserSearch>,
    /// Members of any of these groups.
    pub groups: Vec<GroupId>,
    /// Holders of this role.
    pub role: Option<Role>,
    /// The time for expiry checks: ended memberships give no role.
    pub now: Timestamp,
}

/// The searched user, by whole values only: a search by parts would allow guessing a value piece by piece (HD30).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserSearch {
    /// The user with this external id.
    ExternalId(String),
    /// The users with a live link to this address.
    Holder(Address),
    /// No user.
    Nobody,
}

/// A role to filter users by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A live member of a group flagged `is_org_admin`.
    OrgAdmin,
    /// A live member of a group with the admin claim, or of one flagged `is_org_admin` (D2).
    Admin,
    /// A live member of a group that has neither and is not flagged `is_org_readonly_admin`.
    Member,
}

/// A user with the groups that the reader may see.
#[derive(Clone, Debug, PartialEq)]
pub struct UserItem {
    /// The user.
    pub user: User,
    /// Groups within the scope, by name.
    pub groups: Vec<UserGroup>,
    /// The memberships in these groups.
    pub memberships: Vec<Membership>,
    /// The records of organizations in scope about the user; empty for [`Scope::All`].
    pub records: Vec<OrgUserRecord>,
}

/// One group of a listed user.
#[derive(Clone, Debug, PartialEq)]
pub struct UserGroup {
    /// The group.
    pub id: GroupId,
    /// Its organization.
    pub org: OrgId,
    /// Its name.
    pub name: String,
    /// Its slug.
    pub slug: String,
    /// Whether its members administer the organization.
    pub is_org_admin: bool,
}

/// A membership with its group.
#[derive(Clone, Debug, PartialEq)]
pub struct MembershipItem {
    /// The membership.
    pub membership: Membership,
    /// The group.
    pub group: Group,
}

impl Queries<'_> {
    /// Returns one user.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_user(&self, id: UserId) -> Result<Option<User>, StoreError> {
        one(users::Entity::find_by_id(id.0).one(&self.conn).await?)
    }

    /// Returns the user with an external id, case-sensitive.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_user_by_external_id(&self, name: &ExternalId) -> Result<Option<User>, StoreError> {
        let query = users::Entity::find().filter(users::Column::ExternalId.eq(name.as_str()));
        one(query.one(&self.conn).await?)
    }

    /// Lists users by external id, then id.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_users(&self, filter: &UserFilter, paging: Paging) -> Result<Page<UserItem>, StoreError> {
        let mut condition = Condition::all();
        match &filter.search {
            None => {}
            Some(UserSearch::ExternalId(name)) => {
                condition = condition.add(users::Column::ExternalId.eq(name.as_str()));
            }
            Some(UserSearch::Holder(address)) => {
                let holders = Query::select()
                    .column(address_links::Column::UserId)
                    .from(address_links::Entity)
                    .and_where(address_links::Column::RevokedAt.is_null())
                    .and_where(address_links::Column::Address.eq(row::address_text(*address)))
                    .take();
                condition = condition.add(users::Column::Id.in_subquery(holders));
                // A wallet search finds only users who agreed to be members.
                if let Some(in_scope) = filter.scope.holds(groups::Column::OrgId) {
                    condition = condition.add(users::Column::Id.in_subquery(agreed_members(in_scope, filter.now)));
                }
            }
            Some(UserSearch::Nobody) => {
                return Ok(Page {
                    rows: Vec::new(),
                    total: 0,
                });
            }
        }
        if let Some(members) = members(filter) {
            condition = condition.add(users::Column::Id.in_subquery(members));
        }
        let select = users::Entity::find()
            .filter(condition)
            .order_by_asc(users::Column::ExternalId)
            .order_by_asc(users::Column::Id);
        let page: Page<User> = self.page(select, paging).await?;
        let mut groups = self.groups_of(&page.rows, &filter.scope).await?;
        let mut records = self.records_of(&page.rows, &filter.scope).await?;
        let item = |user: User| {
            let (groups, memberships) = groups.remove(&user.id.0).unwrap_or_default();
            let records = records.remove(&user.external_id).unwrap_or_default();
            UserItem {
                user,
                groups,
                memberships,
                records,
            }
        };
        Ok(Page {
            rows: page.rows.into_iter().map(item).collect(),
            total: page.total,
        })
    }

    /// Returns the organizations in which the user has an accepted live membership: their administrators have rights
    /// over the user (HD32).
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn organizations_of(&self, user: UserId) -> Result<Vec<OrgId>, StoreError> {
        self.organizations_by(user, Condition::all().add(live(self.now)).add(accepted()))
            .await
    }

    /// Returns the organizations in which the user has a live membership, accepted or not: their administrators know
    /// the user's name.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn organizations_knowing(&self, user: UserId) -> Result<Vec<OrgId>, StoreError> {
        self.organizations_by(user, live(self.now)).await
    }

    /// Returns the records of organizations about a person.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn org_user_records(&self, name: &ExternalId, orgs: &[OrgId]) -> Result<Vec<OrgUserRecord>, StoreError> {
        let query = org_user_records::Entity::find()
            .filter(org_user_records::Column::ExternalId.eq(name.as_str()))
            .filter(org_user_records::Column::OrgId.is_in(orgs.iter().map(|org| org.0)))
            .order_by_asc(org_user_records::Column::OrgId);
        all(query.all(&self.conn).await?)
    }

    async fn organizations_by(&self, user: UserId, condition: Condition) -> Result<Vec<OrgId>, StoreError> {
        let rows: Vec<Uuid> = memberships::Entity::find()
            .join(JoinType::InnerJoin, memberships_to_groups())
            .select_only()
            .column(groups::Column::OrgId)
            .filter(memberships::Column::UserId.eq(user.0))
            .filter(condition)
            .distinct()
            .order_by_asc(groups::Column::OrgId)
            .into_tuple()
            .all(&self.conn)
            .await?;
        Ok(rows.into_iter().map(Into::into).collect())
    }

    /// Lists a user's memberships within the scope, by group name.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_memberships(&self, user: UserId, scope: &Scope) -> Result<Vec<MembershipItem>, StoreError> {
        let condition = Condition::all()
            .add(memberships::Column::UserId.eq(user.0))
            .add_option(scope.holds(groups::Column::OrgId));
        self.membership_items(condition).await
    }

    /// Returns one membership with its group.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_membership(&self, id: MembershipId) -> Result<Option<MembershipItem>, StoreError> {
        let items = self
            .membership_items(Condition::all().add(memberships::Column::Id.eq(id.0)))
            .await?;
        Ok(items.into_iter().next())
    }

    /// Returns the membership of a user in a group.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_membership_of(&self, user: UserId, group: GroupId) -> Result<Option<Membership>, StoreError> {
        let query = memberships::Entity::find()
            .filter(memberships::Column::UserId.eq(user.0))
            .filter(memberships::Column::GroupId.eq(group.0));
        one(query.one(&self.conn).await?)
    }

    async fn membership_items(&self, condition: Condition) -> Result<Vec<MembershipItem>, StoreError> {
        let rows = memberships::Entity::find()
            .join(JoinType::InnerJoin, memberships_to_groups())
            .select_also(groups::Entity)
            .filter(condition)
            .order_by_asc(groups::Column::Name)
            .order_by_asc(memberships::Column::Id)
            .all(&self.conn)
            .await?;
        let mut items = Vec::with_capacity(rows.len());
        for (membership, group) in rows {
            // The inner join returns a group for each membership.
            let Some(group) = group else { continue };
            items.push(MembershipItem {
                membership: membership.try_into()?,
                group: group.try_into()?,
            });
        }
        Ok(items)
    }

    async fn records_of(
        &self,
        users: &[User],
        scope: &Scope,
    ) -> Result<HashMap<ExternalId, Vec<OrgUserRecord>>, StoreError> {
        let mut by_name: HashMap<ExternalId, Vec<OrgUserRecord>> = HashMap::new();
        let Some(in_scope) = scope.holds(org_user_records::Column::OrgId) else {
            return Ok(by_name);
        };
        let query = org_user_records::Entity::find()
            .filter(org_user_records::Column::ExternalId.is_in(users.iter().map(|user| user.external_id.as_str())))
            .filter(in_scope)
            .order_by_asc(org_user_records::Column::OrgId);
        for record in all::<_, OrgUserRecord>(query.all(&self.conn).await?)? {
            by_name.entry(record.external_id.clone()).or_default().push(record);
        }
        Ok(by_name)
    }

    async fn groups_of(
        &self,
        users: &[User],
        scope: &Scope,
    ) -> Result<HashMap<Uuid, (Vec<UserGroup>, Vec<Membership>)>, StoreError> {
        let condition = Condition::all()
            .add(memberships::Column::UserId.is_in(users.iter().map(|user| user.id.0)))
            .add_option(scope.holds(groups::Column::OrgId));
        let mut by_user: HashMap<Uuid, (Vec<UserGroup>, Vec<Membership>)> = HashMap::new();
        for MembershipItem { membership, group } in self.membership_items(condition).await? {
            let (groups, memberships) = by_user.entry(membership.user.0).or_default();
            memberships.push(membership);
            groups.push(UserGroup {
                id: group.id,
                org: group.org,
                name: group.name,
                slug: group.slug,
                is_org_admin: group.is_org_admin,
            });
        }
        Ok(by_user)
    }
}

/// Query for users with an accepted live membership in scope.
pub(super) fn agreed_members(in_scope: SimpleExpr, now: Timestamp) -> SelectStatement {
    memberships::Entity::find()
        .join(JoinType::InnerJoin, memberships_to_groups())
        .select_only()
        .column(memberships::Column::UserId)
        .filter(in_scope)
        .filter(live(now))
        .filter(accepted())
        .into_query()
}

/// Query for users with a membership that matches the filter; `None` if the filter has no condition on memberships.
fn members(filter: &UserFilter) -> Option<SelectStatement> {
    let mut condition = Condition::all().add_option(filter.scope.holds(groups::Column::OrgId));
    // An ended membership does not make its user visible to administrators.
    if filter.scope != Scope::All {
        condition = condition.add(live(filter.now));
    }
    if let Some(org) = filter.org {
        condition = condition.add(groups::Column::OrgId.eq(org.0));
    }
    if !filter.groups.is_empty() {
        condition = condition.add(groups::Column::Id.is_in(filter.groups.iter().map(|group| group.0)));
    }
    if let Some(role) = filter.role {
        let claims_admin = Query::select()
            .column(group_access::Column::GroupId)
            .from(group_access::Entity)
            // `admin` comes first in the column's fixed order.
            .and_where(group_access::Column::Claims.like("admin%"))
            .take();
        let flagged = groups::Column::IsOrgAdmin.eq(true);
        let claimed = groups::Column::Id.in_subquery(claims_admin);
        condition = condition.add(live(filter.now)).add(match role {
            Role::OrgAdmin => flagged,
            Role::Admin => flagged.or(claimed),
            Role::Member => flagged
                .or(claimed)
                .or(groups::Column::IsOrgReadonlyAdmin.eq(true))
                .not(),
        });
    }
    if condition.is_empty() {
        return None;
    }
    let members = memberships::Entity::find()
        .join(JoinType::InnerJoin, memberships_to_groups())
        .select_only()
        .column(memberships::Column::UserId)
        .filter(condition);
    Some(members.into_query())
}

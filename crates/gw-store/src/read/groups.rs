//! Groups and their access.

use super::{Page, Paging, Queries, contains, one};
use crate::{
    StoreError,
    entity::{contract_grants, contracts, group_access, groups, memberships, org_user_records, users},
    record::{Group, GroupAccess},
    row::{self, RowRef},
};
use gw_policy::snapshot::MembershipState;
use gw_types::{Address, GroupId, OrgId, Timestamp};
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, JoinType, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect,
    sea_query::{Query, SimpleExpr},
};
use std::collections::HashMap;
use uuid::Uuid;

/// A group with its access.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupWithAccess {
    /// The group.
    pub group: Group,
    /// Its access; empty lists if none is stored.
    pub access: GroupAccess,
}

/// What deleting a group would also delete.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupImpact {
    /// The group.
    pub group: Group,
    /// Number of memberships deleted.
    pub members: u64,
    /// The contracts whose grants to the group are deleted.
    pub contracts: Vec<Address>,
}

impl Queries<'_> {
    /// Returns one group.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_group(&self, id: GroupId) -> Result<Option<Group>, StoreError> {
        one(groups::Entity::find_by_id(id.0).one(&self.conn).await?)
    }

    /// Returns the group with a slug within an organization.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_group_by_slug(&self, org: OrgId, slug: &str) -> Result<Option<Group>, StoreError> {
        let query = groups::Entity::find()
            .filter(groups::Column::OrgId.eq(org.0))
            .filter(groups::Column::Slug.eq(slug));
        one(query.one(&self.conn).await?)
    }

    /// Lists the groups of an organization by name, then id; `search` is a substring of name or slug.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_groups(
        &self,
        org: OrgId,
        search: Option<&str>,
        paging: Paging,
    ) -> Result<Page<GroupWithAccess>, StoreError> {
        let search_condition = search.map(|text| {
            Condition::any()
                .add(contains(groups::Column::Name, text))
                .add(contains(groups::Column::Slug, text))
        });
        let select = groups::Entity::find()
            .filter(
                Condition::all()
                    .add(groups::Column::OrgId.eq(org.0))
                    .add_option(search_condition),
            )
            .order_by_asc(groups::Column::Name)
            .order_by_asc(groups::Column::Id);
        let page: Page<Group> = self.page(select, paging).await?;
        let ids = page.rows.iter().map(|group| group.id.0);
        let mut stored: HashMap<Uuid, group_access::Model> = group_access::Entity::find()
            .filter(group_access::Column::GroupId.is_in(ids))
            .all(&self.conn)
            .await?
            .into_iter()
            .map(|access| (access.group_id, access))
            .collect();
        let join_access = |group: Group| with_access(stored.remove(&group.id.0), group);
        Ok(Page {
            rows: page.rows.into_iter().map(join_access).collect::<Result<_, _>>()?,
            total: page.total,
        })
    }

    /// Returns a group with its access.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_access(&self, group: GroupId) -> Result<Option<GroupWithAccess>, StoreError> {
        let Some(group) = self.find_group(group).await? else {
            return Ok(None);
        };
        let stored = group_access::Entity::find_by_id(group.id.0).one(&self.conn).await?;
        with_access(stored, group).map(Some)
    }

    /// Whether the group has members whose membership has not ended.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn has_members(&self, id: GroupId) -> Result<bool, StoreError> {
        let of_group = memberships::Entity::find().filter(memberships::Column::GroupId.eq(id.0));
        let expiry = memberships::Column::ExpiresAt;
        let lasts = Condition::any()
            .add(expiry.is_null())
            .add(expiry.gt(self.now().micros()));
        Ok(of_group.filter(lasts).count(&self.conn).await? > 0)
    }

    /// Returns what deleting these groups would also delete, in the order of the ids; unknown ids are left out.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn group_impact(&self, ids: &[GroupId]) -> Result<Vec<GroupImpact>, StoreError> {
        let mut impacts = Vec::with_capacity(ids.len());
        for id in ids {
            let Some(group) = self.find_group(*id).await? else {
                continue;
            };
            let members = memberships::Entity::find().filter(memberships::Column::GroupId.eq(id.0));
            let members = members.count(&self.conn).await?;
            let granted = Query::select()
                .column(contract_grants::Column::ContractId)
                .from(contract_grants::Entity)
                .and_where(contract_grants::Column::GroupId.eq(id.0))
                .take();
            let contracts: Vec<(Uuid, String)> = contracts::Entity::find()
                .select_only()
                .columns([contracts::Column::Id, contracts::Column::Address])
                .filter(contracts::Column::Id.in_subquery(granted))
                .order_by_asc(contracts::Column::Address)
                .into_tuple()
                .all(&self.conn)
                .await?;
            let contracts = contracts
                .into_iter()
                .map(|(id, address)| RowRef::new("contracts", id).parse("address", &address))
                .collect::<Result<_, _>>()?;
            impacts.push(GroupImpact {
                group,
                members,
                contracts,
            });
        }
        Ok(impacts)
    }

    /// Counts the live, unbanned memberships in the organization's org-admin groups, without the groups in `except`
    /// (spec/80 section 6 rule 7).
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn live_org_admins(&self, org: OrgId, except: &[GroupId], now: Timestamp) -> Result<u64, StoreError> {
        let banned = Query::select()
            .column(org_user_records::Column::ExternalId)
            .from(org_user_records::Entity)
            .and_where(org_user_records::Column::OrgId.eq(org.0))
            .and_where(org_user_records::Column::Banned.eq(true))
            .take();
        let active = Query::select()
            .column(users::Column::Id)
            .from(users::Entity)
            .and_where(users::Column::Banned.eq(false))
            .and_where(users::Column::ExternalId.not_in_subquery(banned))
            .take();
        let members = memberships::Entity::find()
            .join(JoinType::InnerJoin, memberships_to_groups())
            .filter(groups::Column::OrgId.eq(org.0))
            .filter(groups::Column::IsOrgAdmin.eq(true))
            .filter(memberships::Column::UserId.in_subquery(active))
            .filter(accepted())
            .filter(groups::Column::Id.is_not_in(except.iter().map(|group| group.0)))
            .filter(live(now));
        Ok(members.count(&self.conn).await?)
    }
}

fn with_access(stored: Option<group_access::Model>, group: Group) -> Result<GroupWithAccess, StoreError> {
    let access = match stored {
        Some(row) => row.try_into()?,
        None => GroupAccess::none(&group),
    };
    Ok(GroupWithAccess { group, access })
}

pub(super) fn memberships_to_groups() -> sea_orm::RelationDef {
    memberships::Entity::belongs_to(groups::Entity)
        .from(memberships::Column::GroupId)
        .to(groups::Column::Id)
        .into()
}

/// SQL condition that a membership has not ended.
pub(super) fn live(now: Timestamp) -> Condition {
    Condition::any()
        .add(memberships::Column::ExpiresAt.is_null())
        .add(memberships::Column::ExpiresAt.gt(now.micros()))
}

/// SQL condition that the member agreed (HD32).
pub(super) fn accepted() -> SimpleExpr {
    memberships::Column::State.eq(row::membership_state_text(MembershipState::Accepted))
}

//! Every query of the administration, with scope, filter, order and paging in SQL (spec/80 sections 3 and 4).

mod access;
mod contracts;
mod disclosure;
mod groups;
mod links;
mod mined;
mod organizations;
mod portion;
mod retention;
mod tenants;
mod tokens;
mod urls;
mod users;
mod webhooks;

pub use contracts::{ContractFilter, GrantSummary};
pub use disclosure::{DisclosureFilter, RequesterFilter};
pub(crate) use disclosure::{decidable, overdue_grants, overdue_requests, spent_secrets};
pub use groups::{GroupImpact, GroupWithAccess};
pub use organizations::OrganizationFilter;
pub(crate) use portion::{PAGE_BYTES, Weigh, portion};
pub use users::{MembershipItem, Role, UserFilter, UserGroup, UserItem, UserSearch};

use crate::{
    StoreError,
    dialect::{self, Executor},
};
use gw_types::{OrgId, Timestamp};
use sea_orm::{
    ColumnTrait, EntityTrait, PaginatorTrait, Select,
    sea_query::{Expr, ExprTrait, Func, LikeExpr, SimpleExpr},
};

/// The organizations whose rows a list may show; totals count the same set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every row.
    All,
    /// Rows of these organizations only.
    Orgs(Vec<OrgId>),
}

/// The requested part of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paging {
    /// Maximum number of rows.
    pub limit: u64,
    /// Number of rows to skip.
    pub offset: u64,
}

/// A part of a list, with the length of the list.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// Number of rows of the whole list.
    pub total: u64,
}

/// Queries, from the pool or inside a transaction.
#[derive(Debug)]
pub struct Queries<'a> {
    pub(crate) conn: Executor<'a>,
    /// The time for expiry checks.
    pub(crate) now: Timestamp,
}

impl<'a> Queries<'a> {
    pub(crate) fn new(conn: Executor<'a>, now: Timestamp) -> Self {
        Self { conn, now }
    }

    /// Returns the time for expiry checks.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Returns one page of an ordered selection, with the total number of rows.
    async fn page<E, T>(&self, select: Select<E>, paging: Paging) -> Result<Page<T>, StoreError>
    where
        E: EntityTrait<Model: Weigh + Send + Sync>,
        T: TryFrom<E::Model, Error = StoreError>,
    {
        let total = select.clone().count(&self.conn).await?;
        let rows = portion(&self.conn, select, paging, PAGE_BYTES).await?;
        let rows = rows.into_iter().map(T::try_from).collect::<Result<_, _>>()?;
        Ok(Page { rows, total })
    }
}

impl Scope {
    /// Returns the condition that `column` is an organization in scope; `None` for all.
    pub(crate) fn holds(&self, column: impl ColumnTrait) -> Option<SimpleExpr> {
        match self {
            Self::All => None,
            Self::Orgs(orgs) => Some(column.is_in(orgs.iter().map(|org| org.0))),
        }
    }
}

/// Condition that a text column contains `text`, ignoring case.
fn contains(column: impl ColumnTrait, text: &str) -> SimpleExpr {
    Expr::expr(Func::lower(Expr::col(column.as_column_ref()))).like(LikeExpr::new(dialect::contains(text)).escape('\\'))
}

fn all<R, T: TryFrom<R, Error = StoreError>>(rows: Vec<R>) -> Result<Vec<T>, StoreError> {
    rows.into_iter().map(T::try_from).collect()
}

fn one<R, T: TryFrom<R, Error = StoreError>>(row: Option<R>) -> Result<Option<T>, StoreError> {
    row.map(T::try_from).transpose()
}

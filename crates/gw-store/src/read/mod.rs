//! Every query of the administration, with scope, filter, order and paging in SQL (spec/80 sections 3 and 4).

mod access;
mod contracts;
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

pub use contracts::{ContractFilter, GrantSummary};
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

/// Which organizations' rows a list may show; totals count the same set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every row.
    All,
    /// Rows of these organizations only.
    Orgs(Vec<OrgId>),
}

/// Which part of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paging {
    /// At most so many rows.
    pub limit: u64,
    /// After so many rows.
    pub offset: u64,
}

/// A part of a list, and how long the list is.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// How many rows the whole list has.
    pub total: u64,
}

/// Queries, from the pool or inside a transaction.
#[derive(Debug)]
pub struct Reads<'a> {
    pub(crate) conn: Executor<'a>,
    /// The moment by which ends are judged.
    pub(crate) now: Timestamp,
}

impl<'a> Reads<'a> {
    pub(crate) fn new(conn: Executor<'a>, now: Timestamp) -> Self {
        Self { conn, now }
    }

    /// The moment by which ends are judged.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// One page of an ordered selection, and how long the whole is.
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
    /// The predicate that `column` is an organization in scope.
    pub(crate) fn holds(&self, column: impl ColumnTrait) -> Option<SimpleExpr> {
        match self {
            Self::All => None,
            Self::Orgs(orgs) => Some(column.is_in(orgs.iter().map(|org| org.0))),
        }
    }
}

/// Whether a text column contains `text`, whatever the case.
fn contains(column: impl ColumnTrait, text: &str) -> SimpleExpr {
    Expr::expr(Func::lower(Expr::col(column.as_column_ref()))).like(LikeExpr::new(dialect::contains(text)).escape('\\'))
}

fn all<R, T: TryFrom<R, Error = StoreError>>(rows: Vec<R>) -> Result<Vec<T>, StoreError> {
    rows.into_iter().map(T::try_from).collect()
}

fn one<R, T: TryFrom<R, Error = StoreError>>(row: Option<R>) -> Result<Option<T>, StoreError> {
    row.map(T::try_from).transpose()
}

//! Limits of the values in the tables that the audit log relies on.
//!
//! Neither engine limits the length of a text. Whoever may insert a row could make every reader run out of memory, so
//! the database compares the length of a value before it transfers it: a longer value reads as NULL, and its row
//! counts as malformed. Every limit is far above what the gateway writes itself.

use sea_orm::{
    ColumnTrait, ConnectionTrait, DbBackend, EntityTrait, IdenStatic as _, Iterable as _, PrimaryKeyToColumn as _,
    PrimaryKeyTrait, QueryFilter as _, QuerySelect as _, Select,
    sea_query::{Expr, ExprTrait as _, Func, IntoValueTuple as _, SimpleExpr, ValueTuple},
};

/// Bytes of a name: a stream, a holder, a kind, an origin.
pub(crate) const NAME: u64 = 4 * 1024;
/// Bytes of a hash or a code.
pub(crate) const HASH: u64 = 1024;
/// Bytes of a signed note; of a text that an administrator gave.
pub(crate) const NOTE: u64 = 64 * 1024;
/// Bytes of an encoded entry, and of its openings: a record has at most 64 KiB.
pub(crate) const ENTRY: u64 = 512 * 1024;
/// Bytes of a column of an outbox row: an image has at most 16 KiB.
pub(crate) const OUTBOX: u64 = 256 * 1024;
/// Bytes of an anchor, which lists every organization of its chain.
pub(crate) const ANCHOR: u64 = 16 * 1024 * 1024;
/// Bytes of a tile: 256 hashes.
pub(crate) const TILE: u64 = 64 * 1024;

/// A table whose long columns have limits.
pub(crate) trait Bounded: EntityTrait {
    /// Returns the limit of a column in bytes; `None` for a column of a fixed size.
    fn limit(column: &Self::Column) -> Option<u64>;
}

/// Returns a query of all columns. A value over its limit reads as NULL.
pub(crate) fn find<E: Bounded>() -> Select<E> {
    E::Column::iter().fold(
        <E as EntityTrait>::find().select_only(),
        |select, column| match E::limit(&column) {
            Some(_) => select.column_as(value::<E>(column), column.as_str()),
            None => select.column(column),
        },
    )
}

/// Limits a query to the row with this key.
pub(crate) fn with_id<E: EntityTrait>(
    select: Select<E>,
    key: impl Into<<E::PrimaryKey as PrimaryKeyTrait>::ValueType>,
) -> Select<E> {
    let values: ValueTuple = key.into().into_value_tuple();
    let keys = E::PrimaryKey::iter().zip(values);
    keys.fold(select, |select, (key, value)| {
        select.filter(key.into_column().eq(value))
    })
}

/// Returns the value of a column, or NULL if it is over its limit.
pub(crate) fn value<E: Bounded>(column: E::Column) -> SimpleExpr {
    let of_column = || Expr::col(column.as_column_ref());
    match E::limit(&column) {
        Some(limit) => Expr::case(length(of_column()).lte(number(limit)), of_column()).into(),
        None => of_column(),
    }
}

/// Returns the bytes of a row, without reading them. SQLite can hold a value of any length in any column, whatever its
/// type.
pub(crate) fn size<E: Bounded>(conn: &impl ConnectionTrait) -> SimpleExpr {
    let in_every = conn.get_database_backend() == DbBackend::Sqlite;
    let columns = E::Column::iter().filter(|column| in_every || E::limit(column).is_some());
    let lengths =
        columns.map(|column| Expr::expr(Func::coalesce([length(Expr::col(column.as_column_ref())), number(0)])));
    lengths.fold(number(0), |sum, length| sum.add(length)).cast_as("bigint")
}

/// Returns the bytes that a row can have at most.
pub(crate) fn limit_of_row<E: Bounded>() -> i64 {
    let limits = E::Column::iter().map(|column| E::limit(&column).unwrap_or(HASH));
    i64::try_from(limits.sum::<u64>()).unwrap_or(i64::MAX)
}

fn length(expr: SimpleExpr) -> SimpleExpr {
    Func::cust("octet_length").arg(expr).into()
}

/// Written into the statement, so that it has no parameter for each column.
fn number(number: u64) -> SimpleExpr {
    Expr::cust(number.to_string())
}

/// Gives the columns of the entity of a module their limits. `Entity::find` and `Entity::find_by_id` of the module
/// return the queries of this module, so that no reader forgets the limits.
macro_rules! bounded {
    (by id, $($column:ident: $limit:expr),+ $(,)?) => {
        crate::entity::bounds::bounded!($($column: $limit),+);

        impl Entity {
            /// Returns a query of one row. A value over its limit reads as NULL.
            pub(crate) fn find_by_id(
                key: impl Into<<PrimaryKey as PrimaryKeyTrait>::ValueType>,
            ) -> sea_orm::Select<Self> {
                crate::entity::bounds::with_id(Self::find(), key)
            }
        }
    };
    ($($column:ident: $limit:expr),+ $(,)?) => {
        impl crate::entity::bounds::Bounded for Entity {
            fn limit(column: &Column) -> Option<u64> {
                match column {
                    $(Column::$column => Some($limit),)+
                    _ => None,
                }
            }
        }

        impl Entity {
            /// Returns a query of all rows. A value over its limit reads as NULL.
            pub(crate) fn find() -> sea_orm::Select<Self> {
                crate::entity::bounds::find()
            }
        }
    };
}

pub(crate) use bounded;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entity::{
        anchors, audit_outbox, chains, checkpoints, discontinuities, entries, hash_tiles, journal_heads, leases,
        legal_holds, signed_heads,
    };
    use sea_orm::{ColumnType, QueryTrait as _};

    /// Returns the columns that the query of all columns reads whatever their length.
    fn unlimited<E: Bounded>(query: Select<E>) -> Vec<String> {
        let sql = query.build(DbBackend::Postgres).to_string();
        let is_long = |column: &E::Column| {
            matches!(
                column.def().get_column_type(),
                ColumnType::String(_)
                    | ColumnType::Text
                    | ColumnType::VarBinary(_)
                    | ColumnType::Blob
                    | ColumnType::Json
            )
        };
        let table = E::default().table_name().to_owned();
        E::Column::iter()
            .filter(is_long)
            .map(|column| column.as_str().to_owned())
            .filter(|column| !sql.contains(&format!("CASE WHEN (octet_length(\"{table}\".\"{column}\") <= ")))
            .collect()
    }

    #[test]
    fn every_long_column_has_a_limit() {
        let none = Vec::<String>::new();
        assert_eq!(unlimited(anchors::Entity::find()), none);
        assert_eq!(unlimited(audit_outbox::Entity::find()), none);
        assert_eq!(unlimited(chains::Entity::find()), none);
        assert_eq!(unlimited(checkpoints::Entity::find()), none);
        assert_eq!(unlimited(discontinuities::Entity::find()), none);
        assert_eq!(unlimited(entries::Entity::find()), none);
        assert_eq!(unlimited(hash_tiles::Entity::find()), none);
        assert_eq!(unlimited(journal_heads::Entity::find()), none);
        assert_eq!(unlimited(leases::Entity::find_by_id("work")), none);
        assert_eq!(unlimited(legal_holds::Entity::find()), none);
        assert_eq!(unlimited(signed_heads::Entity::find()), none);
    }
}

//! Positions in the logs: a page that begins after a position has the rows that followed it, although newer rows were
//! added and waiting entries were sealed since.

use super::integrity::{LogRow, RowCheck};
use crate::{
    StoreError,
    dialect::Pool,
    entity::{audit_outbox, entries},
    read::Page,
};
use sea_orm::{ColumnTrait, Condition, QueryOrder, QuerySelect};

/// A part of a log, with the position of each row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPage<T, P> {
    /// The rows.
    pub rows: Vec<LogRow<T>>,
    /// The position of each row; `None` for a row that cannot be read.
    pub positions: Vec<Option<P>>,
    /// Number of rows of the whole log, as filtered.
    pub total: u64,
    /// Number of rows from the first one of this page on.
    pub remaining: u64,
}

impl<T, P> From<LogPage<T, P>> for Page<LogRow<T>> {
    fn from(page: LogPage<T, P>) -> Self {
        Self {
            rows: page.rows,
            total: page.total,
        }
    }
}

/// The position of a row in the access log, which is ordered by time and row id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessPosition {
    /// The time in microseconds.
    created_at: i64,
    id: i64,
}

impl AccessPosition {
    pub(super) fn from_check(check: &RowCheck) -> Option<Self> {
        check.row().map(|row| Self {
            created_at: row.created_at,
            id: row.id,
        })
    }

    /// Condition for the rows after this one.
    pub(super) fn rows_after(self) -> Condition {
        use entries::Column as C;
        let same_time = Condition::all()
            .add(C::CreatedAt.eq(self.created_at))
            .add(C::Id.lt(self.id));
        Condition::any().add(C::CreatedAt.lt(self.created_at)).add(same_time)
    }

    /// The position as numbers, for a cursor.
    pub fn to_numbers(self) -> [Option<i64>; 2] {
        [Some(self.created_at), Some(self.id)]
    }

    /// The position of these numbers; `None` if they are none.
    pub fn from_numbers(numbers: [Option<i64>; 2]) -> Option<Self> {
        match numbers {
            [Some(created_at), Some(id)] => Some(Self { created_at, id }),
            _ => None,
        }
    }
}

/// The position of a sealed entry: entries are ordered by chain, and by sequence number within the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SealedPosition {
    chain: i64,
    seq: i64,
}

impl SealedPosition {
    fn from_row(row: &entries::Model) -> Self {
        Self {
            chain: row.chain_id,
            seq: row.seq,
        }
    }

    fn rows_before(self) -> Condition {
        use entries::Column as C;
        let same_chain = Condition::all().add(C::ChainId.eq(self.chain)).add(C::Seq.lt(self.seq));
        Condition::any().add(C::ChainId.lt(self.chain)).add(same_chain)
    }

    /// Condition for this row and those before it.
    fn rows_up_to(self) -> Condition {
        let next = Self {
            seq: self.seq.saturating_add(1),
            ..self
        };
        next.rows_before()
    }
}

/// The newest sealed entry, read before the waiting entries.
pub(super) async fn newest_position(conn: &Pool) -> Result<Option<SealedPosition>, StoreError> {
    use entries::Column as C;
    let newest = entries::Entity::find()
        .select_only()
        .column(C::ChainId)
        .column(C::Seq)
        .order_by_desc(C::ChainId)
        .order_by_desc(C::Seq);
    let newest: Option<(i64, i64)> = newest.into_tuple().one(conn).await?;
    Ok(newest.map(|(chain, seq)| SealedPosition { chain, seq }))
}

/// The position of a row in the audit log: waiting entries by descending outbox id, then the sealed ones. What waited
/// when the list was first read may be sealed when it is continued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditPosition {
    /// The outbox id of the last waiting entry that was listed.
    waiting: Option<i64>,
    /// The newest sealed entry when the list was first read. Later sealed ones are listed if they waited below
    /// `waiting`.
    newest: Option<SealedPosition>,
    /// The last sealed entry that was listed.
    sealed: Option<SealedPosition>,
}

impl AuditPosition {
    /// The position before all rows.
    pub(super) fn start(newest: Option<SealedPosition>) -> Self {
        Self {
            newest,
            ..Self::default()
        }
    }

    /// The position after a waiting entry.
    pub(super) fn after_waiting(self, id: i64) -> Self {
        Self {
            waiting: Some(id),
            ..self
        }
    }

    /// The position after a sealed entry.
    pub(super) fn after_sealed(self, check: &RowCheck) -> Option<Self> {
        check.row().map(|row| Self {
            sealed: Some(SealedPosition::from_row(row)),
            ..self
        })
    }

    /// Condition for the waiting rows after this position. `None` for all.
    pub(super) fn waiting_after(self) -> Option<Condition> {
        use audit_outbox::Column as C;
        match (self.sealed, self.waiting) {
            // No waiting entry is older than a sealed one. The type of the number is that of the column, because a
            // prepared statement keeps the type of its parameter.
            (Some(_), _) => Some(Condition::all().add(C::Id.lt(0_i64))),
            (None, Some(id)) => Some(Condition::all().add(C::Id.lt(id))),
            (None, None) => None,
        }
    }

    /// Condition for the sealed rows after this position. `None` for all.
    pub(super) fn sealed_after(self) -> Option<Condition> {
        use entries::Column as C;
        let not_listed_as_waiting = self.waiting.map(|id| {
            Condition::any()
                .add_option(self.newest.map(SealedPosition::rows_up_to))
                .add(C::OutboxId.is_null())
                .add(C::OutboxId.lt(id))
        });
        let older = self.sealed.map(SealedPosition::rows_before);
        (not_listed_as_waiting.is_some() || older.is_some())
            .then(|| Condition::all().add_option(not_listed_as_waiting).add_option(older))
    }

    /// The position as numbers, for a cursor.
    pub fn to_numbers(self) -> [Option<i64>; 5] {
        let chain = |position: Option<SealedPosition>| position.map(|position| position.chain);
        let seq = |position: Option<SealedPosition>| position.map(|position| position.seq);
        [
            self.waiting,
            chain(self.newest),
            seq(self.newest),
            chain(self.sealed),
            seq(self.sealed),
        ]
    }

    /// The position of these numbers; `None` if they are none.
    pub fn from_numbers(numbers: [Option<i64>; 5]) -> Option<Self> {
        let [waiting, newest_chain, newest_seq, sealed_chain, sealed_seq] = numbers;
        let place = |chain: Option<i64>, seq: Option<i64>| match (chain, seq) {
            (Some(chain), Some(seq)) => Some(Some(SealedPosition { chain, seq })),
            (None, None) => Some(None),
            (Some(_), None) | (None, Some(_)) => None,
        };
        let position = Self {
            waiting,
            newest: place(newest_chain, newest_seq)?,
            sealed: place(sealed_chain, sealed_seq)?,
        };
        (position.waiting.is_some() || position.sealed.is_some()).then_some(position)
    }
}

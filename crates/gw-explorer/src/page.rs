//! Pages of lists (spec/40 section 3).

use crate::{error::ExplorerError, position::Position, view::View};
use gw_http::{GrowingList, fitting};
use gw_postings::{RowId, RowSet, Space};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The query of a list that is read by offset or by cursor.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct FeedQuery {
    /// The number of rows: 25 if it is left out, at most 100. A greater number means the greatest.
    #[param(required = false, value_type = u64, example = 25)]
    limit: Option<String>,
    /// Only rows of blocks below this one. Ignored together with `cursor`.
    #[param(required = false, value_type = u64, example = 1200)]
    before: Option<String>,
    /// The number of rows to skip, below `before` if it is given. Ignored together with `cursor`.
    #[param(required = false, value_type = u64, example = 0)]
    offset: Option<String>,
    /// The `next_cursor` of the page before. It is valid for the same list, filter and viewer.
    #[param(required = false)]
    cursor: Option<String>,
}

/// The query of a list whose rows are in no block.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct RankedQuery {
    /// The number of rows: 25 if it is left out, at most 100. A greater number means the greatest.
    #[param(required = false, value_type = u64, example = 25)]
    limit: Option<String>,
    /// The number of rows to skip. Ignored together with `cursor`.
    #[param(required = false, value_type = u64, example = 0)]
    offset: Option<String>,
    /// The `next_cursor` of the page before. It is valid for the same list and viewer.
    #[param(required = false)]
    cursor: Option<String>,
}

/// The query of a list that is read by page numbers.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct NumberedQuery {
    /// The page, from 1 on.
    #[param(required = false, value_type = u64, example = 1)]
    page: Option<String>,
    /// The number of rows: 25 if it is left out, at most 100. A greater number means the greatest.
    #[param(required = false, value_type = u64, example = 25)]
    page_size: Option<String>,
}

/// The limits of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) default: usize,
    pub(crate) max: usize,
}

impl Limits {
    pub(crate) const ROWS: Self = Self { default: 25, max: 100 };
    pub(crate) const LOGS: Self = Self {
        default: 100,
        max: 1000,
    };
}

/// A requested page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageRequest {
    pub(crate) limit: usize,
    pub(crate) offset: u64,
    pub(crate) before: Option<u64>,
}

impl FeedQuery {
    /// The cursor, of a list whose cursors are not encrypted.
    pub(crate) fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }

    /// # Errors
    /// 400 if a member is no number.
    pub(crate) fn page(&self, limits: Limits) -> Result<PageRequest, ExplorerError> {
        let offset = number("offset", self.offset.as_deref())?;
        let before = number("before", self.before.as_deref())?;
        Ok(PageRequest {
            limit: limit("limit", self.limit.as_deref(), limits)?,
            offset: offset.unwrap_or_default(),
            before,
        })
    }
}

impl RankedQuery {
    /// The cursor, of a list whose cursors are not encrypted.
    pub(crate) fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }

    /// # Errors
    /// 400 if a member is no number.
    pub(crate) fn page(&self, limits: Limits) -> Result<PageRequest, ExplorerError> {
        Ok(PageRequest {
            limit: limit("limit", self.limit.as_deref(), limits)?,
            offset: number("offset", self.offset.as_deref())?.unwrap_or_default(),
            before: None,
        })
    }
}

impl NumberedQuery {
    /// # Errors
    /// 400 if a member is no number.
    pub(crate) fn page(&self, limits: Limits) -> Result<PageRequest, ExplorerError> {
        let limit = limit("pageSize", self.page_size.as_deref(), limits)?;
        let page = number("page", self.page.as_deref())?.unwrap_or(1).max(1);
        Ok(PageRequest {
            limit,
            offset: (page - 1).saturating_mul(limit as u64),
            before: None,
        })
    }
}

/// A number of rows, within its limits.
///
/// # Errors
/// 400 if it is no number.
pub(crate) fn limit(name: &'static str, text: Option<&str>, limits: Limits) -> Result<usize, ExplorerError> {
    let Some(number) = number(name, text)? else {
        return Ok(limits.default);
    };
    Ok(usize::try_from(number).unwrap_or(limits.max).clamp(1, limits.max))
}

/// A whole number. A negative one means zero, one that is too great means the greatest.
///
/// # Errors
/// 400 if it is no number.
pub(crate) fn number(name: &'static str, text: Option<&str>) -> Result<Option<u64>, ExplorerError> {
    let Some(text) = text else { return Ok(None) };
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ExplorerError::bad_request(format!("{name} must be a number")));
    }
    Ok(Some(if is_negative {
        0
    } else {
        digits.parse().unwrap_or(u64::MAX)
    }))
}

/// A page of a list.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct ExplorerListResponse<T> {
    /// The rows, the newest first.
    pub(crate) data: Vec<T>,
    /// The number of rows of the whole list for this viewer, below `before` if it is given. Left out if it is not known
    /// exactly, because too many logs would have to be evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) total: Option<u64>,
    /// The `cursor` of the next page. Left out on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}

/// The ids of a page.
#[derive(Debug)]
pub(crate) struct PageIds {
    pub(crate) ids: Vec<RowId>,
    pub(crate) total: u64,
    pub(crate) has_more: bool,
}

impl View {
    /// The row below which the page of a cursor begins; `None` without a cursor.
    ///
    /// # Errors
    /// 400 for an invalid cursor; 503 if a reorganization changed the index.
    pub(crate) fn cursor_row(&self, space: Space, list: &GrowingList) -> Result<Option<RowId>, ExplorerError> {
        let position = self.cursor(list)?;
        position.map(|position| self.row_before(space, position)).transpose()
    }

    /// The row below which the rows begin that can be paged through: the first one of the block `before`, unless the
    /// cursor of the request is of a page above that block.
    ///
    /// # Errors
    /// As [`Self::cursor_row`].
    pub(crate) fn list_end(
        &self,
        space: Space,
        list: &GrowingList,
        page: PageRequest,
    ) -> Result<Option<RowId>, ExplorerError> {
        let Some(before) = page.before else { return Ok(None) };
        let end = self.first_row_of(space, before)?;
        let start = self.cursor_row(space, list)?;
        Ok(Some(end).filter(|end| start.is_none_or(|start| start <= *end)))
    }

    /// The rows that can be paged through: those of blocks below `before`, unless the cursor of the request is of a
    /// page above that block.
    ///
    /// # Errors
    /// As [`Self::cursor_row`].
    pub(crate) fn rows_before<'r>(
        &self,
        rows: &'r RowSet,
        list: &GrowingList,
        page: PageRequest,
    ) -> Result<Cow<'r, RowSet>, ExplorerError> {
        Ok(match self.list_end(rows.space(), list, page)? {
            Some(end) => Cow::Owned(rows.before(end)),
            None => Cow::Borrowed(rows),
        })
    }

    /// The ids of a page of these rows.
    ///
    /// # Errors
    /// As [`Self::cursor_row`].
    pub(crate) fn page_ids(
        &self,
        rows: &RowSet,
        list: &GrowingList,
        page: PageRequest,
    ) -> Result<PageIds, ExplorerError> {
        let rows = self.rows_before(rows, list, page)?;
        let mut ids = match self.cursor_row(rows.space(), list)? {
            Some(before) => rows.page_before(Some(before), page.limit.saturating_add(1)),
            None => rows.page_at(page.offset, page.limit.saturating_add(1)),
        };
        let has_more = ids.len() > page.limit;
        ids.truncate(page.limit);
        Ok(PageIds {
            ids,
            total: rows.len(),
            has_more,
        })
    }

    /// The answer of a page. A page of long rows has fewer of them, and its cursor leads on.
    ///
    /// # Errors
    /// 503 if a reorganization changed the index.
    pub(crate) fn answer<T: Serialize>(
        &self,
        space: Space,
        list: &GrowingList,
        page: PageIds,
        rows: Vec<T>,
    ) -> Result<ExplorerListResponse<T>, ExplorerError> {
        let count = rows.len();
        let data = if rows.is_empty() { rows } else { fitting(rows) };
        let has_more = page.has_more || data.len() < count;
        let last = data.len().checked_sub(1).and_then(|last| page.ids.get(last));
        let next_cursor = match last.filter(|_| has_more) {
            Some(last) => self.cursor_after(space, list, *last)?,
            None => None,
        };
        Ok(ExplorerListResponse {
            data,
            total: Some(page.total),
            next_cursor,
        })
    }

    /// The cursor of the page that begins below this row.
    ///
    /// # Errors
    /// 503 if a reorganization changed the index.
    pub(crate) fn cursor_after(
        &self,
        space: Space,
        list: &GrowingList,
        row: RowId,
    ) -> Result<Option<String>, ExplorerError> {
        Ok(self.cursor_at(list, self.position_of(space, row)?))
    }

    /// The cursor of the page that begins below this position.
    pub(crate) fn cursor_at(&self, list: &GrowingList, position: Position) -> Option<String> {
        let scope = self.id.cursor_scope();
        list.next(&self.state.http_context, &scope, position.numbers())
    }

    /// The position in the cursor of a request.
    ///
    /// # Errors
    /// 400 for an invalid cursor.
    fn cursor(&self, list: &GrowingList) -> Result<Option<Position>, ExplorerError> {
        let numbers = list.after::<4>(&self.state.http_context, &self.id.cursor_scope())?;
        let Some(numbers) = numbers else { return Ok(None) };
        let position = Position::from_numbers(numbers);
        let invalid = || ExplorerError::bad_request("invalid pagination cursor");
        position.map(Some).ok_or_else(invalid)
    }

    /// The block that a page of blocks begins below, by the cursor of the request.
    ///
    /// # Errors
    /// 400 for an invalid cursor.
    pub(crate) fn cursor_block(&self, list: &GrowingList) -> Result<Option<u64>, ExplorerError> {
        let Some(position) = self.cursor(list)? else {
            return Ok(None);
        };
        let fork = self.fork_since(position)?;
        Ok(Some(position.block.min(fork)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_clamped_and_words_are_refused() {
        let page = |limit: &str, offset: &str| {
            let query = FeedQuery {
                limit: Some(limit.to_owned()),
                offset: Some(offset.to_owned()),
                ..FeedQuery::default()
            };
            query.page(Limits::ROWS).map(|page| (page.limit, page.offset)).ok()
        };
        assert_eq!(page("10", "3"), Some((10, 3)));
        assert_eq!(page("0", "-5"), Some((1, 0)));
        assert_eq!(page("-7", "0"), Some((1, 0)));
        assert_eq!(page("101", "0"), Some((100, 0)));
        assert_eq!(
            page("99999999999999999999999", "99999999999999999999999"),
            Some((100, u64::MAX))
        );
        for word in ["", "x", "1.5", "+1", " 1", "0x10", "-"] {
            assert_eq!(page(word, "0"), None, "{word}");
            assert_eq!(page("1", word), None, "{word}");
        }
        let numbered = NumberedQuery {
            page: Some("0".to_owned()),
            page_size: Some("10".to_owned()),
        };
        assert_eq!(numbered.page(Limits::ROWS).unwrap().offset, 0);
        let numbered = NumberedQuery {
            page: Some("3".to_owned()),
            page_size: None,
        };
        assert_eq!(numbered.page(Limits::ROWS).unwrap().offset, 50);
    }
}

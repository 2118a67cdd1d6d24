//! Pagination by `limit` and `offset` (80 §4).

use axum::extract::FromRequestParts;
use http::request::Parts;
use serde::Serialize;
use std::{convert::Infallible, io};

/// Maximum number of rows of one page.
const MAX_LIMIT: u32 = 1000;

/// Maximum size of the rows of one page, in bytes of JSON.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// Truncates the rows to those that fit into one page, but never below one row.
pub fn fitting<T: Serialize>(mut rows: Vec<T>) -> Vec<T> {
    let mut written = Count(0);
    let fit = rows
        .iter()
        .take_while(|row| serde_json::to_writer(&mut written, row).is_err() || written.0 <= PAGE_BYTES);
    let fit = fit.count().max(1);
    rows.truncate(fit);
    rows
}

/// Counts the bytes that are written.
struct Count(usize);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The requested part of a list: `DEFAULT` rows unless the query says otherwise. Invalid values mean the default; a
/// limit above 1000 means 1000 rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page<const DEFAULT: u32 = 50> {
    /// At most this many rows.
    pub limit: u32,
    /// After skipping this many.
    pub offset: u64,
}

/// The query parameters of a list, for the API description.
#[derive(Debug, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// At most this many rows, up to 1000; fewer if the rows are long, about 4 MiB a page. The next page begins after
    /// the last row that was returned.
    #[param(required = false, minimum = 1, maximum = 1000)]
    pub limit: Option<u32>,
    /// Rows to skip.
    #[param(required = false)]
    pub offset: Option<u64>,
}

/// One page of a list.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct Paged<T> {
    /// The rows.
    pub data: Vec<T>,
    /// The number of rows of the whole list.
    pub total: u64,
    /// The limit that was applied; on a page that has fewer rows because they are long, the number of its rows.
    pub limit: u32,
    /// The offset that was applied.
    pub offset: u64,
}

impl<const DEFAULT: u32> Page<DEFAULT> {
    /// Reads the page from a query string.
    pub fn of_query(query: &str) -> Self {
        let mut page = Self {
            limit: DEFAULT,
            offset: 0,
        };
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "limit" => {
                    page.limit = match value.parse::<u128>() {
                        Ok(0) | Err(_) => DEFAULT,
                        Ok(limit) => u32::try_from(limit).unwrap_or(MAX_LIMIT).min(MAX_LIMIT),
                    }
                }
                // The databases use signed 64-bit integers.
                "offset" => page.offset = value.parse().ok().filter(|n| i64::try_from(*n).is_ok()).unwrap_or(0),
                _ => {}
            }
        }
        page
    }

    /// Builds this page of a list that was read as a whole.
    pub fn of_all<T: Serialize>(self, all: Vec<T>) -> Paged<T> {
        let total = all.len() as u64;
        let offset = usize::try_from(self.offset).unwrap_or(usize::MAX);
        self.answer(all.into_iter().skip(offset).take(self.limit as usize).collect(), total)
    }

    /// Builds the answer of this page. If the rows are too long to fit, it has fewer of them, and `limit` is their
    /// number.
    pub fn answer<T: Serialize>(self, data: Vec<T>, total: u64) -> Paged<T> {
        let data = fitting(data);
        let limit = match u32::try_from(data.len()) {
            Ok(given @ 1..) if self.offset.saturating_add(given.into()) < total => given.min(self.limit),
            Ok(_) | Err(_) => self.limit,
        };
        Paged {
            data,
            total,
            limit,
            offset: self.offset,
        }
    }
}

impl<const DEFAULT: u32, S: Sync> FromRequestParts<S> for Page<DEFAULT> {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of_query(parts.uri.query().unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admin_4_paging_defaults_and_clamps() {
        for (query, limit, offset) in [
            ("", 50, 0),
            ("limit=10&offset=20", 10, 20),
            ("limit=1001", 1000, 0),
            ("limit=99999999999999999999", 1000, 0),
            ("limit=0", 50, 0),
            ("limit=-1&offset=-1", 50, 0),
            ("limit=ten&offset=x", 50, 0),
            ("offset=18446744073709551615", 50, 0),
        ] {
            assert_eq!(Page::<50>::of_query(query), Page { limit, offset }, "{query}");
        }
        assert_eq!(Page::<100>::of_query("limit=x").limit, 100);
    }

    #[test]
    fn a_list_that_was_read_as_a_whole_is_cut_into_pages() {
        let page = |query| Page::<1000>::of_query(query).of_all(vec![1, 2, 3, 4, 5]);
        assert_eq!(
            (page("").data, page("").total, page("").limit),
            (vec![1, 2, 3, 4, 5], 5, 1000)
        );
        let middle = page("limit=2&offset=1");
        assert_eq!(
            (middle.data, middle.total, middle.limit, middle.offset),
            (vec![2, 3], 5, 2, 1)
        );
        assert_eq!(page("offset=9").data, Vec::<i32>::new());
    }

    /// The total size of the rows is limited as well.
    #[test]
    fn a_page_of_long_rows_has_fewer_of_them() {
        let page = Page::<50> {
            limit: 1000,
            offset: 10,
        };
        let long = || vec!["x".repeat(1024 * 1024); 8];
        let cut = page.answer(long(), 18);
        assert_eq!((cut.data.len(), cut.limit, cut.total), (3, 3, 18));
        let one = page.answer(vec!["x".repeat(2 * PAGE_BYTES); 2], 12);
        assert_eq!((one.data.len(), one.limit), (1, 1));
        let whole = page.answer(vec!["x"; 8], 18);
        assert_eq!((whole.data.len(), whole.limit), (8, 1000));
        assert!(page.answer(Vec::<String>::new(), 18).data.is_empty());
    }
}

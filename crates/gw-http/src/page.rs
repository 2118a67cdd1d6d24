//! Lists by `limit` and `offset` (80 §4).

use axum::extract::FromRequestParts;
use http::request::Parts;
use serde::Serialize;
use std::convert::Infallible;

/// The most rows of one page.
const MAX_LIMIT: u32 = 1000;

/// Which part of a list is asked for. `DEFAULT` rows unless the query says otherwise; what makes no sense is the
/// default, what is too much is 1000 rows.
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
    /// At most this many rows, up to 1000.
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
    /// How many rows the whole list has.
    pub total: u64,
    /// The limit that was applied.
    pub limit: u32,
    /// The offset that was applied.
    pub offset: u64,
}

impl<const DEFAULT: u32> Page<DEFAULT> {
    /// Reads a query string.
    pub fn of_query(query: &str) -> Self {
        let mut page = Self { limit: DEFAULT, offset: 0 };
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "limit" => {
                    page.limit = match value.parse::<u128>() {
                        Ok(0) | Err(_) => DEFAULT,
                        Ok(limit) => u32::try_from(limit).unwrap_or(MAX_LIMIT).min(MAX_LIMIT),
                    }
                }
                // The databases count in signed 64 bits.
                "offset" => page.offset = value.parse().ok().filter(|n| i64::try_from(*n).is_ok()).unwrap_or(0),
                _ => {}
            }
        }
        page
    }

    /// The answer for this page.
    pub fn of<T>(self, data: Vec<T>, total: u64) -> Paged<T> {
        Paged { data, total, limit: self.limit, offset: self.offset }
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
}

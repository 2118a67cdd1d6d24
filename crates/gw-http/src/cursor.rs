//! Cursors of lists that grow: where the next page begins, independent of rows that were added since.
//!
//! A cursor is bound to its list: route, filter and the caller's scope.

use crate::{cursor_cipher::Position, error::ApiError, http_context::HttpContext};
use axum::extract::FromRequestParts;
use http::request::Parts;
use std::convert::Infallible;

/// The query parameter of a list that grows, for the API description.
#[derive(Debug, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct CursorQuery {
    /// The `next_cursor` of the previous page; the filter must be the same. Rows that were added in the meantime do not
    /// shift or repeat other rows. Not together with `offset`.
    #[param(required = false)]
    pub cursor: Option<String>,
}

/// A requested part of a list that grows: which list it is, and the cursor if one was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrowingList {
    /// Route and filter.
    name: String,
    cursor: Option<String>,
}

/// The parameters that choose a page of a list, not the list.
const PAGE_PARAMETERS: [&str; 7] = ["limit", "offset", "cursor", "envelope", "before", "page", "pageSize"];

impl GrowingList {
    /// Reads the request. The filter is all other parameters, in a fixed order.
    fn from_uri(path: &str, query: &str) -> Self {
        let mut cursor = None;
        let mut filter: Vec<(String, String)> = Vec::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if name == "cursor" {
                cursor = Some(value.into_owned());
            } else if !PAGE_PARAMETERS.contains(&&*name) {
                filter.push((name.into_owned(), value.into_owned()));
            }
        }
        filter.sort_unstable();
        let filter = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(filter)
            .finish();
        Self {
            name: format!("{path}?{filter}"),
            cursor,
        }
    }

    /// The position after which the requested page begins; `None` without a cursor. `scope` names what the caller may
    /// read of the list.
    ///
    /// # Errors
    /// 400 for a cursor that is malformed, altered, or of another list or scope.
    pub fn after<const N: usize>(&self, context: &HttpContext, scope: &str) -> Result<Option<Position<N>>, ApiError> {
        let Some(cursor) = &self.cursor else { return Ok(None) };
        let position = context.tokens.cursors().open(&self.in_scope(scope), cursor);
        position
            .map(Some)
            .ok_or_else(|| ApiError::bad_request("invalid pagination cursor"))
    }

    /// The cursor of the page that begins after `position`.
    pub fn next<const N: usize>(&self, context: &HttpContext, scope: &str, position: Position<N>) -> Option<String> {
        let cursors = context.tokens.cursors();
        cursors.seal(&self.in_scope(scope), position, &*context.entropy)
    }

    fn in_scope(&self, scope: &str) -> String {
        // A query contains no blank.
        format!("{} {scope}", self.name)
    }
}

impl<S: Sync> FromRequestParts<S> for GrowingList {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::from_uri(parts.uri.path(), parts.uri.query().unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_its_route_and_its_filter() {
        let name = |query| GrowingList::from_uri("/logs", query).name;
        assert_eq!(name("b=2&limit=5&a=1&cursor=x&offset=0"), "/logs?a=1&b=2");
        assert_eq!(name("a=1&b=2&envelope=true"), "/logs?a=1&b=2");
        assert_ne!(name("a=1"), name("a=2"));
        assert_ne!(name("a=1%26b=2"), name("a=1&b=2"));
        assert_eq!(GrowingList::from_uri("/logs", "cursor=x").cursor, Some("x".to_owned()));
    }
}

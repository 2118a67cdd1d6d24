//! The request for a page of an address.

use super::parse_address;
use crate::{
    error::ExplorerError,
    page::{FeedQuery, Limits, PageRequest},
    state::ExplorerState,
    view::{RequestCaller, View},
};
use axum::extract::{FromRequestParts, Path};
use gw_http::{GrowingList, QueryParams};
use gw_postings::Space;
use gw_types::Address;
use http::request::Parts;

/// A request for a page of the rows of an address: who asks, for which address, and for which page.
#[derive(Clone, Debug)]
pub(crate) struct AddressFeed {
    state: ExplorerState,
    caller: RequestCaller,
    pub(crate) address: Address,
    pub(crate) page: PageRequest,
    pub(crate) list: GrowingList,
}

impl AddressFeed {
    /// Opens the view of the caller, with the rows of a space.
    ///
    /// # Errors
    /// As [`View::open`].
    pub(crate) async fn open(&self, space: Space) -> Result<View, ExplorerError> {
        View::open(&self.state, &self.caller, &[space]).await
    }
}

impl FromRequestParts<ExplorerState> for AddressFeed {
    type Rejection = ExplorerError;

    async fn from_request_parts(parts: &mut Parts, state: &ExplorerState) -> Result<Self, ExplorerError> {
        let caller = RequestCaller::from_request_parts(parts, state).await?;
        let path = Path::<String>::from_request_parts(parts, state).await;
        let Path(address) = path.map_err(|_| ExplorerError::bad_request("invalid address"))?;
        let QueryParams(query) = QueryParams::<FeedQuery>::from_request_parts(parts, state).await?;
        let list = GrowingList::from_request_parts(parts, state).await;
        let Ok(list) = list;
        Ok(Self {
            address: parse_address(&address)?,
            page: query.page(Limits::ROWS)?,
            list,
            state: state.clone(),
            caller,
        })
    }
}

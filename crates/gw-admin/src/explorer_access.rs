//! What the server provides for impersonated reads of the explorer (spec/40 E11).

use axum::{extract::Request, response::Response};
use gw_types::{OrgId, UserId};
use std::pin::Pin;

/// The data API of the explorer, as the server provides it.
pub trait ImpersonatedExplorer: Send + Sync + std::fmt::Debug {
    /// The route that serves this path of the data API, without the values in the path; `None` if there is none.
    fn route(&self, path: &str) -> Option<String>;

    /// Answers a request to the data API. The answer contains what the member and the administrator may both see (HD7).
    fn read(&self, view: ExplorerView, request: Request) -> ExplorerFuture<'_>;
}

/// The answer of [`ImpersonatedExplorer::read`].
pub type ExplorerFuture<'a> = Pin<Box<dyn Future<Output = Response> + Send + 'a>>;

/// Who reads what whom sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExplorerView {
    /// The member.
    pub target: UserId,
    /// The administrator, who has been authorized.
    pub impersonator: UserId,
    /// The organization that both belong to.
    pub org: OrgId,
}

//! The explorer of this instance: its database, the indexer, the index in memory and the data API (spec/40).
//!
//! The explorer is optional (spec/85 section 3, step 9): whatever happens to it, the gateway serves everything else,
//! and the data API answers 503 with the reason (decision 14).

mod api;
mod policy;
mod runner;
mod validation;

pub(super) use api::ExplorerApi;
pub(crate) use api::Unavailable;
pub(crate) use policy::ExplorerNode;
pub(crate) use runner::{ExplorerRunner, IndexApi, IndexParts, indexer_config};

use super::disclosure::ExplorerGrants;
use crate::config;
use api::route_of;
use axum::{
    extract::Request,
    response::{IntoResponse as _, Response},
};
use gw_admin::{ExplorerFuture, ExplorerView, ImpersonatedExplorer};
use gw_chain_store::Location;
use gw_explorer::{ExplorerState, Impersonation, SelectionCache, ViewerReads};
use gw_http::{ApiError, HttpContext};
use gw_journal::Journal;
use gw_node::Node;
use gw_policy::PolicySettings;
use gw_store::{Feed, Store};
use gw_types::{Clock, Entropy, Seconds};
use policy::OwnOrgOnly;
use std::{convert::Infallible, sync::Arc};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::ServiceExt as _;

/// The most bytes of the rows of recent viewers.
const SELECTION_BYTES: usize = 64 << 20;

/// The parts of the gateway that the explorer needs.
#[derive(Clone, Debug)]
pub(super) struct Explorer {
    pub(super) config: config::Explorer,
    /// The database of the chain.
    pub(super) location: Location,
    /// The most connections to the database.
    pub(super) connections: u32,
    pub(super) api: ExplorerApi,
    pub(super) node: Arc<Node>,
    pub(super) policy_store: Store,
    pub(super) feed: Feed,
    pub(super) http_context: Arc<HttpContext>,
    pub(super) journal: Arc<Journal>,
    pub(super) policy_settings: Arc<PolicySettings>,
    pub(super) grants: ExplorerGrants,
    /// DISCLOSURE_TIME_BUCKET_SECONDS
    pub(super) grant_time_bucket: Seconds,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) entropy: Arc<dyn Entropy>,
    pub(super) tasks: TaskTracker,
}

impl Explorer {
    /// Runs the explorer until `stop` is cancelled; starts it again after a failure.
    pub(super) async fn run(self, stop: CancellationToken) {
        let runner = ExplorerRunner {
            config: self.config.clone(),
            location: self.location.clone(),
            connections: self.connections,
            name: format!("instance {}", self.journal.shard()),
            node: Arc::clone(&self.node),
            view_policy: self.view_policy(),
            clock: Arc::clone(&self.clock),
            entropy: Arc::clone(&self.entropy),
            api: Arc::new(self),
        };
        runner.run(stop).await;
    }

    fn view_policy(&self) -> Arc<OwnOrgOnly> {
        Arc::new(OwnOrgOnly {
            feed: self.feed.clone(),
            policy_settings: Arc::clone(&self.policy_settings),
            clock: Arc::clone(&self.clock),
        })
    }
}

impl IndexApi for Explorer {
    fn serve(&self, parts: IndexParts) {
        let node = Arc::new(ExplorerNode::new(Arc::clone(&self.node), self.view_policy()));
        let index = parts.clone();
        let state = ExplorerState {
            http_context: Arc::clone(&self.http_context),
            policy_store: self.policy_store.clone(),
            feed: self.feed.clone(),
            store: parts.store,
            index: parts.index,
            validation: parts.validation,
            selections: Arc::new(SelectionCache::new(SELECTION_BYTES)),
            reads: Arc::new(ViewerReads::new(self.connections)),
            journal: Arc::clone(&self.journal),
            policy_settings: Arc::clone(&self.policy_settings),
            grants: Arc::new(self.grants.clone()),
            aliases: Arc::new(self.grants.clone()),
            grant_time_bucket: self.grant_time_bucket,
            balances: Arc::clone(&node) as _,
            indexer: node,
            chain_id: self.node.chain_id(),
            tasks: self.tasks.clone(),
        };
        self.api.serve(gw_explorer::router(state), index);
    }

    fn suspend(&self, reason: Unavailable) {
        self.api.suspend(reason);
    }
}

/// The data API for the admin API's impersonated reads (E11).
impl ImpersonatedExplorer for ExplorerApi {
    fn route(&self, path: &str) -> Option<String> {
        route_of(path)
    }

    fn read(&self, view: ExplorerView, mut request: Request) -> ExplorerFuture<'_> {
        let ExplorerView {
            target,
            impersonator,
            org,
        } = view;
        request.extensions_mut().insert(Impersonation {
            target,
            impersonator,
            org,
        });
        let routes = self.state().routes;
        Box::pin(async move {
            let answer: Result<Response, Infallible> = routes.oneshot(request).await;
            answer.unwrap_or_else(|_| ApiError::internal().into_response())
        })
    }
}

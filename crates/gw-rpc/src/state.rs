//! What the pipeline draws on.

use crate::{
    limits::{Breakers, InFlight, Pauses, Rates, TraceQuota},
    live::{Filters, Sockets},
    meter::Meters,
    pins::Pins,
    send::SendContext,
};
use ::http::StatusCode;
use gw_evm::Extras;
use gw_http::Edge;
use gw_journal::Journal;
use gw_node::Node;
use gw_policy::Knobs;
use gw_store::Feed;
use gw_types::Clock;
use std::{num::NonZeroU32, sync::Arc};
use tokio_util::sync::CancellationToken;

/// What the pipeline draws on; cheap to clone.
#[derive(Clone, Debug)]
pub struct RpcState(pub(crate) Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) edge: Arc<Edge>,
    pub(crate) sends: SendContext,
    pub(crate) settings: RpcSettings,
    pub(crate) in_flight: Arc<InFlight>,
    pub(crate) rates: Rates,
    pub(crate) traces: TraceQuota,
    pub(crate) pauses: Pauses,
    pub(crate) breakers: Breakers,
    pub(crate) filters: Filters,
    pub(crate) sockets: Sockets,
    pub(crate) meters: Meters,
    pub(crate) pins: Pins,
}

/// Switches of the RPC surface.
#[derive(Clone, Debug)]
pub struct RpcSettings {
    /// `RPC_BATCH_MAX`: the most calls of one batch; zero refuses batches (decision 8).
    pub batch_max: usize,
    /// `RPC_DENY_HTTP_STATUS`: 404, or 200 for clients that hide the body of a 404 (decision 14).
    pub denial_status: StatusCode,
    /// `MAX_CONCURRENT_REQUESTS` per identity.
    pub max_concurrent: usize,
    /// `MAX_CONCURRENT_ANONYMOUS_REQUESTS` per address.
    pub max_concurrent_anonymous: usize,
    /// `RATE_LIMIT_RPC` per identity, where there is a limit.
    pub per_minute: Option<NonZeroU32>,
    /// `RATE_LIMIT_ANON` per address, where there is a limit.
    pub anonymous_per_minute: Option<NonZeroU32>,
    /// `AUDIT_DURABILITY=power`: every answer waits for the fsync of its record (decision 10).
    pub wait_for_fsync: bool,
    /// `AUDIT_FULL_POLICY=open_reads`: reads go on unrecorded while the journal is full (spec/70 rule 14).
    pub open_reads: bool,
    /// `PERSONAL_RPC_URLS`: personal URLs are served.
    pub personal_urls: bool,
    /// `AUDIT_LOG_PARAMS`: records keep the parameters, redacted.
    pub log_params: bool,
    /// `EXTRA_RPC_NAMESPACES_FILE`: methods beside the registry.
    pub extras: Arc<Extras>,
}

impl Default for RpcSettings {
    fn default() -> Self {
        Self {
            batch_max: 100,
            denial_status: StatusCode::NOT_FOUND,
            max_concurrent: 50,
            max_concurrent_anonymous: 50,
            per_minute: None,
            anonymous_per_minute: None,
            wait_for_fsync: false,
            open_reads: false,
            personal_urls: false,
            log_params: false,
            extras: Arc::default(),
        }
    }
}

impl RpcState {
    /// Puts the pipeline together; what sends need, reads need too.
    ///
    /// `end` is told first at shutdown: connections that stay are closed then.
    pub fn new(edge: Arc<Edge>, sends: SendContext, settings: RpcSettings, end: CancellationToken) -> Self {
        let in_flight = InFlight::new(settings.max_concurrent, settings.max_concurrent_anonymous);
        let rates = Rates::new(settings.per_minute, settings.anonymous_per_minute, &sends.clock);
        let (breakers, traces, pauses) = (Breakers::default(), TraceQuota::default(), Pauses::default());
        let (filters, sockets, meters) = (Filters::default(), Sockets::new(end), Meters::new());
        let pins = Pins::default();
        let inner = Inner {
            edge,
            sends,
            settings,
            in_flight,
            rates,
            traces,
            pauses,
            breakers,
            filters,
            sockets,
            meters,
            pins,
        };
        Self(Arc::new(inner))
    }
}

impl Inner {
    pub(crate) fn node(&self) -> &Arc<Node> {
        &self.sends.node
    }

    pub(crate) fn feed(&self) -> &Feed {
        &self.sends.feed
    }

    pub(crate) fn journal(&self) -> &Arc<Journal> {
        &self.sends.journal
    }

    pub(crate) fn knobs(&self) -> &Knobs {
        &self.sends.knobs
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.sends.clock
    }
}

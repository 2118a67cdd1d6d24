//! The shared state of the RPC surface, and its settings.

use crate::{
    code_pins::CodePinReporter,
    limits::{CircuitBreakers, ConcurrencyLimiter, ExecutionPauses, RateLimits, TraceQuota},
    parties::{DEFAULT_PARTY_CACHE_BYTES, PartyCache},
    registry::{ConnectionLimiter, Filters},
    send_context::SendContext,
    telemetry::RpcMetrics,
    upstream::Upstream,
};
use ::http::StatusCode;
use gw_evm::CustomMethods;
use gw_http::HttpContext;
use gw_journal::Journal;
use gw_policy::{PolicySettings, access::BrokenPin};
use gw_store::Feed;
use gw_types::Clock;
use std::{num::NonZeroU32, sync::Arc};
use tokio_util::sync::CancellationToken;

/// The shared state of the RPC surface; cheap to clone.
#[derive(Clone, Debug)]
pub struct RpcState(pub(crate) Arc<RpcContext>);

#[derive(Debug)]
pub(crate) struct RpcContext {
    pub(crate) http: Arc<HttpContext>,
    pub(crate) sends: SendContext,
    pub(crate) settings: RpcSettings,
    pub(crate) in_flight: Arc<ConcurrencyLimiter>,
    pub(crate) rates: RateLimits,
    pub(crate) traces: TraceQuota,
    pub(crate) pauses: ExecutionPauses,
    pub(crate) breakers: CircuitBreakers,
    pub(crate) filters: Filters,
    pub(crate) parties: PartyCache,
    pub(crate) sockets: ConnectionLimiter,
    pub(crate) metrics: RpcMetrics,
    code_pins: CodePinReporter,
}

/// Settings of the RPC surface.
#[derive(Clone, Debug)]
pub struct RpcSettings {
    /// `RPC_BATCH_MAX`: the most calls of one batch; zero rejects batches (decision 8).
    pub batch_max: usize,
    /// `RPC_DENY_HTTP_STATUS`: 404, or 200 for clients that hide the body of a 404 (decision 14).
    pub denial_status: StatusCode,
    /// `MAX_CONCURRENT_REQUESTS`: concurrent calls of one user or personal URL.
    pub max_concurrent: usize,
    /// `MAX_CONCURRENT_ANONYMOUS_REQUESTS`: concurrent calls of one anonymous address.
    pub max_concurrent_anonymous: usize,
    /// `RATE_LIMIT_RPC`: calls per minute of one subject; `None` for no limit.
    pub per_minute: Option<NonZeroU32>,
    /// `RATE_LIMIT_ANON`: calls per minute of one anonymous address; `None` for no limit.
    pub anonymous_per_minute: Option<NonZeroU32>,
    /// `AUDIT_DURABILITY=power`: every answer waits for the fsync of its record (decision 10).
    pub wait_for_fsync: bool,
    /// `AUDIT_FULL_POLICY=open_reads`: while the journal is full, reads are answered without a record (spec/70 rule
    /// 14).
    pub open_reads: bool,
    /// `PERSONAL_RPC_URLS`: personal URLs are served.
    pub personal_urls: bool,
    /// `AUDIT_LOG_PARAMS`: records keep the parameters, redacted.
    pub log_params: bool,
    /// `EXTRA_RPC_NAMESPACES_FILE`: custom methods.
    pub custom_methods: Arc<CustomMethods>,
    /// Bytes for the senders and receivers of transactions that log queries have read; 85 for each transaction.
    pub party_cache_bytes: usize,
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
            custom_methods: Arc::default(),
            party_cache_bytes: DEFAULT_PARTY_CACHE_BYTES,
        }
    }
}

impl RpcState {
    /// The state of a service that is about to start. Reads also use the node, the feed and the journal of `sends`.
    ///
    /// `end` closes the WebSocket connections; shutdown cancels it first.
    pub fn new(http: Arc<HttpContext>, sends: SendContext, settings: RpcSettings, end: CancellationToken) -> Self {
        let in_flight = ConcurrencyLimiter::new(settings.max_concurrent, settings.max_concurrent_anonymous);
        let rates = RateLimits::new(settings.per_minute, settings.anonymous_per_minute, &sends.clock);
        let (breakers, traces, pauses) = (
            CircuitBreakers::default(),
            TraceQuota::default(),
            ExecutionPauses::default(),
        );
        let (filters, sockets, metrics) = (Filters::default(), ConnectionLimiter::new(end), RpcMetrics::new());
        let code_pins = CodePinReporter::default();
        let parties = PartyCache::new(settings.party_cache_bytes);
        let context = RpcContext {
            http,
            sends,
            settings,
            in_flight,
            rates,
            traces,
            pauses,
            breakers,
            filters,
            parties,
            sockets,
            metrics,
            code_pins,
        };
        Self(Arc::new(context))
    }
}

impl RpcContext {
    /// Reports shared contracts whose code at the head differs from the pinned code.
    pub(crate) fn report_broken_pins(&self, broken: Vec<BrokenPin>) {
        self.code_pins.report(&self.metrics, &self.sends, broken);
    }

    pub(crate) fn upstream(&self) -> &Upstream {
        &self.sends.node
    }

    pub(crate) fn feed(&self) -> &Feed {
        &self.sends.feed
    }

    pub(crate) fn journal(&self) -> &Arc<Journal> {
        &self.sends.journal
    }

    pub(crate) fn policy_settings(&self) -> &PolicySettings {
        &self.sends.policy_settings
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.sends.clock
    }
}

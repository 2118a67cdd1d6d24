//! One access record per call (spec/20 §15), written before the answer leaves and whatever becomes of the client.
//!
//! Invariant: from the moment a [`Recorder`] exists, its call leaves exactly one record: through [`Recorder::finish`],
//! or, when the client went away and the handler was dropped, as status 499 (HD21). Its room in the journal is taken
//! before anything is done, so a call that could not be recorded does not happen.

use crate::{meter::Ended, origin::Origin, reply::Reply, state::Inner};
use gw_audit::{AccessRecord, MatchedVia, TraceKind};
use gw_evm::{Class, Listed, Lookup, Method};
use gw_journal::{JournalError, Position, Reservation};
use gw_policy::access::StoppedAt;
use gw_types::{DenyReason, Epoch, OrgId};
use std::{
    borrow::Cow,
    sync::Arc,
    time::{Duration, Instant},
};

/// The record of a call under way.
#[derive(Debug)]
pub(crate) struct Recorder {
    state: Arc<Inner>,
    origin: Arc<Origin>,
    name: Cow<'static, str>,
    method: Option<Method>,
    began: Instant,
    room: Room,
    pub(crate) found: Found,
}

/// Where the record goes.
#[derive(Debug)]
enum Room {
    /// Reserved.
    Taken(Reservation),
    /// Nowhere, if need be: the journal is full and reads go on (`AUDIT_FULL_POLICY=open_reads`).
    None,
    /// It is written.
    Written,
}

/// What the steps of a call find out for its record.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) org: Option<OrgId>,
    pub(crate) epoch: Option<Epoch>,
    pub(crate) params: Option<String>,
    pub(crate) trace: Option<TraceKind>,
    /// By which entry a list let a method through that is beside the registry.
    pub(crate) listed: Option<Listed>,
    /// Where an execution was refused, for an administrator who asks (V1).
    pub(crate) stopped: Option<StoppedAt>,
    upstream: Option<Duration>,
}

impl Found {
    /// Waits for the node and counts the time; a client that hangs up meanwhile has called the node all the same.
    pub(crate) async fn upstream<T>(&mut self, state: &Inner, asking: impl Future<Output = T>) -> T {
        let before = *self.upstream.get_or_insert_default();
        let began = Instant::now();
        let answer = asking.await;
        let took = began.elapsed();
        self.upstream = Some(before + took);
        state.meters.node(took);
        answer
    }
}

/// The client closed the request (nginx's number for it).
const CLIENT_GONE: u16 = 499;

impl Recorder {
    /// The record of a call of `name`.
    pub(crate) fn of_call(
        state: &Arc<Inner>,
        origin: &Arc<Origin>,
        lookup: &Lookup,
        name: &str,
    ) -> Result<Self, Reply> {
        // What passes unexamined may be a send.
        let writes = |row: Option<Method>| row.is_none_or(|row| row.class() == Class::Write);
        match lookup {
            Lookup::Known(row) => Self::open(
                state,
                origin,
                Cow::Borrowed(row.as_str()),
                Some(*row),
                !writes(Some(*row)),
            ),
            Lookup::Extra(extra) => Self::open(
                state,
                origin,
                Cow::Owned(extra.name().to_owned()),
                extra.row(),
                !writes(extra.row()),
            ),
            Lookup::Blocked | Lookup::Unknown => Self::open(state, origin, Cow::Owned(legible(name)), None, true),
        }
    }

    /// The record of a request that never became a call: somebody knocked (L1).
    pub(crate) fn of_request(state: &Arc<Inner>, origin: &Arc<Origin>) -> Result<Self, Reply> {
        Self::open(state, origin, Cow::Borrowed("unparsed"), None, true)
    }

    /// The record of something the gateway does for a caller without a method of the registry.
    pub(crate) fn of_own(state: &Arc<Inner>, origin: &Arc<Origin>, name: &'static str) -> Result<Self, Reply> {
        Self::open(state, origin, Cow::Borrowed(name), None, true)
    }

    fn open(
        state: &Arc<Inner>,
        origin: &Arc<Origin>,
        name: Cow<'static, str>,
        method: Option<Method>,
        may_go_unrecorded: bool,
    ) -> Result<Self, Reply> {
        let room = match state.journal().reserve(1) {
            Ok(room) => Room::Taken(room),
            Err(JournalError::Full) if state.settings.open_reads && may_go_unrecorded => Room::None,
            Err(_) => return Err(Reply::AuditUnavailable),
        };
        let (state, origin) = (Arc::clone(state), Arc::clone(origin));
        Ok(Self {
            state,
            origin,
            name,
            method,
            began: Instant::now(),
            room,
            found: Found::default(),
        })
    }

    /// Writes the record; waits for its fsync if `durably`. What cannot be recorded is not answered.
    pub(crate) async fn finish(mut self, reply: Reply, durably: bool) -> Reply {
        let (status, said) = (reply.status(), reply.wire_status(self.state.settings.denial_status));
        self.measure(&reply);
        self.found.org = reply.org().or(self.found.org);
        let written = self.write(status.as_u16(), (said != status).then(|| said.as_u16()), reply.reason());
        match written {
            Ok(Some(position)) if durably || self.state.settings.wait_for_fsync => {
                match self.state.journal().durable(position).await {
                    Ok(()) => reply,
                    Err(_) => Reply::AuditUnavailable,
                }
            }
            Ok(_) => reply,
            Err(_) => Reply::AuditUnavailable,
        }
    }

    fn write(
        &mut self,
        status: u16,
        response_status: Option<u16>,
        denial_reason: Option<DenyReason>,
    ) -> Result<Option<Position>, JournalError> {
        let record = AccessRecord {
            external_id: self.origin.subject().cloned(),
            response_status,
            ip_address: Some(self.origin.client.0),
            correlation_id: self
                .origin
                .correlation_id
                .as_ref()
                .map(|id| id.as_str().to_owned().into()),
            request_params: self.found.params.take(),
            org_id: self.found.org,
            denial_reason,
            auth_method: self.origin.auth,
            rpc_url_id: self.origin.url_id(),
            duration_us: u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX),
            node_called: self.found.upstream.is_some(),
            upstream_ms: self
                .found
                .upstream
                .map(|took| u32::try_from(took.as_millis()).unwrap_or(u32::MAX)),
            policy_epoch: self.found.epoch,
            matched_via: self.found.epoch.and_then(|_| self.matched_via()),
            trace_kind: self.found.trace,
            ..AccessRecord::new(std::mem::take(&mut self.name), status)
        };
        match std::mem::replace(&mut self.room, Room::Written) {
            Room::Taken(mut room) => self.state.journal().append_reserved(&mut room, record).map(Some),
            // That it may fail was accepted when the recorder was opened.
            Room::None => Ok(self.state.journal().append(record).ok()),
            Room::Written => Ok(None),
        }
    }

    fn matched_via(&self) -> Option<MatchedVia> {
        match (self.found.listed, self.method.map(Method::class), self.origin.subject()) {
            (Some(Listed::ByPrefix), ..) => Some(MatchedVia::Prefix),
            (Some(Listed::ByName), ..) => Some(MatchedVia::Method),
            (None, None, _) => None,
            (None, Some(Class::Meta), _) => Some(MatchedVia::Metadata),
            (None, Some(_), None) => Some(MatchedVia::AnonymousList),
            (None, Some(_), Some(_)) => Some(MatchedVia::Method),
        }
    }

    fn measure(&self, reply: &Reply) {
        let ended = match reply {
            Reply::Result(_) => Ended::Success,
            reply if reply.status().is_client_error() => Ended::Denied,
            _ => Ended::Error,
        };
        self.state.meters.call(self.method, ended, self.began.elapsed());
        if let Some(reason) = reply.reason() {
            metrics::counter!("ledger_gateway_denials_total", "reason_class" => reason.class()).increment(1);
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if !matches!(self.room, Room::Written)
            && let Err(error) = self.write(CLIENT_GONE, None, None)
        {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "an abandoned call was not recorded"
            );
        }
    }
}

/// Of names that are in no table as much as a log line bears.
fn legible(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_ascii_graphic() { c } else { '?' })
        .take(Method::NAME_MAX)
        .collect()
}

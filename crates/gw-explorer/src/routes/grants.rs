//! What grants of disclosure show to their grantees (spec/50 sections 4 and 5).
//!
//! Unknown grants and grants of others have one answer. A grant is looked up by the policy of the page that it opens,
//! so a revocation binds the next page. Each read is journaled before its answer leaves.

use super::RequestOrigin;
use crate::{
    error::ExplorerError,
    grants::{GrantFault, GrantRefusal},
    page::{Limits, PageRequest, limit, number},
    rows::lower,
    state::ExplorerState,
    view::{RequestCaller, View},
    viewer::ViewerId,
    wire::{
        GrantActivityLogEntry, GrantActivityLogsResponse, GrantTransaction, GrantTransactionsResponse,
        ResolveAddressResponse,
    },
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_audit::{DisclosureAction, DisclosureData, DisclosureRead};
use gw_chain_store::rows::TransactionRow;
use gw_http::{ApiError, GrowingList, QueryParams, ReadOrigin, grant_read};
use gw_policy::{
    Snapshot,
    disclosure::{
        AddressId, ClassCheck, DataClass, GrantPage, OpenGrant, PageRow,
        coverage::{ClassNotCovered, check_class},
        scope::level_text,
    },
    snapshot::User,
};
use gw_postings::{BlockRange, RowId, RowSet, Space, VisibleAddress};
use gw_types::{Address, DisclosureGrantId, Level, Timestamp};
use serde::Deserialize;
use std::{collections::BTreeMap, sync::Arc};

const NO_GRANT: &str = "grant not found";
const NO_ADDRESS: &str = "address not found for this grant";

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct GrantTransactionsQuery {
    /// The number of rows: 25 if it is left out, at most 100. A greater number means the greatest.
    #[param(required = false, value_type = u64, example = 25)]
    limit: Option<String>,
    /// Only rows of blocks below this one. Ignored together with `cursor`; refused where the rows show no block numbers
    /// (`DISCLOSURE_TIME_BUCKET_SECONDS`).
    #[param(required = false, value_type = u64, example = 1200)]
    before: Option<String>,
    /// The `next_cursor` of the page before.
    #[param(required = false)]
    cursor: Option<String>,
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct GrantActivityQuery {
    /// The number of calls: 25 if it is left out, at most 100. A greater number means the greatest.
    #[param(required = false, value_type = u64, example = 25)]
    limit: Option<String>,
    /// The number of calls to skip.
    #[param(required = false, value_type = u64, example = 0)]
    offset: Option<String>,
}

/// The address behind an id of a grant of disclosure, as far as the grant discloses it.
#[utoipa::path(get, path = "/api/v1/explorer/grant/{grant_id}/resolve/{address_id}", tag = "explorer",
    params(("grant_id" = String, Path, description = "The grant"),
        ("address_id" = String, Path, description = "The id of the address under the grant")),
    responses((status = 200, body = ResolveAddressResponse), (status = 403), ExplorerError))]
pub(crate) async fn resolve_grant_address(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    origin: RequestOrigin,
    Path((grant, address)): Path<(String, String)>,
) -> Result<Json<ResolveAddressResponse>, ExplorerError> {
    let (id, address) = (grant_id(&grant)?, address_id(&address)?);
    let (snapshot, viewer) = caller.pin(&state)?;
    let grantee = grantee(&snapshot, viewer)?;
    let grant = active_grant(&state, &snapshot, grantee, id)?;
    caller.set_org_of_member(grant.grant.org, &snapshot, grantee.id, state.http_context.now());
    let address = disclosed_address(&grant, address)?;
    let level = grant.grant.scope.level;
    let read = read_under(
        &grant,
        grantee,
        &origin,
        DisclosureAction::Resolve,
        DisclosureData::Addresses,
    );
    let read = DisclosureRead {
        record_count: Some(1),
        addresses: vec![address],
        ..read
    };
    state.grants.record(vec![read]).await?;
    Ok(Json(ResolveAddressResponse {
        disclosure_level: level_text(level),
        grant_id: grant.grant.id.to_string(),
        pseudonym: (level == Level::Pseudonymous).then(|| grant.names.pseudonym(address)),
        real_address: (level == Level::Full).then(|| lower(address)),
        scope_methods: grant.grant.scope.methods.clone().unwrap_or_default(),
    }))
}

/// Lists the transactions of an address under a grant of disclosure, the newest first.
#[utoipa::path(get, path = "/api/v1/explorer/grant/{grant_id}/{address_id}/transactions", tag = "explorer",
    params(GrantTransactionsQuery, ("grant_id" = String, Path, description = "The grant"),
        ("address_id" = String, Path, description = "The id of the address under the grant")),
    responses((status = 200, body = GrantTransactionsResponse), (status = 403), ExplorerError))]
pub(crate) async fn list_grant_transactions(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    origin: RequestOrigin,
    Path((grant, address)): Path<(String, String)>,
    QueryParams(query): QueryParams<GrantTransactionsQuery>,
    list: GrowingList,
) -> Result<Json<GrantTransactionsResponse>, ExplorerError> {
    let (id, address_id) = (grant_id(&grant)?, address_id(&address)?);
    let page = PageRequest {
        limit: limit("limit", query.limit.as_deref(), Limits::ROWS)?,
        offset: 0,
        before: number("before", query.before.as_deref())?,
    };
    let find = |snapshot: &Snapshot, viewer: ViewerId| {
        let grantee = grantee(snapshot, viewer)?;
        let grant = active_grant(&state, snapshot, grantee, id)?;
        check_class(
            &grant.grant.scope,
            DataClass::Transactions,
            state.policy_settings.disclosure_classes,
        )
        .map_err(not_covered)?;
        let address = disclosed_address(&grant, address_id)?;
        Ok::<_, ExplorerError>((grantee.clone(), grant, address))
    };
    let (snapshot, viewer) = caller.pin(&state)?;
    let (_, grant, _) = find(&snapshot, viewer)?;
    drop(snapshot);
    // It would find the block of each row, which the bucket leaves out.
    if page.before.is_some() && grant.grant.scope.level < Level::Full && state.grant_time_bucket.0 > 0 {
        return Err(ExplorerError::bad_request(
            "before is not available: the grant shows no block numbers",
        ));
    }
    let view = View::open(&state, &caller, &[]).await?;
    // By the policy of the rows: it may have changed while the request waited.
    let (grantee, grant, address) = find(&view.snapshot, view.id)?;
    caller.set_org_of_member(grant.grant.org, &view.snapshot, grantee.id, state.http_context.now());
    let (answer, times) = view.grant_page(&grant, address, &list, page).await?;
    let read = read_under(
        &grant,
        &grantee,
        &origin,
        DisclosureAction::ViewTransactions,
        DisclosureData::Transactions,
    );
    let read = DisclosureRead {
        record_count: Some(answer.transactions.len() as u64),
        first: times.map(|(first, _)| first),
        last: times.map(|(_, last)| last),
        addresses: vec![address],
        ..read
    };
    state.grants.record(vec![read]).await?;
    Ok(Json(answer))
}

/// Lists the calls of the owner of the disclosed addresses, the newest first.
#[utoipa::path(get, path = "/api/v1/explorer/grant/{grant_id}/activity", tag = "explorer",
    params(GrantActivityQuery, ("grant_id" = String, Path, description = "The grant")),
    responses((status = 200, body = GrantActivityLogsResponse), (status = 403), ExplorerError))]
pub(crate) async fn list_grant_activity(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    origin: RequestOrigin,
    Path(grant): Path<String>,
    QueryParams(query): QueryParams<GrantActivityQuery>,
) -> Result<Json<GrantActivityLogsResponse>, ExplorerError> {
    let id = grant_id(&grant)?;
    let limit = limit("limit", query.limit.as_deref(), Limits::ROWS)? as u64;
    let offset = number("offset", query.offset.as_deref())?
        .unwrap_or_default()
        .min(i64::MAX.unsigned_abs());
    let (snapshot, viewer) = caller.pin(&state)?;
    let grantee = grantee(&snapshot, viewer)?;
    // A grant that has ended has the answer of an unknown one here (rule 19).
    let grant = state
        .grants
        .find(&snapshot, &grantee.external_id, id, state.http_context.now());
    let grant = grant.map_err(|refusal| match refusal {
        GrantRefusal::Unknown | GrantRefusal::Revoked | GrantRefusal::Expired => ExplorerError::not_found(NO_GRANT),
        GrantRefusal::Unusable => refusal.into(),
    })?;
    caller.set_org_of_member(grant.grant.org, &snapshot, grantee.id, state.http_context.now());
    check_class(&grant.grant.scope, DataClass::Activity, ClassCheck::Strict).map_err(not_covered)?;
    let page = state.grants.activity(&grant, limit, offset).await?;
    let read = read_under(
        &grant,
        grantee,
        &origin,
        DisclosureAction::ViewLogs,
        DisclosureData::AccessLogs,
    );
    let read = DisclosureRead {
        record_count: Some(page.calls.len() as u64),
        first: page.calls.last().map(|call| call.time),
        last: page.calls.first().map(|call| call.time),
        ..read
    };
    state.grants.record(vec![read]).await?;
    let logs = page.calls.into_iter().map(|call| GrantActivityLogEntry {
        method: call.method,
        status_code: call.status_code,
        timestamp: call.time.to_rfc3339(),
    });
    Ok(Json(GrantActivityLogsResponse {
        logs: logs.collect(),
        total: page.total,
        limit,
        offset,
    }))
}

fn grant_id(text: &str) -> Result<DisclosureGrantId, ExplorerError> {
    text.parse()
        .map_err(|_| ExplorerError::bad_request("grant_id must be a UUID"))
}

fn address_id(text: &str) -> Result<AddressId, ExplorerError> {
    AddressId::parse(text).ok_or_else(|| ExplorerError::bad_request("address_id must be 32 hex digits"))
}

fn not_covered(error: ClassNotCovered) -> ExplorerError {
    ApiError::forbidden(error.to_string()).into()
}

/// The viewer as a grantee. Under impersonation there is none: a grant counts only if it holds for both (HD7).
///
/// # Errors
/// 401 without a viewer; 404 under impersonation.
fn grantee(snapshot: &Snapshot, viewer: ViewerId) -> Result<&Arc<User>, ExplorerError> {
    match viewer {
        ViewerId::Anonymous => Err(ApiError::unauthorized("authentication required").into()),
        ViewerId::Impersonation(_) => Err(ExplorerError::not_found(NO_GRANT)),
        ViewerId::User { user, .. } => snapshot.user(user).ok_or_else(|| ExplorerError::not_found(NO_GRANT)),
    }
}

/// A grant that the viewer may use now.
///
/// # Errors
/// 404 if the viewer has no such grant; 403 if it was revoked or has expired.
fn active_grant(
    state: &ExplorerState,
    snapshot: &Snapshot,
    grantee: &User,
    id: DisclosureGrantId,
) -> Result<OpenGrant, ExplorerError> {
    let now = state.http_context.now();
    Ok(state.grants.find(snapshot, &grantee.external_id, id, now)?)
}

impl From<GrantRefusal> for ExplorerError {
    fn from(refusal: GrantRefusal) -> Self {
        match refusal {
            GrantRefusal::Unknown => Self::not_found(NO_GRANT),
            GrantRefusal::Revoked => ApiError::forbidden("grant has been revoked").into(),
            GrantRefusal::Expired => ApiError::forbidden("grant has expired").into(),
            GrantRefusal::Unusable => Self::Internal("a grant of disclosure cannot be used"),
        }
    }
}

impl From<GrantFault> for ExplorerError {
    fn from(fault: GrantFault) -> Self {
        match fault {
            GrantFault::Unrecorded => ApiError::audit_unavailable().into(),
            GrantFault::Unavailable => ApiError::unavailable("the audit store is temporarily unavailable").into(),
            GrantFault::Store => Self::Internal("the calls of an owner cannot be read"),
        }
    }
}

/// The disclosed address with this id.
///
/// # Errors
/// 404 if the grant discloses no address with this id.
fn disclosed_address(grant: &OpenGrant, id: AddressId) -> Result<Address, ExplorerError> {
    grant.address(id).ok_or_else(|| ExplorerError::not_found(NO_ADDRESS))
}

/// The record of a read, without what it returned.
pub(super) fn read_under(
    open: &OpenGrant,
    grantee: &User,
    origin: &RequestOrigin,
    action: DisclosureAction,
    data: DisclosureData,
) -> DisclosureRead {
    let origin = ReadOrigin {
        ip_address: Some(origin.ip),
        correlation_id: origin.correlation_id.clone().map(Into::into),
    };
    grant_read(&open.grant, grantee.id, action, data, origin)
}

impl View {
    /// A page of the transactions of a disclosed address, and the times of its oldest and newest row.
    ///
    /// # Errors
    /// 400 for an invalid cursor; 503 if a reorganization changed the index;
    /// [`ExplorerError::Contradiction`] if the grant does not cover a selected row; any error of the store.
    async fn grant_page(
        &self,
        grant: &OpenGrant,
        address: Address,
        list: &GrowingList,
        page: PageRequest,
    ) -> Result<(GrantTransactionsResponse, Option<(Timestamp, Timestamp)>), ExplorerError> {
        let rows = self.rows_of_grant(grant, address)?;
        let page = self.page_ids(&rows, list, page)?;
        let mut labels = BTreeMap::new();
        let viewer = self.viewer();
        let is_own = |address| viewer.owns(address);
        let (transactions, times) = self
            .rows_under_grant(grant, address, &page.ids, is_own, &mut labels)
            .await?;
        let last = page.ids.last().filter(|_| page.has_more);
        let next_cursor = match last {
            Some(last) => self.cursor_after(Space::Transactions, list, *last)?,
            None => None,
        };
        let answer = GrantTransactionsResponse {
            transactions,
            disclosure_level: level_text(grant.grant.scope.level),
            address_labels: labels,
            next_cursor,
        };
        Ok((answer, times))
    }

    /// These transactions as the grant shows them, and the times of the oldest and the newest. `is_own` tells the
    /// grantee's own addresses, and `labels` gets what the names stand for.
    ///
    /// # Errors
    /// [`ExplorerError::Contradiction`] if the grant does not cover a row; any error of the store.
    pub(super) async fn rows_under_grant(
        &self,
        grant: &OpenGrant,
        address: Address,
        ids: &[RowId],
        is_own: impl Fn(Address) -> bool,
        labels: &mut BTreeMap<String, &'static str>,
    ) -> Result<(Vec<GrantTransaction>, Option<(Timestamp, Timestamp)>), ExplorerError> {
        let read = self.reader.get_transactions(ids).await?;
        let by_id: BTreeMap<_, _> = read.into_iter().map(|row| (row.id, row)).collect();
        let shown = GrantPage {
            grant: &grant.grant,
            names: &grant.names,
            disclosed: &grant.addresses,
            address,
        };
        let (mut transactions, mut times) = (Vec::with_capacity(ids.len()), None);
        for id in ids {
            let row = by_id.get(id).ok_or(ExplorerError::Contradiction(Space::Transactions))?;
            let time = Timestamp::from_secs(row.timestamp);
            let (first, last) = times.unwrap_or((time, time));
            times = Some((time.min(first), time.max(last)));
            let transaction = self.grant_transaction(&shown, row, &is_own, labels);
            transactions.push(transaction.ok_or(ExplorerError::Contradiction(Space::Transactions))?);
        }
        Ok((transactions, times))
    }

    /// The transactions of the address that the grant covers, whatever their other side is.
    pub(super) fn rows_of_grant(&self, grant: &OpenGrant, address: Address) -> Result<RowSet, ExplorerError> {
        let blocks = self.blocks();
        let scope = &grant.grant.scope;
        let rows = gw_postings::Grant {
            target: VisibleAddress {
                address,
                blocks: BlockRange {
                    start: blocks.start,
                    end: blocks.end,
                },
            },
            times: scope.dates,
            counterparties: scope.addresses.iter().cloned().collect(),
        };
        let scope = self.scopes.of_grant(rows);
        self.index(|postings| postings.select(Space::Transactions, &scope))
    }

    fn grant_transaction(
        &self,
        page: &GrantPage<'_>,
        row: &TransactionRow,
        is_own: &impl Fn(Address) -> bool,
        labels: &mut BTreeMap<String, &'static str>,
    ) -> Option<GrantTransaction> {
        let transaction = &row.transaction;
        if self.viewer().withholds(transaction.hash) {
            return None;
        }
        let page_row = PageRow {
            time: Some(Timestamp::from_secs(row.timestamp)),
            from: transaction.from,
            to: transaction.to,
        };
        let shown = page.row(page_row, is_own)?;
        for name in std::iter::once(&shown.from).chain(&shown.to) {
            labels.extend(name.label().map(|label| (name.to_string(), label)));
        }
        let (block_number, block_timestamp) = if shown.is_full {
            (row.block_number, row.timestamp)
        } else {
            in_bucket(row, self.state.grant_time_bucket)
        };
        Some(GrantTransaction {
            tx_hash: shown.is_full.then(|| format!("{:#x}", transaction.hash)),
            from: shown.from.to_string(),
            to: shown.to.map(|name| name.to_string()),
            value: if shown.is_full {
                transaction.value.to_string()
            } else {
                "hidden".to_owned()
            },
            direction: shown.direction.as_str(),
            status: u8::from(transaction.success),
            gas_used: transaction.gas_used,
            block_number,
            block_timestamp,
        })
    }
}

/// `DISCLOSURE_TIME_BUCKET_SECONDS`: the time rounded down, without the block, so that a grantee who sees the chain by
/// other means does not recognize the row. 0 means exact.
fn in_bucket(row: &TransactionRow, bucket: gw_types::Seconds) -> (u64, i64) {
    match i64::from(bucket.0) {
        0 => (row.block_number, row.timestamp),
        bucket => (0, row.timestamp.saturating_sub(row.timestamp.rem_euclid(bucket))),
    }
}

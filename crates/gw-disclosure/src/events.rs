//! Events of grants (rule 39): reads are journaled before their answer leaves; owners, grantees and administrators read
//! them, each as far as they may.

use crate::{
    DisclosureState,
    wire::{DataSummary, DateRange, Event, EventRow, TamperedRow},
};
use gw_audit::DisclosureRead;
use gw_http::journal_reads;
use gw_journal::JournalError;
use gw_store::{
    StoreError,
    audit::{DisclosureEvent, LogRow},
    read::{Page, Paging},
    record::DisclosureGrant,
};
use gw_types::UserId;

/// Who reads events. Only the owner learns from where data was read, and which addresses were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventReader {
    /// The owner of the data.
    Owner,
    /// The grantee: people other than the grantee are not named.
    Grantee(Option<UserId>),
    /// An administrator, who reads metadata (spec/70 section 7).
    Administrator,
}

impl DisclosureState {
    /// Writes reads to the journal and waits until they are on disk.
    ///
    /// # Errors
    /// [`JournalError`] if they are not known to be durable: the answer must not leave.
    pub async fn record_reads(&self, reads: Vec<DisclosureRead>) -> Result<(), JournalError> {
        journal_reads(&self.journal, reads).await
    }
}

/// The events of a grant, the newest first. A read appears once the sealer has moved it to the audit store.
///
/// # Errors
/// Any error of the stores.
pub(crate) async fn list(
    state: &DisclosureState,
    grant: &DisclosureGrant,
    reader: EventReader,
    paging: Paging,
) -> Result<Page<EventRow>, StoreError> {
    let page = state
        .audit
        .list_disclosure_events(&state.store, grant.request, grant.id, paging)
        .await?;
    let rows = page.rows.into_iter().map(|row| match row {
        LogRow::Entry(event) => EventRow::Event(Box::new(shown(state, grant, reader, event))),
        LogRow::Tampered(row) => EventRow::Tampered(TamperedRow {
            id: opaque_id(state, "tampered", row.id),
            tampered: true,
            accessed_at: row.created_at,
        }),
    });
    Ok(Page {
        rows: rows.collect(),
        total: page.total,
    })
}

fn shown(state: &DisclosureState, grant: &DisclosureGrant, reader: EventReader, event: DisclosureEvent) -> Event {
    let is_owner = reader == EventReader::Owner;
    let is_named = match reader {
        EventReader::Owner | EventReader::Administrator => true,
        EventReader::Grantee(grantee) => event.actor.is_some() && event.actor == grantee,
    };
    let kind = if event.read.is_some() { "read" } else { "transition" };
    let read = event.read.as_ref();
    Event {
        id: opaque_id(state, kind, event.id),
        grant_id: grant.id,
        viewer_user_id: event.actor.filter(|_| is_named),
        viewer_did: read
            .and_then(|read| read.viewer_external_id.clone())
            .filter(|_| is_named),
        action: event.action.as_str(),
        resource_type: read.map(|read| read.data.as_str()),
        data_summary: read.map(|read| summary(read, reader)),
        viewer_ip: read.and(event.ip_address).filter(|_| is_owner),
        accessed_at: event.created_at,
    }
}

/// What was read. The times of the rows are for the owner alone: a time bucket hides them from the grantee.
/// Administrators learn neither times nor numbers of the owner's data.
fn summary(read: &DisclosureRead, reader: EventReader) -> DataSummary {
    let is_owner = reader == EventReader::Owner;
    let methods = read.methods.as_ref();
    let addresses = read.addresses.iter().map(|address| format!("{address:#x}"));
    DataSummary {
        record_count: read.record_count.filter(|_| reader != EventReader::Administrator),
        date_range: (read.first.zip(read.last).filter(|_| is_owner)).map(|(start, end)| DateRange { start, end }),
        methods: methods.map(|names| names.split(',').map(str::to_owned).collect()),
        addresses: Some(addresses.collect::<Vec<_>>()).filter(|list| is_owner && !list.is_empty()),
    }
}

/// An id without an order (HD40): row numbers count the rows of others. It has 52 bits, so that every reader of JSON
/// represents it exactly.
fn opaque_id(state: &DisclosureState, kind: &str, id: i64) -> u64 {
    let digest = state
        .key_cipher
        .digest(format!("disclosure event {kind} {id}").as_bytes());
    let digits = digest.rsplit(':').next().and_then(|digits| digits.get(..13));
    digits
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .unwrap_or_default()
}

//! The rows that a viewer may see: selected on the index by the viewer's scope, and cached.
//!
//! A selection depends on the scope and on the chain only, so viewers with the same scope share it. A new block adds
//! its rows to it; a new generation selects anew.

use crate::index::{IndexVersion, SharedIndex};
use gw_chain_store::{ChainReader, ChainStoreError};
use gw_policy::{
    settings::{HiddenTransferMode, PartialRowMode},
    visibility::explorer::{AddressBlocks, DisclosedRows, LogScope, ParticipantRows, RowScope, ScopeFingerprint},
};
use gw_postings::{
    BlockRange, EventLogs, Grant, HiddenTransfers, PartialRows, PostingIndex, RowId, RowSet, Scope, Space,
    VisibleAddress,
};
use gw_types::{Address, B256};
use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

/// The rows of one space that a scope selects.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    version: IndexVersion,
    parts: Vec<Part>,
}

/// The rows by one of the scopes that all have to select a row: under impersonation the logs have two.
#[derive(Clone, Debug)]
struct Part {
    rows: RowSet,
    /// Logs that have to be evaluated one by one; `None` in the other spaces.
    candidates: Option<RowSet>,
}

impl Selection {
    /// The rows that are shown. Of logs, those that are shown whatever their evaluation says of their content.
    pub(crate) fn certain(&self) -> RowSet {
        self.intersection(|part| part.rows.clone())
    }

    /// The rows that may be shown: no other row is.
    pub(crate) fn possible(&self) -> RowSet {
        self.intersection(|part| match &part.candidates {
            Some(candidates) => part.rows.union(candidates),
            None => part.rows.clone(),
        })
    }

    fn intersection(&self, rows: impl Fn(&Part) -> RowSet) -> RowSet {
        let mut parts = self.parts.iter().map(rows);
        // A scope has at least one part.
        let first = parts
            .next()
            .unwrap_or_else(|| PostingIndex::new().select(Space::Logs, &Scope::default()));
        parts.fold(first, |rows, more| rows.intersection(&more))
    }

    fn size_in_bytes(&self) -> usize {
        let sizes = self.parts.iter().map(|part| {
            let candidates = part.candidates.as_ref().map_or(0, RowSet::size_in_bytes);
            part.rows.size_in_bytes().saturating_add(candidates)
        });
        sizes.fold(size_of::<Self>(), usize::saturating_add)
    }

    fn select(postings: &PostingIndex, space: Space, scopes: &[Scope], version: IndexVersion) -> Self {
        let parts = scopes.iter().map(|scope| Part {
            rows: postings.select(space, scope),
            candidates: (space == Space::Logs).then(|| postings.select_log_candidates(scope)),
        });
        Self {
            version,
            parts: parts.collect(),
        }
    }

    fn extend(&mut self, postings: &PostingIndex, scopes: &[Scope], version: IndexVersion) {
        for (part, scope) in self.parts.iter_mut().zip(scopes) {
            postings.extend(scope, &mut part.rows);
            if let Some(candidates) = &mut part.candidates {
                postings.extend_log_candidates(scope, candidates);
            }
        }
        self.version = version;
    }
}

/// The scopes of a viewer on the index, with the ids of the transactions that the policy names by hash.
#[derive(Clone, Debug)]
pub(crate) struct ViewerScopes {
    pub(crate) fingerprint: ScopeFingerprint,
    rows: Scope,
    logs: Vec<Scope>,
    /// Whether the first topic of a log that is certainly shown may be masked although it is no address.
    pub(crate) masks_first_topics: bool,
}

impl ViewerScopes {
    /// Looks the transactions of the policy up in the store. The reader must have been opened after the version of the
    /// index was read, so that it has every transaction of the index.
    pub(crate) async fn resolve(scope: &RowScope, reader: &ChainReader) -> Result<Self, ChainStoreError> {
        let withheld = ids(reader, &scope.withheld).await?;
        let rows = rows_scope(scope, ids(reader, &scope.shared).await?, withheld.clone());
        let mut logs = Vec::with_capacity(scope.logs.len());
        for log_scope in &scope.logs {
            logs.push(logs_scope(
                log_scope,
                ids(reader, &log_scope.shared).await?,
                withheld.clone(),
            ));
        }
        Ok(Self {
            fingerprint: scope.fingerprint(),
            rows,
            logs,
            masks_first_topics: scope.logs.iter().any(|scope| scope.masks_first_topics),
        })
    }

    fn of(&self, space: Space) -> &[Scope] {
        match space {
            Space::Transactions | Space::Transfers | Space::Frames => std::slice::from_ref(&self.rows),
            Space::Logs => &self.logs,
        }
    }

    /// The scope of the rows that a grant of disclosure covers, without those that are withheld from everybody.
    pub(crate) fn of_grant(&self, grant: Grant) -> Scope {
        Scope {
            grants: vec![grant],
            withheld: self.rows.withheld.clone(),
            ..Scope::default()
        }
    }

    /// K12: whether a transfer can make its transaction survive.
    pub(crate) fn keeps_hidden_transfers(&self) -> bool {
        self.rows.anchor == HiddenTransfers::Keep
    }

    /// The addresses that make rows visible, each once: own ones, those that the viewer has a right to, and the zero
    /// address.
    pub(crate) fn addresses(&self) -> BTreeSet<Address> {
        let Scope {
            own, visible, public, ..
        } = &self.rows;
        let all = own.iter().chain(visible).chain(public);
        all.map(|visible| visible.address).collect()
    }
}

async fn ids(reader: &ChainReader, hashes: &[B256]) -> Result<BTreeSet<RowId>, ChainStoreError> {
    Ok(reader.transaction_ids(hashes).await?.into_iter().collect())
}

/// The scope of transactions, transfers and frames.
fn rows_scope(scope: &RowScope, shared: BTreeSet<RowId>, withheld: BTreeSet<RowId>) -> Scope {
    let grant = |rows: &DisclosedRows| Grant {
        target: visible(&rows.target),
        times: rows.times,
        counterparties: rows.counterparties.clone(),
    };
    Scope {
        visible: in_blocks(&scope.visible),
        public: in_all_blocks(&scope.public),
        own: in_all_blocks(&scope.own),
        own_receivers: in_all_blocks(&scope.own_receivers),
        administered: in_blocks(&scope.administered),
        event_tokens: in_blocks(&scope.event_tokens),
        members: in_all_blocks(&scope.members),
        grants: scope.disclosed.iter().map(grant).collect(),
        shared,
        withheld,
        closed: scope.closed.clone(),
        emitters: Vec::new(),
        events: Vec::new(),
        event_logs: Vec::new(),
        log_candidates: Vec::new(),
        participant_rows: participant_rows(scope.participant_rows),
        one_sided: match scope.one_sided {
            PartialRowMode::Mask => PartialRows::Keep,
            PartialRowMode::Drop => PartialRows::Drop,
        },
        anchor: match scope.anchor {
            HiddenTransferMode::None => HiddenTransfers::None,
            HiddenTransferMode::Keep => HiddenTransfers::Keep,
        },
    }
}

/// The scope of the logs of one person.
fn logs_scope(scope: &LogScope, shared: BTreeSet<RowId>, withheld: BTreeSet<RowId>) -> Scope {
    Scope {
        own: in_all_blocks(&scope.own),
        own_receivers: in_all_blocks(&scope.own_receivers),
        shared,
        withheld,
        closed: scope.closed.clone(),
        emitters: in_blocks(&scope.emitters),
        events: (scope.events.iter())
            .map(|(emitter, topic0)| (visible(emitter), *topic0))
            .collect(),
        event_logs: (scope.event_logs.iter())
            .map(|logs| EventLogs {
                emitter: visible(&logs.emitter),
                topic0: logs.topic0,
                topics: logs.topics,
                party: logs.party,
            })
            .collect(),
        log_candidates: (scope.candidates.iter())
            .map(|candidates| (visible(&candidates.emitter), candidates.topic0()))
            .collect(),
        participant_rows: participant_rows(scope.participant_rows),
        ..Scope::default()
    }
}

const fn participant_rows(rows: ParticipantRows) -> gw_postings::ParticipantRows {
    match rows {
        ParticipantRows::All => gw_postings::ParticipantRows::All,
        ParticipantRows::Granted => gw_postings::ParticipantRows::Granted,
    }
}

const fn visible(visible: &AddressBlocks) -> VisibleAddress {
    VisibleAddress {
        address: visible.address,
        blocks: BlockRange {
            start: visible.blocks.start,
            end: visible.blocks.end,
        },
    }
}

pub(crate) fn in_blocks(addresses: &[AddressBlocks]) -> Vec<VisibleAddress> {
    addresses.iter().map(visible).collect()
}

fn in_all_blocks(addresses: &[Address]) -> Vec<VisibleAddress> {
    (addresses.iter().copied()).map(VisibleAddress::in_all_blocks).collect()
}

/// Selections of recent viewers, within a bound of memory.
#[derive(Debug)]
pub struct SelectionCache {
    max_bytes: usize,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    by_key: HashMap<Key, Entry>,
    bytes: usize,
    /// Rises with each use.
    uses: u64,
}

#[derive(Debug)]
struct Entry {
    selection: Arc<Selection>,
    bytes: usize,
    last_use: u64,
}

type Key = (ScopeFingerprint, SpaceKey);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum SpaceKey {
    Transactions,
    Transfers,
    Frames,
    Logs,
}

impl From<Space> for SpaceKey {
    fn from(space: Space) -> Self {
        match space {
            Space::Transactions => Self::Transactions,
            Space::Transfers => Self::Transfers,
            Space::Frames => Self::Frames,
            Space::Logs => Self::Logs,
        }
    }
}

impl SelectionCache {
    /// Creates a cache that holds at most about this many bytes.
    pub fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            entries: Mutex::default(),
        }
    }

    /// The rows of a space at this version of the index; `None` if the index has another version by now.
    pub(crate) fn select(
        &self,
        index: &SharedIndex,
        version: IndexVersion,
        scopes: &ViewerScopes,
        space: Space,
    ) -> Option<Arc<Selection>> {
        let key = (scopes.fingerprint, SpaceKey::from(space));
        let known = self.with(|entries| entries.get(key));
        if let Some(known) = known.as_ref().filter(|known| known.version == version) {
            return Some(Arc::clone(known));
        }
        // A selection of a later version has rows that the reader of this request may not know yet.
        let known = known.filter(|known| known.version.has_ids_of(&version) && known.version.newest <= version.newest);
        let selection = match known {
            Some(known) => {
                let mut selection = Arc::unwrap_or_clone(known);
                index.read_at(version, |postings| {
                    selection.extend(postings, scopes.of(space), version)
                })?;
                selection
            }
            None => index.read_at(version, |postings| {
                Selection::select(postings, space, scopes.of(space), version)
            })?,
        };
        let selection = Arc::new(selection);
        self.with(|entries| entries.insert(key, Arc::clone(&selection), self.max_bytes));
        Some(selection)
    }

    fn with<T>(&self, change: impl FnOnce(&mut Entries) -> T) -> T {
        change(&mut self.entries.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Entries {
    fn get(&mut self, key: Key) -> Option<Arc<Selection>> {
        self.uses += 1;
        let entry = self.by_key.get_mut(&key)?;
        entry.last_use = self.uses;
        Some(Arc::clone(&entry.selection))
    }

    fn insert(&mut self, key: Key, selection: Arc<Selection>, max_bytes: usize) {
        let bytes = selection.size_in_bytes();
        self.remove(key);
        if bytes > max_bytes {
            return;
        }
        while self.bytes.saturating_add(bytes) > max_bytes {
            let oldest = self.by_key.iter().min_by_key(|(_, entry)| entry.last_use);
            let Some((oldest, _)) = oldest else { break };
            self.remove(*oldest);
        }
        self.uses += 1;
        self.bytes += bytes;
        let entry = Entry {
            selection,
            bytes,
            last_use: self.uses,
        };
        self.by_key.insert(key, entry);
    }

    fn remove(&mut self, key: Key) {
        if let Some(entry) = self.by_key.remove(&key) {
            self.bytes = self.bytes.saturating_sub(entry.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection() -> Arc<Selection> {
        let version = IndexVersion {
            generation: 0,
            load: 1,
            first: 0,
            newest: 0,
            newest_hash: B256::ZERO,
            next_ids: [0; 4],
        };
        Arc::new(Selection::select(
            &PostingIndex::new(),
            Space::Frames,
            &[Scope::default()],
            version,
        ))
    }

    fn key(byte: u8) -> Key {
        (ScopeFingerprint(B256::repeat_byte(byte)), SpaceKey::Frames)
    }

    /// The least recently used selections make room.
    #[test]
    fn the_cache_holds_no_more_than_its_bound() {
        let size = selection().size_in_bytes();
        let mut entries = Entries::default();
        for byte in 0..3 {
            entries.insert(key(byte), selection(), 3 * size);
        }
        assert!(entries.get(key(0)).is_some());
        entries.insert(key(3), selection(), 3 * size);
        let kept: Vec<bool> = (0..4).map(|byte| entries.by_key.contains_key(&key(byte))).collect();
        assert_eq!(kept, [true, false, true, true]);
        assert_eq!(entries.bytes, 3 * size);
        entries.insert(key(3), selection(), 3 * size);
        assert_eq!(entries.bytes, 3 * size, "a replaced selection counts once");
        entries.insert(key(4), selection(), size - 1);
        assert!(!entries.by_key.contains_key(&key(4)), "it does not fit at all");
    }
}

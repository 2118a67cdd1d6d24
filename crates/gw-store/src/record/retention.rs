//! Legal holds on the audit log, and the content of audit entries about prunes (spec/70 rules 23 and 24).

use gw_audit::{ChainId, Hash, Stream};
use gw_types::{LegalHoldId, OrgId, Timestamp};
use std::collections::HashSet;

/// The entries that a hold covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HoldScope {
    /// Every entry of an organization, in all streams.
    Organization(OrgId),
    /// Every entry of a stream.
    Stream(Stream),
}

/// A legal hold: covered entries are neither pruned nor erased until it is lifted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegalHold {
    /// Row id.
    pub id: LegalHoldId,
    /// The covered entries.
    pub scope: HoldScope,
    /// The stated reason.
    pub reason: String,
    /// Who placed it.
    pub placed_by: String,
    /// When it was placed.
    pub created_at: Timestamp,
}

/// All holds in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holds {
    orgs: HashSet<OrgId>,
    streams: HashSet<Stream>,
    /// Ids of the holds; the entries that placed them are kept too.
    placed: HashSet<LegalHoldId>,
}

impl Holds {
    /// Whether an entry of this stream and organization is held.
    pub fn keep(&self, stream: Stream, org: Option<OrgId>) -> bool {
        self.streams.contains(&stream) || org.is_some_and(|org| self.orgs.contains(&org))
    }

    /// Whether a hold is in force: then the entry that placed it is kept unchanged.
    pub(crate) fn have(&self, hold: LegalHoldId) -> bool {
        self.placed.contains(&hold)
    }

    /// Combines the holds of both values.
    #[must_use]
    pub fn and(mut self, those: &Self) -> Self {
        self.orgs.extend(&those.orgs);
        self.streams.extend(&those.streams);
        self.placed.extend(&those.placed);
        self
    }

    fn add(&mut self, scope: HoldScope) {
        match scope {
            HoldScope::Organization(org) => drop(self.orgs.insert(org)),
            HoldScope::Stream(stream) => drop(self.streams.insert(stream)),
        }
    }
}

impl FromIterator<HoldScope> for Holds {
    fn from_iter<I: IntoIterator<Item = HoldScope>>(scopes: I) -> Self {
        let mut holds = Self::default();
        scopes.into_iter().for_each(|scope| holds.add(scope));
        holds
    }
}

impl FromIterator<(LegalHoldId, HoldScope)> for Holds {
    fn from_iter<I: IntoIterator<Item = (LegalHoldId, HoldScope)>>(placed: I) -> Self {
        let mut holds = Self::default();
        holds.extend(placed);
        holds
    }
}

impl Extend<(LegalHoldId, HoldScope)> for Holds {
    fn extend<I: IntoIterator<Item = (LegalHoldId, HoldScope)>>(&mut self, placed: I) {
        for (id, scope) in placed {
            self.placed.insert(id);
            self.add(scope);
        }
    }
}

/// Why entries were pruned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PruneReason {
    /// They were older than the retention of their stream.
    Ttl,
    /// There were more than MAX_ACCESS_LOG_ROWS.
    Fifo,
}

impl PruneReason {
    /// Returns the stable text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ttl => "ttl",
            Self::Fifo => "fifo",
        }
    }
}

/// A prune, as its audit entry describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PruneRecord {
    /// The row id of its anchor.
    pub anchor: i64,
    /// The chain.
    pub chain: ChainId,
    /// The reason.
    pub reason: PruneReason,
    /// The retention, such as `2160h`, or the maximum number of rows.
    pub bound: String,
    /// The sequence number of the first removed entry.
    pub first_seq: u64,
    /// Number of entries removed from the chain so far.
    pub size: u64,
    /// The lowest row id among the removed entries.
    pub lowest_id: i64,
    /// The highest row id among the removed entries.
    pub highest_id: i64,
    /// The hash of the last removed entry.
    pub anchor_hash: Hash,
    /// The time of the last removed entry.
    pub cutoff: Timestamp,
}

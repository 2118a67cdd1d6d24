//! The ids of shards and policy stores.

use uuid::Uuid;

/// The id of one writer's chain within a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShardId(pub Uuid);

impl From<Uuid> for ShardId {
    fn from(id: Uuid) -> Self {
        Self(id)
    }
}

impl core::fmt::Display for ShardId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(&self.0.as_hyphenated(), f)
    }
}

/// One start of a process on a journal. The number and the id are in the journal's directory and in the audit store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalStart {
    /// Grows with every start of the shard's journal.
    pub number: u64,
    /// Random, so that two starts from one copy differ although they have one number.
    pub id: Uuid,
}

/// The id of a policy store. It is generated when the schema is created and is part of every backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct StoreId(pub Uuid);

impl From<Uuid> for StoreId {
    fn from(id: Uuid) -> Self {
        Self(id)
    }
}

impl core::fmt::Display for StoreId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(&self.0.as_hyphenated(), f)
    }
}

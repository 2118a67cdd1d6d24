//! The first entry of a chain: what its body says about the chain.

use crate::ids::ShardId;
use gw_types::B256;

/// The name of the entry format, as recorded in the first entry of each chain.
pub const ENTRY_FORMAT: &str = "ledger-gateway-entry/1";

/// The body of a chain's first entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Genesis {
    /// The shard, as in the header.
    pub shard: ShardId,
    /// [`ENTRY_FORMAT`].
    pub format: String,
    /// The cluster's name.
    pub cluster: String,
    /// The public key of the key that signs the chain's checkpoints.
    pub checkpoint_key: B256,
}

impl Genesis {
    /// The body of the first entry of a chain of `cluster`.
    pub fn new(shard: ShardId, cluster: &str, checkpoint_key: [u8; 32]) -> Self {
        Self {
            shard,
            format: ENTRY_FORMAT.to_owned(),
            cluster: cluster.to_owned(),
            checkpoint_key: B256::new(checkpoint_key),
        }
    }
}

//! Work that is not part of a block's commit: a durable queue, filled in the transactions that cause the work.
//!
//! A job is in the queue at most once. A job that is requested again while it is done stays in the queue.

use crate::ChainStoreError;
use gw_types::{Address, U256};

/// A piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Job {
    /// Read the balance of an address in wei.
    Balance {
        /// The address.
        address: Address,
    },
    /// Read the balance of an address in a token.
    TokenBalance {
        /// The token contract.
        token: Address,
        /// The address.
        holder: Address,
        /// The token id of an ERC-1155 token, else `None`.
        token_id: Option<U256>,
    },
    /// Read the metadata of a token.
    TokenMetadata {
        /// The token contract.
        token: Address,
    },
    /// Read the total supply of a token.
    TokenSupply {
        /// The token contract.
        token: Address,
    },
    /// Trace a block that was stored without frames.
    Frames {
        /// The number of the block.
        block: u64,
    },
    /// Read a stored block again.
    Block {
        /// The number of the block.
        block: u64,
    },
}

/// The kind of a [`Job`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JobKind {
    /// [`Job::Balance`].
    Balance,
    /// [`Job::TokenBalance`].
    TokenBalance,
    /// [`Job::TokenMetadata`].
    TokenMetadata,
    /// [`Job::TokenSupply`].
    TokenSupply,
    /// [`Job::Frames`].
    Frames,
    /// [`Job::Block`].
    Block,
}

/// A job that was taken from the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// The work.
    pub job: Job,
    /// How often it failed.
    pub attempts: u32,
    /// The request that was taken.
    pub(crate) version: i64,
}

impl JobKind {
    /// All kinds.
    pub const ALL: [Self; 6] = [
        Self::Balance,
        Self::TokenBalance,
        Self::TokenMetadata,
        Self::TokenSupply,
        Self::Frames,
        Self::Block,
    ];

    /// The name in metrics and reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Balance => "balance",
            Self::TokenBalance => "token_balance",
            Self::TokenMetadata => "token_metadata",
            Self::TokenSupply => "token_supply",
            Self::Frames => "frames",
            Self::Block => "block",
        }
    }

    pub(crate) const fn column(self) -> i16 {
        match self {
            Self::Balance => 1,
            Self::TokenBalance => 2,
            Self::TokenMetadata => 3,
            Self::TokenSupply => 4,
            Self::Frames => 5,
            Self::Block => 6,
        }
    }
}

impl Job {
    /// The kind.
    pub const fn kind(&self) -> JobKind {
        match self {
            Self::Balance { .. } => JobKind::Balance,
            Self::TokenBalance { .. } => JobKind::TokenBalance,
            Self::TokenMetadata { .. } => JobKind::TokenMetadata,
            Self::TokenSupply { .. } => JobKind::TokenSupply,
            Self::Frames { .. } => JobKind::Frames,
            Self::Block { .. } => JobKind::Block,
        }
    }

    /// What the work is about, as bytes.
    pub(crate) fn key(&self) -> Vec<u8> {
        match self {
            Self::Balance { address } => address.to_vec(),
            Self::TokenBalance {
                token,
                holder,
                token_id,
            } => {
                let mut key = [token.as_slice(), holder.as_slice()].concat();
                key.extend(token_id.map(|id| id.to_be_bytes::<32>()).iter().flatten());
                key
            }
            Self::TokenMetadata { token } | Self::TokenSupply { token } => token.to_vec(),
            Self::Frames { block } | Self::Block { block } => block.to_be_bytes().to_vec(),
        }
    }

    pub(crate) fn from_columns(kind: i16, key: &[u8]) -> Result<Self, ChainStoreError> {
        let malformed = |column| ChainStoreError::Row { table: "tasks", column };
        let kind = JobKind::ALL.into_iter().find(|known| known.column() == kind);
        Self::from_key(kind.ok_or_else(|| malformed("kind"))?, key).ok_or_else(|| malformed("key"))
    }

    fn from_key(kind: JobKind, key: &[u8]) -> Option<Self> {
        let address = |bytes| Address::try_from(bytes).ok();
        let block = |bytes: &[u8]| Some(u64::from_be_bytes(bytes.try_into().ok()?));
        match kind {
            JobKind::Balance => address(key).map(|address| Self::Balance { address }),
            JobKind::TokenMetadata => address(key).map(|token| Self::TokenMetadata { token }),
            JobKind::TokenSupply => address(key).map(|token| Self::TokenSupply { token }),
            JobKind::TokenBalance => {
                let (token, rest) = key.split_at_checked(Address::len_bytes())?;
                let (holder, id) = rest.split_at_checked(Address::len_bytes())?;
                let token_id = match id {
                    [] => None,
                    id => Some(U256::from_be_bytes(<[u8; 32]>::try_from(id).ok()?)),
                };
                Some(Self::TokenBalance {
                    token: address(token)?,
                    holder: address(holder)?,
                    token_id,
                })
            }
            JobKind::Frames => block(key).map(|block| Self::Frames { block }),
            JobKind::Block => block(key).map(|block| Self::Block { block }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_is_read_back_from_its_columns() {
        let (token, holder) = (Address::repeat_byte(1), Address::repeat_byte(2));
        let jobs = [
            Job::Balance { address: holder },
            Job::TokenBalance {
                token,
                holder,
                token_id: None,
            },
            Job::TokenBalance {
                token,
                holder,
                token_id: Some(U256::from(7)),
            },
            Job::TokenMetadata { token },
            Job::TokenSupply { token },
            Job::Frames { block: u64::MAX },
            Job::Block { block: 7 },
        ];
        for job in jobs {
            assert_eq!(Job::from_columns(job.kind().column(), &job.key()).unwrap(), job);
        }
        assert!(Job::from_columns(9, &[]).is_err(), "no such kind");
        assert!(Job::from_columns(1, &[0; 19]).is_err(), "no address");
        assert!(Job::from_columns(2, &[0; 60]).is_err(), "no token id");
    }
}

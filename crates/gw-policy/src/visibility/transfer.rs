//! Visibility of a token transfer (ERC-20, ERC-721, ERC-1155), evaluated as the visibility of the log that records it
//! ([`LogViewer`]). This is how a transfer is shown beside its log. The explorer's list of transfers goes by their
//! sides instead ([`explorer`](super::explorer), docs/decisions/0013).

use super::{LogData, LogRow, LogViewer, LogVisibility, MalformedData, TransactionRoles, is_masked};
use crate::snapshot::Moment;
use alloy_primitives::{U256, b256};
use gw_types::{Address, B256};

/// `Transfer(address,address,uint256)` of ERC-20 and ERC-721.
const TRANSFER: B256 = b256!("ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef");
/// `TransferSingle(address,address,address,uint256,uint256)` of ERC-1155.
const TRANSFER_SINGLE: B256 = b256!("c3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62");
/// `TransferBatch(address,address,address,uint256[],uint256[])` of ERC-1155.
const TRANSFER_BATCH: B256 = b256!("4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb");

/// One recorded token transfer, with the facts that its visibility depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferRow {
    /// The token contract.
    pub token: Address,
    /// Hash of the transaction.
    pub tx_hash: B256,
    /// Sender and receiver of the transaction, if they are known.
    pub parties: Option<(Address, Option<Address>)>,
    /// When it was recorded.
    pub moment: Moment,
    /// The previous owner; the zero address for a mint.
    pub from: Address,
    /// The new owner; the zero address for a burn.
    pub to: Address,
    /// What was transferred, by the standard of the token.
    pub standard: TransferStandard,
}

/// The standard by which a transfer was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransferStandard {
    /// ERC-20.
    Erc20 {
        /// The amount.
        value: U256,
    },
    /// ERC-721.
    Erc721 {
        /// The token.
        id: U256,
    },
    /// `TransferSingle` of ERC-1155.
    Erc1155Single {
        /// The account that made the transfer.
        operator: Address,
        /// What was transferred.
        amount: TokenAmount,
    },
    /// `TransferBatch` of ERC-1155.
    Erc1155Batch {
        /// The account that made the transfer.
        operator: Address,
        /// What was transferred.
        amounts: Vec<TokenAmount>,
    },
}

/// An amount of one token of an ERC-1155 contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenAmount {
    /// The token.
    pub id: U256,
    /// The amount.
    pub value: U256,
}

/// Which members of a transfer are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferVisibility {
    /// Whether `from` is shown.
    pub from: bool,
    /// Whether `to` is shown.
    pub to: bool,
    /// Whether the operator of an ERC-1155 transfer is shown.
    pub operator: bool,
    /// Whether tokens and amounts are shown.
    pub amounts: bool,
}

impl TransferRow {
    /// The transfer that a log records. `None` if the log is no transfer, or is not encoded as the standard does it:
    /// then it is shown as a log only.
    ///
    /// # Errors
    /// [`MalformedData`] if the data of the log is not valid hex.
    pub fn of_log(
        log: &LogRow<'_>,
        parties: Option<(Address, Option<Address>)>,
    ) -> Result<Option<Self>, MalformedData> {
        let data = log.data.decode()?;
        let Some((from, to, standard)) = parse(log.topics, &data) else {
            return Ok(None);
        };
        let row = Self {
            token: log.emitter,
            tx_hash: log.tx_hash,
            parties,
            moment: log.moment,
            from,
            to,
            standard,
        };
        // The row stands for the log only if it can be turned back into it.
        let is_canonical = row.topics() == log.topics && row.data() == *data;
        Ok(is_canonical.then_some(row))
    }

    /// The topics of the log.
    fn topics(&self) -> Vec<B256> {
        let (from, to) = (self.from.into_word(), self.to.into_word());
        match &self.standard {
            TransferStandard::Erc20 { .. } => vec![TRANSFER, from, to],
            TransferStandard::Erc721 { id } => vec![TRANSFER, from, to, B256::from(*id)],
            TransferStandard::Erc1155Single { operator, .. } => {
                vec![TRANSFER_SINGLE, operator.into_word(), from, to]
            }
            TransferStandard::Erc1155Batch { operator, .. } => vec![TRANSFER_BATCH, operator.into_word(), from, to],
        }
    }

    /// The data of the log.
    fn data(&self) -> Vec<u8> {
        let words: Vec<U256> = match &self.standard {
            TransferStandard::Erc20 { value } => vec![*value],
            TransferStandard::Erc721 { .. } => Vec::new(),
            TransferStandard::Erc1155Single { amount, .. } => vec![amount.id, amount.value],
            TransferStandard::Erc1155Batch { amounts, .. } => {
                let count = U256::from(amounts.len());
                // Two offsets, then each list with its length before it.
                let second = U256::from(amounts.len().saturating_add(3).saturating_mul(32));
                let ids = amounts.iter().map(|amount| amount.id);
                let values = amounts.iter().map(|amount| amount.value);
                let head = [U256::from(64), second, count];
                head.into_iter().chain(ids).chain([count]).chain(values).collect()
            }
        };
        words.into_iter().flat_map(|word| word.to_be_bytes::<32>()).collect()
    }
}

/// Sides and content of a transfer.
fn parse(topics: &[B256], data: &[u8]) -> Option<(Address, Address, TransferStandard)> {
    let address = |word: &B256| Address::from_word(*word);
    let (words, []) = data.as_chunks::<32>() else {
        return None;
    };
    let words: Vec<U256> = words.iter().map(|word| U256::from_be_bytes(*word)).collect();
    match (topics, words.as_slice()) {
        ([TRANSFER, from, to], [value]) => {
            Some((address(from), address(to), TransferStandard::Erc20 { value: *value }))
        }
        ([TRANSFER, from, to, id], []) => {
            let id = U256::from_be_bytes(id.0);
            Some((address(from), address(to), TransferStandard::Erc721 { id }))
        }
        ([TRANSFER_SINGLE, operator, from, to], [id, value]) => {
            let (operator, amount) = (address(operator), TokenAmount { id: *id, value: *value });
            Some((
                address(from),
                address(to),
                TransferStandard::Erc1155Single { operator, amount },
            ))
        }
        ([TRANSFER_BATCH, operator, from, to], [_, _, _, lists @ ..]) => {
            let (ids, values) = lists.split_at_checked(lists.len() / 2)?;
            let amounts = ids.iter().zip(values.get(1..)?);
            let amounts = amounts.map(|(id, value)| TokenAmount { id: *id, value: *value });
            let standard = TransferStandard::Erc1155Batch {
                operator: address(operator),
                amounts: amounts.collect(),
            };
            Some((address(from), address(to), standard))
        }
        _ => None,
    }
}

impl LogViewer<'_, '_> {
    /// The visibility of a transfer: that of its log. `None` if it is not shown.
    ///
    /// # Errors
    /// As [`Self::log`].
    pub fn transfer(&mut self, row: &TransferRow) -> Result<Option<TransferVisibility>, MalformedData> {
        let (topics, data) = (row.topics(), row.data());
        let log = LogRow {
            emitter: row.token,
            tx_hash: row.tx_hash,
            topics: &topics,
            data: LogData::Bytes(&data),
            moment: row.moment,
        };
        let roles = TransactionRoles::new(self.viewer(), row.tx_hash, row.parties);
        Ok(match self.log(&log, roles)? {
            LogVisibility::Dropped => None,
            LogVisibility::Whole => Some(TransferVisibility {
                from: true,
                to: true,
                operator: true,
                amounts: true,
            }),
            LogVisibility::Masked { topics, data } => {
                let is_shown = |position| !is_masked(topics, position);
                let (operator, from, to, id) = match row.standard {
                    TransferStandard::Erc20 { .. } => (true, is_shown(1), is_shown(2), true),
                    TransferStandard::Erc721 { .. } => (true, is_shown(1), is_shown(2), is_shown(3)),
                    TransferStandard::Erc1155Single { .. } | TransferStandard::Erc1155Batch { .. } => {
                        (is_shown(1), is_shown(2), is_shown(3), true)
                    }
                };
                Some(TransferVisibility {
                    from,
                    to,
                    operator,
                    amounts: id && data.is_none(),
                })
            }
        })
    }
}

//! Token transfers from logs (X8).

use gw_chain_store::rows::{Log, TokenStandard, TokenTransfer};
use gw_evm::abi::clean_address;
use gw_types::{Address, B256, U256, b256};

/// `Transfer(address,address,uint256)`
pub(super) const TRANSFER: B256 = b256!("ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef");
/// `TransferSingle(address,address,address,uint256,uint256)`
pub(super) const TRANSFER_SINGLE: B256 = b256!("c3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62");
/// `TransferBatch(address,address,address,uint256[],uint256[])`
pub(super) const TRANSFER_BATCH: B256 = b256!("4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb");

/// What a log says was moved.
struct Moved {
    standard: TokenStandard,
    from: Address,
    to: Address,
    /// Token ids and amounts.
    items: Vec<(Option<U256>, U256)>,
}

/// The transfers of a log, one per token id. A log whose topics or data are not those of a transfer has none.
pub(super) fn transfers(log: &Log) -> Vec<TokenTransfer> {
    let Some(moved) = moved(log) else {
        return Vec::new();
    };
    let row = |(batch_position, (token_id, value))| TokenTransfer {
        log_index: log.index,
        batch_position,
        token: log.address,
        from: moved.from,
        to: moved.to,
        value,
        token_id,
        standard: moved.standard,
    };
    (0..).zip(moved.items).map(row).collect()
}

fn moved(log: &Log) -> Option<Moved> {
    let (standard, from, to, items) = match *log.topics.as_slice() {
        [TRANSFER, from, to] => {
            // The amount is the first word; what follows it is the token's own.
            let items = vec![(None, word(&log.data, 0)?)];
            (TokenStandard::Erc20, from, to, items)
        }
        [TRANSFER, from, to, token_id] if log.data.is_empty() => {
            let items = vec![(Some(token_id.into()), U256::ONE)];
            (TokenStandard::Erc721, from, to, items)
        }
        [TRANSFER_SINGLE, operator, from, to] => {
            clean_address(&operator)?;
            let data = <[u8; 64]>::try_from(log.data.as_ref()).ok()?;
            let [token_id, value] = [word(&data, 0)?, word(&data, 32)?];
            (TokenStandard::Erc1155, from, to, vec![(Some(token_id), value)])
        }
        [TRANSFER_BATCH, operator, from, to] => {
            clean_address(&operator)?;
            let (ids, values) = (array(&log.data, 0)?, array(&log.data, 32)?);
            if ids.len() != values.len() {
                return None;
            }
            let items = ids.into_iter().map(Some).zip(values).collect();
            (TokenStandard::Erc1155, from, to, items)
        }
        _ => return None,
    };
    Some(Moved {
        standard,
        from: clean_address(&from)?,
        to: clean_address(&to)?,
        items,
    })
}

/// The array of numbers to which the offset in the head at `head` leads.
fn array(data: &[u8], head: usize) -> Option<Vec<U256>> {
    let start: usize = word(data, head)?.try_into().ok()?;
    let length: usize = word(data, start)?.try_into().ok()?;
    let first = start.checked_add(32)?;
    let end = first.checked_add(length.checked_mul(32)?)?;
    let (words, _) = data.get(first..end)?.as_chunks::<32>();
    Some(words.iter().map(|word| U256::from_be_bytes(*word)).collect())
}

fn word(data: &[u8], start: usize) -> Option<U256> {
    let bytes = data.get(start..)?.first_chunk::<32>()?;
    Some(U256::from_be_bytes(*bytes))
}

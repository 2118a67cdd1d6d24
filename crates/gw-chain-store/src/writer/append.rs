//! Appending a block.

use super::{ChainWriter, insert_all, tasks};
use crate::{
    ChainStoreError, Job,
    convert::{self, BlockModels, FirstIds},
    dialect::{Engine, Transaction},
    entity::{blocks, contracts, frames, logs, proxy_changes, token_transfers, tokens, transactions},
    rows::{BlockData, BlockIds, Frame, TokenStandard, TokenTransfer},
    state,
};
use gw_types::{Address, U256};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect};
use std::collections::{BTreeSet, HashSet};

impl ChainWriter {
    /// Appends a block with all its rows, in one transaction. The first block of an empty store may have any number.
    ///
    /// Also inserts the tokens that were not known, and puts into the queue: the balances and supplies that the rows
    /// change, the metadata of new tokens, the trace if it is not complete, and further `jobs` (for instance the
    /// balances that withdrawals change).
    ///
    /// # Errors
    /// [`ChainStoreError::NotNext`] if the block does not follow the newest one; [`ChainStoreError::OtherParent`] if
    /// the newest one is not its parent; [`ChainStoreError::InvalidBlock`] if its rows contradict each other;
    /// [`ChainStoreError::LeaseLost`] if another instance took the lease; any database error.
    pub async fn append(&self, data: &BlockData, jobs: &[Job]) -> Result<BlockIds, ChainStoreError> {
        let tx = self.begin().await?;
        let first = match state::head(&tx).await? {
            None => FirstIds::default(),
            Some(head) => {
                require_next(&head, data)?;
                FirstIds::after(&head)
            }
        };
        let models = BlockModels::new(data, first)?;
        let ids = convert::block_row(models.block.clone())?.ids;
        let mut jobs: BTreeSet<Job> = jobs.iter().copied().chain(jobs_of(data)).collect();
        let new_tokens = new_tokens(&tx, models.tokens).await?;
        for token in &new_tokens {
            let token = convert::Columns("tokens").address("address", &token.address)?;
            jobs.insert(Job::TokenMetadata { token });
            jobs.insert(Job::TokenSupply { token });
        }
        insert_all::<blocks::Entity>(&tx, vec![models.block]).await?;
        insert_all::<transactions::Entity>(&tx, models.transactions).await?;
        insert_all::<logs::Entity>(&tx, models.logs).await?;
        insert_all::<token_transfers::Entity>(&tx, models.transfers).await?;
        insert_all::<frames::Entity>(&tx, models.frames).await?;
        insert_all::<contracts::Entity>(&tx, models.contracts).await?;
        insert_all::<proxy_changes::Entity>(&tx, models.proxy_changes).await?;
        insert_all::<tokens::Entity>(&tx, new_tokens).await?;
        tasks::enqueue(&tx, jobs, self.config.clock.now()).await?;
        tx.commit().await?;
        Ok(ids)
    }
}

fn require_next(head: &blocks::Model, data: &BlockData) -> Result<(), ChainStoreError> {
    let columns = convert::Columns("blocks");
    let newest = columns.number("number", head.number)?;
    let expected = columns.hash("hash", &head.hash)?;
    let block = data.block.number;
    if newest.checked_add(1) != Some(block) {
        return Err(ChainStoreError::NotNext { newest, block });
    }
    let found = data.block.parent_hash;
    if found != expected {
        return Err(ChainStoreError::OtherParent { block, expected, found });
    }
    Ok(())
}

/// The tokens without a row.
pub(super) async fn new_tokens(
    tx: &Transaction,
    mut tokens: Vec<tokens::Model>,
) -> Result<Vec<tokens::Model>, ChainStoreError> {
    let addresses: Vec<Vec<u8>> = tokens.iter().map(|token| token.address.clone()).collect();
    let mut known = HashSet::new();
    for batch in addresses.chunks(Engine::for_connection(tx).batch_size(1)) {
        let rows = tokens::Entity::find()
            .select_only()
            .column(tokens::Column::Address)
            .filter(tokens::Column::Address.is_in(batch.to_vec()));
        known.extend(rows.into_tuple::<Vec<u8>>().all(tx).await?);
    }
    tokens.retain(|token| !known.contains(&token.address));
    Ok(tokens)
}

/// The work that the rows of a block cause.
pub(super) fn jobs_of(data: &BlockData) -> Vec<Job> {
    let mut jobs = Vec::new();
    if !data.block.frames_complete {
        jobs.push(Job::Frames {
            block: data.block.number,
        });
    }
    jobs.push(balance(data.block.miner));
    for data in &data.transactions {
        let transaction = &data.transaction;
        jobs.push(balance(transaction.from));
        if transaction.value > U256::ZERO {
            jobs.extend(transaction.to.or(transaction.created_contract).map(balance));
        }
        jobs.extend(data.transfers.iter().flat_map(jobs_of_transfer));
        jobs.extend(jobs_of_frames(&data.frames));
    }
    jobs
}

/// The balances that frames change.
pub(super) fn jobs_of_frames(frames: &[Frame]) -> impl Iterator<Item = Job> + '_ {
    let paying = frames.iter().filter(|frame| frame.value > U256::ZERO);
    paying.flat_map(|frame| [Some(frame.from), frame.to].into_iter().flatten().map(balance))
}

fn jobs_of_transfer(transfer: &TokenTransfer) -> Vec<Job> {
    let token = transfer.token;
    let mut jobs = Vec::new();
    for holder in [transfer.from, transfer.to] {
        // A mint or burn.
        if holder == Address::ZERO {
            jobs.push(Job::TokenSupply { token });
            continue;
        }
        let token_id = match transfer.standard {
            TokenStandard::Erc20 | TokenStandard::Erc721 => None,
            TokenStandard::Erc1155 => transfer.token_id,
        };
        jobs.push(Job::TokenBalance {
            token,
            holder,
            token_id,
        });
    }
    jobs
}

fn balance(address: Address) -> Job {
    Job::Balance { address }
}

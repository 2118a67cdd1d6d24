//! Balances, supplies and metadata, as workers read them from the node.

use crate::{
    chain::ChainMaker,
    world::{World, append_all, on_both_engines},
};
use gw_chain_store::{
    BlockData, ChainStoreError, ChainWriter, Job, JobKind, Reading,
    rows::{Balance, MetadataState, TokenMetadata, TokenStandard, TokenTransfer},
};
use gw_types::{Address, B256, Seconds, U256};

on_both_engines! {
    a_value_read_at_a_later_block_is_kept,
    values_of_removed_blocks_and_unknown_tokens_are_not_stored,
    holders_are_counted_once,
    any_text_of_a_token_is_stored,
    finished_tasks_leave_with_the_values,
}

const TOKEN: Address = Address::repeat_byte(0xaa);
const HOLDER: Address = Address::repeat_byte(0x01);

/// A chain with a transfer of the token in its first block.
async fn with_token(writer: &ChainWriter) -> Vec<BlockData> {
    let maker = ChainMaker::new(41);
    let candidates = maker.blocks(0, B256::ZERO, 20).into_iter();
    let mut block = candidates
        .into_iter()
        .find(|data| !data.transactions.is_empty())
        .unwrap();
    block.transactions[0].transfers = vec![TokenTransfer {
        log_index: 0,
        batch_position: 0,
        token: TOKEN,
        from: HOLDER,
        to: Address::ZERO,
        value: U256::ONE,
        token_id: Some(U256::ONE),
        standard: TokenStandard::Erc1155,
    }];
    let mut chain = vec![block];
    chain.extend(maker.blocks_after(&chain[0], 3));
    append_all(writer, &chain).await;
    chain
}

async fn a_value_read_at_a_later_block_is_kept(world: &World) {
    let writer = world.writer().await;
    let chain = with_token(&writer).await;
    let [early, middle, late] = [0, 1, 2].map(|index: usize| chain[index].block.num_hash());
    let amount = U256::from;
    for (at, value, kept) in [(middle, 5, 5), (early, 4, 5), (late, 6, 6), (late, 7, 7)] {
        let metadata = TokenMetadata {
            name: Some(format!("{value}")),
            ..TokenMetadata::default()
        };
        let readings = [
            Reading::Balance {
                address: HOLDER,
                balance: amount(value),
            },
            Reading::TokenBalance {
                token: TOKEN,
                holder: HOLDER,
                token_id: None,
                balance: amount(value),
            },
            Reading::TokenSupply {
                token: TOKEN,
                supply: Some(amount(value)),
            },
            Reading::TokenMetadata {
                token: TOKEN,
                metadata: Some(metadata),
            },
        ];
        writer.set_readings(at, &readings, &[]).await.unwrap();
        let reader = world.reader().await;
        let stored = reader.find_balance(HOLDER).await.unwrap().unwrap();
        assert_eq!(stored.balance, amount(kept));
        let balances = reader.list_token_balances(HOLDER, None, 9).await.unwrap();
        assert_eq!(
            balances.iter().map(|row| row.balance).collect::<Vec<_>>(),
            [amount(kept)]
        );
        assert_eq!(balances[0].block_number, stored.block_number);
        let token = reader.find_token(TOKEN).await.unwrap().unwrap().token;
        assert_eq!(token.total_supply, Some(amount(kept)));
        let MetadataState::Known(metadata) = token.metadata else {
            panic!("it was read")
        };
        assert_eq!(metadata.name, Some(format!("{kept}")));
    }
    writer.set_balance(late, HOLDER, U256::MAX).await.unwrap();
    let expected = Balance {
        balance: U256::MAX,
        block_number: late.number,
    };
    assert_eq!(world.reader().await.find_balance(HOLDER).await.unwrap(), Some(expected));
}

async fn values_of_removed_blocks_and_unknown_tokens_are_not_stored(world: &World) {
    let writer = world.writer().await;
    let chain = with_token(&writer).await;
    let removed = chain[3].block.num_hash();
    writer.revert_to(chain[2].block.number).await.unwrap();
    let before = world.dump().await;
    let refused = writer.set_balance(removed, HOLDER, U256::ONE).await;
    assert!(
        matches!(refused, Err(ChainStoreError::UnknownBlock { .. })),
        "{refused:?}"
    );
    let other = Address::repeat_byte(0xbb);
    let at = chain[2].block.num_hash();
    writer
        .set_token_balance(at, other, HOLDER, None, U256::ONE)
        .await
        .unwrap();
    writer.set_token_metadata(at, other, None).await.unwrap();
    assert_eq!(world.dump().await, before);
    let refused = writer.set_finalized(removed).await;
    assert!(
        matches!(refused, Err(ChainStoreError::UnknownBlock { .. })),
        "{refused:?}"
    );
}

async fn holders_are_counted_once(world: &World) {
    let writer = world.writer().await;
    let chain = with_token(&writer).await;
    let at = chain[1].block.num_hash();
    let id = |id: u64| Some(U256::from(id));
    let other = Address::repeat_byte(0x02);
    for (holder, token_id, balance, holders) in [
        (HOLDER, id(0), 5_u64, 1),
        (HOLDER, id(1), 6, 1),
        (other, id(1), 0, 1),
        (other, id(1), 7, 2),
        (HOLDER, id(0), 0, 2),
        (HOLDER, id(0), 0, 2),
        (HOLDER, id(1), 0, 1),
        (HOLDER, id(2), 1, 2),
    ] {
        writer
            .set_token_balance(at, TOKEN, holder, token_id, U256::from(balance))
            .await
            .unwrap();
        let token = world.reader().await.find_token(TOKEN).await.unwrap().unwrap();
        assert_eq!(token.holder_count, holders, "{holder} {token_id:?} {balance}");
    }
    let rows = world.reader().await.list_holders(TOKEN, None, 9).await.unwrap();
    let rows: Vec<_> = rows.iter().map(|row| (row.holder, row.token_id, row.balance)).collect();
    assert_eq!(rows, [(other, id(1), U256::from(7)), (HOLDER, id(2), U256::ONE)]);
}

/// A name is whatever a contract answers: it must not stop the worker, and not exceed the size of an index entry.
async fn any_text_of_a_token_is_stored(world: &World) {
    let writer = world.writer().await;
    let chain = with_token(&writer).await;
    let at = chain[1].block.num_hash();
    for name in ["", "a\0b", &"Ä".repeat(20_000), "%_\\'\""] {
        let metadata = TokenMetadata {
            name: Some(name.to_owned()),
            symbol: Some(name.to_owned()),
            decimals: Some(u8::MAX),
        };
        writer
            .set_token_metadata(at, TOKEN, Some(metadata.clone()))
            .await
            .unwrap();
        let reader = world.reader().await;
        let stored = reader.find_token(TOKEN).await.unwrap().unwrap().token.metadata;
        assert_eq!(stored, MetadataState::Known(metadata));
        let found = reader.search_tokens(name, 9).await.unwrap();
        assert_eq!(found.len(), usize::from(!name.is_empty()), "{name:.9}");
    }
    writer.set_token_metadata(at, TOKEN, None).await.unwrap();
    let stored = world.reader().await.find_token(TOKEN).await.unwrap().unwrap();
    assert_eq!(stored.token.metadata, MetadataState::Unavailable);
}

async fn finished_tasks_leave_with_the_values(world: &World) {
    let writer = world.writer().await;
    let chain = with_token(&writer).await;
    let tasks = writer.take_tasks(JobKind::TokenSupply, 1, Seconds(60)).await.unwrap();
    let Job::TokenSupply { token } = tasks[0].job else {
        panic!("another kind")
    };
    let supply = Reading::TokenSupply { token, supply: None };
    let mut removed = chain[1].block.num_hash();
    removed.hash = B256::ZERO;
    assert!(
        writer
            .set_readings(removed, std::slice::from_ref(&supply), &tasks)
            .await
            .is_err()
    );
    let count = async || world.dump_of(&["tasks"]).await["tasks"].len();
    let before = count().await;
    writer
        .set_readings(chain[1].block.num_hash(), &[supply], &tasks)
        .await
        .unwrap();
    assert_eq!(count().await, before - 1);
}

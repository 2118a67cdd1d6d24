//! Blocks are read back as they were appended, or not stored at all.

use crate::{
    chain::ChainMaker,
    world::{World, append_all, on_both_engines},
};
use gw_chain_store::{BlockData, ChainStoreError, Job, JobKind};
use gw_postings::{BlockRows, PostingIndex, RowId, Space};
use gw_types::{Address, B256, Bytes, Seconds};
use proptest::{
    strategy::{Strategy, ValueTree as _},
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};

on_both_engines! {
    random_blocks_are_read_back_as_they_were_appended,
    a_block_that_fits_no_statement_is_read_back,
    a_block_that_does_not_follow_changes_nothing,
    rows_that_contradict_each_other_change_nothing,
    a_failure_in_the_middle_of_a_block_changes_nothing,
    the_first_block_may_have_any_number,
}

/// The random cases of a test.
fn cases<T: core::fmt::Debug>(count: usize, strategy: impl Strategy<Value = T>) -> Vec<T> {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    (0..count)
        .map(|_| strategy.new_tree(&mut runner).unwrap().current())
        .collect()
}

async fn random_blocks_are_read_back_as_they_were_appended(world: &World) {
    let strategy = (proptest::num::u64::ANY, 1..7_u64, 0..1000_u64, 1..4_u64);
    for (seed, count, first, step) in cases(12, strategy) {
        let chain = ChainMaker::new(seed).blocks(first, B256::ZERO, count);
        let writer = world.writer().await;
        writer.wipe().await.unwrap();
        append_all(&writer, &chain).await;
        writer.release().await.unwrap();
        assert_stored(world, &chain, step).await;
    }
}

/// Compares all queries by block, id and hash with the blocks.
pub(crate) async fn assert_stored(world: &World, chain: &[BlockData], step: u64) {
    let reader = world.reader().await;
    let progress = reader.progress();
    assert_eq!(progress.first, chain.first().map(|data| data.block.number));
    assert_eq!(
        progress.head.as_ref().map(|head| &head.block),
        chain.last().map(|data| &data.block)
    );
    let mut next = [0_u64; 4];
    for data in chain {
        let number = data.block.number;
        assert_eq!(reader.find_block_data(number).await.unwrap().as_ref(), Some(data));
        let stored = reader.find_block(number).await.unwrap().unwrap();
        assert_eq!(stored.block, data.block);
        assert_eq!(
            reader.find_block_by_hash(data.block.hash).await.unwrap().as_ref(),
            Some(&stored)
        );
        let counts = [
            data.transactions.len(),
            data.transactions.iter().map(|data| data.transfers.len()).sum(),
            data.transactions.iter().map(|data| data.frames.len()).sum(),
            data.transactions.iter().map(|data| data.logs.len()).sum(),
        ];
        let spaces = [Space::Transactions, Space::Transfers, Space::Frames, Space::Logs];
        for ((next, space), count) in next.iter_mut().zip(spaces).zip(counts) {
            let end = *next + count as u64;
            assert_eq!(stored.ids.of(space), *next..end, "ids are dense");
            *next = end;
        }
        let of_block = reader.list_transactions_of_block(number).await.unwrap();
        for (index, (row, data)) in of_block.iter().zip(&data.transactions).enumerate() {
            assert_eq!(row.transaction, data.transaction);
            assert_eq!((row.block_number, row.index as usize), (number, index));
            let found = reader.find_transaction(data.transaction.hash).await.unwrap();
            assert_eq!(found.as_ref(), Some(row));
            let logs = reader.list_logs(row.id).await.unwrap();
            assert!(logs.iter().map(|row| &row.row).eq(&data.logs));
            let transfers = reader.list_transfers(row.id).await.unwrap();
            assert!(transfers.iter().map(|row| &row.row).eq(&data.transfers));
            let frames = reader.list_frames(row.id).await.unwrap();
            assert!(frames.iter().map(|row| &row.row).eq(&data.frames));
            let timestamp = stored.block.timestamp;
            let is_here = |at: (u64, i64, RowId, B256)| at == (number, timestamp, row.id, data.transaction.hash);
            assert!(logs.iter().all(|at| is_here((
                at.block_number,
                at.timestamp,
                at.transaction_id,
                at.transaction_hash
            ))));
            assert!(frames.iter().all(|at| is_here((
                at.block_number,
                at.timestamp,
                at.transaction_id,
                at.transaction_hash
            ))));
        }
    }
    // By id, the newest first, as the explorer reads them.
    let ids = |end: u64| (0..end).rev().map(RowId).collect::<Vec<_>>();
    let transactions = reader.get_transactions(&ids(next[0])).await.unwrap();
    let expected = chain.iter().rev().flat_map(|data| data.transactions.iter().rev());
    assert!(
        transactions
            .iter()
            .map(|row| &row.transaction)
            .eq(expected.clone().map(|data| &data.transaction))
    );
    assert!(transactions.iter().map(|row| row.id).eq(ids(next[0])));
    let transfers = reader.get_transfers(&ids(next[1])).await.unwrap();
    assert!(transfers.iter().map(|row| row.id).eq(ids(next[1])));
    assert!(
        transfers
            .iter()
            .map(|row| &row.row)
            .eq(expected.clone().flat_map(|data| data.transfers.iter().rev()))
    );
    let frames = reader.get_frames(&ids(next[2])).await.unwrap();
    assert!(frames.iter().map(|row| row.id).eq(ids(next[2])));
    assert!(
        frames
            .iter()
            .map(|row| &row.row)
            .eq(expected.clone().flat_map(|data| data.frames.iter().rev()))
    );
    let logs = reader.get_logs(&ids(next[3])).await.unwrap();
    assert!(logs.iter().map(|row| row.id).eq(ids(next[3])));
    assert!(
        logs.iter()
            .map(|row| &row.row)
            .eq(expected.flat_map(|data| data.logs.iter().rev()))
    );
    // An id that no row has is an error, not a short page.
    for (space, missing) in [
        (
            Space::Transactions,
            reader.get_transactions(&[RowId(next[0])]).await.map(drop),
        ),
        (
            Space::Transfers,
            reader.get_transfers(&[RowId(next[1])]).await.map(drop),
        ),
        (Space::Frames, reader.get_frames(&[RowId(next[2])]).await.map(drop)),
        (Space::Logs, reader.get_logs(&[RowId(next[3])]).await.map(drop)),
    ] {
        assert!(
            matches!(missing, Err(ChainStoreError::MissingRow(of)) if of == space),
            "{missing:?}"
        );
    }
    // The rows for the posting index, in steps.
    let mut rows: Vec<BlockRows> = Vec::new();
    let mut from = 0;
    loop {
        let some = reader.index_rows(from, step).await.unwrap();
        assert!(some.len() as u64 <= step);
        let Some(last) = some.last() else { break };
        from = last.number + 1;
        rows.extend(some);
    }
    assert_eq!(rows, chain.iter().map(BlockData::posting_rows).collect::<Vec<_>>());
    // The index accepts them, and then has the same ids.
    let mut index = PostingIndex::new();
    for block in &rows {
        index.append(block).unwrap();
    }
}

async fn a_block_that_fits_no_statement_is_read_back(world: &World) {
    let maker = ChainMaker::new(7);
    let mut blocks = maker.blocks(0, B256::ZERO, 2);
    let sample = maker.blocks(9, B256::ZERO, 40);
    let samples = sample.into_iter().filter(|data| data.block.frames_complete);
    let samples: Vec<_> = samples.flat_map(|data| data.transactions).collect();
    blocks[1].block.frames_complete = true;
    blocks[1].transactions = (0..1500_usize)
        .map(|position| {
            let mut data = samples[position % samples.len()].clone();
            data.transaction.hash = maker.hash();
            data
        })
        .collect();
    append_all(&world.writer().await, &blocks).await;
    assert_stored(world, &blocks, 2).await;
}

async fn a_block_that_does_not_follow_changes_nothing(world: &World) {
    let maker = ChainMaker::new(1);
    let chain = maker.blocks(5, B256::ZERO, 3);
    let writer = world.writer().await;
    append_all(&writer, &chain).await;
    let before = (world.dump().await, world.dump_of(&["tasks", "chain_state"]).await);
    let head = chain[2].block.hash;
    for number in [6, 7, 9] {
        match writer.append(&maker.block(number, head), &[]).await {
            Err(ChainStoreError::NotNext { newest: 7, block }) => assert_eq!(block, number),
            other => panic!("{other:?}"),
        }
    }
    let other = maker.hash();
    match writer.append(&maker.block(8, other), &[]).await {
        Err(ChainStoreError::OtherParent { block, expected, found }) => {
            assert_eq!((block, expected, found), (8, head, other));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(
        (world.dump().await, world.dump_of(&["tasks", "chain_state"]).await),
        before
    );
    writer.append(&maker.block(8, head), &[]).await.unwrap();
}

async fn rows_that_contradict_each_other_change_nothing(world: &World) {
    let maker = ChainMaker::new(2);
    let samples = maker.blocks(0, B256::ZERO, 30);
    let full = samples.iter().find(|data| {
        let mut transactions = data.transactions.iter();
        data.block.frames_complete
            && !data.contracts.is_empty()
            && !data.proxy_changes.is_empty()
            && transactions.any(|data| !data.logs.is_empty() && !data.frames.is_empty())
    });
    let full = full.unwrap();
    let mut topics = full.clone();
    let transactions = topics.transactions.iter_mut();
    transactions
        .flat_map(|data| &mut data.logs)
        .for_each(|log| log.topics = vec![B256::ZERO; 5]);
    let mut untraced = full.clone();
    untraced.block.frames_complete = false;
    let mut twice = full.clone();
    twice.contracts.push(twice.contracts[0].clone());
    let mut changed_twice = full.clone();
    changed_twice.proxy_changes.push(changed_twice.proxy_changes[0]);
    let writer = world.writer().await;
    let before = world.dump().await;
    for broken in [topics, untraced, twice, changed_twice] {
        let refused = writer.append(&broken, &[]).await;
        assert!(
            matches!(refused, Err(ChainStoreError::InvalidBlock { .. })),
            "{refused:?}"
        );
        assert_eq!(world.dump().await, before);
    }
    writer.append(full, &[]).await.unwrap();
}

async fn a_failure_in_the_middle_of_a_block_changes_nothing(world: &World) {
    let chain = ChainMaker::new(3).blocks(0, B256::ZERO, 12);
    let writer = world.writer().await;
    let (set, unset) = match world.engine {
        "sqlite" => (
            "CREATE TRIGGER refuse BEFORE INSERT ON token_transfers BEGIN SELECT RAISE(ABORT, 'refused'); END",
            "DROP TRIGGER refuse",
        ),
        _ => (
            "ALTER TABLE token_transfers ADD CONSTRAINT refuse CHECK (log_index < 0) NOT VALID",
            "ALTER TABLE token_transfers DROP CONSTRAINT refuse",
        ),
    };
    let has_transfers = |data: &BlockData| data.transactions.iter().any(|data| !data.transfers.is_empty());
    let mut failures = 0;
    for data in &chain {
        if has_transfers(data) {
            let before = (world.dump().await, world.dump_of(&["tasks", "chain_state"]).await);
            world.tamper(&[set]).await;
            let failed = writer.append(data, &[]).await;
            assert!(matches!(failed, Err(ChainStoreError::Database(_))), "{failed:?}");
            world.tamper(&[unset]).await;
            assert_eq!(
                (world.dump().await, world.dump_of(&["tasks", "chain_state"]).await),
                before
            );
            failures += 1;
        }
        writer.append(data, &[]).await.unwrap();
    }
    assert!(failures > 2);
    assert_stored(world, &chain, 5).await;
}

async fn the_first_block_may_have_any_number(world: &World) {
    let reader = world.reader().await;
    assert_eq!((reader.progress().first, &reader.progress().head), (None, &None));
    assert_eq!(reader.index_rows(0, 10).await.unwrap(), []);
    assert_eq!(reader.find_block_data(0).await.unwrap(), None);
    drop(reader);
    let mut block = ChainMaker::new(4).block(1_000_000, B256::repeat_byte(9));
    block.block.frames_complete = true;
    block.block.extra_data = Bytes::new();
    let address = Address::repeat_byte(0xee);
    let writer = world.writer().await;
    writer.append(&block, &[Job::Balance { address }]).await.unwrap();
    assert_stored(world, &[block], 1).await;
    let tasks = writer.take_tasks(JobKind::Balance, 100, Seconds(1)).await.unwrap();
    assert!(
        tasks.iter().any(|task| task.job == Job::Balance { address }),
        "a job of the indexer"
    );
    assert_eq!(world.reader().await.find_balance(address).await.unwrap(), None);
}

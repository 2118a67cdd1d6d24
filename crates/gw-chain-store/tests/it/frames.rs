//! Frames of a block that was stored without them.

use crate::{
    append::assert_stored,
    chain::ChainMaker,
    world::{World, append_all, on_both_engines},
};
use gw_chain_store::{BlockData, BlockFrames, ChainStoreError, Job, JobKind, TransactionTrace, rows::TransactionData};
use gw_types::{B256, Seconds};

on_both_engines! {
    frames_completed_later_are_as_if_they_had_been_there,
    ids_of_an_earlier_generation_are_refused,
    frames_that_do_not_fit_change_nothing,
    a_trace_without_frames_moves_no_id,
}

/// A chain whose blocks are all traced, and the same chain as far as it is known before the traces of some.
fn chain() -> (Vec<BlockData>, Vec<BlockData>) {
    let mut traced = ChainMaker::new(11).blocks(0, B256::ZERO, 20);
    traced.iter_mut().for_each(|data| data.block.frames_complete = true);
    let mut stored = traced.clone();
    for data in stored.iter_mut().filter(|data| data.block.number % 3 > 0) {
        data.block.frames_complete = false;
        for data in &mut data.transactions {
            data.frames.clear();
            (data.transaction.error, data.transaction.revert_reason) = (None, None);
        }
    }
    (traced, stored)
}

fn trace_of_transaction(data: &TransactionData) -> TransactionTrace {
    TransactionTrace {
        frames: data.frames.clone(),
        error: data.transaction.error.clone(),
        revert_reason: data.transaction.revert_reason.clone(),
    }
}

fn trace_of(data: &BlockData) -> BlockFrames {
    BlockFrames {
        transactions: data.transactions.iter().map(trace_of_transaction).collect(),
        contracts: Vec::new(),
    }
}

async fn frames_completed_later_are_as_if_they_had_been_there(world: &World) {
    let (traced, stored) = chain();
    let writer = world.writer().await;
    append_all(&writer, &stored).await;
    assert_stored(world, &stored, 4).await;
    let missing: Vec<u64> = stored
        .iter()
        .filter(|data| !data.block.frames_complete)
        .map(|data| data.block.number)
        .collect();
    assert_eq!(
        world.reader().await.list_blocks_without_frames(100).await.unwrap(),
        missing
    );
    // Tasks that are due since the same moment have no order.
    let tasks = writer.take_tasks(JobKind::Frames, 100, Seconds(60)).await.unwrap();
    let mut jobs: Vec<Job> = tasks.iter().map(|task| task.job).collect();
    jobs.sort();
    assert!(
        jobs.into_iter()
            .eq(missing.iter().map(|block| Job::Frames { block: *block }))
    );

    let mut moved = 0;
    // The newest first: later ids have changed when the older ones are completed.
    for data in traced.iter().rev().filter(|data| missing.contains(&data.block.number)) {
        let generation = world.generation().await;
        writer
            .complete_frames(data.block.num_hash(), &trace_of(data))
            .await
            .unwrap();
        let frames: usize = data.transactions.iter().map(|data| data.frames.len()).sum();
        moved += u64::from(frames > 0);
        assert_eq!(world.generation().await, generation + u64::from(frames > 0));
    }
    assert!(moved > 2, "the chain has frames");
    assert_stored(world, &traced, 4).await;
    assert_eq!(
        world.reader().await.list_blocks_without_frames(100).await.unwrap(),
        [] as [u64; 0]
    );

    let fresh = world.another().await;
    let fresh_writer = fresh.writer().await;
    append_all(&fresh_writer, &traced).await;
    assert_eq!(world.dump().await, fresh.dump().await);
    // The balances that the frames change are read again.
    let jobs = |tasks: Vec<gw_chain_store::Task>| {
        tasks
            .iter()
            .map(|task| task.job)
            .collect::<std::collections::BTreeSet<_>>()
    };
    let balances = jobs(writer.take_tasks(JobKind::Balance, 1000, Seconds(60)).await.unwrap());
    let expected = jobs(
        fresh_writer
            .take_tasks(JobKind::Balance, 1000, Seconds(60))
            .await
            .unwrap(),
    );
    assert_eq!(balances, expected);
}

async fn ids_of_an_earlier_generation_are_refused(world: &World) {
    let (traced, stored) = chain();
    let writer = world.writer().await;
    append_all(&writer, &stored).await;
    let generation = world.generation().await;
    let before = world.store.reader_at(generation).await.unwrap();
    let frames = before.list_frames_of_block(9).await.unwrap();
    let incomplete = |data: &&BlockData| {
        !data.block.number.is_multiple_of(3)
            && trace_of(data)
                .transactions
                .iter()
                .any(|traced| !traced.frames.is_empty())
    };
    let block = traced.iter().find(incomplete).unwrap();
    writer
        .complete_frames(block.block.num_hash(), &trace_of(block))
        .await
        .unwrap();
    // A reader that has begun sees the state of its beginning.
    assert_eq!(before.list_frames_of_block(9).await.unwrap(), frames);
    match world.store.reader_at(generation).await {
        Err(ChainStoreError::OtherGeneration { requested, stored }) => {
            assert_eq!((requested, stored), (generation, generation + 1));
        }
        other => panic!("{other:?}"),
    }
    world.store.reader_at(generation + 1).await.unwrap();
}

async fn frames_that_do_not_fit_change_nothing(world: &World) {
    let (traced, stored) = chain();
    let writer = world.writer().await;
    append_all(&writer, &stored).await;
    let before = (world.dump().await, world.generation().await);
    let block = &traced[1];
    let mut other_hash = block.block.num_hash();
    other_hash.hash = B256::repeat_byte(1);
    let refused = writer.complete_frames(other_hash, &trace_of(block)).await;
    assert!(
        matches!(refused, Err(ChainStoreError::UnknownBlock { block: 1 })),
        "{refused:?}"
    );
    let mut longer = trace_of(block);
    longer.transactions.push(TransactionTrace::default());
    let refused = writer.complete_frames(block.block.num_hash(), &longer).await;
    assert!(
        matches!(refused, Err(ChainStoreError::InvalidBlock { block: 1, .. })),
        "{refused:?}"
    );
    let refused = writer
        .complete_frames(traced[3].block.num_hash(), &trace_of(&traced[3]))
        .await;
    assert!(
        matches!(refused, Err(ChainStoreError::FramesComplete { block: 3 })),
        "{refused:?}"
    );
    assert_eq!((world.dump().await, world.generation().await), before);
}

async fn a_trace_without_frames_moves_no_id(world: &World) {
    let (_, stored) = chain();
    let writer = world.writer().await;
    append_all(&writer, &stored).await;
    let generation = world.generation().await;
    let trace = BlockFrames {
        transactions: vec![TransactionTrace::default(); stored[1].transactions.len()],
        // A contract that the block created besides; the others keep their rows.
        contracts: stored.iter().flat_map(|data| data.contracts.clone()).take(1).collect(),
    };
    writer
        .complete_frames(stored[1].block.num_hash(), &trace)
        .await
        .unwrap();
    let reader = world.reader().await;
    assert_eq!(reader.progress().generation, generation);
    assert!(reader.find_block(1).await.unwrap().unwrap().block.frames_complete);
    let address = trace.contracts[0].address;
    let created = reader.find_block_data(1).await.unwrap().unwrap().contracts;
    let expected = stored[1]
        .contracts
        .iter()
        .find(|row| row.address == address)
        .unwrap_or(&trace.contracts[0]);
    assert_eq!(created.iter().find(|row| row.address == address), Some(expected));
}

//! A stored block that was read again.

use crate::{
    append::assert_stored,
    chain::ChainMaker,
    world::{World, append_all, on_both_engines},
};
use gw_chain_store::{BlockData, ChainStoreError, Job, JobKind};
use gw_types::{Address, B256, Seconds};

on_both_engines! {
    a_replaced_block_is_as_if_it_had_been_appended,
    the_same_rows_change_nothing,
    x7_a_block_of_half_an_answer_is_repaired,
    blocks_that_cannot_be_replaced_are_refused,
    a_request_needs_no_lease,
}

fn chain() -> Vec<BlockData> {
    let mut chain = ChainMaker::new(17).blocks(0, B256::ZERO, 16);
    chain.iter_mut().for_each(|data| data.block.frames_complete = true);
    chain
}

/// The rows of the block with other contents.
fn changed(data: &BlockData) -> BlockData {
    let mut data = data.clone();
    for row in &mut data.transactions {
        row.transaction.error = Some("out of gas".to_owned());
        row.transaction.from = Address::repeat_byte(0x77);
        row.logs
            .iter_mut()
            .for_each(|log| log.address = Address::repeat_byte(0x78));
        row.transfers
            .iter_mut()
            .for_each(|transfer| transfer.to = Address::repeat_byte(0x79));
        let first = row.frames.first().cloned();
        row.frames.extend(first);
    }
    data
}

async fn a_replaced_block_is_as_if_it_had_been_appended(world: &World) {
    let mut chain = chain();
    let writer = world.writer().await;
    append_all(&writer, &chain).await;
    let has_rows = |number: &usize| !chain[*number].transactions.is_empty();
    let with_rows: Vec<usize> = (0..chain.len()).filter(has_rows).collect();
    let (first, last) = (with_rows[0], with_rows[with_rows.len() - 1]);
    assert!(first < last);
    for number in [last, first] {
        let generation = world.generation().await;
        chain[number] = changed(&chain[number]);
        assert!(writer.replace_block(&chain[number]).await.unwrap());
        assert_eq!(world.generation().await, generation + 1);
        let reader = world.reader().await;
        assert_eq!(
            reader.first_block_changed_since(generation).await.unwrap(),
            Some(number as u64)
        );
        assert_eq!(reader.first_block_changed_since(generation + 1).await.unwrap(), None);
    }
    let reader = world.reader().await;
    assert_eq!(
        reader.first_block_changed_since(1).await.unwrap(),
        Some(first as u64),
        "the first of both"
    );
    drop(reader);
    assert_stored(world, &chain, 3).await;
    let fresh = world.another().await;
    append_all(&fresh.writer().await, &chain).await;
    assert_eq!(world.dump().await, fresh.dump().await);
    writer.revert_to(first as u64).await.unwrap();
    let reader = world.reader().await;
    assert_eq!(reader.first_block_changed_since(1).await.unwrap(), Some(first as u64));
    drop(reader);
    // What the rows say is read again.
    let jobs = writer.take_tasks(JobKind::Balance, 1000, Seconds(60)).await.unwrap();
    let sender = Job::Balance {
        address: Address::repeat_byte(0x77),
    };
    assert!(jobs.iter().any(|task| task.job == sender));
}

/// A block of which the node told half, or nothing, and then all: the ids of all later rows move, and back.
async fn x7_a_block_of_half_an_answer_is_repaired(world: &World) {
    let chain = chain();
    let is_rich = |data: &&BlockData| {
        let rows = &data.transactions;
        rows.len() > 1
            && rows.iter().any(|row| !row.transfers.is_empty())
            && rows.iter().any(|row| !row.logs.is_empty())
    };
    let whole = chain.iter().find(is_rich).unwrap();
    let number = usize::try_from(whole.block.number).unwrap();
    let mut hollow = whole.clone();
    hollow.transactions.clear();
    let mut half = whole.clone();
    half.transactions.truncate(1);
    for (other, generations) in [(hollow, 1), (half, 1)] {
        let world = world.another().await;
        let mut stored = chain.clone();
        stored[number] = other.clone();
        let writer = world.writer().await;
        append_all(&writer, &stored).await;
        let generation = world.generation().await;
        assert!(writer.replace_block(whole).await.unwrap());
        assert_eq!(world.generation().await, generation + generations);
        let changed = world
            .reader()
            .await
            .first_block_changed_since(generation)
            .await
            .unwrap();
        assert_eq!(changed, Some(whole.block.number));
        assert_stored(&world, &chain, 3).await;
        let fresh = world.another().await;
        append_all(&fresh.writer().await, &chain).await;
        assert_eq!(world.dump().await, fresh.dump().await);
        // Fewer rows move the ids back; further blocks follow.
        assert!(writer.replace_block(&other).await.unwrap());
        assert_stored(&world, &stored, 3).await;
    }
}

async fn the_same_rows_change_nothing(world: &World) {
    let chain = chain();
    let writer = world.writer().await;
    append_all(&writer, &chain).await;
    let before = (world.dump().await, world.generation().await);
    let metadata = writer
        .take_tasks(JobKind::TokenMetadata, 1000, Seconds(60))
        .await
        .unwrap();
    writer.finish_tasks(&metadata).await.unwrap();
    let has_transfers = |data: &&BlockData| data.transactions.iter().any(|data| !data.transfers.is_empty());
    let block = chain.iter().find(has_transfers).unwrap();
    assert!(!writer.replace_block(block).await.unwrap());
    assert_eq!((world.dump().await, world.generation().await), before);
    let again = writer
        .take_tasks(JobKind::TokenMetadata, 1000, Seconds(60))
        .await
        .unwrap();
    assert!(!again.is_empty(), "the metadata of its tokens is read again");
    // Other contents without other addresses leave the ids valid.
    let mut other = block.clone();
    other
        .transactions
        .iter_mut()
        .for_each(|data| data.transaction.gas_used = 7);
    assert!(writer.replace_block(&other).await.unwrap());
    assert_eq!(world.generation().await, before.1);
}

async fn blocks_that_cannot_be_replaced_are_refused(world: &World) {
    let chain = chain();
    let writer = world.writer().await;
    append_all(&writer, &chain).await;
    let before = (world.dump().await, world.generation().await);
    let has_frames = |data: &&BlockData| data.transactions.iter().any(|data| !data.frames.is_empty());
    let block = chain.iter().find(has_frames).unwrap();
    let mut untraced = block.clone();
    untraced.block.frames_complete = false;
    untraced.transactions.iter_mut().for_each(|data| data.frames.clear());
    let refused = writer.replace_block(&untraced).await;
    assert!(
        matches!(refused, Err(ChainStoreError::InvalidBlock { .. })),
        "{refused:?}"
    );
    let (mut foreign, mut unknown) = (block.clone(), block.clone());
    foreign.block.hash = B256::repeat_byte(1);
    unknown.block.number = 99;
    for data in [foreign, unknown] {
        let refused = writer.replace_block(&data).await;
        assert!(
            matches!(refused, Err(ChainStoreError::UnknownBlock { .. })),
            "{refused:?}"
        );
    }
    assert_eq!((world.dump().await, world.generation().await), before);
}

async fn a_request_needs_no_lease(world: &World) {
    let chain = chain();
    let writer = world.writer().await;
    append_all(&writer, &chain).await;
    assert!(world.store.request_block(6).await.unwrap());
    assert!(!world.store.request_block(16).await.unwrap(), "no such block");
    assert!(!world.store.request_block(u64::MAX).await.unwrap());
    let tasks = writer.take_tasks(JobKind::Block, 9, Seconds(60)).await.unwrap();
    assert_eq!(
        tasks.iter().map(|task| task.job).collect::<Vec<_>>(),
        [Job::Block { block: 6 }]
    );
    // A reorganization removes the request with the block.
    writer.revert_to(5).await.unwrap();
    world.clock.pass(61);
    assert!(
        writer
            .take_tasks(JobKind::Block, 9, Seconds(60))
            .await
            .unwrap()
            .is_empty()
    );
}

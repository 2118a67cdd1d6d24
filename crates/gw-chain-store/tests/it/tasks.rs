//! The queue of work.

use crate::{
    chain::ChainMaker,
    world::{World, on_both_engines},
};
use gw_chain_store::{ChainStore, ChainWriter, Job, JobKind, Task};
use gw_types::{Address, B256, Seconds, U256};
use std::collections::BTreeSet;

on_both_engines! {
    a_block_puts_the_work_that_it_causes_into_the_queue,
    a_task_is_taken_once_until_its_hold_ends,
    a_request_during_the_work_is_not_lost,
    failed_tasks_wait_longer_each_time,
    tasks_outlive_the_process,
    x12_the_claims_of_a_killed_writer_end_with_its_lease,
}

fn balance(byte: u8) -> Job {
    Job::Balance {
        address: Address::repeat_byte(byte),
    }
}

fn jobs(tasks: &[Task]) -> BTreeSet<Job> {
    tasks.iter().map(|task| task.job).collect()
}

async fn a_block_puts_the_work_that_it_causes_into_the_queue(world: &World) {
    let maker = ChainMaker::new(31);
    let writer = world.writer().await;
    let mut known = BTreeSet::new();
    for data in maker.blocks(0, B256::ZERO, 12) {
        writer.append(&data, &[]).await.unwrap();
        let mut expected: BTreeSet<Job> = [Job::Balance {
            address: data.block.miner,
        }]
        .into();
        if !data.block.frames_complete {
            expected.insert(Job::Frames {
                block: data.block.number,
            });
        }
        for row in &data.transactions {
            let transaction = &row.transaction;
            expected.insert(Job::Balance {
                address: transaction.from,
            });
            if transaction.value > U256::ZERO {
                expected.extend(
                    transaction
                        .to
                        .or(transaction.created_contract)
                        .map(|address| Job::Balance { address }),
                );
            }
            for frame in row.frames.iter().filter(|frame| frame.value > U256::ZERO) {
                expected.insert(Job::Balance { address: frame.from });
                expected.extend(frame.to.map(|address| Job::Balance { address }));
            }
            for transfer in &row.transfers {
                let token = transfer.token;
                if known.insert(token) {
                    expected.insert(Job::TokenMetadata { token });
                    expected.insert(Job::TokenSupply { token });
                }
                let is_multi = transfer.standard == gw_chain_store::rows::TokenStandard::Erc1155;
                for holder in [transfer.from, transfer.to] {
                    expected.insert(match holder {
                        Address::ZERO => Job::TokenSupply { token },
                        holder => Job::TokenBalance {
                            token,
                            holder,
                            token_id: transfer.token_id.filter(|_| is_multi),
                        },
                    });
                }
            }
        }
        let mut found = BTreeSet::new();
        for kind in JobKind::ALL {
            let tasks = writer.take_tasks(kind, 1000, Seconds(60)).await.unwrap();
            found.extend(jobs(&tasks));
            writer.finish_tasks(&tasks).await.unwrap();
        }
        assert_eq!(found, expected, "block {}", data.block.number);
    }
    assert!(known.len() > 3, "there were tokens");
}

async fn a_task_is_taken_once_until_its_hold_ends(world: &World) {
    let writer = world.writer().await;
    writer.enqueue(&[balance(1), balance(2), balance(1)]).await.unwrap();
    world.clock.pass(1);
    writer.enqueue(&[balance(3), Job::Frames { block: 4 }]).await.unwrap();
    let first = writer.take_tasks(JobKind::Balance, 2, Seconds(60)).await.unwrap();
    assert_eq!(jobs(&first), [balance(1), balance(2)].into(), "the longest due first");
    let second = writer.take_tasks(JobKind::Balance, 2, Seconds(60)).await.unwrap();
    assert_eq!(jobs(&second), [balance(3)].into());
    assert_eq!(writer.take_tasks(JobKind::Balance, 2, Seconds(60)).await.unwrap(), []);
    writer.finish_tasks(&second).await.unwrap();
    world.clock.pass(60);
    let again = writer.take_tasks(JobKind::Balance, 9, Seconds(60)).await.unwrap();
    assert_eq!(
        jobs(&again),
        [balance(1), balance(2)].into(),
        "their worker did not finish"
    );
    writer.finish_tasks(&again).await.unwrap();
    world.clock.pass(3600);
    assert_eq!(writer.take_tasks(JobKind::Balance, 9, Seconds(60)).await.unwrap(), []);
    assert_eq!(
        jobs(&writer.take_tasks(JobKind::Frames, 9, Seconds(60)).await.unwrap()),
        [Job::Frames { block: 4 }].into()
    );
}

async fn a_request_during_the_work_is_not_lost(world: &World) {
    let writer = world.writer().await;
    writer.enqueue(&[balance(1)]).await.unwrap();
    let taken = writer.take_tasks(JobKind::Balance, 9, Seconds(60)).await.unwrap();
    writer.enqueue(&[balance(1)]).await.unwrap();
    assert_eq!(
        writer.take_tasks(JobKind::Balance, 9, Seconds(60)).await.unwrap(),
        [],
        "one at a time"
    );
    writer.finish_tasks(&taken).await.unwrap();
    let again = writer.take_tasks(JobKind::Balance, 9, Seconds(60)).await.unwrap();
    assert_eq!(jobs(&again), [balance(1)].into());
    writer.finish_tasks(&again).await.unwrap();
    world.clock.pass(3600);
    assert_eq!(writer.take_tasks(JobKind::Balance, 9, Seconds(60)).await.unwrap(), []);
}

async fn failed_tasks_wait_longer_each_time(world: &World) {
    let writer = world.writer().await;
    writer.enqueue(&[balance(1)]).await.unwrap();
    for (attempts, delay) in [(0, 2), (1, 4), (2, 8)] {
        let taken = writer.take_tasks(JobKind::Balance, 9, Seconds(60)).await.unwrap();
        assert_eq!(taken.iter().map(|task| task.attempts).collect::<Vec<_>>(), [attempts]);
        writer.retry_tasks(&taken).await.unwrap();
        world.clock.pass(delay - 1);
        assert_eq!(writer.take_tasks(JobKind::Balance, 9, Seconds(60)).await.unwrap(), []);
        world.clock.pass(1);
    }
}

async fn tasks_outlive_the_process(world: &World) {
    let writer = world.writer().await;
    writer.enqueue(&[balance(1)]).await.unwrap();
    writer.take_tasks(JobKind::Balance, 9, Seconds(60)).await.unwrap();
    writer.release().await.unwrap();
    drop(writer);
    let other = ChainStore::open(world.config(2)).await.unwrap();
    let tasks = other
        .writer("next")
        .await
        .unwrap()
        .take_tasks(JobKind::Balance, 9, Seconds(60))
        .await
        .unwrap();
    assert_eq!(jobs(&tasks), [balance(1)].into());
}

/// The next writer need not wait for the hold of tasks whose worker was killed.
async fn x12_the_claims_of_a_killed_writer_end_with_its_lease(world: &World) {
    let writer = world.writer().await;
    writer.enqueue(&[balance(1), balance(2), balance(3)]).await.unwrap();
    let take = async |writer: &ChainWriter| writer.take_tasks(JobKind::Balance, 9, Seconds(120)).await.unwrap();
    let taken = take(&writer).await;
    // One of them failed; it is due in two seconds, and claimed again then.
    let failed: Vec<Task> = taken.iter().filter(|task| task.job == balance(2)).copied().collect();
    writer.retry_tasks(&failed).await.unwrap();
    world.clock.pass(2);
    assert_eq!(jobs(&take(&writer).await), [balance(2)].into());
    writer.finish_tasks(&taken[2..]).await.unwrap();
    let left: BTreeSet<Job> = taken[..2].iter().map(|task| task.job).collect();
    // As when its process is killed: the lock is free, the lease was not released.
    drop(writer);
    let other = ChainStore::open(world.config(2))
        .await
        .unwrap()
        .writer("next")
        .await
        .unwrap();
    let first = jobs(&take(&other).await);
    world.clock.pass(2);
    let second = jobs(&take(&other).await);
    assert_eq!(first.union(&second).copied().collect::<BTreeSet<_>>(), left);
    assert!(
        !first.contains(&balance(2)),
        "it failed, and waits as long as it would after another failure"
    );
    // A claim of the present writer holds.
    assert_eq!(take(&other).await, []);
}

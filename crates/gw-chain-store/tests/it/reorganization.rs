//! A reorganization leaves the state from before the removed blocks.

use crate::{
    append::assert_stored,
    chain::ChainMaker,
    world::{World, append_all, on_both_engines},
};
use gw_chain_store::{BlockData, ChainWriter, Job, JobKind, Reading, rows::TokenMetadata};
use gw_types::{B256, Seconds, U256};
use std::collections::BTreeSet;

on_both_engines! {
    removed_blocks_of_any_depth_leave_the_state_before_them,
    what_was_read_at_removed_blocks_is_read_again,
    a_wipe_removes_everything,
}

const LENGTH: u64 = 7;

/// Reads what the queue asks for at a block, as the workers do; the amounts are those of no other block.
async fn work(writer: &ChainWriter, at: &BlockData) {
    for kind in JobKind::ALL {
        let tasks = writer.take_tasks(kind, 1000, Seconds(1)).await.unwrap();
        let amount = U256::from(at.block.number % 4);
        let readings = tasks.iter().filter_map(|task| match task.job {
            Job::Balance { address } => Some(Reading::Balance {
                address,
                balance: amount,
            }),
            Job::TokenBalance {
                token,
                holder,
                token_id,
            } => Some(Reading::TokenBalance {
                token,
                holder,
                token_id,
                balance: amount,
            }),
            Job::TokenMetadata { token } => Some(Reading::TokenMetadata {
                token,
                metadata: Some(TokenMetadata {
                    name: Some(format!("Token {amount}")),
                    symbol: None,
                    decimals: Some(18),
                }),
            }),
            Job::TokenSupply { token } => Some(Reading::TokenSupply {
                token,
                supply: Some(amount),
            }),
            Job::Frames { .. } | Job::Block { .. } => None,
        });
        let readings: Vec<_> = readings.collect();
        if kind != JobKind::Frames {
            writer
                .set_readings(at.block.num_hash(), &readings, &tasks)
                .await
                .unwrap();
        }
    }
}

async fn jobs(world: &World) -> BTreeSet<(i16, Vec<u8>)> {
    let rows = world.query("SELECT kind, key FROM tasks").await;
    rows.iter()
        .map(|row| (row.try_get("", "kind").unwrap(), row.try_get("", "key").unwrap()))
        .collect()
}

/// Appends blocks; works on the queue after every second one.
async fn append_and_work(writer: &ChainWriter, blocks: &[BlockData]) {
    for data in blocks {
        writer.append(data, &[]).await.unwrap();
        if data.block.number.is_multiple_of(2) {
            work(writer, data).await;
        }
    }
}

/// Appends blocks and works on the queue; returns the state after each block.
async fn grow(
    world: &World,
    writer: &ChainWriter,
    blocks: &[BlockData],
) -> Vec<(crate::world::Dump, BTreeSet<(i16, Vec<u8>)>)> {
    let mut states = Vec::new();
    for data in blocks {
        append_and_work(writer, std::slice::from_ref(data)).await;
        states.push((world.dump().await, jobs(world).await));
    }
    states
}

async fn removed_blocks_of_any_depth_leave_the_state_before_them(world: &World) {
    let maker = ChainMaker::new(21);
    let chain = maker.blocks(0, B256::ZERO, LENGTH);
    let writer = world.writer().await;
    let states = grow(world, &writer, &chain).await;
    for ancestor in 0..LENGTH {
        let ancestor_index = usize::try_from(ancestor).unwrap();
        writer.wipe().await.unwrap();
        append_and_work(&writer, &chain).await;
        assert_eq!(Some(&world.dump().await), states.last().map(|(rows, _)| rows));
        let generation = world.generation().await;
        assert_eq!(writer.revert_to(ancestor).await.unwrap(), LENGTH - 1 - ancestor);
        let depth = LENGTH - 1 - ancestor;
        assert_eq!(world.generation().await, generation + u64::from(depth > 0));
        let (rows, queue) = &states[ancestor_index];
        // A value that was read again at a removed block is unknown now: its row is missing, and it is asked for.
        let after = world.dump().await;
        for table in rows
            .keys()
            .filter(|table| !["balances", "token_balances", "tokens"].contains(*table))
        {
            assert_eq!(after[table], rows[table], "{table} above {ancestor}");
        }
        assert_stored(world, &chain[..=ancestor_index], 3).await;
        for table in ["balances", "token_balances"] {
            assert!(
                after[table].iter().all(|row| rows[table].contains(row)),
                "{table} above {ancestor}"
            );
        }
        let lost = ["balances", "token_balances"].map(|table| rows[table].len() - after[table].len());
        let now = jobs(world).await;
        let of_kind = |kind: i16| now.iter().filter(|(known, _)| *known == kind).count();
        assert!(lost[0] <= of_kind(1) && lost[1] <= of_kind(2), "above {ancestor}");
        assert_eq!(after["tokens"].len(), rows["tokens"].len());
        // What was asked for before, and was not answered since by a value that remains, is asked for.
        let traces =
            |jobs: &BTreeSet<(i16, Vec<u8>)>| jobs.iter().filter(|(kind, _)| *kind == 5).cloned().collect::<Vec<_>>();
        assert_eq!(traces(&now), traces(queue));
        assert_holder_counts(world).await;

        // Another branch leads to the state of a store that never saw the first one.
        let branch = maker.blocks_after(&chain[ancestor_index], 3);
        append_all(&writer, &branch).await;
        let whole: Vec<_> = chain[..=ancestor_index].iter().chain(&branch).cloned().collect();
        assert_stored(world, &whole, 5).await;
        if ancestor == LENGTH / 2 {
            let fresh = world.another().await;
            append_all(&fresh.writer().await, &whole).await;
            let (after, expected) = (world.dump().await, fresh.dump().await);
            for table in expected
                .keys()
                .filter(|table| !["balances", "token_balances", "tokens"].contains(*table))
            {
                assert_eq!(after[table], expected[table], "{table}");
            }
        }
    }
    // Without a removed block, nothing changes.
    let before = (world.dump().await, world.generation().await);
    assert_eq!(writer.revert_to(u64::MAX >> 1).await.unwrap(), 0);
    assert_eq!((world.dump().await, world.generation().await), before);
}

/// The counts of holders are those of the balances.
async fn assert_holder_counts(world: &World) {
    let zero = match world.engine {
        "sqlite" => "zeroblob(32)",
        _ => "decode(repeat('00', 32), 'hex')",
    };
    let sql = format!(
        "SELECT count(*) AS wrong FROM tokens WHERE holder_count <> (SELECT count(DISTINCT holder) FROM token_balances \
         WHERE token_address = tokens.address AND balance > {zero})"
    );
    let wrong: i64 = world.query(&sql).await[0].try_get("", "wrong").unwrap();
    assert_eq!(wrong, 0);
}

async fn what_was_read_at_removed_blocks_is_read_again(world: &World) {
    let maker = ChainMaker::new(22);
    let chain = maker.blocks(0, B256::ZERO, 6);
    let writer = world.writer().await;
    append_all(&writer, &chain[..3]).await;
    work(&writer, &chain[2]).await;
    let before = world.dump().await;
    assert!(
        before["token_balances"].len() > 3 && before["balances"].len() > 3,
        "there is something to lose"
    );
    append_all(&writer, &chain[3..]).await;
    let at_three = world.dump().await;
    // Nothing was read at a removed block: everything is as before.
    writer.revert_to(2).await.unwrap();
    assert_ne!(at_three, before);
    assert_eq!(world.dump().await, before);
    // Everything was read again at a removed block: everything is unknown and asked for.
    append_all(&writer, &chain[3..]).await;
    let every = before["balances"].len();
    let tokens: Vec<_> = chain[..3]
        .iter()
        .flat_map(|data| &data.transactions)
        .flat_map(|data| &data.transfers)
        .map(|row| row.token)
        .collect();
    let metadata: Vec<Job> = tokens
        .iter()
        .map(|token| Job::TokenMetadata { token: *token })
        .collect();
    let supplies: Vec<Job> = tokens.iter().map(|token| Job::TokenSupply { token: *token }).collect();
    let addresses = world.query("SELECT address FROM balances").await;
    let addresses = addresses
        .iter()
        .map(|row| row.try_get::<Vec<u8>>("", "address").unwrap());
    let balances: Vec<Job> = addresses
        .map(|address| Job::Balance {
            address: address.as_slice().try_into().unwrap(),
        })
        .collect();
    writer.enqueue(&[metadata, supplies, balances].concat()).await.unwrap();
    world.clock.pass(3600);
    work(&writer, &chain[5]).await;
    assert!(jobs(world).await.iter().all(|(kind, _)| *kind == 5));
    writer.revert_to(2).await.unwrap();
    let after = world.dump().await;
    assert_eq!(after["balances"], [] as [String; 0]);
    let now = jobs(world).await;
    let of_kind = |kind: i16| now.iter().filter(|(known, _)| *known == kind).count();
    assert!(of_kind(1) >= every);
    assert_eq!(of_kind(3), tokens.iter().collect::<BTreeSet<_>>().len());
    assert_eq!(of_kind(4), tokens.iter().collect::<BTreeSet<_>>().len());
    let reader = world.reader().await;
    for token in tokens {
        let row = reader.find_token(token).await.unwrap().unwrap();
        assert_eq!(row.token.metadata, gw_chain_store::rows::MetadataState::Pending);
        assert_eq!(row.token.total_supply, None);
    }
    assert_holder_counts(world).await;
}

async fn a_wipe_removes_everything(world: &World) {
    let writer = world.writer().await;
    let empty = world.dump_of(&["tasks"]).await;
    let rows = world.dump().await;
    let chain = ChainMaker::new(23).blocks(0, B256::ZERO, 5);
    grow(world, &writer, &chain).await;
    writer.set_finalized(chain[3].block.num_hash()).await.unwrap();
    assert_eq!(world.reader().await.progress().finalized, Some(3));
    let generation = world.generation().await;
    writer.wipe().await.unwrap();
    assert_eq!(world.dump().await, rows);
    assert_eq!(world.dump_of(&["tasks"]).await, empty);
    assert_eq!(world.generation().await, generation + 1);
    assert_eq!(world.reader().await.progress().finalized, None);
    append_all(&writer, &chain).await;
    // A reorganization below the finalized block is not refused: the node decides.
    writer.set_finalized(chain[3].block.num_hash()).await.unwrap();
    writer.revert_to(1).await.unwrap();
    assert_eq!(world.reader().await.progress().finalized, Some(1));
}

//! Refused blocks, deep reorganizations, and buckets of time.

use crate::world::{address, topic};
use gw_postings::{
    AppendError, BlockRange, BlockRows, LogParties, PostingIndex, RowId, Scope, Space, TransactionRows, VisibleAddress,
};
use gw_types::Timestamp;
use std::collections::BTreeMap;

fn block(number: u64) -> BlockRows {
    let payment = TransactionRows {
        from: address(1),
        to: Some(address(2)),
        ..TransactionRows::default()
    };
    BlockRows {
        number,
        time: Timestamp::from_secs(1_000 + number as i64),
        transactions: vec![payment],
    }
}

fn scope() -> Scope {
    Scope {
        own: vec![VisibleAddress::in_all_blocks(address(1))],
        ..Scope::default()
    }
}

#[test]
fn a_block_that_does_not_follow_is_refused_and_changes_nothing() {
    let mut index = PostingIndex::new();
    index.append(&block(7)).unwrap();
    let newest = 7;
    assert_eq!(index.append(&block(7)), Err(AppendError::NotNext { newest, block: 7 }));
    assert_eq!(index.append(&block(9)), Err(AppendError::NotNext { newest, block: 9 }));
    let early = BlockRows {
        time: Timestamp::from_secs(0),
        ..block(8)
    };
    assert_eq!(index.append(&early), Err(AppendError::TimeRunsBack { block: 8 }));
    assert_eq!(index.newest_block(), Some(7));
    assert_eq!(index.select(Space::Transactions, &scope()).len(), 1);
}

/// X5: a reorganization deeper than the noted blocks looks at all posting lists.
#[test]
fn x5_a_reorganization_of_any_depth_leaves_nothing_behind() {
    for depth in [1, 4_000, 4_096, 4_097, 6_000] {
        let mut index = PostingIndex::new();
        for number in 0..6_000 {
            index.append(&block(number)).unwrap();
        }
        let generation = index.generation();
        index.truncate(6_000 - depth);
        assert_eq!(
            index.select(Space::Transactions, &scope()).len(),
            6_000 - depth,
            "{depth}"
        );
        assert_eq!(index.generation(), generation + 1);
        index.truncate(7_000);
        assert_eq!(index.generation(), generation + 1, "no block was removed");
    }
}

#[test]
fn a_bucket_of_a_chart_counts_the_blocks_from_its_start_and_before_its_end() {
    let mut index = PostingIndex::new();
    for number in 0..10 {
        index.append(&block(number)).unwrap();
    }
    let rows = index.select(Space::Transactions, &scope());
    let count = |start, end| {
        let (start, end) = (Timestamp::from_secs(start), Timestamp::from_secs(end));
        rows.count_in(index.ids_between(Space::Transactions, start, end))
    };
    assert_eq!(count(1_000, 1_003), 3);
    assert_eq!(count(1_003, 1_003), 0);
    assert_eq!(count(1_009, 5_000), 1);
    assert_eq!(count(0, 1_000), 0);
    let end = BlockRange { start: 3, end: 5 };
    assert_eq!(index.ids_in_blocks(Space::Transactions, end), 3..5);
    assert_eq!(
        index.ids_in_blocks(Space::Transactions, BlockRange { start: 5, end: 3 }),
        5..5
    );
}

/// X2: what the read API without a viewer needs.
#[test]
fn x2_the_addresses_of_all_rows_and_the_logs_of_an_event_are_known() {
    let mut index = PostingIndex::new();
    let mut first = block(0);
    let log = |emitter, event| LogParties::new(address(emitter), &[topic(event)]);
    first.transactions[0].logs = vec![log(3, 1), log(3, 2), log(4, 1)];
    index.append(&first).unwrap();
    index.append(&block(1)).unwrap();
    let addresses: BTreeMap<_, _> = index.addresses().collect();
    let expected = BTreeMap::from([(address(1), 2), (address(2), 2)]);
    assert_eq!(addresses, expected, "a contract with nothing but logs is not active");
    let logs = |emitter, event| {
        let of_emitter = index.rows_of_address(Space::Logs, address(emitter));
        index.with_first_topic(&of_emitter, topic(event)).page_at(0, 9)
    };
    assert_eq!((logs(3, 1), logs(3, 2)), (vec![RowId(0)], vec![RowId(1)]));
    assert_eq!((logs(4, 1), logs(4, 2)), (vec![RowId(2)], vec![]));
}

/// The size grows by about what the rows add: five numbers a block, and two lists of ids.
#[test]
fn the_size_follows_the_rows() {
    let mut index = PostingIndex::new();
    let empty = index.size_in_bytes();
    for number in 0..10_000 {
        index.append(&block(number)).unwrap();
    }
    let added = index.size_in_bytes() - empty;
    assert!((400_000..4_000_000).contains(&added), "{added}");
}

//! The index selects exactly the rows that a look at each row selects, whatever is appended and removed.

use crate::{
    naive,
    world::{address, chain, scope},
};
use gw_postings::{BlockRows, PostingIndex, RowId, RowSet, Scope, Space};
use gw_types::Timestamp;
use proptest::prelude::*;

const SPACES: [Space; 4] = [Space::Transactions, Space::Transfers, Space::Frames, Space::Logs];

fn index_of(blocks: &[BlockRows]) -> PostingIndex {
    let mut index = PostingIndex::new();
    for block in blocks {
        index.append(block).unwrap();
    }
    index
}

fn ids(rows: &RowSet) -> Vec<u64> {
    let mut ids: Vec<u64> = rows.page_before(None, usize::MAX).iter().map(|row| row.0).collect();
    ids.reverse();
    ids
}

fn assert_agrees(index: &PostingIndex, blocks: &[BlockRows], scope: &Scope) {
    for space in SPACES {
        assert_eq!(
            ids(&index.select(space, scope)),
            naive::select(blocks, space, scope),
            "{space:?} of {scope:?}"
        );
    }
    assert_eq!(
        ids(&index.select_log_candidates(scope)),
        naive::log_candidates(blocks, scope),
        "candidates of {scope:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// R12 to R18, X5: a chain, a fork at any depth, and a new branch.
    #[test]
    fn r12_r15_a_scope_selects_the_rows_that_a_look_at_each_row_selects(
        blocks in chain(),
        branch in chain(),
        fork in 0..16_u64,
        scopes in proptest::collection::vec(scope(), 1..4),
    ) {
        let mut index = index_of(&blocks);
        for scope in &scopes {
            assert_agrees(&index, &blocks, scope);
        }
        let fork = fork + 5;
        index.truncate(fork);
        let mut blocks: Vec<_> = blocks.into_iter().filter(|block| block.number < fork).collect();
        for scope in &scopes {
            assert_agrees(&index, &blocks, scope);
        }
        let time = blocks.last().map_or(Timestamp::from_secs(0), |block| block.time);
        let number = blocks.last().map_or(5, |block| block.number + 1);
        for (block, number) in branch.into_iter().zip(number..) {
            let block = BlockRows { number, time: block.time.max(time), ..block };
            index.append(&block).unwrap();
            blocks.push(block);
        }
        for scope in &scopes {
            assert_agrees(&index, &blocks, scope);
        }
        // What a fork left behind is not distinguishable from a chain without it.
        for scope in &scopes {
            for space in SPACES {
                prop_assert_eq!(ids(&index.select(space, scope)), ids(&index_of(&blocks).select(space, scope)));
            }
        }
    }

    /// A set that is extended block by block equals one that is selected at the end.
    #[test]
    fn an_extended_set_equals_a_new_one(blocks in chain(), scope in scope(), known in 0..12_usize) {
        let known = known.min(blocks.len());
        let mut index = index_of(&blocks[..known]);
        let mut sets = SPACES.map(|space| index.select(space, &scope));
        let mut candidates = index.select_log_candidates(&scope);
        for block in &blocks[known..] {
            index.append(block).unwrap();
            for rows in &mut sets {
                index.extend(&scope, rows);
                prop_assert_eq!(&*rows, &index.select(rows.space(), &scope));
            }
            index.extend_log_candidates(&scope, &mut candidates);
            prop_assert_eq!(&candidates, &index.select_log_candidates(&scope));
        }
        index.truncate(blocks[0].number);
        for rows in &mut sets {
            index.extend(&scope, rows);
            prop_assert!(rows.is_empty());
        }
    }

    /// I4: the total is the number of rows on all pages, and every page but the last is full.
    #[test]
    fn i4_pages_are_full_and_add_up_to_the_total(blocks in chain(), scope in scope(), limit in 1..5_usize) {
        let index = index_of(&blocks);
        for space in SPACES {
            let rows = index.select(space, &scope);
            let mut walked: Vec<RowId> = Vec::new();
            loop {
                let page = rows.page_before(walked.last().copied(), limit);
                prop_assert_eq!(&page, &rows.page_at(walked.len() as u64, limit));
                let is_last = page.len() < limit;
                walked.extend(page);
                if is_last {
                    break;
                }
            }
            prop_assert_eq!(walked.len() as u64, rows.len());
            prop_assert!(walked.is_sorted_by(|newer, older| newer > older));
            prop_assert!(walked.iter().all(|row| rows.contains(*row)));
        }
    }

    /// I5: rows without a visible address change no page, total or count of a viewer.
    #[test]
    fn i5_hidden_rows_change_no_count(blocks in chain(), scope in scope()) {
        let mut padded = blocks.clone();
        let hidden = gw_postings::TransactionRows {
            from: address(200),
            to: Some(address(201)),
            ..Default::default()
        };
        // Shared and withheld transactions are named by id, which hidden rows shift.
        let scope = Scope { shared: Default::default(), withheld: Default::default(), ..scope };
        for block in &mut padded {
            block.transactions.insert(0, hidden.clone());
        }
        let (index, padded_index) = (index_of(&blocks), index_of(&padded));
        for space in SPACES {
            let (rows, padded_rows) = (index.select(space, &scope), padded_index.select(space, &scope));
            prop_assert_eq!(rows.len(), padded_rows.len());
            for block in &blocks {
                let range = gw_postings::BlockRange { start: block.number, end: block.number + 1 };
                prop_assert_eq!(
                    rows.count_in(index.ids_in_blocks(space, range)),
                    padded_rows.count_in(padded_index.ids_in_blocks(space, range))
                );
            }
        }
    }

    /// The block and the transaction of each row, and the rows of each transaction.
    #[test]
    fn each_row_knows_its_block_and_its_transaction(blocks in chain()) {
        let index = index_of(&blocks);
        let mut transaction = 0;
        let mut next = [0_u64; 4];
        for block in &blocks {
            for rows in &block.transactions {
                let counts = [1, rows.transfers.len(), rows.frames.len(), rows.logs.len()];
                for ((space, next), count) in SPACES.into_iter().zip(&mut next).zip(counts) {
                    let range = *next..*next + count as u64;
                    let known = index.rows_of_transaction(space, RowId(transaction));
                    prop_assert!(known == range || (count == 0 && known.is_empty()));
                    for row in range {
                        prop_assert_eq!(index.transaction_of(space, RowId(row)), Some(RowId(transaction)));
                        let bounds = index.block_of(space, RowId(row)).unwrap();
                        prop_assert_eq!((bounds.number, bounds.time), (block.number, block.time));
                        prop_assert!(bounds.ids.contains(&row));
                    }
                    *next += count as u64;
                }
                transaction += 1;
            }
        }
        for (space, end) in SPACES.into_iter().zip(next) {
            prop_assert_eq!(index.block_of(space, RowId(end)), None);
            prop_assert_eq!(index.transaction_of(space, RowId(end)), None);
        }
    }
}

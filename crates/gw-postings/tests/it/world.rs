//! Random chains and scopes.

use gw_postings::{
    BlockRange, BlockRows, EventLogs, FrameParties, Grant, HiddenTransfers, LogParties, PartialRows, ParticipantRows,
    RowId, Scope, TransactionRows, TransferParties, VisibleAddress,
};
use gw_types::{Address, B256, Timestamp};
use proptest::{collection, option, prelude::*};

/// Few addresses, so that they meet; the zero address is one of them.
const ADDRESSES: u8 = 12;
const TOPICS: u8 = 3;
/// The most blocks of a chain.
pub(crate) const BLOCKS: u64 = 12;

pub(crate) fn address(number: u8) -> Address {
    let mut bytes = [0; 20];
    // Smaller numbers are no addresses in topics.
    bytes[0] = if number == 0 { 0 } else { 0x80 };
    bytes[19] = number;
    Address::from(bytes)
}

pub(crate) fn topic(number: u8) -> B256 {
    B256::with_last_byte(number)
}

fn addresses() -> impl Strategy<Value = Address> {
    (0..ADDRESSES).prop_map(address)
}

/// Addresses, and numbers that are none.
fn words() -> impl Strategy<Value = B256> {
    prop_oneof![
        4 => addresses().prop_map(|address| address.into_word()),
        1 => (0..TOPICS).prop_map(topic),
        1 => Just(B256::repeat_byte(0x11)),
    ]
}

fn transaction() -> impl Strategy<Value = TransactionRows> {
    let transfer =
        (addresses(), addresses(), addresses()).prop_map(|(token, from, to)| TransferParties { token, from, to });
    let frame = (addresses(), option::of(addresses())).prop_map(|(from, to)| FrameParties { from, to });
    let log = (
        addresses(),
        (0..TOPICS).prop_map(topic),
        collection::vec(words(), 0..4),
        any::<bool>(),
    )
        .prop_map(|(emitter, topic0, words, has_topics)| {
            let topics: Vec<B256> = std::iter::once(topic0)
                .chain(words)
                .take_while(|_| has_topics)
                .collect();
            LogParties::new(emitter, &topics)
        });
    (
        (addresses(), option::weighted(0.9, addresses())),
        collection::vec(transfer, 0..3),
        collection::vec(frame, 0..3),
        collection::vec(log, 0..3),
    )
        .prop_map(|((from, to), transfers, frames, logs)| TransactionRows {
            from,
            to,
            transfers,
            frames,
            logs,
        })
}

/// A chain that begins at block 5. Its times are multiples of ten seconds, and some blocks have the same time.
pub(crate) fn chain() -> impl Strategy<Value = Vec<BlockRows>> {
    let block = (collection::vec(transaction(), 0..6), 0..2_i64);
    collection::vec(block, 1..=usize::try_from(BLOCKS).unwrap()).prop_map(|blocks| {
        let mut time = 1_000;
        let numbers = 5..;
        blocks
            .into_iter()
            .zip(numbers)
            .map(|((transactions, step), number)| {
                time += step * 10;
                BlockRows {
                    number,
                    time: Timestamp::from_secs(time),
                    transactions,
                }
            })
            .collect()
    })
}

fn block_range() -> impl Strategy<Value = BlockRange> {
    prop_oneof![
        3 => Just(BlockRange::ALL),
        1 => (0..20_u64, 0..20_u64).prop_map(|(start, end)| BlockRange { start, end }),
    ]
}

fn visible() -> impl Strategy<Value = VisibleAddress> {
    (addresses(), block_range()).prop_map(|(address, blocks)| VisibleAddress { address, blocks })
}

fn event_logs() -> impl Strategy<Value = EventLogs> {
    let party = option::weighted(0.8, (0..5_usize, addresses()));
    (visible(), (0..TOPICS).prop_map(topic), 0..6_u8, party).prop_map(|(emitter, topic0, topics, party)| EventLogs {
        emitter,
        topic0,
        topics,
        party,
    })
}

pub(crate) fn scope() -> impl Strategy<Value = Scope> {
    let few = || collection::vec(visible(), 0..3);
    let fewer = || collection::vec(visible(), 0..2);
    // The times of the chain, one before and one after them, and those between two blocks.
    let times = (995..1_130_i64, 0..60_i64)
        .prop_map(|(first, span)| (Timestamp::from_secs(first), Timestamp::from_secs(first + span)));
    let counterparties = collection::vec(collection::vec(addresses(), 0..3), 0..3);
    let grant = (visible(), option::of(times), counterparties).prop_map(|(target, times, counterparties)| Grant {
        target,
        times,
        counterparties,
    });
    let transactions = || collection::btree_set((0..40_u64).prop_map(RowId), 0..3);
    let topic = || (0..TOPICS).prop_map(topic);
    let addresses = (few(), few(), few(), few(), fewer(), few(), fewer());
    let logs = (
        few(),
        collection::vec((visible(), topic()), 0..2),
        collection::vec((visible(), option::of(topic())), 0..2),
        collection::vec(event_logs(), 0..3),
    );
    let settings = (
        prop_oneof![Just(PartialRows::Keep), Just(PartialRows::Drop)],
        prop_oneof![Just(ParticipantRows::All), Just(ParticipantRows::Granted)],
        prop_oneof![Just(HiddenTransfers::None), Just(HiddenTransfers::Keep)],
    );
    let rest = (
        collection::vec(grant, 0..2),
        transactions(),
        transactions(),
        collection::vec(self::addresses(), 0..2),
    );
    (addresses, logs, rest, settings).prop_map(
        |(
            (visible, public, own, own_receivers, administered, event_tokens, members),
            (emitters, events, log_candidates, event_logs),
            (grants, shared, withheld, closed),
            (one_sided, participant_rows, anchor),
        )| Scope {
            visible,
            public,
            own,
            own_receivers,
            administered,
            event_tokens,
            members,
            grants,
            shared,
            withheld,
            closed,
            emitters,
            events,
            event_logs,
            log_candidates,
            participant_rows,
            one_sided,
            anchor,
        },
    )
}

//! The index: blocks are appended at its end and removed from its end.

use crate::{
    blocks::{BlockBounds, BlockRange, BlockTable, RowCounts},
    list::PostingList,
    owners::RowOwners,
    rows::{BlockRows, RowId, Space, TransactionRows},
};
use gw_types::{Address, B256, Timestamp};
use roaring::RoaringTreemap;
use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    hash::Hash,
    ops::Range,
};

/// The newest blocks whose posting lists are noted, so that a reorganization touches only these lists.
const JOURNAL_BLOCKS: usize = 4096;

/// Why a block cannot be appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The block does not follow the newest block.
    #[error("block `{block}` does not follow block `{newest}`")]
    NotNext {
        /// The newest block of the index.
        newest: u64,
        /// The block that was to be appended.
        block: u64,
    },
    /// The block is older than the block before it.
    #[error("block `{block}` has an earlier time than the block before it")]
    TimeRunsBack {
        /// The block that was to be appended.
        block: u64,
    },
}

/// The role of an address in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    /// Transactions by sender.
    Sender,
    /// Transactions by recipient.
    Recipient,
    /// Transfers by sender.
    TransferSender,
    /// Transfers by recipient.
    TransferRecipient,
    /// Transfers by token contract.
    Token,
    /// Frames by caller.
    Caller,
    /// Frames by called address.
    Callee,
    /// Logs by emitter.
    Emitter,
    /// Logs by the address in the second topic.
    SecondTopic,
    /// Logs by the address in the third topic.
    ThirdTopic,
    /// Logs by the address in the fourth topic.
    FourthTopic,
}

/// The roles of addresses in topics, from the second topic on.
const TOPIC_ROLES: [Role; 3] = [Role::SecondTopic, Role::ThirdTopic, Role::FourthTopic];

impl Role {
    pub(crate) const fn space(self) -> Space {
        match self {
            Self::Sender | Self::Recipient => Space::Transactions,
            Self::TransferSender | Self::TransferRecipient | Self::Token => Space::Transfers,
            Self::Caller | Self::Callee => Space::Frames,
            Self::Emitter | Self::SecondTopic | Self::ThirdTopic | Self::FourthTopic => Space::Logs,
        }
    }

    /// The role of an address in the topic at this position; `None` for the first topic and for positions of no topic.
    pub(crate) fn of_topic(position: usize) -> Option<Self> {
        TOPIC_ROLES.get(position.checked_sub(1)?).copied()
    }
}

/// The posting lists of one address. Most addresses have few roles.
#[derive(Clone, Debug, Default)]
struct AddressLists(Vec<(Role, PostingList)>);

impl AddressLists {
    fn get(&self, role: Role) -> Option<&PostingList> {
        self.0.iter().find(|(known, _)| *known == role).map(|(_, list)| list)
    }

    fn push(&mut self, role: Role, id: u64) {
        match self.0.iter_mut().find(|(known, _)| *known == role) {
            Some((_, list)) => list.push(id),
            None => {
                let mut list = PostingList::default();
                list.push(id);
                self.0.push((role, list));
            }
        }
    }
}

/// The addresses and events of which a block extended the posting lists.
#[derive(Clone, Debug)]
struct BlockJournal {
    number: u64,
    addresses: Vec<Address>,
    events: Vec<(Address, B256)>,
}

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Which rows of the chain mention which address.
#[derive(Clone, Debug, Default)]
pub struct PostingIndex {
    blocks: BlockTable,
    addresses: Map<Address, AddressLists>,
    events: Map<(Address, B256), PostingList>,
    /// Logs by first topic, of all emitters.
    first_topics: Map<B256, PostingList>,
    /// Logs by their number of topics.
    topic_counts: [RoaringTreemap; 5],
    /// Transactions without a recipient.
    deployments: RoaringTreemap,
    /// Frames without a called address.
    failed_creations: RoaringTreemap,
    /// Frames of which a side is sender or recipient of the transaction.
    party_frames: RoaringTreemap,
    pub(crate) transfer_owners: RowOwners,
    pub(crate) frame_owners: RowOwners,
    pub(crate) log_owners: RowOwners,
    journal: VecDeque<BlockJournal>,
    generation: u64,
}

impl PostingIndex {
    /// An index without blocks.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of the newest block; `None` while there is none.
    pub fn newest_block(&self) -> Option<u64> {
        self.blocks.newest()
    }

    /// The number of removals so far. What was selected under another generation may contain removed rows.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The block of a row; `None` if there is no such row.
    pub fn block_of(&self, space: Space, row: RowId) -> Option<BlockBounds> {
        self.blocks.block_of(space, row)
    }

    /// The ids of the rows in a range of blocks.
    pub fn ids_in_blocks(&self, space: Space, blocks: BlockRange) -> Range<u64> {
        self.blocks.ids(space, blocks)
    }

    /// The ids of the rows in blocks from `start` on and before `end`: a bucket of a chart.
    pub fn ids_between(&self, space: Space, start: Timestamp, end: Timestamp) -> Range<u64> {
        self.blocks.ids_between(space, start, end)
    }

    /// The rows of a transaction in another space.
    pub fn rows_of_transaction(&self, space: Space, transaction: RowId) -> Range<u64> {
        let end = self.end(space);
        match space {
            Space::Transactions if transaction.0 < end => transaction.0..transaction.0 + 1,
            Space::Transactions => 0..0,
            Space::Transfers => self.transfer_owners.rows(transaction, end),
            Space::Frames => self.frame_owners.rows(transaction, end),
            Space::Logs => self.log_owners.rows(transaction, end),
        }
    }

    /// The transaction of a row; `None` if there is no such row.
    pub fn transaction_of(&self, space: Space, row: RowId) -> Option<RowId> {
        if row.0 >= self.end(space) {
            return None;
        }
        match space {
            Space::Transactions => Some(row),
            Space::Transfers => self.transfer_owners.owner(row),
            Space::Frames => self.frame_owners.owner(row),
            Space::Logs => self.log_owners.owner(row),
        }
    }

    /// The addresses with rows, each with the number of its transactions, transfers and internal transactions, in no
    /// particular order and without regard to a viewer. A row of which an address is both sides counts twice.
    pub fn addresses(&self) -> impl Iterator<Item = (Address, u64)> {
        self.addresses.iter().filter_map(|(address, lists)| {
            let rows = lists
                .0
                .iter()
                .filter(|(role, _)| role.space() != Space::Logs && *role != Role::Token);
            let count: u64 = rows.map(|(_, list)| list.len()).sum();
            (count > 0).then_some((*address, count))
        })
    }

    /// About how many bytes of memory the index takes. Visits every list.
    pub fn size_in_bytes(&self) -> usize {
        /// A bucket of a map takes its entry and a byte, and a map is at most seven eighths full.
        const fn buckets<K, V>(capacity: usize) -> usize {
            (capacity / 7).saturating_mul(8).saturating_mul(size_of::<(K, V)>() + 1)
        }
        let lists = self.addresses.values().map(|lists| {
            let entries = lists.0.capacity().saturating_mul(size_of::<(Role, PostingList)>());
            entries + lists.0.iter().map(|(_, list)| list.heap_bytes()).sum::<usize>()
        });
        let journal = self.journal.iter().map(|block| {
            size_of::<BlockJournal>()
                + block.addresses.capacity().saturating_mul(size_of::<Address>())
                + block.events.capacity().saturating_mul(size_of::<(Address, B256)>())
        });
        let sets = [&self.deployments, &self.failed_creations, &self.party_frames];
        let owners = [&self.transfer_owners, &self.frame_owners, &self.log_owners];
        size_of::<Self>()
            + buckets::<Address, AddressLists>(self.addresses.capacity())
            + buckets::<(Address, B256), PostingList>(self.events.capacity())
            + lists.sum::<usize>()
            + buckets::<B256, PostingList>(self.first_topics.capacity())
            + self.events.values().map(PostingList::heap_bytes).sum::<usize>()
            + self.first_topics.values().map(PostingList::heap_bytes).sum::<usize>()
            + self
                .topic_counts
                .iter()
                .map(RoaringTreemap::serialized_size)
                .sum::<usize>()
            + journal.sum::<usize>()
            + sets.into_iter().map(RoaringTreemap::serialized_size).sum::<usize>()
            + owners.into_iter().map(RowOwners::heap_bytes).sum::<usize>()
            + self.blocks.heap_bytes()
    }

    /// Appends the block after the newest one; the first block may have any number.
    ///
    /// # Errors
    /// [`AppendError`] if the block does not follow the newest one; the index is unchanged then.
    pub fn append(&mut self, block: &BlockRows) -> Result<(), AppendError> {
        let number = block.number;
        if let Some(newest) = self.blocks.newest()
            && Some(number) != newest.checked_add(1)
        {
            return Err(AppendError::NotNext { newest, block: number });
        }
        if self.blocks.newest_time().is_some_and(|newest| block.time < newest) {
            return Err(AppendError::TimeRunsBack { block: number });
        }
        let first = self.blocks.end();
        let mut next = first;
        let mut touched = Touched::default();
        for rows in &block.transactions {
            self.append_transaction(rows, &mut next, &mut touched);
        }
        let counts = RowCounts {
            transactions: next.transactions - first.transactions,
            transfers: next.transfers - first.transfers,
            frames: next.frames - first.frames,
            logs: next.logs - first.logs,
        };
        self.blocks.push(number, block.time, counts);
        self.journal.push_back(BlockJournal {
            number,
            addresses: touched.addresses.into_iter().collect(),
            events: touched.events.into_iter().collect(),
        });
        if self.journal.len() > JOURNAL_BLOCKS {
            self.journal.pop_front();
        }
        Ok(())
    }

    fn append_transaction(&mut self, rows: &TransactionRows, next: &mut RowCounts, touched: &mut Touched) {
        let transaction = next.transactions;
        next.transactions += 1;
        self.push(touched, rows.from, Role::Sender, transaction);
        match rows.to {
            Some(to) => self.push(touched, to, Role::Recipient, transaction),
            None => {
                self.deployments.insert(transaction);
            }
        }
        if !rows.transfers.is_empty() {
            self.transfer_owners.push(transaction, next.transfers);
        }
        for transfer in &rows.transfers {
            let id = next.transfers;
            next.transfers += 1;
            for (party, role) in [
                (transfer.from, Role::TransferSender),
                (transfer.to, Role::TransferRecipient),
            ] {
                self.push(touched, party, role, id);
            }
            self.push(touched, transfer.token, Role::Token, id);
        }
        if !rows.frames.is_empty() {
            self.frame_owners.push(transaction, next.frames);
        }
        for frame in &rows.frames {
            let id = next.frames;
            next.frames += 1;
            match frame.to {
                Some(to) => self.push(touched, to, Role::Callee, id),
                None => {
                    self.failed_creations.insert(id);
                }
            }
            self.push(touched, frame.from, Role::Caller, id);
            for side in std::iter::once(frame.from).chain(frame.to) {
                if side == rows.from || Some(side) == rows.to {
                    self.party_frames.insert(id);
                }
            }
        }
        if !rows.logs.is_empty() {
            self.log_owners.push(transaction, next.logs);
        }
        for log in &rows.logs {
            let id = next.logs;
            next.logs += 1;
            self.push(touched, log.emitter, Role::Emitter, id);
            for (party, role) in log.parties.into_iter().zip(TOPIC_ROLES) {
                if let Some(party) = party {
                    self.push(touched, party, role, id);
                }
            }
            if let Some(logs) = self.topic_counts.get_mut(usize::from(log.topics)) {
                logs.insert(id);
            }
            if let Some(topic0) = log.topic0 {
                let event = (log.emitter, topic0);
                self.events.entry(event).or_default().push(id);
                self.first_topics.entry(topic0).or_default().push(id);
                touched.events.insert(event);
            }
        }
    }

    fn push(&mut self, touched: &mut Touched, address: Address, role: Role, id: u64) {
        self.addresses.entry(address).or_default().push(role, id);
        touched.addresses.insert(address);
    }

    /// Removes this block and all later ones, after a reorganization. Raises the generation if there were any.
    pub fn truncate(&mut self, number: u64) {
        let is_noted = self.journal.front().is_some_and(|oldest| oldest.number <= number);
        let Some(end) = self.blocks.truncate(number) else {
            return;
        };
        self.generation += 1;
        self.deployments.remove_range(end.transactions..);
        self.failed_creations.remove_range(end.frames..);
        self.party_frames.remove_range(end.frames..);
        for logs in &mut self.topic_counts {
            logs.remove_range(end.logs..);
        }
        self.transfer_owners.truncate(end.transactions, end.transfers);
        self.frame_owners.truncate(end.transactions, end.frames);
        self.log_owners.truncate(end.transactions, end.logs);
        let mut touched = Touched::default();
        while let Some(block) = self.journal.pop_back_if(|block| block.number >= number) {
            touched.addresses.extend(block.addresses);
            touched.events.extend(block.events);
        }
        if is_noted {
            for address in touched.addresses {
                if let Some(lists) = self.addresses.get_mut(&address)
                    && truncate_lists(lists, end)
                {
                    self.addresses.remove(&address);
                }
            }
            for event in touched.events {
                truncate_list(&mut self.events, &event, end);
                truncate_list(&mut self.first_topics, &event.1, end);
            }
        } else {
            self.addresses.retain(|_, lists| !truncate_lists(lists, end));
            let truncate = |list: &mut PostingList| {
                list.truncate(end.logs);
                list.len() > 0
            };
            self.events.retain(|_, list| truncate(list));
            self.first_topics.retain(|_, list| truncate(list));
        }
    }

    pub(crate) fn end(&self, space: Space) -> u64 {
        self.blocks.end().of(space)
    }

    pub(crate) fn list(&self, address: Address, role: Role) -> Option<&PostingList> {
        self.addresses.get(&address)?.get(role)
    }

    pub(crate) fn event(&self, emitter: Address, topic0: B256) -> Option<&PostingList> {
        self.events.get(&(emitter, topic0))
    }

    pub(crate) fn first_topic(&self, topic0: B256) -> Option<&PostingList> {
        self.first_topics.get(&topic0)
    }

    /// The logs with this number of topics.
    pub(crate) fn with_topics(&self, topics: u8) -> Option<&RoaringTreemap> {
        self.topic_counts.get(usize::from(topics))
    }

    pub(crate) fn deployments(&self) -> &RoaringTreemap {
        &self.deployments
    }

    pub(crate) fn failed_creations(&self) -> &RoaringTreemap {
        &self.failed_creations
    }

    pub(crate) fn party_frames(&self) -> &RoaringTreemap {
        &self.party_frames
    }
}

/// The posting lists that a block extends.
#[derive(Debug, Default)]
struct Touched {
    addresses: BTreeSet<Address>,
    events: BTreeSet<(Address, B256)>,
}

/// Removes the logs from `end` on, and the list if none is left.
fn truncate_list<K: Eq + Hash>(lists: &mut Map<K, PostingList>, key: &K, end: RowCounts) {
    if let Some(list) = lists.get_mut(key) {
        list.truncate(end.logs);
        if list.len() == 0 {
            lists.remove(key);
        }
    }
}

/// Removes the rows from `end` on. Returns whether the address has no rows left.
fn truncate_lists(lists: &mut AddressLists, end: RowCounts) -> bool {
    lists.0.retain_mut(|(role, list)| {
        list.truncate(end.of(role.space()));
        list.len() > 0
    });
    lists.0.is_empty()
}

//! Random chains: few addresses, so that rows of different blocks mention the same ones.

use gw_chain_store::{
    BlockData,
    rows::{
        Block, CallType, Contract, Frame, Log, Proxy, ProxyChange, ProxyKind, TokenStandard, TokenTransfer,
        Transaction, TransactionData,
    },
};
use gw_types::testing::SeededEntropy;
use gw_types::{Address, B256, Bytes, Entropy, U256};
use std::collections::BTreeMap;

/// Makes random blocks; those of one seed are the same in every run.
pub(crate) struct ChainMaker(SeededEntropy);

impl ChainMaker {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SeededEntropy::new(seed))
    }

    /// Blocks from `first` on, each the child of the one before; the first one is a child of `parent`.
    pub(crate) fn blocks(&self, first: u64, parent: B256, count: u64) -> Vec<BlockData> {
        let mut parent = parent;
        let numbers = first..first + count;
        let blocks = numbers.map(|number| {
            let block = self.block(number, parent);
            parent = block.block.hash;
            block
        });
        blocks.collect()
    }

    /// Blocks after a block.
    pub(crate) fn blocks_after(&self, block: &BlockData, count: u64) -> Vec<BlockData> {
        self.blocks(block.block.number + 1, block.block.hash, count)
    }

    pub(crate) fn block(&self, number: u64, parent_hash: B256) -> BlockData {
        let frames_complete = self.below(8) > 0;
        let mut log_index = 0;
        let transactions = self.list(4, |maker| maker.transaction(&mut log_index, frames_complete));
        let contracts: BTreeMap<_, _> = self
            .list(3, Self::contract)
            .into_iter()
            .map(|row| (row.address, row))
            .collect();
        let changes: BTreeMap<_, _> = self
            .list(3, |maker| ProxyChange {
                address: maker.address(),
                proxy: maker.proxy(),
            })
            .into_iter()
            .map(|row| (row.address, row))
            .collect();
        BlockData {
            block: Block {
                number,
                hash: self.hash(),
                parent_hash,
                timestamp: 1_600_000_000 + i64::try_from(number).unwrap() * 12,
                gas_limit: self.number(),
                gas_used: self.number(),
                base_fee_per_gas: self.option(Self::amount),
                difficulty: self.amount(),
                total_difficulty: self.option(Self::amount),
                nonce: self.number(),
                miner: self.address(),
                extra_data: self.bytes(),
                state_root: self.hash(),
                transactions_root: self.hash(),
                receipts_root: self.hash(),
                frames_complete,
            },
            transactions,
            contracts: contracts.into_values().collect(),
            proxy_changes: changes.into_values().collect(),
        }
    }

    fn transaction(&self, log_index: &mut u32, frames_complete: bool) -> TransactionData {
        let mut index = || {
            *log_index += 1;
            *log_index - 1
        };
        let logs = self.list(4, |maker| Log {
            index: index(),
            address: maker.address(),
            topics: maker.list(5, Self::hash),
            data: maker.bytes(),
        });
        let transfers = self.list(4, |maker| TokenTransfer {
            log_index: maker.index(),
            batch_position: maker.index(),
            token: maker.address(),
            from: maker.party(),
            to: maker.party(),
            value: maker.amount(),
            token_id: maker.option(Self::amount),
            standard: maker.one_of(&[TokenStandard::Erc20, TokenStandard::Erc721, TokenStandard::Erc1155]),
        });
        let frames = self.list(if frames_complete { 4 } else { 1 }, Self::frame);
        TransactionData {
            transaction: Transaction {
                hash: self.hash(),
                from: self.address(),
                to: self.option(Self::address),
                created_contract: self.option(Self::address),
                value: self.amount(),
                gas_limit: self.number(),
                gas_used: self.number(),
                effective_gas_price: self.amount(),
                max_fee_per_gas: self.option(Self::amount),
                max_priority_fee_per_gas: self.option(Self::amount),
                nonce: self.number(),
                transaction_type: u8::try_from(self.below(256)).unwrap(),
                input: self.bytes(),
                success: self.below(2) == 0,
                error: self.option(Self::text),
                revert_reason: self.option(Self::text),
            },
            logs,
            transfers,
            frames,
        }
    }

    pub(crate) fn frame(&self) -> Frame {
        Frame {
            trace_address: self.list(4, Self::index),
            call_type: self.one_of(&[
                CallType::Call,
                CallType::StaticCall,
                CallType::DelegateCall,
                CallType::CallCode,
                CallType::Create,
                CallType::Create2,
                CallType::SelfDestruct,
            ]),
            from: self.address(),
            to: self.option(Self::address),
            value: self.amount(),
            gas: self.number(),
            gas_used: self.number(),
            input: self.bytes(),
            output: self.bytes(),
            error: self.option(Self::text),
        }
    }

    fn contract(&self) -> Contract {
        Contract {
            address: self.address(),
            creator: self.option(Self::address),
            creation_transaction: self.option(Self::hash),
            code_hash: self.hash(),
            code: self.bytes(),
            proxy: self.proxy(),
        }
    }

    fn proxy(&self) -> Option<Proxy> {
        self.option(|maker| Proxy {
            kind: maker.one_of(&[
                ProxyKind::Minimal,
                ProxyKind::ImplementationSlot,
                ProxyKind::Beacon,
                ProxyKind::LogicSlot,
            ]),
            implementation: maker.option(Self::address),
        })
    }

    /// Fewer than `end` values.
    pub(crate) fn list<T>(&self, end: u64, mut make: impl FnMut(&Self) -> T) -> Vec<T> {
        (0..self.below(end)).map(|_| make(self)).collect()
    }

    fn option<T>(&self, make: impl FnOnce(&Self) -> T) -> Option<T> {
        (self.below(3) > 0).then(|| make(self))
    }

    fn one_of<T: Copy>(&self, values: &[T]) -> T {
        values[usize::try_from(self.below(values.len() as u64)).unwrap()]
    }

    pub(crate) fn below(&self, end: u64) -> u64 {
        self.number() % end
    }

    fn index(&self) -> u32 {
        u32::try_from(self.number() >> 32).unwrap()
    }

    fn number(&self) -> u64 {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        u64::from_be_bytes(bytes)
    }

    fn amount(&self) -> U256 {
        match self.below(4) {
            0 => U256::ZERO,
            1 => U256::MAX - U256::from(self.below(3)),
            _ => U256::from(self.number()),
        }
    }

    pub(crate) fn hash(&self) -> B256 {
        let mut bytes = [0; 32];
        self.0.fill(&mut bytes);
        bytes.into()
    }

    /// One of a few.
    pub(crate) fn address(&self) -> Address {
        Address::repeat_byte(u8::try_from(self.below(6) + 1).unwrap())
    }

    /// An address, or none for a mint or burn.
    fn party(&self) -> Address {
        self.option(Self::address).unwrap_or(Address::ZERO)
    }

    fn bytes(&self) -> Bytes {
        let mut bytes = vec![0; usize::try_from(self.below(70)).unwrap()];
        self.0.fill(&mut bytes);
        bytes.into()
    }

    /// PostgreSQL has no NUL in texts, so a contract could stop the indexer with one.
    fn text(&self) -> String {
        self.one_of(&["execution reverted", "", "a\0b", "Größe \u{1f600}"])
            .to_owned()
    }
}

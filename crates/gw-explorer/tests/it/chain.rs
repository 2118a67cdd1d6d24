//! Random chains between the people and contracts of a small world.

use gw_chain_store::{
    BlockData,
    rows::{Block, CallType, Contract, Frame, Log, TokenStandard, TokenTransfer, Transaction, TransactionData},
};
use gw_policy::{
    Snapshot, Viewer,
    snapshot::Moment,
    testing::{NOW, address_of, world},
    visibility::{
        LogData, LogRow, LogViewer, LogVisibility, TransactionRoles, TransactionRow,
        explorer::{FrameEntry, TransactionEntry, TransferEntry},
    },
};
use gw_types::{Address, B256, Bytes, Entropy as _, Timestamp, U256, testing::SeededEntropy};

/// `Transfer(address,address,uint256)`.
pub(crate) const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const ABI: &str = r#"[{"type":"event","name":"Transfer","anonymous":false,"inputs":[
    {"name":"from","type":"address","indexed":true},{"name":"to","type":"address","indexed":true},
    {"name":"value","type":"uint256","indexed":false}]}]"#;

/// Wallets and contracts. `s0` and `s1` are linked to no user, `wild` is unregistered.
pub(crate) const NAMES: [&str; 11] = [
    "alice-w", "bob-w", "carol-w", "s0", "s1", "a-token", "a-logic", "b-token", "wild", "infra", "moved",
];
/// Contracts that call each other: tokens, the code behind a proxy, a router.
const CONTRACTS: [&str; 6] = ["a-token", "a-logic", "b-token", "wild", "infra", "moved"];
/// The last block in which `moved` belonged to `a`; then it belongs to `b`.
const LAST_OF_A: u64 = 12;

/// The world of the tests: `alice` and `bob` belong to organization `a`, `carol` to `b`, and `root` administers `a`.
/// The first transaction of block 7 is shared with `bob`, that of block 9 is withheld.
pub(crate) fn snapshot(chain: &[BlockData]) -> Snapshot {
    policy(chain).snapshot()
}

/// The world of [`snapshot`], to add to.
pub(crate) fn policy(chain: &[BlockData]) -> gw_policy::testing::World {
    let mut built = world()
        .org("a")
        .group("admins")
        .org_admin()
        .group("staff")
        .org("b")
        .group("staff")
        .user("alice")
        .member("a/staff")
        .link("alice-w")
        .user("bob")
        .member("a/staff")
        .link("bob-w")
        .user("carol")
        .member("b/staff")
        .link("carol-w")
        .user("root")
        .member("a/admins")
        .org("a")
        .contract("a-token")
        .abi(ABI)
        .grant("staff")
        .contract("a-logic")
        .grant("staff")
        .contract("moved")
        .grant("staff")
        .owned_until(LAST_OF_A)
        .org("b")
        .contract("b-token")
        .abi(ABI)
        .grant("staff")
        .owned_from("moved", LAST_OF_A + 1)
        .grant("staff")
        .shared("infra");
    built = built.user("alice").share("shared", &["bob"]);
    if let Some(hash) = first_hash(chain, 9) {
        built = built.convicted(hash, "carol");
    }
    built
}

fn first_hash(chain: &[BlockData], number: u64) -> Option<B256> {
    let block = chain.iter().find(|block| block.block.number == number)?;
    Some(block.transactions.first()?.transaction.hash)
}

/// Makes random blocks; those of one seed are the same in every run.
pub(crate) struct ChainMaker(SeededEntropy);

impl ChainMaker {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SeededEntropy::new(seed))
    }

    /// Blocks from `first` on, the first one a child of `parent`.
    pub(crate) fn blocks(&self, first: u64, mut parent: B256, count: u64) -> Vec<BlockData> {
        let numbers = first..first + count;
        let blocks = numbers.map(|number| {
            let block = self.block(number, parent);
            parent = block.block.hash;
            block
        });
        blocks.collect()
    }

    fn block(&self, number: u64, parent_hash: B256) -> BlockData {
        let mut transactions: Vec<_> = (0..1 + self.below(5)).map(|_| self.transaction(number)).collect();
        if number == 7 {
            transactions[0].transaction.hash = gw_policy::testing::hash_of("shared");
        }
        let contracts = if number == 1 {
            let contract = |name: &&str| Contract {
                address: address_of(name),
                creator: Some(address_of("s0")),
                creation_transaction: None,
                code_hash: B256::repeat_byte(1),
                code: Bytes::from_static(&[1]),
                proxy: None,
            };
            let mut contracts: Vec<_> = CONTRACTS.iter().map(contract).collect();
            contracts.sort_by_key(|contract| contract.address);
            contracts
        } else {
            Vec::new()
        };
        BlockData {
            block: Block {
                number,
                hash: self.hash(),
                parent_hash,
                timestamp: NOW.secs() - 3_000 + i64::try_from(number).unwrap() * 12,
                gas_limit: 30_000_000,
                gas_used: self.number() >> 32,
                base_fee_per_gas: Some(U256::from(7)),
                difficulty: U256::ZERO,
                total_difficulty: None,
                nonce: 0,
                miner: Address::repeat_byte(0x77),
                extra_data: Bytes::new(),
                state_root: self.hash(),
                transactions_root: self.hash(),
                receipts_root: self.hash(),
                frames_complete: true,
            },
            transactions,
            contracts,
            proxy_changes: Vec::new(),
        }
    }

    fn transaction(&self, number: u64) -> TransactionData {
        let (from, to) = (self.address(), (self.below(8) > 0).then(|| self.address()));
        let transfers = (0..self.below(3)).map(|index| TokenTransfer {
            log_index: u32::try_from(index).unwrap(),
            batch_position: 0,
            token: self.token(),
            from: self.party(),
            to: self.party(),
            value: U256::from(self.number() >> 40),
            token_id: None,
            standard: TokenStandard::Erc20,
        });
        let value = U256::from(self.below(2) * 1_000_000_007);
        // Contracts pass on what they were called with: calldata, return data and reasons of reverts name the sides of
        // the transaction and somebody whom it pays.
        let mentioned: Vec<Address> = [from, self.address()].into_iter().chain(to).collect();
        let frames = (0..self.below(4)).map(|index| self.frame(u32::try_from(index).unwrap(), value, &mentioned));
        let logs = (0..self.below(3)).map(|index| {
            let topics = [
                TRANSFER.parse().unwrap(),
                self.party().into_word(),
                self.party().into_word(),
            ];
            Log {
                index: u32::try_from(index).unwrap(),
                address: self.token(),
                topics: topics[..usize::try_from(self.below(4)).unwrap()].to_vec(),
                data: vec![u8::try_from(self.below(200)).unwrap(); 32].into(),
            }
        });
        TransactionData {
            transfers: transfers.collect(),
            frames: frames.collect(),
            logs: logs.collect(),
            transaction: Transaction {
                hash: self.hash(),
                from,
                to,
                created_contract: to.is_none().then(|| self.address()),
                value,
                gas_limit: 100_000,
                gas_used: 21_000,
                effective_gas_price: U256::from(9),
                max_fee_per_gas: None,
                max_priority_fee_per_gas: None,
                nonce: number,
                transaction_type: 2,
                input: calldata(&mentioned),
                success: self.below(4) > 0,
                error: (self.below(4) == 0).then(|| text_of(&mentioned)),
                revert_reason: (self.below(4) == 0).then(|| text_of(&mentioned)),
            },
        }
    }

    /// A frame of a transaction with this value. Half of the frames are between contracts: a proxy runs its code by
    /// `DELEGATECALL`, for which nodes report the value of the transaction.
    fn frame(&self, index: u32, value_of_transaction: U256, mentioned: &[Address]) -> Frame {
        let is_between_contracts = self.below(2) == 0;
        let side = || {
            if is_between_contracts {
                address_of(CONTRACTS[usize::try_from(self.below(CONTRACTS.len() as u64)).unwrap()])
            } else {
                self.address()
            }
        };
        let (from, to) = (side(), (is_between_contracts || self.below(8) > 0).then(side));
        let is_proxy = is_between_contracts && self.below(2) == 0;
        Frame {
            trace_address: vec![index],
            call_type: if is_proxy {
                CallType::DelegateCall
            } else {
                CallType::Call
            },
            from,
            to,
            value: if is_proxy {
                value_of_transaction
            } else {
                U256::from(self.below(3))
            },
            gas: 100_000,
            gas_used: 5_000,
            input: calldata(mentioned),
            output: calldata(mentioned),
            error: (self.below(3) == 0).then(|| text_of(mentioned)),
        }
    }

    fn below(&self, end: u64) -> u64 {
        self.number() % end
    }

    fn number(&self) -> u64 {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        u64::from_be_bytes(bytes)
    }

    fn hash(&self) -> B256 {
        let mut bytes = [0; 32];
        self.0.fill(&mut bytes);
        bytes.into()
    }

    fn address(&self) -> Address {
        address_of(NAMES[usize::try_from(self.below(NAMES.len() as u64)).unwrap()])
    }

    fn party(&self) -> Address {
        if self.below(6) == 0 {
            Address::ZERO
        } else {
            self.address()
        }
    }

    fn token(&self) -> Address {
        address_of(["a-token", "b-token", "wild", "moved"][usize::try_from(self.below(4)).unwrap()])
    }
}

/// Calldata with these addresses as arguments.
fn calldata(arguments: &[Address]) -> Bytes {
    let words = arguments.iter().flat_map(|address| address.into_word().0);
    [0xa9, 0x05, 0x9c, 0xbb]
        .into_iter()
        .chain(words)
        .collect::<Vec<u8>>()
        .into()
}

/// The reason of a revert that names these addresses.
fn text_of(mentioned: &[Address]) -> String {
    format!("execution reverted: {mentioned:?} may not")
}

/// What a viewer sees of a transaction, by the policy core alone.
pub(crate) struct Naive<'a> {
    pub(crate) data: &'a TransactionData,
    pub(crate) number: u64,
    pub(crate) time: Timestamp,
    transfers: Vec<TransferEntry>,
}

impl<'a> Naive<'a> {
    /// All transactions, the newest first.
    pub(crate) fn newest_first(chain: &'a [BlockData]) -> Vec<Self> {
        let all = chain.iter().rev().flat_map(|block| {
            block.transactions.iter().rev().map(|data| Self {
                data,
                number: block.block.number,
                time: Timestamp::from_secs(block.block.timestamp),
                transfers: (data.transfers.iter())
                    .map(|transfer| TransferEntry {
                        token: transfer.token,
                        from: transfer.from,
                        to: transfer.to,
                    })
                    .collect(),
            })
        });
        all.collect()
    }

    pub(crate) fn entry(&self) -> TransactionEntry<'_> {
        let transaction = &self.data.transaction;
        TransactionEntry {
            row: TransactionRow {
                hash: transaction.hash,
                from: transaction.from,
                to: transaction.to,
                moment: Moment::Block(self.number),
                time: Some(self.time),
            },
            created: transaction.created_contract,
            transfers: &self.transfers,
        }
    }

    pub(crate) fn is_shown(&self, viewer: &Viewer<'_>) -> bool {
        viewer.transaction_entry(&self.entry()).is_some()
    }

    pub(crate) fn shown_transfers(&self, viewer: &Viewer<'_>) -> Vec<&'a TokenTransfer> {
        let shown = |(transfer, entry): (&'a TokenTransfer, &TransferEntry)| {
            viewer.transfer_entry(&self.entry(), entry).map(|_| transfer)
        };
        self.data
            .transfers
            .iter()
            .zip(&self.transfers)
            .filter_map(shown)
            .collect()
    }

    pub(crate) fn shown_frames(&self, viewer: &Viewer<'_>) -> Vec<&'a Frame> {
        let is_shown = |frame: &&Frame| {
            let sides = FrameEntry {
                from: frame.from,
                to: frame.to,
            };
            viewer.frame_entry(&self.entry(), &sides).is_some()
        };
        self.data.frames.iter().filter(is_shown).collect()
    }

    pub(crate) fn shown_logs(&self, viewer: &Viewer<'_>) -> Vec<&'a Log> {
        let transaction = &self.data.transaction;
        let roles = TransactionRoles::new(viewer, transaction.hash, Some((transaction.from, transaction.to)));
        let is_shown = |log: &&Log| {
            let row = LogRow {
                emitter: log.address,
                tx_hash: transaction.hash,
                topics: &log.topics,
                data: LogData::Bytes(&log.data),
                moment: Moment::Block(self.number),
            };
            LogViewer::new(viewer).log(&row, roles).unwrap() != LogVisibility::Dropped
        };
        self.data.logs.iter().filter(is_shown).collect()
    }
}

//! Selection of the rows of viewers of different size, in a small chain and in one with ten times as many hidden rows.
//!
//! Prints one JSON object per line: the index (bytes per transaction), then each viewer in each chain.
//! `bench/explorer.py` runs it, reads the rows that it writes to `BENCH_ROWS`, and prints the table beside a plain SQL
//! filter.
//!
//! - `BENCH_TRANSACTIONS`: transactions of the large chain, 10 million unless given.
//! - `BENCH_ROWS`: a directory for the rows and the viewers' addresses, for the SQL filter.

use gw_postings::{
    BlockRows, LogParties, PostingIndex, RowId, Scope, Space, TransactionRows, TransferParties, VisibleAddress,
};
use gw_types::{Address, B256, Timestamp};
use std::{
    env,
    error::Error,
    fs::{self, File},
    hint::black_box,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    time::Instant,
};

/// Addresses that viewers may see, and as many again that only hidden rows of the large chain name.
const WALLETS: u64 = 200_000;
const CONTRACTS: u64 = 5_000;
const TRANSACTIONS_PER_BLOCK: u64 = 100;
/// Hidden transactions in the large chain for each transaction of the small one.
const HIDDEN: u64 = 9;
const ROUNDS: usize = 15;
const PAGE: usize = 25;
const BUCKETS: u64 = 31;
/// Wallets, contracts.
const VIEWERS: [(u64, u64); 5] = [(2, 0), (2, 5), (0, 50), (0, 500), (0, 2_000)];

type Fallible<T> = Result<T, Box<dyn Error>>;

#[expect(clippy::disallowed_methods, reason = "a benchmark is configured by its environment")]
fn main() -> Fallible<()> {
    let transactions: u64 = env::var("BENCH_TRANSACTIONS").map_or(Ok(10_000_000), |text| text.parse())?;
    let rows = env::var_os("BENCH_ROWS").map(PathBuf::from);
    let small = transactions / (HIDDEN + 1);
    for hidden in [HIDDEN, 0] {
        let before = resident_bytes()?;
        let file = rows
            .as_deref()
            .filter(|_| hidden > 0)
            .map(|dir| File::create(dir.join("transactions")));
        let index = index(small, hidden, file.transpose()?)?;
        let count = small * (hidden + 1);
        if hidden > 0 {
            // The second index takes the memory of the first.
            let bytes = resident_bytes()?.saturating_sub(before);
            let per_transaction = bytes as f64 / count as f64;
            writeln!(
                std::io::stdout(),
                r#"{{"transactions":{count},"bytes":{bytes},"bytes_per_transaction":{per_transaction:.1}}}"#
            )?;
        }
        for (wallets, contracts) in VIEWERS {
            measure(
                &index,
                count,
                wallets,
                contracts,
                rows.as_deref().filter(|_| hidden > 0),
            )?;
        }
    }
    Ok(())
}

/// Measures one viewer, and writes the numbers of its addresses for the SQL filter.
fn measure(index: &PostingIndex, chain: u64, wallets: u64, contracts: u64, rows: Option<&Path>) -> Fallible<()> {
    // Spread over all popularities.
    let wallet_numbers = (0..wallets).map(|n| 1 + n * (WALLETS / 2 / wallets.max(1)));
    let contract_numbers = (0..contracts).map(|n| WALLETS + n * (CONTRACTS / contracts.max(1)));
    let numbers: Vec<u64> = wallet_numbers.chain(contract_numbers).collect();
    let visible = |number: &u64| VisibleAddress::in_all_blocks(address(*number));
    let scope = Scope {
        visible: numbers.iter().map(visible).collect(),
        ..Scope::default()
    };
    if let Some(dir) = rows {
        let text = numbers.iter().map(u64::to_string).collect::<Vec<_>>().join("\n");
        fs::write(dir.join(format!("viewer-{wallets}-{contracts}")), text)?;
    }
    let set = index.select(Space::Transactions, &scope);
    let middle = set.page_at(set.len() / 2, 1).first().copied();
    let one = address(numbers.last().copied().unwrap_or_default());
    let bucket = chain / BUCKETS;
    let figures = [
        ("cold", time(|| index.select(Space::Transactions, &scope).len())),
        ("total", time(|| set.len())),
        ("page", time(|| set.page_before(middle, PAGE))),
        (
            "chart",
            time(|| {
                (0..BUCKETS)
                    .map(|n| set.count_in(n * bucket..(n + 1) * bucket))
                    .sum::<u64>()
            }),
        ),
        (
            "address",
            time(|| {
                let rows = set.intersection(&index.rows_of_address(Space::Transactions, one));
                (rows.len(), rows.page_before(None::<RowId>, PAGE))
            }),
        ),
    ];
    let figures = figures.map(|(name, microseconds)| format!(r#""{name}":{microseconds:.2}"#));
    writeln!(
        std::io::stdout(),
        r#"{{"chain":{chain},"wallets":{wallets},"contracts":{contracts},"rows":{},{}}}"#,
        set.len(),
        figures.join(",")
    )?;
    Ok(())
}

/// The index of a chain: after each transaction of the small chain come `hidden` ones whose addresses no viewer sees.
/// The numbers of sender and recipient of each are written to `file`.
fn index(small: u64, hidden: u64, file: Option<File>) -> Fallible<PostingIndex> {
    let mut file = file.map(BufWriter::new);
    let (mut index, mut numbers, mut hidden_numbers) = (PostingIndex::new(), Numbers(1), Numbers(2));
    let mut transactions = Vec::new();
    let mut block = 0;
    for position in 0..small * (hidden + 1) {
        let is_hidden = position % (hidden + 1) != 0;
        let source = if is_hidden { &mut hidden_numbers } else { &mut numbers };
        let offset = if is_hidden { WALLETS + CONTRACTS } else { 0 };
        let (from, to) = (offset + source.skewed(WALLETS), offset + source.recipient());
        if let Some(file) = &mut file {
            file.write_all(&u32::try_from(from)?.to_le_bytes())?;
            file.write_all(&u32::try_from(to)?.to_le_bytes())?;
        }
        transactions.push(transaction(from, to, to - offset >= WALLETS));
        if transactions.len() as u64 == TRANSACTIONS_PER_BLOCK || position + 1 == small * (hidden + 1) {
            index.append(&BlockRows {
                number: block,
                time: Timestamp::from_secs(block.try_into()?),
                transactions: std::mem::take(&mut transactions),
            })?;
            block += 1;
        }
    }
    Ok(index)
}

/// A payment, or a call of a token that moves it from the sender to the contract.
fn transaction(from: u64, to: u64, is_call: bool) -> TransactionRows {
    let (from, to) = (address(from), address(to));
    let mut transaction = TransactionRows {
        from,
        to: Some(to),
        ..TransactionRows::default()
    };
    if is_call {
        transaction.transfers.push(TransferParties { token: to, from, to });
        let topics = [B256::repeat_byte(1), from.into_word(), to.into_word()];
        transaction.logs.push(LogParties::new(to, &topics));
    }
    transaction
}

fn address(number: u64) -> Address {
    let mut bytes = [0; 20];
    // A number below 2^64 is no address.
    bytes[0] = 0x80;
    bytes[12..].copy_from_slice(&number.to_be_bytes());
    Address::from(bytes)
}

/// Pseudorandom numbers (SplitMix64): the same chain in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; small ones are more frequent, by the square of a uniform number.
    fn skewed(&mut self, end: u64) -> u64 {
        let uniform = self.next() >> 32;
        (((uniform * uniform) >> 32) * end) >> 32
    }

    /// A contract in seven of ten transactions, otherwise a wallet.
    fn recipient(&mut self) -> u64 {
        if self.next() % 10 < 7 {
            WALLETS + self.skewed(CONTRACTS)
        } else {
            self.skewed(WALLETS)
        }
    }
}

/// The median time in microseconds.
fn time<T>(work: impl Fn() -> T) -> f64 {
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            black_box(work());
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times.get(ROUNDS / 2).copied().unwrap_or(f64::NAN)
}

/// The resident memory of this process, from Linux' `/proc`.
fn resident_bytes() -> Fallible<u64> {
    let text = fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = text.split(' ').nth(1).ok_or("no resident pages")?.parse()?;
    Ok(pages * 4096)
}

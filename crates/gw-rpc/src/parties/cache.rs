//! The parties that this instance has read, for all callers, and the fetches in progress.
//!
//! A fetch belongs to the call that began it: it uses that caller's key and memory budget. Another call that needs the
//! same block or transaction meanwhile waits for it. If the fetch fails or takes longer than [`MAX_WAIT`], the other
//! call fetches with its own key and budget, so no caller's failure is another one's.

use super::{PartyQuery, PartySource, table::PartyTable};
use futures_util::{StreamExt as _, stream};
use gw_policy::view::{PartiesNeeded, TransactionParties, TxParties};
use gw_types::B256;
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

/// The most batches of one call at once.
const MAX_BATCHES: usize = 4;
/// The most weight of one batch.
const MAX_WEIGHT: usize = 64;
/// The weight of a whole block; a transaction weighs one.
const BLOCK_WEIGHT: usize = 4;
/// The longest time that a call waits for the fetches of other calls.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// The most transactions that are looked up or added under one lock.
const MAX_PER_LOCK: usize = 512;

/// The answer to one batch.
type KnownParties = Arc<[(B256, TransactionParties)]>;
/// The answer to a batch in progress, `None` until it arrives. The channel closes without an answer if there is none.
type Progress = watch::Receiver<Option<KnownParties>>;

/// The parties of transactions, shared by all callers.
#[derive(Debug)]
pub(crate) struct PartyCache {
    table: Mutex<PartyTable>,
    /// The batches in progress, by the hash of each block or transaction that they ask for.
    in_progress: Mutex<HashMap<B256, Progress>>,
}

/// A batch that this call fetches for all calls. Once it is dropped, others can begin it again.
struct Fetch<'a> {
    cache: &'a PartyCache,
    queries: Vec<PartyQuery>,
    result: watch::Sender<Option<KnownParties>>,
}

impl Drop for Fetch<'_> {
    fn drop(&mut self) {
        let mut in_progress = self.cache.in_progress();
        for query in &self.queries {
            let hash = query.hash();
            if in_progress
                .get(&hash)
                .is_some_and(|progress| progress.same_channel(&self.result.subscribe()))
            {
                in_progress.remove(&hash);
            }
        }
    }
}

/// Queries of this call that a batch of another call answers.
struct SharedFetch {
    queries: Vec<PartyQuery>,
    progress: Progress,
}

impl PartyCache {
    /// An empty cache that never takes more than `bytes`; with zero bytes nothing is kept.
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            table: Mutex::new(PartyTable::new(bytes)),
            in_progress: Mutex::default(),
        }
    }

    fn table(&self) -> MutexGuard<'_, PartyTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn in_progress(&self) -> MutexGuard<'_, HashMap<B256, Progress>> {
        self.in_progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the known parties of `needed` to `parties`; returns the transactions whose parties are not known.
    pub(crate) fn find_known(&self, needed: &[PartiesNeeded], parties: &mut TxParties) -> Vec<PartiesNeeded> {
        let mut missing = Vec::new();
        for rows in needed.chunks(MAX_PER_LOCK) {
            let mut table = self.table();
            for row in rows {
                match table.get(&row.tx_hash) {
                    Some(known) => parties.extend([(row.tx_hash, known)]),
                    None => missing.push(*row),
                }
            }
        }
        missing
    }

    /// Adds the parties of `missing` to `parties`, from the source or from a fetch of another call. A transaction that
    /// the source does not know stays unknown.
    ///
    /// # Errors
    /// If the source cannot answer.
    pub(crate) async fn fetch<S: PartySource>(
        &self,
        missing: &[PartiesNeeded],
        source: &S,
        parties: &mut TxParties,
    ) -> Result<(), S::Error> {
        let (own, shared) = self.begin(PartyQuery::for_transactions(missing));
        self.run(own, source, parties).await?;
        let until = Instant::now() + MAX_WAIT;
        let mut unanswered = Vec::new();
        for SharedFetch { queries, mut progress } in shared {
            let answer = match timeout_at(until, progress.wait_for(Option::is_some)).await {
                Ok(Ok(answer)) => answer.clone(),
                Ok(Err(_)) | Err(_) => None,
            };
            match answer {
                Some(answer) => {
                    self.keep(&queries, &answer);
                    parties.extend(answer.iter().copied());
                    unanswered.extend(still_needed(&queries, &answer));
                }
                None => unanswered.extend(queries),
            }
        }
        // Nobody waits for another call twice.
        let repeated = batches(unanswered).into_iter();
        let repeated = repeated.map(|queries| self.fetch_of(queries)).collect();
        self.run(repeated, source, parties).await
    }

    /// Begins a fetch of the queries that are not in progress.
    fn begin(&self, queries: Vec<PartyQuery>) -> (Vec<Fetch<'_>>, Vec<SharedFetch>) {
        let mut in_progress = self.in_progress();
        let (mut new, mut shared) = (Vec::new(), Vec::<SharedFetch>::new());
        for query in queries {
            match (in_progress.get(&query.hash()), shared.last_mut()) {
                (None, _) => new.push(query),
                (Some(progress), Some(last)) if last.progress.same_channel(progress) => last.queries.push(query),
                (Some(progress), _) => shared.push(SharedFetch {
                    queries: vec![query],
                    progress: progress.clone(),
                }),
            }
        }
        let own: Vec<_> = batches(new).into_iter().map(|queries| self.fetch_of(queries)).collect();
        for fetch in &own {
            let hashes = fetch.queries.iter().map(PartyQuery::hash);
            in_progress.extend(hashes.map(|hash| (hash, fetch.result.subscribe())));
        }
        (own, shared)
    }

    fn fetch_of(&self, queries: Vec<PartyQuery>) -> Fetch<'_> {
        Fetch {
            cache: self,
            queries,
            result: watch::Sender::new(None),
        }
    }

    /// Keeps the parties that the queries need, whoever they are. The other transactions of a block are not kept: their
    /// presence would tell other callers that somebody read logs of that block (docs/decisions/0015).
    fn keep(&self, queries: &[PartyQuery], answer: &KnownParties) {
        let needed: HashSet<B256> = queries.iter().flat_map(PartyQuery::needed).copied().collect();
        for answer in answer.chunks(MAX_PER_LOCK) {
            let mut table = self.table();
            for (hash, parties) in answer.iter().filter(|(hash, _)| needed.contains(hash)) {
                table.insert(*hash, *parties);
            }
        }
    }

    /// Runs the fetches, a few at a time, and adds what they find to `parties`.
    async fn run<S: PartySource>(
        &self,
        fetches: Vec<Fetch<'_>>,
        source: &S,
        parties: &mut TxParties,
    ) -> Result<(), S::Error> {
        let fetches: Vec<_> = fetches.into_iter().map(|fetch| fetch.run(source)).collect();
        let mut answers = stream::iter(fetches).buffer_unordered(MAX_BATCHES);
        while let Some(answer) = answers.next().await {
            parties.extend(answer?.iter().copied());
        }
        Ok(())
    }
}

impl Fetch<'_> {
    async fn run<S: PartySource>(self, source: &S) -> Result<KnownParties, S::Error> {
        let answer: KnownParties = source.find(&self.queries).await?.into();
        self.cache.keep(&self.queries, &answer);
        self.result.send_replace(Some(Arc::clone(&answer)));
        Ok(answer)
    }
}

/// The queries in batches of at most [`MAX_WEIGHT`].
fn batches(queries: Vec<PartyQuery>) -> Vec<Vec<PartyQuery>> {
    let (mut batches, mut weight) = (Vec::<Vec<_>>::new(), 0);
    for query in queries {
        let own_weight = match query {
            PartyQuery::Block { .. } => BLOCK_WEIGHT,
            PartyQuery::Transaction(_) => 1,
        };
        weight += own_weight;
        match batches.last_mut() {
            Some(batch) if weight <= MAX_WEIGHT => batch.push(query),
            Some(_) | None => {
                weight = own_weight;
                batches.push(vec![query]);
            }
        }
    }
    batches
}

/// The transactions of these queries that are not in the answer: the other call needed other transactions of a block
/// that is too large to be read whole, or the node left them out.
fn still_needed(queries: &[PartyQuery], answer: &KnownParties) -> Vec<PartyQuery> {
    let answer: HashSet<B256> = answer.iter().map(|(hash, _)| *hash).collect();
    let needed = queries.iter().flat_map(PartyQuery::needed);
    let missing = needed.filter(|hash| !answer.contains(*hash));
    missing.copied().map(PartyQuery::Transaction).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_types::Address;
    use std::{
        pin::pin,
        sync::atomic::{AtomicUsize, Ordering},
    };
    use tokio::sync::Semaphore;

    /// A source that keeps its queries and answers from a list, once it may.
    struct Scripted {
        /// The transactions of each block.
        blocks: HashMap<B256, Vec<B256>>,
        may_answer: Semaphore,
        fails: bool,
        queries: Mutex<Vec<Vec<PartyQuery>>>,
        running: AtomicUsize,
        most_running: AtomicUsize,
    }

    impl Scripted {
        fn new(blocks: impl IntoIterator<Item = (B256, Vec<B256>)>) -> Self {
            Self {
                blocks: blocks.into_iter().collect(),
                may_answer: Semaphore::new(Semaphore::MAX_PERMITS),
                fails: false,
                queries: Mutex::default(),
                running: AtomicUsize::default(),
                most_running: AtomicUsize::default(),
            }
        }

        /// This source, which answers nothing before it is told to.
        fn waiting(self) -> Self {
            Self {
                may_answer: Semaphore::new(0),
                ..self
            }
        }

        fn failing(self) -> Self {
            Self { fails: true, ..self }
        }

        fn take(&self) -> Vec<Vec<PartyQuery>> {
            std::mem::take(&mut self.queries.lock().unwrap())
        }
    }

    impl PartySource for Scripted {
        type Error = &'static str;

        async fn find(&self, queries: &[PartyQuery]) -> Result<Vec<(B256, TransactionParties)>, &'static str> {
            self.queries.lock().unwrap().push(queries.to_vec());
            let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_running.fetch_max(running, Ordering::SeqCst);
            tokio::task::yield_now().await;
            self.may_answer.acquire().await.unwrap().forget();
            self.running.fetch_sub(1, Ordering::SeqCst);
            if self.fails {
                return Err("no answer");
            }
            let known: HashSet<B256> = self.blocks.values().flatten().copied().collect();
            let mut answer: Vec<&B256> = Vec::new();
            for query in queries {
                match query {
                    PartyQuery::Block { hash, .. } => answer.extend(self.blocks.get(hash).into_iter().flatten()),
                    PartyQuery::Transaction(hash) => answer.extend(known.get(hash)),
                }
            }
            Ok(answer.into_iter().map(|hash| (*hash, parties())).collect())
        }
    }

    fn parties() -> TransactionParties {
        TransactionParties::new(Address::ZERO, None)
    }

    fn hash(block: u8, index: u8) -> B256 {
        let mut hash = B256::repeat_byte(block);
        hash.0[31] = index;
        hash
    }

    /// Block `number` with this many transactions.
    fn block(number: u8, transactions: u8) -> (B256, Vec<B256>) {
        (
            hash(number, 0xff),
            (0..transactions).map(|index| hash(number, index)).collect(),
        )
    }

    fn needed(block: u8, indices: impl IntoIterator<Item = u8>) -> Vec<PartiesNeeded> {
        let needed = |index| PartiesNeeded {
            block_hash: hash(block, 0xff),
            tx_hash: hash(block, index),
        };
        indices.into_iter().map(needed).collect()
    }

    fn cache() -> PartyCache {
        PartyCache::new(1 << 20)
    }

    /// The transactions of `rows` that are known in `parties`.
    fn known(parties: &TxParties, rows: &[PartiesNeeded]) -> usize {
        let text = format!("{parties:?}");
        rows.iter()
            .filter(|row| text.contains(&row.tx_hash.to_string()))
            .count()
    }

    async fn fetch(cache: &PartyCache, rows: &[PartiesNeeded], source: &Scripted) -> Result<usize, &'static str> {
        let mut parties = TxParties::default();
        let missing = cache.find_known(rows, &mut parties);
        cache.fetch(&missing, source, &mut parties).await?;
        Ok(known(&parties, rows))
    }

    #[tokio::test]
    async fn several_transactions_of_a_block_are_read_with_the_block() {
        let (cache, source) = (cache(), Scripted::new([block(1, 9), block(2, 9)]));
        let rows = [needed(1, 0..3), needed(2, 0..4)].concat();
        assert_eq!(fetch(&cache, &rows, &source).await, Ok(7));
        let queries = source.take().concat();
        let (blocks, transactions): (Vec<_>, Vec<_>) = queries
            .iter()
            .partition(|query| matches!(query, PartyQuery::Block { .. }));
        assert_eq!((blocks.len(), transactions.len()), (1, 3));
        // Only the needed transactions are kept.
        assert!(cache.find_known(&rows, &mut TxParties::default()).is_empty());
        assert_eq!(cache.find_known(&needed(2, 0..9), &mut TxParties::default()).len(), 5);
    }

    #[tokio::test]
    async fn a_transaction_in_another_block_is_known() {
        let (cache, source) = (cache(), Scripted::new([block(1, 1)]));
        fetch(&cache, &needed(1, 0..1), &source).await.unwrap();
        let moved = PartiesNeeded {
            block_hash: hash(2, 0xff),
            tx_hash: hash(1, 0),
        };
        let replaced = PartiesNeeded {
            block_hash: hash(1, 0xff),
            tx_hash: hash(2, 0),
        };
        let missing = cache.find_known(&[moved, replaced], &mut TxParties::default());
        assert_eq!(missing, [replaced]);
    }

    #[tokio::test]
    async fn what_the_source_leaves_out_is_asked_again() {
        let (cache, source) = (cache(), Scripted::new([block(1, 4)]));
        let rows = needed(1, 0..5);
        assert_eq!(fetch(&cache, &rows, &source).await, Ok(4));
        assert_eq!(fetch(&cache, &rows, &source).await, Ok(4));
        assert_eq!(source.take().concat().len(), 2, "absence is not kept");
    }

    #[tokio::test]
    async fn fetches_are_bounded_and_parallel() {
        let (cache, source) = (cache(), Scripted::new((0..200).map(|number| block(number, 4))));
        let rows: Vec<_> = (0..200).flat_map(|number| needed(number, 0..4)).collect();
        assert_eq!(fetch(&cache, &rows, &source).await, Ok(800));
        let batches = source.take();
        assert!(batches.iter().all(|batch| batch.len() <= 16));
        assert_eq!(batches.concat().len(), 200, "each block is read once");
        assert_eq!(source.most_running.load(Ordering::SeqCst), 4);
    }

    #[tokio::test]
    async fn concurrent_misses_share_one_fetch() {
        for bytes in [0, 1 << 20] {
            let (cache, source) = (
                PartyCache::new(bytes),
                Scripted::new([block(1, 9), block(2, 9)]).waiting(),
            );
            let (first, second) = (needed(1, 0..5), [needed(1, 3..9), needed(2, 0..4)].concat());
            let answers = async { tokio::join!(fetch(&cache, &first, &source), fetch(&cache, &second, &source)) };
            let (answers, ()) = tokio::join!(answers, async {
                tokio::task::yield_now().await;
                source.may_answer.add_permits(9);
            });
            assert_eq!(answers, (Ok(5), Ok(10)));
            assert_eq!(source.take().concat().len(), 2, "one query for each block");
            assert!(cache.in_progress().is_empty());
        }
    }

    /// A large block may be answered by its needed transactions alone.
    #[tokio::test]
    async fn a_shared_answer_without_a_needed_transaction_is_completed() {
        let cache = cache();
        let (partial, whole) = (Scripted::new([block(1, 4)]).waiting(), Scripted::new([block(1, 9)]));
        let (first, second) = (needed(1, 0..4), needed(1, 2..8));
        let answers = async { tokio::join!(fetch(&cache, &first, &partial), fetch(&cache, &second, &whole)) };
        let (answers, ()) = tokio::join!(answers, async { partial.may_answer.add_permits(9) });
        assert_eq!(answers, (Ok(4), Ok(6)));
        let rest: Vec<_> = (4..8).map(|index| PartyQuery::Transaction(hash(1, index))).collect();
        assert_eq!(whole.take(), [rest]);
    }

    #[tokio::test]
    async fn a_failed_fetch_fails_its_own_call_only() {
        let cache = cache();
        let blocks = || Scripted::new([block(1, 9)]);
        let (failing, source) = (blocks().waiting().failing(), blocks());
        let rows = needed(1, 0..5);
        let answers = async { tokio::join!(fetch(&cache, &rows, &failing), fetch(&cache, &rows, &source)) };
        let (answers, ()) = tokio::join!(answers, async { failing.may_answer.add_permits(9) });
        assert_eq!(answers, (Err("no answer"), Ok(5)));
        assert!(cache.in_progress().is_empty());
    }

    #[tokio::test]
    async fn a_call_that_ends_ends_nobody_elses_fetch() {
        let cache = cache();
        let blocks = || Scripted::new([block(1, 9)]);
        let (silent, source) = (blocks().waiting(), blocks());
        let rows = needed(1, 0..5);
        let mut second = pin!(fetch(&cache, &rows, &source));
        {
            let mut first = pin!(fetch(&cache, &rows, &silent));
            assert!(futures_util::poll!(&mut first).is_pending());
            assert!(futures_util::poll!(&mut second).is_pending());
        }
        assert_eq!(second.await, Ok(5));
        assert_eq!((silent.take().len(), source.take().len()), (1, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_fetch_delays_others_for_a_limited_time() {
        let cache = cache();
        let blocks = || Scripted::new([block(1, 9), block(2, 9)]);
        let (silent, source) = (blocks().waiting(), blocks());
        let rows = [needed(1, 0..5), needed(2, 0..5)].concat();
        let mut first = pin!(fetch(&cache, &rows, &silent));
        assert!(futures_util::poll!(&mut first).is_pending());
        let start = Instant::now();
        assert_eq!(fetch(&cache, &rows, &source).await, Ok(10));
        assert_eq!(start.elapsed().as_secs(), MAX_WAIT.as_secs());
        // The slow fetch is still in progress for others, and its end is not disturbed.
        silent.may_answer.add_permits(9);
        assert_eq!(first.await, Ok(10));
        assert!(cache.in_progress().is_empty());
    }
}

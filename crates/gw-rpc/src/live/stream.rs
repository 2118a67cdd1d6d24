//! Where a filter or a subscription stands, and what comes next for its owner.

use crate::{execute, origin::Origin, question::Asked, record::Found, reply::Reply, state::Inner};
use gw_evm::{BlockId, Call, LogFilter, LogRange, Method, Topic};
use gw_node::Trail;
use gw_policy::{
    Disclosed,
    view::{self, Item},
};
use gw_types::B256;
use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

/// The most blocks of one look: what one `eth_getLogs` may ask for (J9).
const MAX_BLOCKS: u64 = 10_000;
/// How long a delivered row can be taken back, and how much of them is kept.
const KEPT_BLOCKS: u64 = 64;
const KEPT_BYTES: usize = 128 * 1024;

/// Criteria, position, and the rows delivered of late.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) topic: Topic,
    /// The chain as it was at the last look.
    trail: Arc<Trail>,
    /// The next block to tell of.
    next: u64,
    given: VecDeque<Item>,
    given_bytes: usize,
}

/// What a look brought.
#[derive(Debug)]
pub(crate) enum News {
    /// Rows: first what left the chain, then what came.
    Logs(Vec<Disclosed>),
    /// Blocks that came.
    Blocks(Vec<B256>),
}

/// What an `eth_getLogs` of the caller shows between two blocks.
struct Read {
    rows: Result<Vec<Item>, Reply>,
    /// The last block it covers.
    to: u64,
}

impl Stream {
    /// From the next block on.
    pub(crate) async fn begin(state: &Inner, topic: Topic, found: &mut Found) -> Result<Self, Reply> {
        let trail = trail(state, found).await?;
        Ok(Self {
            topic,
            next: trail.end(),
            trail,
            given: VecDeque::new(),
            given_bytes: 0,
        })
    }

    /// The question that stands behind the topic, about no block in particular: whoever may not ask it gets nothing.
    pub(crate) fn question(state: &Arc<Inner>, origin: &Arc<Origin>, topic: &Topic) -> Asked {
        match topic {
            Topic::Heads => block(state, origin, BlockId::LATEST),
            Topic::Logs(filter) => Asked::reading(state, origin, Method::GetLogs, Call::Logs(filter.clone())),
        }
    }

    /// The same about the topic of this stream.
    pub(crate) fn question_now(&self, state: &Arc<Inner>, origin: &Arc<Origin>) -> Asked {
        Self::question(state, origin, &self.topic)
    }

    /// What came since the last look, as its owner sees it now. The position moves only with an answer.
    pub(crate) async fn look(
        &mut self,
        state: &Arc<Inner>,
        origin: &Arc<Origin>,
        found: &mut Found,
    ) -> Result<News, Reply> {
        let trail = trail(state, found).await?;
        let from = trail.resume(&self.trail, self.next);
        let news = match self.topic.clone() {
            Topic::Heads => {
                Self::question(state, origin, &self.topic).judge()?;
                let numbers = from..trail.end();
                self.next = trail.end();
                News::Blocks(numbers.filter_map(|number| trail.hash(number)).collect())
            }
            Topic::Logs(filter) => {
                let read = read(state, origin, &filter, from..trail.end(), found).await?;
                self.next = read.to.saturating_add(1);
                match read.rows {
                    Ok(rows) => News::Logs(self.deliver(&trail, rows)),
                    Err(denied) => {
                        self.trail = trail;
                        return Err(denied);
                    }
                }
            }
        };
        self.trail = trail;
        Ok(news)
    }

    /// The next block to tell of.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// Tells of the blocks from `next` on again: they were not delivered.
    pub(crate) fn go_back(&mut self, next: u64) {
        self.next = self.next.min(next);
    }

    /// WS-4: what was delivered and left the chain is taken back; what was delivered already does not come again.
    fn deliver(&mut self, trail: &Trail, rows: Vec<Item>) -> Vec<Disclosed> {
        let is_lost = |item: &Item| trail.lost(item.block_number, item.block_hash);
        let mut out: Vec<Disclosed> = self
            .given
            .iter()
            .rev()
            .filter(|item| is_lost(item))
            .map(Item::removed)
            .collect();
        self.given.retain(|item| !is_lost(item));
        let known: HashSet<(B256, u64)> = self
            .given
            .iter()
            .map(|item| (item.block_hash, item.log_index))
            .collect();
        for item in rows {
            if !known.contains(&(item.block_hash, item.log_index)) {
                out.push(item.row.clone());
                self.given.push_back(item);
            }
        }
        self.forget(trail.end().saturating_sub(KEPT_BLOCKS));
        out
    }

    fn forget(&mut self, before: u64) {
        self.given_bytes = self.given.iter().map(|item| item.row.as_str().len()).sum();
        while let Some(oldest) = self.given.front()
            && (oldest.block_number < before || self.given_bytes > KEPT_BYTES)
        {
            self.given_bytes = self.given_bytes.saturating_sub(oldest.row.as_str().len());
            self.given.pop_front();
        }
    }
}

async fn trail(state: &Inner, found: &mut Found) -> Result<Arc<Trail>, Reply> {
    found
        .upstream(state, state.node().trail())
        .await
        .map_err(|error| execute::unanswered(state, &error))
}

/// `eth_getLogs` of the caller's own criteria between two blocks. Too many rows for one answer: of fewer blocks, and
/// the rest the next time.
async fn read(
    state: &Arc<Inner>,
    origin: &Arc<Origin>,
    filter: &LogFilter,
    blocks: std::ops::Range<u64>,
    found: &mut Found,
) -> Result<Read, Reply> {
    let LogRange::Range { from, to } = filter.range else {
        // One block, and it is of the past.
        Stream::question(state, origin, &Topic::Logs(filter.clone())).judge()?;
        return Ok(Read {
            rows: Ok(Vec::new()),
            to: blocks.end.saturating_sub(1),
        });
    };
    let newest = blocks.end.saturating_sub(1);
    let first = number(from).map_or(blocks.start, |from| from.max(blocks.start));
    let mut last = newest.min(first.saturating_add(MAX_BLOCKS - 1));
    loop {
        let end = number(to).map_or(last, |to| to.min(last));
        if first > end {
            Stream::question(state, origin, &Topic::Logs(filter.clone())).judge()?;
            return Ok(Read {
                rows: Ok(Vec::new()),
                to: last.max(blocks.start.saturating_sub(1)).min(newest),
            });
        }
        let range = LogRange::Range {
            from: BlockId::Number(first),
            to: BlockId::Number(end),
        };
        let asked = Asked::reading(
            state,
            origin,
            Method::GetLogs,
            Call::Logs(LogFilter {
                range,
                ..filter.clone()
            }),
        );
        let judged = asked.judge()?;
        match execute::forward(&asked, judged, found).await {
            Ok(answer) => {
                return Ok(Read {
                    rows: Ok(view::rows(&answer)),
                    to: last,
                });
            }
            // Decision 20: nothing of one's own there. What comes later may be.
            Err(denied @ Reply::Denied(_)) => {
                return Ok(Read {
                    rows: Err(denied),
                    to: last,
                });
            }
            Err(Reply::Invalid(invalid)) if invalid.error.code() == TOO_MUCH && end > first => {
                last = first + (end - first) / 2;
            }
            Err(reply) => return Err(reply),
        }
    }
}

/// The code of a limit (J9).
const TOO_MUCH: i32 = -32005;

/// Where a criterion bounds what comes; a tag does not.
fn number(block: BlockId) -> Option<u64> {
    if let BlockId::Number(number) = block {
        Some(number)
    } else {
        None
    }
}

/// The caller's own `eth_getBlockByNumber`, hashes only.
fn block(state: &Arc<Inner>, origin: &Arc<Origin>, block: BlockId) -> Asked {
    Asked::reading(
        state,
        origin,
        Method::GetBlockByNumber,
        Call::Block { block, full: false },
    )
}

/// A block as `newHeads` shows it to this caller; nothing if it is gone meanwhile.
pub(crate) async fn header(
    state: &Arc<Inner>,
    origin: &Arc<Origin>,
    hash: B256,
    found: &mut Found,
) -> Result<Option<Disclosed>, Reply> {
    let asked = block(
        state,
        origin,
        BlockId::Hash {
            hash,
            require_canonical: false,
        },
    );
    let judged = asked.judge()?;
    Ok(view::header(&execute::forward(&asked, judged, found).await?))
}

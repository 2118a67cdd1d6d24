//! Locates watched sends: which blocks contain them, and which of the transactions they are.

use super::{DEPTH, ValidationError};
use gw_node::{Block, BlockListing, Node, NodeError, NonceUse};
use gw_store::record::WatchedSend;
use gw_types::{Address, B256, WatchId};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

/// The blocks that were validated before the last one, by number and hash, the newest last. Some may be missing.
pub(super) type ValidatedBlocks = VecDeque<(u64, B256)>;

/// The locations of the watched sends.
#[derive(Debug, Default)]
pub(super) struct WatchedSends<'a> {
    /// The blocks to validate, oldest first, with their watched sends in the order of execution.
    pub(super) blocks: Vec<(BlockListing, Vec<MinedWatch<'a>>)>,
    /// Sends whose nonce another transaction used: they can never be mined.
    pub(super) replaced: Vec<WatchId>,
    /// Sends whose nonce is used, without the node showing by which transaction.
    pub(super) unknown: Vec<&'a WatchedSend>,
    /// Sends that were found in blocks that have left the chain.
    pub(super) dropped: Vec<&'a WatchedSend>,
    /// The number of the block above which the branch differs from the one followed before, if it does.
    pub(super) forked_above: Option<u64>,
}

/// A watched send and the hash of its transaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct MinedWatch<'a> {
    pub(super) watched: &'a WatchedSend,
    pub(super) hash: B256,
}

/// Locates every watched send that was mined up to `head`.
pub(super) async fn locate_watched_sends<'a>(
    node: &Node,
    watched: &'a [WatchedSend],
    chain: &ValidatedBlocks,
    last: Option<Block>,
    head: Block,
) -> Result<WatchedSends<'a>, ValidationError> {
    let mut located = WatchedSends::default();
    let mut blocks = BTreeMap::new();
    if let Some(last) = last.filter(|last| head.number.saturating_sub(last.number) <= DEPTH) {
        let listings = branch(node, chain, last, head, &mut located.forked_above).await?;
        blocks.extend(
            listings
                .into_iter()
                .map(|listing| ((listing.block.number, listing.block.hash), listing)),
        );
    }
    let by_block = group_by_block(watched, blocks.values());
    let located_ids: HashSet<WatchId> = by_block.values().flatten().map(|watch| watch.watched.id).collect();
    let is_dropped = |watched: &&WatchedSend| {
        let number = watched.block_number.zip(located.forked_above);
        number.is_some_and(|(number, above)| number > above) && !located_ids.contains(&watched.id)
    };
    located.dropped = watched.iter().filter(is_dropped).collect();
    let mut by_block = by_block;
    let missing = watched
        .iter()
        .filter(|watched| watched.block_number.is_none() && !located_ids.contains(&watched.id));
    // Nonces that a send in the listed blocks used.
    let mut nonce_uses: HashMap<(Address, u64), NonceUse> = HashMap::new();
    for (block, watch) in by_block
        .iter()
        .flat_map(|(block, watches)| watches.iter().map(move |watch| (*block, watch)))
    {
        let (key, hash) = ((watch.watched.sender, watch.watched.nonce), watch.hash);
        nonce_uses.insert(key, NonceUse::Transaction { block, hash });
    }
    for watched in with_used_nonce(node, &missing.collect::<Vec<_>>(), head.hash).await? {
        let (block, hash) = match locate_send(node, watched, &head, &mut nonce_uses).await? {
            SendLocation::Block(block, hash) => (block, hash),
            SendLocation::Replaced => {
                located.replaced.push(watched.id);
                continue;
            }
            SendLocation::Unknown => {
                located.unknown.push(watched);
                continue;
            }
        };
        if !blocks.keys().any(|(_, hash)| *hash == block) {
            let listing = node.listing(block).await?;
            // A block above the head is validated when it becomes the head.
            if listing.block.number > head.number {
                continue;
            }
            blocks.insert((listing.block.number, block), listing);
        }
        by_block.entry(block).or_default().push(MinedWatch { watched, hash });
    }
    located.blocks = blocks
        .into_values()
        .map(|listing| {
            let watches = by_block.remove(&listing.block.hash).unwrap_or_default();
            let watches = in_execution_order(&listing, watches);
            (listing, watches)
        })
        .collect();
    Ok(located)
}

/// The watched sends with a known hash that are in these blocks, by block hash.
fn group_by_block<'a, 'b>(
    watched: &'a [WatchedSend],
    blocks: impl Iterator<Item = &'b BlockListing>,
) -> HashMap<B256, Vec<MinedWatch<'a>>> {
    let mut by_hash: HashMap<B256, Vec<&WatchedSend>> = HashMap::new();
    for send in watched {
        if let Some(hash) = send.tx_hash {
            by_hash.entry(hash).or_default().push(send);
        }
    }
    let mut by_block: HashMap<B256, Vec<MinedWatch<'a>>> = HashMap::new();
    for listing in blocks {
        for hash in &listing.transactions {
            let watches = by_hash
                .get(hash)
                .into_iter()
                .flatten()
                .map(|watched| MinedWatch { watched, hash: *hash });
            let mut watches = watches.peekable();
            if watches.peek().is_some() {
                by_block.entry(listing.block.hash).or_default().extend(watches);
            }
        }
    }
    by_block
}

/// In the order of execution: a send may move on what an earlier one obtained.
fn in_execution_order<'a>(listing: &BlockListing, mut watches: Vec<MinedWatch<'a>>) -> Vec<MinedWatch<'a>> {
    if watches.len() > 1 {
        let indexes = listing
            .transactions
            .iter()
            .enumerate()
            .map(|(index, hash)| (*hash, index));
        let indexes: HashMap<B256, usize> = indexes.collect();
        watches.sort_by_key(|watch| indexes.get(&watch.hash).copied());
    }
    watches
}

/// The watched sends whose nonce was used at the end of this block.
async fn with_used_nonce<'a>(
    node: &Node,
    watched: &[&'a WatchedSend],
    block: B256,
) -> Result<Vec<&'a WatchedSend>, NodeError> {
    let senders: BTreeSet<Address> = watched.iter().map(|watched| watched.sender).collect();
    let senders: Vec<Address> = senders.into_iter().collect();
    let nonces = node.nonces_at(&senders, block).await?;
    let next: HashMap<Address, u64> = senders.into_iter().zip(nonces).collect();
    let is_used = |watched: &&&WatchedSend| next.get(&watched.sender).is_some_and(|next| watched.nonce < *next);
    Ok(watched.iter().filter(is_used).copied().collect())
}

/// The location of a send whose nonce was used.
enum SendLocation {
    /// In this block, as this transaction.
    Block(B256, B256),
    /// Another transaction used its nonce.
    Replaced,
    /// The node does not show what used its nonce.
    Unknown,
}

/// `nonce_uses`: the nonces that were looked up for other sends.
async fn locate_send(
    node: &Node,
    watched: &WatchedSend,
    head: &Block,
    nonce_uses: &mut HashMap<(Address, u64), NonceUse>,
) -> Result<SendLocation, NodeError> {
    if let Some(hash) = watched.tx_hash {
        match node.block_of(hash).await {
            Ok(Some(block)) => return Ok(SendLocation::Block(block, hash)),
            // Another transaction may have used its nonce, or the node may not have indexed it.
            Ok(None) | Err(NodeError::NoAnswer) => {}
            Err(error) => return Err(error),
        }
    }
    // Without a hash, the node signed the transaction, and its hash never arrived.
    let key = (watched.sender, watched.nonce);
    let nonce_use = match nonce_uses.get(&key) {
        Some(known) => *known,
        None => node.nonce_use(watched.sender, watched.nonce, head).await?,
    };
    nonce_uses.insert(key, nonce_use);
    Ok(match nonce_use {
        NonceUse::Transaction { block, hash } if watched.tx_hash.is_none_or(|own| own == hash) => {
            SendLocation::Block(block, hash)
        }
        NonceUse::Transaction { .. } | NonceUse::NoTransaction => SendLocation::Replaced,
        NonceUse::Unknown => SendLocation::Unknown,
    })
}

/// The blocks of this branch that are not ancestors of the last block, and where the branch leaves the followed one.
async fn branch(
    node: &Node,
    chain: &ValidatedBlocks,
    last: Block,
    head: Block,
    forked_above: &mut Option<u64>,
) -> Result<Vec<BlockListing>, NodeError> {
    let mut listings = Vec::new();
    let mut next = head.hash;
    loop {
        let listing = node.listing(next).await?;
        let (number, parent) = (listing.block.number, listing.block.parent);
        listings.push(listing);
        if parent == last.hash {
            return Ok(listings);
        }
        let joins = chain.iter().any(|(_, hash)| *hash == parent);
        if joins || number == 0 || number.saturating_add(DEPTH) <= last.number {
            *forked_above = Some(number.saturating_sub(1));
            return Ok(listings);
        }
        next = parent;
    }
}

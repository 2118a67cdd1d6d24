//! Which blocks hold awaited sends, and which of their transactions those are.

use super::{DEPTH, Unseen};
use gw_node::{Block, Listing, Node, NodeError};
use gw_store::record::Watched;
use gw_types::{Address, B256, WatchId};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

/// The blocks that were let in on the way to the last one, by number and hash, the newest last. Some may be missing.
pub(super) type Chain = VecDeque<(u64, B256)>;

/// Where the awaited sends are.
#[derive(Debug, Default)]
pub(super) struct Places<'a> {
    /// The blocks to look into, oldest first.
    pub(super) blocks: Vec<(Listing, Vec<Found<'a>>)>,
    /// Sends whose nonce something else used: they never will be mined.
    pub(super) replaced: Vec<WatchId>,
    /// Sends that used their nonce where nobody can look any more.
    pub(super) lost: Vec<&'a Watched>,
    /// Sends that were found in blocks which left the chain.
    pub(super) dropped: Vec<&'a Watched>,
    /// The block at which another branch begins than the one followed before.
    pub(super) forked_above: Option<u64>,
}

/// An awaited send, and the transaction that it became.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<'a> {
    pub(super) watched: &'a Watched,
    pub(super) hash: B256,
}

/// Finds every awaited send that was mined up to `head`.
pub(super) async fn places<'a>(
    node: &Node,
    watched: &'a [Watched],
    chain: &Chain,
    last: Option<Block>,
    head: Block,
) -> Result<Places<'a>, Unseen> {
    let mut places = Places::default();
    let mut blocks = BTreeMap::new();
    if let Some(last) = last.filter(|last| head.number.saturating_sub(last.number) <= DEPTH) {
        let listings = branch(node, chain, last, head, &mut places.forked_above).await?;
        blocks.extend(
            listings
                .into_iter()
                .map(|listing| ((listing.block.number, listing.block.hash), listing)),
        );
    }
    let found = by_hash(watched, blocks.values());
    let known: HashSet<WatchId> = found.values().flatten().map(|found| found.watched.id).collect();
    let is_dropped = |watched: &&Watched| {
        let number = watched.block_number.zip(places.forked_above);
        number.is_some_and(|(number, above)| number > above) && !known.contains(&watched.id)
    };
    places.dropped = watched.iter().filter(is_dropped).collect();
    let mut found = found;
    let missing = watched
        .iter()
        .filter(|watched| watched.block_number.is_none() && !known.contains(&watched.id));
    for watched in used(node, &missing.collect::<Vec<_>>(), head.hash).await? {
        let (block, hash) = match place(node, watched, head).await? {
            Place::In(block, hash) => (block, hash),
            Place::Nowhere => continue,
            Place::Replaced => {
                places.replaced.push(watched.id);
                continue;
            }
            Place::Lost => {
                places.lost.push(watched);
                continue;
            }
        };
        if !blocks.keys().any(|(_, known)| *known == block) {
            let listing = node.listing(block).await?;
            // What lies above the head is met in its turn.
            if listing.block.number > head.number {
                continue;
            }
            blocks.insert((listing.block.number, block), listing);
        }
        found.entry(block).or_default().push(Found { watched, hash });
    }
    places.blocks = blocks
        .into_values()
        .map(|listing| {
            let here = found.remove(&listing.block.hash).unwrap_or_default();
            let here = in_order(&listing, here);
            (listing, here)
        })
        .collect();
    Ok(places)
}

/// The sends in these blocks whose hash is known.
fn by_hash<'a, 'b>(watched: &'a [Watched], blocks: impl Iterator<Item = &'b Listing>) -> HashMap<B256, Vec<Found<'a>>> {
    let mut of: HashMap<B256, Vec<&Watched>> = HashMap::new();
    for one in watched {
        if let Some(hash) = one.tx_hash {
            of.entry(hash).or_default().push(one);
        }
    }
    let mut found: HashMap<B256, Vec<Found<'a>>> = HashMap::new();
    for listing in blocks {
        for hash in &listing.transactions {
            let here = of
                .get(hash)
                .into_iter()
                .flatten()
                .map(|watched| Found { watched, hash: *hash });
            let mut here = here.peekable();
            if here.peek().is_some() {
                found.entry(listing.block.hash).or_default().extend(here);
            }
        }
    }
    found
}

/// As they ran: one may carry on what another brought.
fn in_order<'a>(listing: &Listing, mut here: Vec<Found<'a>>) -> Vec<Found<'a>> {
    if here.len() > 1 {
        let places = listing.transactions.iter().enumerate().map(|(at, hash)| (*hash, at));
        let places: HashMap<B256, usize> = places.collect();
        here.sort_by_key(|found| places.get(&found.hash).copied());
    }
    here
}

/// Those whose nonce was used when this block ended.
async fn used<'a>(node: &Node, watched: &[&'a Watched], block: B256) -> Result<Vec<&'a Watched>, NodeError> {
    let senders: BTreeSet<Address> = watched.iter().map(|watched| watched.sender).collect();
    let senders: Vec<Address> = senders.into_iter().collect();
    let nonces = node.nonces_at(&senders, block).await?;
    let next: HashMap<Address, u64> = senders.into_iter().zip(nonces).collect();
    let is_used = |watched: &&&Watched| next.get(&watched.sender).is_some_and(|next| watched.nonce < *next);
    Ok(watched.iter().filter(is_used).copied().collect())
}

/// Where a send is whose nonce was used.
enum Place {
    /// In this block, as this transaction.
    In(B256, B256),
    /// Something else used its nonce.
    Replaced,
    /// In a block that the head does not know yet.
    Nowhere,
    /// Somewhere, but nobody can look there.
    Lost,
}

async fn place(node: &Node, watched: &Watched, head: Block) -> Result<Place, NodeError> {
    if let Some(hash) = watched.tx_hash {
        return Ok(node
            .block_of(hash)
            .await?
            .map_or(Place::Replaced, |block| Place::In(block, hash)));
    }
    // Signed by the node, and nobody heard under which hash.
    match node.block_of_nonce(watched.sender, watched.nonce, head.number).await {
        Ok(None) => Ok(Place::Nowhere),
        Ok(Some(block)) => {
            let listing = node.listing(block).await?;
            let hash = node.sent_with(&listing, watched.sender, watched.nonce).await?;
            Ok(hash.map_or(Place::Lost, |hash| Place::In(block, hash)))
        }
        // The node's own error: it keeps no state that old. Anything else that is no answer holds the head back.
        Err(NodeError::NoAnswer) => Ok(Place::Lost),
        Err(error) => Err(error),
    }
}

/// The blocks of this branch that are not on the way to the last one, and where they leave it.
async fn branch(
    node: &Node,
    chain: &Chain,
    last: Block,
    head: Block,
    forked_above: &mut Option<u64>,
) -> Result<Vec<Listing>, NodeError> {
    let mut listings = Vec::new();
    let mut next = head.hash;
    loop {
        let listing = node.listing(next).await?;
        let (number, parent) = (listing.block.number, listing.block.parent);
        listings.push(listing);
        if parent == last.hash {
            return Ok(listings);
        }
        let joins = chain.iter().any(|(_, known)| *known == parent);
        if joins || number == 0 || number.saturating_add(DEPTH) <= last.number {
            *forked_above = Some(number.saturating_sub(1));
            return Ok(listings);
        }
        next = parent;
    }
}

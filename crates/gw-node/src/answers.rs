//! How many bytes of the node's answers are held at once, in all and for each caller.
//!
//! An answer is large or small by what others wrote on the chain, and a caller may have many of them on their way. So what
//! is read of an answer is charged to the caller's request first, and comes back when the last byte left, or when the
//! request ended otherwise. Answers up to [`SMALL`] are not counted: what a caller may have in flight bounds them.
//!
//! Invariant: no caller holds more than its share, but for one call that holds nothing beside it: an answer of any
//! permitted size can be had. What a view makes of an answer takes the place of the answer; it is never refused.
//!
//! The gateway's own questions are counted and never wait: its head does not stand still because callers are greedy.

use gw_types::UserId;
use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::oneshot;

/// Answers of at most so many bytes are not counted.
pub const SMALL: usize = 64 * 1024;

const MIB: usize = 1024 * 1024;
/// So many times longer than others waits what cannot be asked for twice.
const ONCE_ONLY: u32 = 6;

/// The bounds of [`AnswerBudget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerLimits {
    /// Bytes in all (`ANSWER_BYTES_MAX`).
    pub max: usize,
    /// Bytes of one caller (`ANSWER_BYTES_PER_CALLER`).
    pub per_caller: usize,
    /// How long an answer waits for room before its call is refused.
    pub patience: Duration,
}

impl Default for AnswerLimits {
    fn default() -> Self {
        Self {
            max: 512 * MIB,
            per_caller: 128 * MIB,
            patience: Duration::from_secs(5),
        }
    }
}

/// Whose bytes they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Payer {
    /// A user's, by whatever way they come.
    User(UserId),
    /// Those of anonymous callers of one network.
    Network(IpAddr),
    /// The gateway's own.
    Gateway,
}

/// The answer found no room in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answers that are held leave no room for this one")]
pub struct NoRoom;

/// All bytes of answers that this process holds.
#[derive(Debug)]
pub struct AnswerBudget {
    limits: AnswerLimits,
    ledger: Mutex<Ledger>,
    /// `Ledger::held`, for those who only want to know whether it is worth looking.
    held: AtomicUsize,
}

#[derive(Debug, Default)]
struct Ledger {
    held: usize,
    peak: usize,
    holders: usize,
    /// Holders that wait for more.
    stuck: usize,
    shares: HashMap<Payer, Share>,
    queue: Vec<Waiter>,
    next: u64,
}

/// What one payer holds.
#[derive(Debug, Default)]
struct Share {
    held: usize,
    holders: usize,
    stuck: usize,
}

#[derive(Debug)]
struct Waiter {
    id: u64,
    payer: Payer,
    bytes: usize,
    /// What its request holds already.
    held: usize,
    /// Of which for the call it is at, and not for calls of its batch that are answered.
    of_call: usize,
    granted: oneshot::Sender<()>,
}

impl AnswerBudget {
    /// With these bounds; a share is at most everything.
    pub fn new(limits: AnswerLimits) -> Arc<Self> {
        let limits = AnswerLimits {
            per_caller: limits.per_caller.min(limits.max),
            ..limits
        };
        Arc::new(Self {
            limits,
            ledger: Mutex::default(),
            held: AtomicUsize::new(0),
        })
    }

    /// Its bounds.
    pub const fn limits(&self) -> AnswerLimits {
        self.limits
    }

    /// Bytes held now, in all.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// The most bytes held at once since the start.
    pub fn peak(&self) -> usize {
        self.ledger().peak
    }

    /// Bytes this payer holds now.
    pub fn held_by(&self, payer: Payer) -> usize {
        self.ledger().shares.get(&payer).map_or(0, |share| share.held)
    }

    /// How many answers wait for room.
    pub fn waiting(&self) -> usize {
        self.ledger().queue.len()
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes bytes for a request that holds some already, in turn.
    async fn take(
        self: &Arc<Self>,
        payer: Payer,
        bytes: usize,
        has: HeldBytes,
        patience: Duration,
    ) -> Result<(), NoRoom> {
        if payer == Payer::Gateway {
            self.take_anyway(payer, bytes, has.reserved == 0);
            return Ok(());
        }
        if let Some(mut turn) = self.queue(payer, bytes, has) {
            let granted = tokio::time::timeout(patience, &mut turn.granted).await;
            if matches!(granted, Ok(Ok(()))) {
                turn.is_used = true;
                return Ok(());
            }
        }
        metrics::counter!("ledger_gateway_answer_bytes_refusals_total").increment(1);
        Err(NoRoom)
    }

    /// A place in the queue, the first one perhaps; none where waiting is in vain.
    fn queue(self: &Arc<Self>, payer: Payer, bytes: usize, has: HeldBytes) -> Option<Turn> {
        let (sender, granted) = oneshot::channel();
        let (held, of_call) = (has.reserved, has.reserved.saturating_sub(has.said));
        let mut ledger = self.ledger();
        let id = ledger.next;
        ledger.next = id.wrapping_add(1);
        ledger.queue.push(Waiter {
            id,
            payer,
            bytes,
            held,
            of_call,
            granted: sender,
        });
        let of = ledger.shares.entry(payer).or_default();
        of.stuck += usize::from(held > 0);
        ledger.stuck += usize::from(held > 0);
        ledger.grant(&self.limits);
        let turn = Turn {
            budget: Arc::clone(self),
            id,
            payer,
            bytes,
            held,
            granted,
            is_used: false,
        };
        let is_in_vain = ledger.is_deadlocked(id, &self.limits);
        self.show(&ledger);
        drop(ledger);
        // A turn that is dropped leaves the queue.
        (!is_in_vain).then_some(turn)
    }

    fn take_anyway(&self, payer: Payer, bytes: usize, is_first: bool) {
        let mut ledger = self.ledger();
        ledger.charge(payer, bytes, is_first);
        self.show(&ledger);
    }

    fn give_back(&self, payer: Payer, bytes: usize, is_last: bool) {
        if bytes == 0 {
            return;
        }
        let mut ledger = self.ledger();
        ledger.release(payer, bytes, is_last);
        ledger.grant(&self.limits);
        self.show(&ledger);
    }

    fn show(&self, ledger: &Ledger) {
        self.held.store(ledger.held, Ordering::Relaxed);
        metrics::gauge!("ledger_gateway_answer_bytes").set(ledger.held as f64);
    }
}

impl Ledger {
    fn charge(&mut self, payer: Payer, bytes: usize, is_first: bool) {
        self.held = self.held.saturating_add(bytes);
        self.peak = self.peak.max(self.held);
        self.holders += usize::from(is_first);
        let share = self.shares.entry(payer).or_default();
        share.held = share.held.saturating_add(bytes);
        share.holders += usize::from(is_first);
    }

    fn release(&mut self, payer: Payer, bytes: usize, is_last: bool) {
        self.held = self.held.saturating_sub(bytes);
        self.holders = self.holders.saturating_sub(usize::from(is_last));
        if let Some(share) = self.shares.get_mut(&payer) {
            share.held = share.held.saturating_sub(bytes);
            share.holders = share.holders.saturating_sub(usize::from(is_last));
        }
        if self.held == 0 {
            self.holders = 0;
        }
        self.forget(payer);
    }

    /// A payer that neither holds nor waits leaves no trace.
    fn forget(&mut self, payer: Payer) {
        let is_empty = self.shares.get(&payer).is_some_and(|share| share.held == 0);
        if is_empty && self.queue.iter().all(|waiter| waiter.payer != payer) {
            self.shares.remove(&payer);
        }
    }

    /// A call that is alone gets whatever it asks for, so that every permitted answer can be had.
    fn share_has_room(&self, waiter: &Waiter, limits: &AnswerLimits) -> bool {
        let held = self.shares.get(&waiter.payer).map_or(0, |share| share.held);
        held <= waiter.of_call || held.saturating_add(waiter.bytes) <= limits.per_caller
    }

    fn has_room(&self, waiter: &Waiter, limits: &AnswerLimits) -> bool {
        self.held <= waiter.of_call || self.held.saturating_add(waiter.bytes) <= limits.max
    }

    /// Gives room to those whose turn it is: answers that have begun to arrive, then callers who hold the least, then the
    /// earliest. A large one that is next is not overtaken by small ones; one whose caller has used up its share is.
    fn grant(&mut self, limits: &AnswerLimits) {
        loop {
            let order = |waiter: &Waiter| {
                (
                    waiter.held == 0,
                    self.shares.get(&waiter.payer).map_or(0, |share| share.held),
                    waiter.id,
                )
            };
            let eligible = self
                .queue
                .iter()
                .enumerate()
                .filter(|(_, waiter)| self.share_has_room(waiter, limits));
            let next = eligible.min_by_key(|(_, waiter)| order(waiter));
            let Some((at, waiter)) = next else { return };
            if !self.has_room(waiter, limits) {
                return;
            }
            let waiter = self.queue.swap_remove(at);
            self.unstick(waiter.payer, waiter.held);
            self.charge(waiter.payer, waiter.bytes, waiter.held == 0);
            // Whoever waits no more gives it back by its turn.
            let _ = waiter.granted.send(());
        }
    }

    fn unstick(&mut self, payer: Payer, held: usize) {
        let stuck = usize::from(held > 0);
        self.stuck = self.stuck.saturating_sub(stuck);
        if let Some(share) = self.shares.get_mut(&payer) {
            share.stuck = share.stuck.saturating_sub(stuck);
        }
    }

    /// Whether this waiter, and all others that hold what it waits for, wait for each other.
    fn is_deadlocked(&self, id: u64, limits: &AnswerLimits) -> bool {
        let Some(waiter) = self.queue.iter().find(|waiter| waiter.id == id && waiter.held > 0) else {
            return false;
        };
        if self.share_has_room(waiter, limits) {
            return self.stuck == self.holders;
        }
        self.shares
            .get(&waiter.payer)
            .is_some_and(|share| share.stuck == share.holders)
    }
}

/// A place in the queue; dropped unused, it gives back what it was granted.
#[derive(Debug)]
struct Turn {
    budget: Arc<AnswerBudget>,
    id: u64,
    payer: Payer,
    bytes: usize,
    held: usize,
    granted: oneshot::Receiver<()>,
    is_used: bool,
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.is_used {
            return;
        }
        let mut ledger = self.budget.ledger();
        match ledger.queue.iter().position(|waiter| waiter.id == self.id) {
            Some(at) => {
                ledger.queue.swap_remove(at);
                ledger.unstick(self.payer, self.held);
                ledger.forget(self.payer);
            }
            None => ledger.release(self.payer, self.bytes, self.held == 0),
        }
        // One that was next may have held up others.
        ledger.grant(&self.budget.limits);
        self.budget.show(&ledger);
    }
}

/// What one request holds of the budget: reserved for answers that arrive and for the text that is made of them. What one
/// answer gives up the next one of the same request may use.
#[derive(Debug, Default)]
pub struct AnswerHold {
    account: OnceLock<(Arc<AnswerBudget>, Payer)>,
    bytes: Mutex<HeldBytes>,
    /// One at a time asks for more.
    growing: tokio::sync::Mutex<()>,
    is_once_only: AtomicBool,
}

#[derive(Clone, Copy, Debug, Default)]
struct HeldBytes {
    reserved: usize,
    /// Of which are in use.
    used: usize,
    /// What has been said in all of the calls that are answered.
    said: usize,
}

impl AnswerHold {
    /// Says who pays; the first word stands.
    pub(crate) fn charge_to(&self, budget: &Arc<AnswerBudget>, payer: Payer) {
        let _ = self.account.get_or_init(|| (Arc::clone(budget), payer));
    }

    fn bytes(&self) -> MutexGuard<'_, HeldBytes> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Room for so many bytes, waited for in turn. Before anybody pays nothing is counted.
    ///
    /// # Errors
    /// [`NoRoom`] if there was none within [`AnswerLimits::patience`], or if it could only come from requests that wait for
    /// this one.
    pub async fn lease(self: &Arc<Self>, bytes: usize) -> Result<ByteLease, NoRoom> {
        let mut lease = ByteLease {
            hold: Arc::clone(self),
            bytes: 0,
        };
        lease.grow_to(bytes).await?;
        Ok(lease)
    }

    /// Counts bytes of what the node answered as what is said: their lease goes on.
    pub fn say(&self, bytes: usize) {
        let mut held = self.bytes();
        held.said = held.said.saturating_add(bytes);
    }

    /// Room for so many bytes that are said, whether there is any or not: they were made of an answer that was let in.
    pub fn claim(self: &Arc<Self>, bytes: usize) -> ByteLease {
        let mut held = self.bytes();
        held.said = held.said.saturating_add(bytes);
        held.used = held.used.saturating_add(bytes);
        let lacking = held.used.saturating_sub(held.reserved);
        if let (1.., Some((budget, payer))) = (lacking, self.account.get()) {
            budget.take_anyway(*payer, lacking, held.reserved == 0);
            held.reserved = held.used;
        }
        drop(held);
        ByteLease {
            hold: Arc::clone(self),
            bytes,
        }
    }

    /// Gives back what is not in use.
    pub fn trim(&self) {
        // What asks for more at this moment counts on what it has.
        let (Some((budget, payer)), Ok(_still)) = (self.account.get(), self.growing.try_lock()) else {
            return;
        };
        let mut held = self.bytes();
        let unused = held.reserved.saturating_sub(held.used);
        held.reserved = held.reserved.saturating_sub(unused);
        let is_last = held.reserved == 0;
        drop(held);
        budget.give_back(*payer, unused, is_last);
    }

    /// Whether a call whose answer cannot be asked for twice should be made now. From then on this request waits six times
    /// as long.
    ///
    /// # Errors
    /// [`NoRoom`] as with [`Self::lease`], of a small answer.
    pub async fn ready_once(self: &Arc<Self>) -> Result<(), NoRoom> {
        // Nobody can have used up a share of what is not held.
        if let Some((budget, _)) = self.account.get()
            && budget.held().saturating_add(SMALL) > budget.limits.per_caller
        {
            drop(self.lease(SMALL).await?);
        }
        self.is_once_only.store(true, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for AnswerHold {
    fn drop(&mut self) {
        let reserved = self.bytes().reserved;
        if let Some((budget, payer)) = self.account.get() {
            budget.give_back(*payer, reserved, true);
        }
    }
}

/// Bytes in use. They stay reserved for their request until it is [trimmed](AnswerHold::trim) or gone.
#[derive(Debug)]
pub struct ByteLease {
    hold: Arc<AnswerHold>,
    bytes: usize,
}

impl ByteLease {
    /// How many.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Makes it one of so many bytes; less is not given back.
    ///
    /// # Errors
    /// As with [`AnswerHold::lease`]; it is as it was then.
    pub async fn grow_to(&mut self, bytes: usize) -> Result<(), NoRoom> {
        let more = bytes.saturating_sub(self.bytes);
        if more == 0 {
            return Ok(());
        }
        let hold = &self.hold;
        let Some((budget, payer)) = hold.account.get() else {
            return Ok(());
        };
        // The bytes in use become more here and by `claim`, which reserves its own.
        let _growing = hold.growing.lock().await;
        let has = *hold.bytes();
        let lacking = has.used.saturating_add(more).saturating_sub(has.reserved);
        if lacking > 0 {
            let times = if hold.is_once_only.load(Ordering::Relaxed) {
                ONCE_ONLY
            } else {
                1
            };
            budget
                .take(*payer, lacking, has, budget.limits.patience.saturating_mul(times))
                .await?;
        }
        let mut held = hold.bytes();
        held.reserved = held.reserved.saturating_add(lacking);
        held.used = held.used.saturating_add(more);
        drop(held);
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for ByteLease {
    fn drop(&mut self) {
        let mut held = self.hold.bytes();
        held.used = held.used.saturating_sub(self.bytes);
    }
}

/// Bytes with their lease.
#[derive(Debug)]
pub struct Leased<T> {
    bytes: T,
    _lease: ByteLease,
}

impl<T: AsRef<[u8]> + Send + 'static> Leased<T> {
    /// Bytes that are charged as long as any part of them is held.
    pub fn share(bytes: T, lease: ByteLease) -> bytes::Bytes {
        bytes::Bytes::from_owner(Self { bytes, _lease: lease })
    }
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for Leased<T> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

#[cfg(test)]
mod tests;

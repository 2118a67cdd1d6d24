//! The memory budget for answers of the node: how many bytes are held at once, in total and per caller.
//!
//! The size of an answer depends on data that others wrote to the chain, and a caller may have many answers in flight.
//! So bytes are charged to the caller's request before they are read. They are returned when the last byte of the
//! response is sent, or when the request ends otherwise. Answers up to [`SMALL`] are not counted: the limit on a
//! caller's calls in flight bounds them.
//!
//! Invariant: no caller holds more than its share. The exception is a call that is the only holder of its share: it
//! gets an answer of any permitted size. Text that a view makes of an answer replaces the answer, and is never refused.
//!
//! The gateway's own requests are counted but never wait, so that the head advances however many bytes callers hold.

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

/// Answers of at most this many bytes are not counted.
pub const SMALL: usize = 64 * 1024;

const MIB: usize = 1024 * 1024;
/// Factor for the waiting time of calls that cannot be repeated.
const UNREPEATABLE_FACTOR: u32 = 6;

/// The limits of an [`AnswerBudget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerLimits {
    /// Bytes in total (`ANSWER_BYTES_MAX`).
    pub max: usize,
    /// Bytes per caller (`ANSWER_BYTES_PER_CALLER`).
    pub per_caller: usize,
    /// How long an answer waits for bytes before its call is refused.
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

/// The party that bytes are charged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Payer {
    /// A user, whatever their credentials.
    User(UserId),
    /// The anonymous callers of one network.
    Network(IpAddr),
    /// The gateway itself.
    Gateway,
}

/// The budget had no bytes for the answer in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the memory budget for answers of the node is used up")]
pub struct NoRoom;

/// The bytes of answers that this process holds.
#[derive(Debug)]
pub struct AnswerBudget {
    limits: AnswerLimits,
    ledger: Mutex<Ledger>,
    /// A copy of `Ledger::held`, readable without the lock.
    held: AtomicUsize,
}

#[derive(Debug, Default)]
struct Ledger {
    held: usize,
    peak: usize,
    holders: usize,
    /// Holders that wait for more bytes.
    stuck: usize,
    shares: HashMap<Payer, PayerShare>,
    queue: Vec<Waiter>,
    next: u64,
}

/// The bytes that one payer holds.
#[derive(Debug, Default)]
struct PayerShare {
    held: usize,
    holders: usize,
    stuck: usize,
}

#[derive(Debug)]
struct Waiter {
    id: u64,
    payer: Payer,
    bytes: usize,
    /// Bytes that the request holds already.
    held: usize,
    /// The part of `held` that is for the current call and not for answered calls of the same batch.
    present_call: usize,
    granted: oneshot::Sender<()>,
}

impl AnswerBudget {
    /// A budget with these limits; the limit per caller is at most the total.
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

    /// The limits.
    pub const fn limits(&self) -> AnswerLimits {
        self.limits
    }

    /// Bytes held now, in total.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// The highest number of bytes held at once since the start.
    pub fn peak(&self) -> usize {
        self.ledger().peak
    }

    /// Bytes this payer holds now.
    pub fn held_by(&self, payer: Payer) -> usize {
        self.ledger().shares.get(&payer).map_or(0, |share| share.held)
    }

    /// The number of answers that wait for bytes.
    pub fn waiting(&self) -> usize {
        self.ledger().queue.len()
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes bytes for a request in queue order. `held` is what the request holds already.
    async fn take(
        self: &Arc<Self>,
        payer: Payer,
        bytes: usize,
        held: HeldBytes,
        patience: Duration,
    ) -> Result<(), NoRoom> {
        if payer == Payer::Gateway {
            self.take_anyway(payer, bytes, held.reserved == 0);
            return Ok(());
        }
        if let Some(mut ticket) = self.queue(payer, bytes, held) {
            let granted = tokio::time::timeout(patience, &mut ticket.granted).await;
            if matches!(granted, Ok(Ok(()))) {
                ticket.is_used = true;
                return Ok(());
            }
        }
        metrics::counter!("ledger_gateway_answer_bytes_refusals_total").increment(1);
        Err(NoRoom)
    }

    /// Enters the queue; returns `None` if waiting would never end.
    fn queue(self: &Arc<Self>, payer: Payer, bytes: usize, held_bytes: HeldBytes) -> Option<QueueTicket> {
        let (sender, granted) = oneshot::channel();
        let held = held_bytes.reserved;
        let present_call = held.saturating_sub(held_bytes.answered);
        let mut ledger = self.ledger();
        let id = ledger.next;
        ledger.next = id.wrapping_add(1);
        ledger.queue.push(Waiter {
            id,
            payer,
            bytes,
            held,
            present_call,
            granted: sender,
        });
        let share = ledger.shares.entry(payer).or_default();
        share.stuck += usize::from(held > 0);
        ledger.stuck += usize::from(held > 0);
        ledger.grant(&self.limits);
        let ticket = QueueTicket {
            budget: Arc::clone(self),
            id,
            payer,
            bytes,
            held,
            granted,
            is_used: false,
        };
        let would_deadlock = ledger.is_deadlocked(id, &self.limits);
        self.update_gauge(&ledger);
        drop(ledger);
        // Dropping the ticket removes it from the queue.
        (!would_deadlock).then_some(ticket)
    }

    fn take_anyway(&self, payer: Payer, bytes: usize, is_first: bool) {
        let mut ledger = self.ledger();
        ledger.charge(payer, bytes, is_first);
        self.update_gauge(&ledger);
    }

    fn give_back(&self, payer: Payer, bytes: usize, is_last: bool) {
        if bytes == 0 {
            return;
        }
        let mut ledger = self.ledger();
        ledger.release(payer, bytes, is_last);
        ledger.grant(&self.limits);
        self.update_gauge(&ledger);
    }

    fn update_gauge(&self, ledger: &Ledger) {
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

    /// Removes the share of a payer that neither holds bytes nor waits.
    fn forget(&mut self, payer: Payer) {
        let is_empty = self.shares.get(&payer).is_some_and(|share| share.held == 0);
        if is_empty && self.queue.iter().all(|waiter| waiter.payer != payer) {
            self.shares.remove(&payer);
        }
    }

    /// A call that is the only holder of its share gets any number of bytes, so that every permitted answer can be
    /// read.
    fn share_has_room(&self, waiter: &Waiter, limits: &AnswerLimits) -> bool {
        let held = self.shares.get(&waiter.payer).map_or(0, |share| share.held);
        held <= waiter.present_call || held.saturating_add(waiter.bytes) <= limits.per_caller
    }

    fn has_room(&self, waiter: &Waiter, limits: &AnswerLimits) -> bool {
        self.held <= waiter.present_call || self.held.saturating_add(waiter.bytes) <= limits.max
    }

    /// Grants bytes in order: first answers that have begun to arrive, then callers who hold the least, then the
    /// earliest waiter. A large waiter that is next is not overtaken by small ones, unless its caller has used up its
    /// share.
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
            let Some((index, waiter)) = next else { return };
            if !self.has_room(waiter, limits) {
                return;
            }
            let waiter = self.queue.swap_remove(index);
            self.unstick(waiter.payer, waiter.held);
            self.charge(waiter.payer, waiter.bytes, waiter.held == 0);
            // If the waiter is gone, dropping its ticket returns the bytes.
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

    /// Whether this waiter and all other holders of the bytes that it waits for wait for each other.
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

/// A place in the queue. Dropped unused, it returns the bytes that it was granted.
#[derive(Debug)]
struct QueueTicket {
    budget: Arc<AnswerBudget>,
    id: u64,
    payer: Payer,
    bytes: usize,
    held: usize,
    granted: oneshot::Receiver<()>,
    is_used: bool,
}

impl Drop for QueueTicket {
    fn drop(&mut self) {
        if self.is_used {
            return;
        }
        let mut ledger = self.budget.ledger();
        match ledger.queue.iter().position(|waiter| waiter.id == self.id) {
            Some(index) => {
                ledger.queue.swap_remove(index);
                ledger.unstick(self.payer, self.held);
                ledger.forget(self.payer);
            }
            None => ledger.release(self.payer, self.bytes, self.held == 0),
        }
        // This waiter may have been the next one and have blocked others.
        ledger.grant(&self.budget.limits);
        self.budget.update_gauge(&ledger);
    }
}

/// The bytes that one request has reserved, for arriving answers and for the text made of them. Bytes that one answer
/// of the request releases can be used by the next one.
#[derive(Debug, Default)]
pub struct AnswerHold {
    account: OnceLock<(Arc<AnswerBudget>, Payer)>,
    bytes: Mutex<HeldBytes>,
    /// Serializes requests for more bytes.
    growing: tokio::sync::Mutex<()>,
    is_unrepeatable: AtomicBool,
}

#[derive(Clone, Copy, Debug, Default)]
struct HeldBytes {
    reserved: usize,
    /// The part of `reserved` that is in use.
    used: usize,
    /// Bytes of the responses to all answered calls of the request.
    answered: usize,
}

impl AnswerHold {
    /// Sets the payer; later calls have no effect.
    pub(crate) fn charge_to(&self, budget: &Arc<AnswerBudget>, payer: Payer) {
        let _ = self.account.get_or_init(|| (Arc::clone(budget), payer));
    }

    fn bytes(&self) -> MutexGuard<'_, HeldBytes> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves bytes, waiting in queue order. Without a payer nothing is counted.
    ///
    /// # Errors
    /// [`NoRoom`] if the bytes were not available within [`AnswerLimits::patience`], or if only requests that wait for
    /// this one could release them.
    pub async fn lease(self: &Arc<Self>, bytes: usize) -> Result<ByteLease, NoRoom> {
        let mut lease = ByteLease {
            hold: Arc::clone(self),
            bytes: 0,
        };
        lease.grow_to(bytes).await?;
        Ok(lease)
    }

    /// Counts bytes of an answer of the node as part of the response. Their lease continues.
    pub fn record_spoken(&self, bytes: usize) {
        let mut held = self.bytes();
        held.answered = held.answered.saturating_add(bytes);
    }

    /// Reserves bytes of a response without waiting, even beyond the limits: the text was made of an admitted answer.
    pub fn claim(self: &Arc<Self>, bytes: usize) -> ByteLease {
        let mut held = self.bytes();
        held.answered = held.answered.saturating_add(bytes);
        held.used = held.used.saturating_add(bytes);
        let missing = held.used.saturating_sub(held.reserved);
        if let (1.., Some((budget, payer))) = (missing, self.account.get()) {
            budget.take_anyway(*payer, missing, held.reserved == 0);
            held.reserved = held.used;
        }
        drop(held);
        ByteLease {
            hold: Arc::clone(self),
            bytes,
        }
    }

    /// Returns reserved bytes that are not in use.
    pub fn trim(&self) {
        // A concurrent request for more bytes relies on the current reservation.
        let (Some((budget, payer)), Ok(_growing)) = (self.account.get(), self.growing.try_lock()) else {
            return;
        };
        let mut held = self.bytes();
        let unused = held.reserved.saturating_sub(held.used);
        held.reserved = held.reserved.saturating_sub(unused);
        let is_last = held.reserved == 0;
        drop(held);
        budget.give_back(*payer, unused, is_last);
    }

    /// Waits until a call that cannot be repeated can be made. From then on this request waits six times as long for
    /// bytes.
    ///
    /// # Errors
    /// [`NoRoom`] as with [`Self::lease`], for an answer of [`SMALL`] bytes.
    pub async fn ready_once(self: &Arc<Self>) -> Result<(), NoRoom> {
        // Without lock: as long as all payers together hold less than a share, no share is used up.
        if let Some((budget, _)) = self.account.get()
            && budget.held().saturating_add(SMALL) > budget.limits.per_caller
        {
            drop(self.lease(SMALL).await?);
        }
        self.is_unrepeatable.store(true, Ordering::Relaxed);
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

/// Bytes in use. After the drop they remain reserved for the request until it is [trimmed](AnswerHold::trim) or ends.
#[derive(Debug)]
pub struct ByteLease {
    hold: Arc<AnswerHold>,
    bytes: usize,
}

impl ByteLease {
    /// The number of bytes.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Grows the lease to this many bytes; it never shrinks.
    ///
    /// # Errors
    /// As with [`AnswerHold::lease`]; the lease is unchanged then.
    pub async fn grow_to(&mut self, bytes: usize) -> Result<(), NoRoom> {
        let more = bytes.saturating_sub(self.bytes);
        if more == 0 {
            return Ok(());
        }
        let hold = &self.hold;
        let Some((budget, payer)) = hold.account.get() else {
            return Ok(());
        };
        // Only this function and `claim` increase `used`, and `claim` reserves its own bytes.
        let _growing = hold.growing.lock().await;
        let current = *hold.bytes();
        let missing = current.used.saturating_add(more).saturating_sub(current.reserved);
        if missing > 0 {
            let factor = if hold.is_unrepeatable.load(Ordering::Relaxed) {
                UNREPEATABLE_FACTOR
            } else {
                1
            };
            budget
                .take(*payer, missing, current, budget.limits.patience.saturating_mul(factor))
                .await?;
        }
        let mut held = hold.bytes();
        held.reserved = held.reserved.saturating_add(missing);
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

/// Bytes together with their lease.
#[derive(Debug)]
pub struct LeasedBytes<T> {
    bytes: T,
    _lease: ByteLease,
}

impl<T: AsRef<[u8]> + Send + 'static> LeasedBytes<T> {
    /// Returns bytes that stay charged until the last part of them is dropped.
    pub fn share(bytes: T, lease: ByteLease) -> bytes::Bytes {
        bytes::Bytes::from_owner(Self { bytes, _lease: lease })
    }
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for LeasedBytes<T> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

#[cfg(test)]
mod tests;

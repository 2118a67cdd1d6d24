//! Follows reservations until nothing can come of them any more (20 R3, R4; HD14).
//!
//! What a send created is registered by the gate of `gw_rpc::mined`, before anybody reads at its block (HD27), and so are
//! reorganizations followed. Here reservations end whose transaction never will be mined. Where the gate does not stand
//! (`MINED_TRACE=off`), or lets in what it could not look at (`alert`), what was reserved is registered here, some moments
//! late: gathers what the chain says about a transaction, decides its [`Fate`], and writes that down. A contract belongs to
//! the organization of the transaction whose own mined trace created it, never to whoever reserved its address first.
//! Everything it needs is in the store, so that it goes on after a restart; only the watch for reorganizations of the
//! last blocks starts anew.

use anyhow::Context as _;
use gw_node::{Mined, Node};
use gw_store::{
    Actor, Store,
    record::{self, CreationKind, MinedContract, OpenReservation, ReservationState},
};
use gw_types::{Address, B256, Clock, OrgId, ReservationId, Timestamp};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// How often the head is looked at; the chain is asked only when it moved.
const LOOK: Duration = Duration::from_millis(100);
/// How long nothing may happen before the store is looked through all the same: reservations end by time, too.
const SWEEP: Duration = Duration::from_secs(30);
/// A block this deep is not reorganized any more.
const FINAL_DEPTH: u64 = 64;

/// Watches until told to end; `gated` is whether the gate follows reorganizations.
pub(crate) async fn watch(store: Store, node: Arc<Node>, clock: Arc<dyn Clock>, gated: bool, end: CancellationToken) {
    let mut watcher = Watcher {
        store,
        node,
        clock,
        gated,
        recent: Vec::new(),
    };
    let mut seen = None;
    let mut idle = Duration::ZERO;
    loop {
        let head = watcher.node.head().map(|head| head.hash);
        if head != seen || idle >= SWEEP {
            match watcher.step().await {
                Ok(()) => (seen, idle) = (head, Duration::ZERO),
                // Tried again at the next look: nothing was written, or all of it.
                Err(error) => tracing::warn!(error = format!("{error:#}"), "sends could not be followed"),
            }
        }
        if end.run_until_cancelled(tokio::time::sleep(LOOK)).await.is_none() {
            return;
        }
        idle += LOOK;
    }
}

struct Watcher {
    store: Store,
    node: Arc<Node>,
    clock: Arc<dyn Clock>,
    gated: bool,
    /// Transactions mined a little while ago, and in which block.
    recent: Vec<(B256, (OrgId, Mined))>,
}

/// What the chain says about one transaction.
#[derive(Clone, Copy, Debug)]
struct Facts {
    mined: Option<Mined>,
    /// Whether the node knows it at all, mined or waiting.
    known: bool,
    /// The sender's next nonce in the newest block.
    mined_nonce: u64,
    now: Timestamp,
}

/// What becomes of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It may still be mined.
    Waiting,
    /// It was mined and ran.
    Ran(Mined),
    /// It was mined and failed.
    Failed,
    /// It never will be mined.
    Gone,
}

/// R4: released only once the nonce is consumed by another transaction, or (HD14) unmined at its end.
fn fate(reservation: &OpenReservation, facts: &Facts) -> Fate {
    match facts.mined {
        Some(mined) if mined.succeeded => Fate::Ran(mined),
        Some(_) => Fate::Failed,
        None if facts.known => Fate::Waiting,
        None if facts.mined_nonce > reservation.nonce || reservation.expires_at <= facts.now => Fate::Gone,
        None => Fate::Waiting,
    }
}

impl Watcher {
    async fn step(&mut self) -> anyhow::Result<()> {
        if !self.gated {
            self.recheck().await?;
        }
        let mut by_transaction: BTreeMap<Option<B256>, Vec<OpenReservation>> = BTreeMap::new();
        for reservation in self.store.read().open_reservations(None).await? {
            by_transaction.entry(reservation.tx_hash).or_default().push(reservation);
        }
        let mut failed = None;
        for (hash, reservations) in by_transaction {
            // One that cannot be followed keeps no other one waiting (HD36).
            if let Err(error) = self.follow(hash, &reservations).await {
                failed = failed.or(Some(error));
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Follows the reservations of one transaction; without a hash it was never forwarded by us.
    async fn follow(&mut self, hash: Option<B256>, reservations: &[OpenReservation]) -> anyhow::Result<()> {
        let Some(first) = reservations.first() else {
            return Ok(());
        };
        let (mined, known) = match hash {
            Some(hash) => (self.node.mined(hash).await?, self.node.has_transaction(hash).await?),
            None => (None, false),
        };
        let mined_nonce = self.node.mined_nonce(first.sender).await?;
        let facts = Facts {
            mined,
            known,
            mined_nonce,
            now: self.clock.now(),
        };
        let mut failed: Vec<ReservationId> = Vec::new();
        let mut gone: Vec<ReservationId> = Vec::new();
        for reservation in reservations {
            match fate(reservation, &facts) {
                Fate::Waiting => {}
                Fate::Ran(mined) => {
                    let hash = hash.context("a mined transaction has a hash")?;
                    return self.register(hash, mined, reservation).await;
                }
                Fate::Failed => failed.push(reservation.id),
                Fate::Gone => gone.push(reservation.id),
            }
        }
        for (ids, state) in [(failed, ReservationState::Reverted), (gone, ReservationState::Replaced)] {
            if !ids.is_empty() {
                let mut tx = self.store.begin(&Actor::system()).await?;
                tx.settle_reservations(&ids, state).await?;
                tx.commit().await?;
            }
        }
        Ok(())
    }

    /// Registers what the transaction created; reservations it did not create end with it.
    async fn register(&mut self, hash: B256, mined: Mined, of: &OpenReservation) -> anyhow::Result<()> {
        // Where the gate has not come yet, it is quicker than this.
        if self.gated && self.node.head().is_none_or(|head| head.number < mined.block_number) {
            return Ok(());
        }
        let created = self.node.created_by(hash).await?;
        let at = i64::try_from(self.node.block_time(mined.block_hash).await?).context("the block's time is absurd")?;
        let mut tx = self.store.begin(&Actor::system()).await?;
        tx.settle_mined(record::Mined {
            tx_hash: hash,
            block_hash: mined.block_hash,
            block_number: mined.block_number,
            at: Timestamp::from_secs(at),
            user: Some(of.user),
            grant: true,
            org: of.org,
            created: created.into_iter().map(|address| contract(address, &mined)).collect(),
        })
        .await?;
        tx.commit().await?;
        if !self.gated {
            self.recent.push((hash, (of.org, mined)));
        }
        Ok(())
    }

    /// HD14: a reorganization returns contracts of dropped blocks to reserved.
    async fn recheck(&mut self) -> anyhow::Result<()> {
        let Some(head) = self.node.head() else { return Ok(()) };
        self.recent
            .retain(|(_, (_, mined))| mined.block_number + FINAL_DEPTH > head.number);
        let mut dropped = Vec::new();
        for (hash, (org, was)) in &self.recent {
            let is = self.node.mined(*hash).await?;
            if is.is_none_or(|is| is.block_hash != was.block_hash) {
                dropped.push((*org, *hash));
            }
        }
        for (org, hash) in dropped {
            let mut tx = self.store.begin(&Actor::system()).await?;
            tx.undo_mined(org, hash).await?;
            tx.commit().await?;
            self.recent.retain(|(mined, _)| *mined != hash);
        }
        Ok(())
    }
}

fn contract(address: Address, mined: &Mined) -> MinedContract {
    let kind = if mined.created == Some(address) {
        CreationKind::Plain
    } else {
        CreationKind::Runtime
    };
    MinedContract {
        address,
        kind,
        metadata: record::Object::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_types::UserId;

    const NOW: Timestamp = Timestamp::from_secs(1000);

    fn reservation(expires_at: i64) -> OpenReservation {
        OpenReservation {
            id: ReservationId::fixed(1),
            address: Address::repeat_byte(1),
            org: OrgId::fixed(1),
            user: UserId::fixed(1),
            kind: CreationKind::Plain,
            sender: Address::repeat_byte(2),
            nonce: 7,
            tx_hash: Some(B256::repeat_byte(3)),
            state: ReservationState::Sent,
            expires_at: Timestamp::from_secs(expires_at),
        }
    }

    fn mined(succeeded: bool) -> Mined {
        Mined {
            block_hash: B256::repeat_byte(4),
            block_number: 5,
            sender: Address::repeat_byte(2),
            succeeded,
            created: None,
        }
    }

    const UNSEEN: Facts = Facts {
        mined: None,
        known: false,
        mined_nonce: 7,
        now: NOW,
    };

    #[test]
    fn r4_a_reservation_waits_until_its_nonce_is_spent() {
        let open = reservation(2000);
        assert_eq!(fate(&open, &UNSEEN), Fate::Waiting);
        assert_eq!(
            fate(
                &open,
                &Facts {
                    mined_nonce: 8,
                    ..UNSEEN
                }
            ),
            Fate::Gone
        );
        assert_eq!(
            fate(
                &open,
                &Facts {
                    mined_nonce: 8,
                    known: true,
                    ..UNSEEN
                }
            ),
            Fate::Waiting,
            "its own transaction"
        );
        assert_eq!(
            fate(
                &open,
                &Facts {
                    mined: Some(mined(true)),
                    ..UNSEEN
                }
            ),
            Fate::Ran(mined(true))
        );
        assert_eq!(
            fate(
                &open,
                &Facts {
                    mined: Some(mined(false)),
                    ..UNSEEN
                }
            ),
            Fate::Failed
        );
    }

    #[test]
    fn hd14_an_unmined_reservation_ends() {
        assert_eq!(fate(&reservation(1000), &UNSEEN), Fate::Gone);
        assert_eq!(
            fate(&reservation(1000), &Facts { known: true, ..UNSEEN }),
            Fate::Waiting,
            "still in the pool"
        );
    }

    #[test]
    fn r3_a_contract_is_plain_only_if_the_receipt_names_it() {
        let receipt = Mined {
            created: Some(Address::repeat_byte(1)),
            ..mined(true)
        };
        assert_eq!(contract(Address::repeat_byte(1), &receipt).kind, CreationKind::Plain);
        assert_eq!(contract(Address::repeat_byte(9), &receipt).kind, CreationKind::Runtime);
    }
}

//! Follows address reservations until they are settled (20 R3, R4; HD14).
//!
//! Normally the block gate of `gw_rpc::mined` registers the contracts of a send before anybody reads at its block
//! (HD27), and follows reorganizations. This worker ends the reservations whose transaction will never be mined.
//! Without the gate (`MINED_TRACE=off`), or if the gate accepts blocks that it could not check (`alert`), this worker
//! also registers the contracts, some moments late: it queries the node about a transaction, decides the
//! [`ReservationOutcome`] and stores it.
//!
//! A contract belongs to the organization of the transaction whose mined trace created it, never to the organization
//! that reserved its address first. All state is in the store, so the worker continues after a restart; only the watch
//! for reorganizations of the last blocks starts empty.

use anyhow::Context as _;
use gw_node::{Mined, Node, NodeError};
use gw_store::{
    Actor, Store,
    record::{self, CreationKind, MinedContract, OpenReservation, ReservationState},
};
use gw_types::{Address, B256, Clock, OrgId, Timestamp};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// Time between two looks at the head. The node is queried only when the head changed.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Time without a new head after which the reservations are checked anyway, because reservations also end by time.
const SWEEP_INTERVAL: Duration = Duration::from_secs(30);
/// Depth in blocks from which a block is no longer reorganized.
const FINAL_DEPTH: u64 = 64;

/// Follows reservations until `end` is cancelled. `gated`: the block gate registers contracts and follows
/// reorganizations.
pub(crate) async fn watch(store: Store, node: Arc<Node>, clock: Arc<dyn Clock>, gated: bool, end: CancellationToken) {
    let mut watcher = Watcher {
        store,
        node,
        clock,
        gated,
        recent: Vec::new(),
    };
    let mut checked_head = None;
    let mut idle = Duration::ZERO;
    loop {
        let head = watcher.node.head().map(|head| head.hash);
        if head != checked_head || idle >= SWEEP_INTERVAL {
            match watcher.step().await {
                Ok(()) => (checked_head, idle) = (head, Duration::ZERO),
                // The next iteration retries. Each write is one transaction, so nothing is half written.
                Err(error) => tracing::warn!(
                    error = format!("{error:#}"),
                    "the reservations of sends could not be checked; the check is retried"
                ),
            }
        }
        if end
            .run_until_cancelled(tokio::time::sleep(POLL_INTERVAL))
            .await
            .is_none()
        {
            return;
        }
        idle += POLL_INTERVAL;
    }
}

struct Watcher {
    store: Store,
    node: Arc<Node>,
    clock: Arc<dyn Clock>,
    gated: bool,
    /// Recently mined transactions with their organization and block.
    recent: Vec<(B256, (OrgId, Mined))>,
}

/// What the node reports about one transaction.
#[derive(Clone, Copy, Debug)]
struct TransactionStatus {
    mined: Option<Mined>,
    /// Whether the node has the transaction, mined or in the pool.
    known: bool,
    /// The sender's next nonce in the newest block.
    mined_nonce: u64,
    now: Timestamp,
}

/// The outcome of a reservation's transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReservationOutcome {
    /// The transaction may still be mined.
    Pending,
    /// The transaction was mined and succeeded.
    Executed(Mined),
    /// The transaction was mined and failed.
    Reverted,
    /// The transaction will never be mined.
    Dropped,
}

/// Queries the nonce first and the receipt last. If the transaction had used its nonce at the first query, the last
/// query returns its receipt, no matter how the chain moves in between.
async fn query_status(
    node: &Node,
    hash: Option<B256>,
    sender: Address,
    now: Timestamp,
) -> Result<TransactionStatus, NodeError> {
    let mined_nonce = node.mined_nonce(sender).await?;
    let (known, mined) = match hash {
        Some(hash) => (node.has_transaction(hash).await?, node.mined(hash).await?),
        None => (false, None),
    };
    Ok(TransactionStatus {
        mined,
        known,
        mined_nonce,
        now,
    })
}

/// R4: a reservation is released only when another transaction has used the nonce, or (HD14) when it expires unmined.
fn outcome(reservation: &OpenReservation, status: &TransactionStatus) -> ReservationOutcome {
    match status.mined {
        Some(mined) if mined.succeeded => ReservationOutcome::Executed(mined),
        Some(_) => ReservationOutcome::Reverted,
        None if status.known => ReservationOutcome::Pending,
        None if status.mined_nonce > reservation.nonce || reservation.expires_at <= status.now => {
            ReservationOutcome::Dropped
        }
        None => ReservationOutcome::Pending,
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
        let mut first_error = None;
        for (hash, reservations) in by_transaction {
            // A failure does not stop the check of other transactions (HD36).
            if let Err(error) = self.follow(hash, &reservations).await {
                first_error = first_error.or(Some(error));
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    /// Checks the reservations of one transaction. Without a hash, the gateway never forwarded the transaction.
    async fn follow(&mut self, hash: Option<B256>, reservations: &[OpenReservation]) -> anyhow::Result<()> {
        let Some(first) = reservations.first() else {
            return Ok(());
        };
        let status = query_status(&self.node, hash, first.sender, self.clock.now()).await?;
        let mut reverted: Vec<OpenReservation> = Vec::new();
        let mut dropped: Vec<OpenReservation> = Vec::new();
        for reservation in reservations {
            match outcome(reservation, &status) {
                ReservationOutcome::Pending => {}
                ReservationOutcome::Executed(mined) => {
                    let hash = hash.context("a mined transaction has a hash")?;
                    return self.register(hash, mined, reservation).await;
                }
                ReservationOutcome::Reverted => reverted.push(reservation.clone()),
                ReservationOutcome::Dropped => dropped.push(reservation.clone()),
            }
        }
        for (decided, state) in [
            (reverted, ReservationState::Reverted),
            (dropped, ReservationState::Replaced),
        ] {
            if !decided.is_empty() {
                let mut tx = self.store.begin(&Actor::system()).await?;
                tx.settle_reservations(&decided, state).await?;
                tx.commit().await?;
            }
        }
        Ok(())
    }

    /// Registers the contracts that the transaction created, and ends its reservations of other addresses.
    async fn register(&mut self, hash: B256, mined: Mined, reservation: &OpenReservation) -> anyhow::Result<()> {
        // The gate has not validated this block yet; it will register the contracts itself.
        if self.gated && self.node.head().is_none_or(|head| head.number < mined.block_number) {
            return Ok(());
        }
        let created = self.node.created_by(hash).await?;
        let block_time =
            i64::try_from(self.node.block_time(mined.block_hash).await?).context("the block's time is out of range")?;
        let mut tx = self.store.begin(&Actor::system()).await?;
        let record = record::Mined {
            tx_hash: hash,
            block_hash: mined.block_hash,
            block_number: mined.block_number,
            at: Timestamp::from_secs(block_time),
            user: Some(reservation.user),
            grant: true,
            org: reservation.org,
            created: created.into_iter().map(|address| contract(address, &mined)).collect(),
        };
        tx.settle_mined_reservation(reservation.id, record).await?;
        tx.commit().await?;
        if !self.gated {
            self.recent.push((hash, (reservation.org, mined)));
        }
        Ok(())
    }

    /// HD14: after a reorganization, contracts of dropped blocks are reserved again.
    async fn recheck(&mut self) -> anyhow::Result<()> {
        let Some(head) = self.node.head() else { return Ok(()) };
        self.recent
            .retain(|(_, (_, mined))| mined.block_number + FINAL_DEPTH > head.number);
        let mut dropped = Vec::new();
        for (hash, (org, recorded)) in &self.recent {
            let current = self.node.mined(*hash).await?;
            if current.is_none_or(|current| current.block_hash != recorded.block_hash) {
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
        metadata: record::JsonObject::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_node::NodeConfig;
    use gw_testkit::fake_node::{FakeNode, NodeReply};
    use gw_types::{ReservationId, UserId};
    use serde_json::{Value, json};

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

    const UNSEEN: TransactionStatus = TransactionStatus {
        mined: None,
        known: false,
        mined_nonce: 7,
        now: NOW,
    };

    #[test]
    fn r4_a_reservation_waits_until_its_nonce_is_spent() {
        let open = reservation(2000);
        assert_eq!(outcome(&open, &UNSEEN), ReservationOutcome::Pending);
        assert_eq!(
            outcome(
                &open,
                &TransactionStatus {
                    mined_nonce: 8,
                    ..UNSEEN
                }
            ),
            ReservationOutcome::Dropped
        );
        assert_eq!(
            outcome(
                &open,
                &TransactionStatus {
                    mined_nonce: 8,
                    known: true,
                    ..UNSEEN
                }
            ),
            ReservationOutcome::Pending,
            "its own transaction"
        );
        assert_eq!(
            outcome(
                &open,
                &TransactionStatus {
                    mined: Some(mined(true)),
                    ..UNSEEN
                }
            ),
            ReservationOutcome::Executed(mined(true))
        );
        assert_eq!(
            outcome(
                &open,
                &TransactionStatus {
                    mined: Some(mined(false)),
                    ..UNSEEN
                }
            ),
            ReservationOutcome::Reverted
        );
    }

    #[test]
    fn hd14_an_unmined_reservation_ends() {
        assert_eq!(outcome(&reservation(1000), &UNSEEN), ReservationOutcome::Dropped);
        assert_eq!(
            outcome(&reservation(1000), &TransactionStatus { known: true, ..UNSEEN }),
            ReservationOutcome::Pending,
            "still in the pool"
        );
    }

    /// R4: the reservation is kept no matter between which queries the transaction is forwarded and mined.
    #[tokio::test]
    async fn r4_a_transaction_mined_between_two_queries_keeps_its_reservation() {
        let open = reservation(2000);
        for mined_at in 0..4 {
            let fake = FakeNode::start().await;
            let node = Node::connect(&NodeConfig::new(fake.url()).unwrap()).await.unwrap();
            let mut queries = 0;
            fake.improvise(move |call| {
                let is_mined = queries >= mined_at;
                let result = match call.method.as_str() {
                    "eth_getTransactionCount" => json!(if is_mined { "0x8" } else { "0x7" }),
                    "eth_getTransactionByHash" if is_mined => json!({}),
                    "eth_getTransactionReceipt" if is_mined => json!({
                        "blockHash": B256::repeat_byte(4), "blockNumber": "0x5", "from": open.sender, "status": "0x1",
                    }),
                    "eth_getTransactionByHash" | "eth_getTransactionReceipt" => Value::Null,
                    _ => return None,
                };
                queries += 1;
                Some(NodeReply::Result(result))
            });
            let status = query_status(&node, open.tx_hash, open.sender, NOW).await.unwrap();
            let expected = if mined_at < 3 {
                ReservationOutcome::Executed(mined(true))
            } else {
                ReservationOutcome::Pending
            };
            assert_eq!(
                outcome(&reservation(2000), &status),
                expected,
                "mined before query {mined_at}"
            );
        }
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

//! The same selection by a look at each row, written from the rules of spec/30 and not from the index.

use gw_postings::{
    BlockRange, BlockRows, FrameParties, Grant, HiddenTransfers, LogParties, PartialRows, ParticipantRows, RowId,
    Scope, Space, TransactionRows, TransferParties, VisibleAddress,
};
use gw_types::{Address, Timestamp};

/// The ids of the rows that the scope selects, in ascending order.
pub(crate) fn select(blocks: &[BlockRows], space: Space, scope: &Scope) -> Vec<u64> {
    select_by(blocks, scope, |judge| match space {
        Space::Transactions => vec![judge.transaction()],
        Space::Transfers => {
            let transfers = judge.rows.transfers.iter();
            transfers.map(|transfer| judge.transfer(transfer)).collect()
        }
        Space::Frames => judge.rows.frames.iter().map(|frame| judge.frame(frame)).collect(),
        Space::Logs => judge.rows.logs.iter().map(|log| judge.log(log)).collect(),
    })
}

/// The ids of the logs that have to be evaluated, in ascending order.
pub(crate) fn log_candidates(blocks: &[BlockRows], scope: &Scope) -> Vec<u64> {
    select_by(blocks, scope, |judge| {
        let logs = judge.rows.logs.iter();
        logs.map(|log| judge.is_candidate(log)).collect()
    })
}

fn select_by(blocks: &[BlockRows], scope: &Scope, verdicts: impl Fn(&Judge<'_>) -> Vec<bool>) -> Vec<u64> {
    let mut selected = Vec::new();
    let (mut row, mut transaction) = (0, 0);
    for block in blocks {
        for rows in &block.transactions {
            let judge = Judge {
                scope,
                block: block.number,
                time: block.time,
                id: RowId(transaction),
                rows,
            };
            for verdict in verdicts(&judge) {
                if verdict {
                    selected.push(row);
                }
                row += 1;
            }
            transaction += 1;
        }
    }
    selected
}

/// The rules for the rows of one transaction.
struct Judge<'a> {
    scope: &'a Scope,
    block: u64,
    time: Timestamp,
    id: RowId,
    rows: &'a TransactionRows,
}

impl Judge<'_> {
    fn is_in(&self, addresses: &[VisibleAddress], address: Address) -> bool {
        addresses
            .iter()
            .any(|visible| visible.address == address && includes(visible.blocks, self.block))
    }

    fn is_visible(&self, address: Address) -> bool {
        self.is_in(&self.scope.visible, address) || self.is_in(&self.scope.public, address) || self.is_own(address)
    }

    fn receives(&self, address: Address) -> bool {
        self.is_in(&self.scope.own_receivers, address)
    }

    fn is_closed(&self, address: Address) -> bool {
        self.scope.closed.contains(&address)
    }

    fn survives_by_sides(&self, from: Address, to: Option<Address>) -> bool {
        let sides: Vec<_> = std::iter::once(from).chain(to).collect();
        match self.scope.one_sided {
            PartialRows::Keep => sides.iter().any(|side| self.is_visible(*side)),
            PartialRows::Drop => sides.iter().all(|side| self.is_visible(*side)) || self.is_administered(&sides),
        }
    }

    fn is_administered(&self, sides: &[Address]) -> bool {
        sides.iter().any(|side| self.is_in(&self.scope.administered, *side))
    }

    fn is_own(&self, address: Address) -> bool {
        self.is_in(&self.scope.own, address)
    }

    fn is_granted(&self, sides: &[Address]) -> bool {
        let by_grant = |grant: &Grant| {
            let is_target = sides.contains(&grant.target.address) && includes(grant.target.blocks, self.block);
            let is_in_time = grant
                .times
                .is_none_or(|(first, last)| self.time.micros() != 0 && first <= self.time && self.time <= last);
            let has_counterparties = grant
                .counterparties
                .iter()
                .all(|others| sides.iter().any(|side| others.contains(side)));
            is_target && is_in_time && has_counterparties
        };
        self.scope.grants.iter().any(by_grant)
    }

    fn is_withheld(&self) -> bool {
        self.scope.withheld.contains(&self.id)
    }

    fn is_shared(&self) -> bool {
        self.scope.shared.contains(&self.id)
    }

    /// The viewer is sender or recipient.
    fn is_own_transaction(&self) -> bool {
        self.is_own(self.rows.from) || self.rows.to.is_some_and(|to| self.receives(to))
    }

    fn transaction(&self) -> bool {
        if self.is_withheld() {
            return false;
        }
        let sides: Vec<_> = std::iter::once(self.rows.from).chain(self.rows.to).collect();
        let is_of_member = sides.iter().any(|side| self.is_in(&self.scope.members, *side));
        let is_anchored = self.scope.anchor == HiddenTransfers::Keep
            && self.rows.transfers.iter().any(|transfer| self.transfer(transfer));
        self.survives_by_sides(self.rows.from, self.rows.to)
            || self.is_own_transaction()
            || is_of_member
            || is_anchored
            || self.is_granted(&sides)
            || self.is_shared()
    }

    fn transfer(&self, transfer: &TransferParties) -> bool {
        if self.is_withheld() || self.is_closed(transfer.token) {
            return false;
        }
        let sides = [transfer.from, transfer.to];
        let survives = self.survives_by_sides(transfer.from, Some(transfer.to))
            && match self.scope.one_sided {
                PartialRows::Keep => true,
                PartialRows::Drop => {
                    self.is_in(&self.scope.event_tokens, transfer.token) || self.is_administered(&sides)
                }
            };
        survives
            || self.is_own(transfer.from)
            || self.receives(transfer.to)
            || self.is_granted(&sides)
            || (self.is_own_transaction() && self.scope.participant_rows == ParticipantRows::All)
            || self.is_shared()
    }

    fn frame(&self, frame: &FrameParties) -> bool {
        if !self.transaction() {
            return false;
        }
        let sides: Vec<_> = std::iter::once(frame.from).chain(frame.to).collect();
        let is_party = |side: &Address| *side == self.rows.from || Some(*side) == self.rows.to;
        self.survives_by_sides(frame.from, frame.to)
            || self.is_granted(&sides)
            || ((self.is_own_transaction() || self.is_shared()) && sides.iter().any(is_party))
    }

    fn log(&self, log: &LogParties) -> bool {
        if self.is_withheld() || self.is_closed(log.emitter) {
            return false;
        }
        let by_event = self.scope.events.iter().any(|(emitter, topic0)| {
            emitter.address == log.emitter && includes(emitter.blocks, self.block) && log.topic0 == Some(*topic0)
        });
        let by_party = self.scope.event_logs.iter().any(|event| {
            event.emitter.address == log.emitter
                && includes(event.emitter.blocks, self.block)
                && log.topic0 == Some(event.topic0)
                && log.topics == event.topics
                && event.party.is_none_or(|(position, party)| {
                    let word = position.checked_sub(1).and_then(|index| log.parties.get(index));
                    word.copied().flatten() == Some(party)
                })
        });
        let is_part_of_own = self.is_own_transaction() && self.scope.participant_rows == ParticipantRows::All;
        self.is_in(&self.scope.emitters, log.emitter) || by_event || by_party || is_part_of_own
    }

    fn is_candidate(&self, log: &LogParties) -> bool {
        if self.is_withheld() || self.is_closed(log.emitter) || self.log(log) {
            return false;
        }
        let by_emitter = self.scope.log_candidates.iter().any(|(emitter, topic0)| {
            emitter.address == log.emitter
                && includes(emitter.blocks, self.block)
                && (topic0.is_none() || log.topic0 == *topic0)
        });
        by_emitter
            || self.is_own_transaction() && self.scope.participant_rows == ParticipantRows::Granted
            || self.is_shared()
    }
}

fn includes(blocks: BlockRange, number: u64) -> bool {
    blocks.start <= number && number < blocks.end
}

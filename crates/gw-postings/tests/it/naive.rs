//! The same selection by a look at each row, written from the rules of spec/30 and not from the index.

use gw_postings::{
    BlockRange, BlockRows, FrameParties, Grant, LogParties, OneSided, RowId, Scope, Space, TransactionRows,
    TransferParties, VisibleAddress,
};
use gw_types::Address;

/// The ids of the rows that the scope selects, in ascending order.
pub(crate) fn select(blocks: &[BlockRows], space: Space, scope: &Scope) -> Vec<u64> {
    let mut selected = Vec::new();
    let (mut row, mut transaction) = (0, 0);
    for block in blocks {
        for rows in &block.transactions {
            let judge = Judge {
                scope,
                block: block.number,
                id: RowId(transaction),
                rows,
            };
            let verdicts: Vec<bool> = match space {
                Space::Transactions => vec![judge.transaction()],
                Space::Transfers => rows.transfers.iter().map(|transfer| judge.transfer(transfer)).collect(),
                Space::Frames => rows.frames.iter().map(|frame| judge.frame(frame)).collect(),
                Space::Logs => rows.logs.iter().map(|log| judge.log(log)).collect(),
            };
            for verdict in verdicts {
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
        self.is_visible_by_right(address) || self.is_in(&self.scope.public, address)
    }

    fn is_visible_by_right(&self, address: Address) -> bool {
        self.is_in(&self.scope.visible, address) || self.is_own(address)
    }

    fn is_own(&self, address: Address) -> bool {
        self.is_in(&self.scope.own, address)
    }

    fn is_granted(&self, sides: &[Address]) -> bool {
        let by_grant = |grant: &Grant| {
            let is_target = sides.contains(&grant.target.address) && includes(grant.target.blocks, self.block);
            let has_counterparty = grant
                .counterparties
                .as_ref()
                .is_none_or(|others| sides.iter().any(|side| others.contains(side)));
            is_target && has_counterparty
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
        self.is_own(self.rows.from) || self.rows.to.is_some_and(|to| self.is_own(to))
    }

    fn transaction(&self) -> bool {
        if self.is_withheld() {
            return false;
        }
        let survives = match (self.rows.to, self.scope.one_sided) {
            (None, _) => self.is_visible(self.rows.from),
            (Some(to), OneSided::Keep) => self.is_visible(self.rows.from) || self.is_visible(to),
            (Some(to), OneSided::Drop) => self.is_visible(self.rows.from) && self.is_visible(to),
        };
        let transfers = self.rows.transfers.iter();
        let takes_part = self.is_own_transaction()
            || transfers
                .flat_map(|transfer| [transfer.from, transfer.to])
                .chain(self.rows.calldata_parties.iter().copied())
                .chain(self.rows.event_parties.iter().copied())
                .any(|party| self.is_own(party));
        let sides: Vec<_> = std::iter::once(self.rows.from).chain(self.rows.to).collect();
        survives || takes_part || self.is_granted(&sides) || self.is_shared()
    }

    fn transfer(&self, transfer: &TransferParties) -> bool {
        if self.is_withheld() {
            return false;
        }
        let sides = [transfer.from, transfer.to];
        let token = self.is_visible(transfer.token);
        let by_side = |address| self.is_visible_by_right(address) || (self.is_in(&self.scope.public, address) && token);
        let survives = sides.into_iter().any(by_side) && (self.scope.one_sided == OneSided::Keep || token);
        survives
            || sides.into_iter().any(|side| self.is_own(side))
            || self.is_granted(&sides)
            || self.is_own_transaction()
            || self.is_shared()
    }

    fn frame(&self, frame: &FrameParties) -> bool {
        if !self.transaction() {
            return false;
        }
        let sides: Vec<_> = std::iter::once(frame.from).chain(frame.to).collect();
        let is_party = |side: &Address| *side == self.rows.from || Some(*side) == self.rows.to;
        sides.iter().any(|side| self.is_visible(*side))
            || self.is_granted(&sides)
            || (self.is_own_transaction() && sides.iter().any(is_party))
            || self.is_shared()
    }

    fn log(&self, log: &LogParties) -> bool {
        if self.is_withheld() {
            return false;
        }
        let by_event = self.scope.events.iter().any(|(emitter, topic0)| {
            emitter.address == log.emitter && includes(emitter.blocks, self.block) && log.topic0 == Some(*topic0)
        });
        self.is_in(&self.scope.emitters, log.emitter) || by_event || self.is_own_transaction() || self.is_shared()
    }
}

fn includes(blocks: BlockRange, number: u64) -> bool {
    blocks.start <= number && number < blocks.end
}

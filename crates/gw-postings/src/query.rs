//! Selection of the rows that a scope allows (spec/30 section 11, "Bitmap form of the rules").

use crate::{
    blocks::BlockRange,
    index::{PostingIndex, Role},
    list::Union,
    owners::RowOwners,
    row_set::RowSet,
    rows::{RowId, Space},
    scope::{Grant, OneSided, Scope, VisibleAddress},
};
use gw_types::Address;
use roaring::RoaringTreemap;
use std::{collections::BTreeSet, ops::Range};

impl PostingIndex {
    /// The rows of a space that a scope selects.
    pub fn select(&self, space: Space, scope: &Scope) -> RowSet {
        RowSet {
            space,
            ids: self.select_in(space, scope, BlockRange::ALL),
            end: self.end(space),
            generation: self.generation(),
        }
    }

    /// Adds the rows of the blocks that were appended since `rows` was selected with the same scope. Selects anew if
    /// blocks were removed since.
    pub fn extend(&self, scope: &Scope, rows: &mut RowSet) {
        let (space, end) = (rows.space, self.end(rows.space));
        if rows.generation != self.generation() {
            *rows = self.select(space, scope);
            return;
        }
        if rows.end == end {
            return;
        }
        // The set ends with a whole block, so the next row is the first of its block.
        if let Some(block) = self.block_of(space, RowId(rows.end)) {
            let new_blocks = BlockRange {
                start: block.number,
                end: u64::MAX,
            };
            rows.ids |= self.select_in(space, scope, new_blocks);
            rows.end = end;
        }
    }

    /// The rows of one address, without regard to a viewer. The caller intersects them with the viewer's rows.
    pub fn rows_of_address(&self, space: Space, address: Address) -> RowSet {
        let roles: &[Role] = match space {
            Space::Transactions => &[Role::Sender, Role::Recipient],
            Space::Transfers => &[Role::Transfer],
            Space::Frames => &[Role::Frame],
            Space::Logs => &[Role::Emitter],
        };
        RowSet {
            space,
            ids: self.union(
                std::iter::once(&VisibleAddress::in_all_blocks(address)),
                roles,
                BlockRange::ALL,
            ),
            end: self.end(space),
            generation: self.generation(),
        }
    }

    fn select_in(&self, space: Space, scope: &Scope, blocks: BlockRange) -> RoaringTreemap {
        match space {
            Space::Transactions => self.transactions(scope, blocks),
            Space::Transfers => self.transfers(scope, blocks),
            Space::Frames => self.frames(scope, blocks),
            Space::Logs => self.logs(scope, blocks),
        }
    }

    /// R12, R13, R15: transactions with a visible side, deployments by a visible sender, those in which the viewer has
    /// a part, shared ones, and those of grants.
    fn transactions(&self, scope: &Scope, blocks: BlockRange) -> RoaringTreemap {
        let sent = self.union(scope.visible_on_any_basis(), &[Role::Sender], blocks);
        let received = self.union(scope.visible_on_any_basis(), &[Role::Recipient], blocks);
        let mut rows = match scope.one_sided {
            OneSided::Keep => &sent | &received,
            OneSided::Drop => (&sent & &received) | (&sent & self.deployments()),
        };
        rows |= self.union(
            scope.own.iter(),
            &[
                Role::Sender,
                Role::Recipient,
                Role::TransferParty,
                Role::CalldataParty,
                Role::EventParty,
            ],
            blocks,
        );
        rows |= self.granted(&scope.grants, &[Role::Sender, Role::Recipient], blocks);
        rows |= self.shared(scope, blocks);
        rows - self.ids_of(&scope.withheld, blocks)
    }

    /// R12, R14: transfers with a visible side; a public side alone counts only for a visible token. All transfers of
    /// the viewer's own and shared transactions.
    fn transfers(&self, scope: &Scope, blocks: BlockRange) -> RoaringTreemap {
        let of_visible_tokens = self.union(scope.visible_on_any_basis(), &[Role::Token], blocks);
        let by_right = self.union(scope.visible_by_right(), &[Role::Transfer], blocks);
        let public = self.union(scope.public.iter(), &[Role::Transfer], blocks) & &of_visible_tokens;
        let mut rows = by_right | public;
        if scope.one_sided == OneSided::Drop {
            rows &= &of_visible_tokens;
        }
        rows |= self.union(scope.own.iter(), &[Role::Transfer], blocks);
        rows |= self.granted(&scope.grants, &[Role::Transfer], blocks);
        let transactions = self.own_transactions(scope, blocks) | self.shared(scope, blocks);
        rows |= self.transfer_owners.rows_of(&transactions, self.end(Space::Transfers));
        rows - self.withheld_rows(&self.transfer_owners, scope, blocks, Space::Transfers)
    }

    /// Frames with a visible side, and frames of the viewer's own transactions with a side that is a party of the
    /// transaction; only frames of selected transactions.
    fn frames(&self, scope: &Scope, blocks: BlockRange) -> RoaringTreemap {
        let mut rows = self.union(scope.visible_on_any_basis(), &[Role::Frame], blocks);
        let end = self.end(Space::Frames);
        let own = self.frame_owners.rows_of(&self.own_transactions(scope, blocks), end);
        rows |= own & self.party_frames();
        rows |= self.granted(&scope.grants, &[Role::Frame], blocks);
        rows |= self.frame_owners.rows_of(&self.shared(scope, blocks), end);
        self.frame_owners
            .retain_rows_of(rows, &self.transactions(scope, blocks), end)
    }

    /// spec/30 section 6: logs of contracts and events that the viewer may see, and all logs of the viewer's own and
    /// shared transactions.
    fn logs(&self, scope: &Scope, blocks: BlockRange) -> RoaringTreemap {
        let mut rows = self.union(scope.emitters.iter(), &[Role::Emitter], blocks);
        let mut events = Union::default();
        for (emitter, topic0) in &scope.events {
            if let Some(list) = self.event(emitter.address, *topic0) {
                events.add(list, &self.ids_in_both(Space::Logs, emitter.blocks, blocks));
            }
        }
        rows |= events.finish();
        let transactions = self.own_transactions(scope, blocks) | self.shared(scope, blocks);
        rows |= self.log_owners.rows_of(&transactions, self.end(Space::Logs));
        rows - self.withheld_rows(&self.log_owners, scope, blocks, Space::Logs)
    }

    /// Transactions that the viewer sent or received.
    fn own_transactions(&self, scope: &Scope, blocks: BlockRange) -> RoaringTreemap {
        self.union(scope.own.iter(), &[Role::Sender, Role::Recipient], blocks)
    }

    fn shared(&self, scope: &Scope, blocks: BlockRange) -> RoaringTreemap {
        self.ids_of(&scope.shared, blocks)
    }

    fn withheld_rows(&self, owners: &RowOwners, scope: &Scope, blocks: BlockRange, space: Space) -> RoaringTreemap {
        owners.rows_of(&self.ids_of(&scope.withheld, blocks), self.end(space))
    }

    /// These transactions, as far as they are in the blocks.
    fn ids_of(&self, transactions: &BTreeSet<RowId>, blocks: BlockRange) -> RoaringTreemap {
        let ids = self.ids_in_blocks(Space::Transactions, blocks);
        transactions
            .range(RowId(ids.start)..RowId(ids.end))
            .map(|row| row.0)
            .collect()
    }

    /// The union of the posting lists of these addresses in these roles, which belong to one space.
    fn union<'a>(
        &self,
        addresses: impl Iterator<Item = &'a VisibleAddress>,
        roles: &[Role],
        blocks: BlockRange,
    ) -> RoaringTreemap {
        let mut union = Union::default();
        for visible in addresses {
            for role in roles {
                if let Some(list) = self.list(visible.address, *role) {
                    union.add(list, &self.ids_in_both(role.space(), visible.blocks, blocks));
                }
            }
        }
        union.finish()
    }

    /// The rows of grants: those of the target, in its blocks, with one of the counterparties.
    fn granted(&self, grants: &[Grant], roles: &[Role], blocks: BlockRange) -> RoaringTreemap {
        let mut rows = RoaringTreemap::new();
        for grant in grants {
            let mut granted = self.union(std::iter::once(&grant.target), roles, blocks);
            if let Some(counterparties) = &grant.counterparties {
                let others: Vec<_> = counterparties
                    .iter()
                    .copied()
                    .map(VisibleAddress::in_all_blocks)
                    .collect();
                granted &= self.union(others.iter(), roles, blocks);
            }
            rows |= granted;
        }
        rows
    }

    fn ids_in_both(&self, space: Space, one: BlockRange, other: BlockRange) -> Range<u64> {
        let both = BlockRange {
            start: one.start.max(other.start),
            end: one.end.min(other.end),
        };
        if both == BlockRange::ALL {
            return 0..u64::MAX;
        }
        self.ids_in_blocks(space, both)
    }
}

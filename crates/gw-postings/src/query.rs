//! Selection of the rows that a scope allows (spec/30 section 11, "Bitmap form of the rules").

use crate::{
    blocks::BlockRange,
    index::{PostingIndex, Role},
    list::{Union, within},
    owners::RowOwners,
    row_set::RowSet,
    rows::{RowId, Space},
    scope::{EventLogs, Grant, HiddenTransfers, PartialRows, ParticipantRows, Scope, VisibleAddress},
};
use gw_types::{Address, B256, Timestamp};
use roaring::RoaringTreemap;
use std::{collections::BTreeSet, ops::Range};

impl PostingIndex {
    /// The rows of a space that a scope selects. Of logs, [`Self::select_log_candidates`] gives those that the scope
    /// leaves open.
    pub fn select(&self, space: Space, scope: &Scope) -> RowSet {
        self.row_set(space, |blocks| self.select_in(space, scope, blocks))
    }

    /// The logs that a scope neither selects nor excludes: each has to be evaluated.
    pub fn select_log_candidates(&self, scope: &Scope) -> RowSet {
        self.row_set(Space::Logs, |blocks| self.log_candidates(scope, blocks))
    }

    /// Adds the rows of the blocks that were appended since `rows` was selected with the same scope. Selects anew if
    /// blocks were removed since.
    pub fn extend(&self, scope: &Scope, rows: &mut RowSet) {
        let space = rows.space;
        self.extend_by(rows, |blocks| self.select_in(space, scope, blocks));
    }

    /// As [`Self::extend`], for candidates.
    pub fn extend_log_candidates(&self, scope: &Scope, rows: &mut RowSet) {
        self.extend_by(rows, |blocks| self.log_candidates(scope, blocks));
    }

    fn row_set(&self, space: Space, select: impl Fn(BlockRange) -> RoaringTreemap) -> RowSet {
        RowSet {
            space,
            ids: select(BlockRange::ALL),
            end: self.end(space),
            generation: self.generation(),
        }
    }

    fn extend_by(&self, rows: &mut RowSet, select: impl Fn(BlockRange) -> RoaringTreemap) {
        let (space, end) = (rows.space, self.end(rows.space));
        if rows.generation != self.generation() {
            *rows = self.row_set(space, select);
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
            rows.ids |= select(new_blocks);
            rows.end = end;
        }
    }

    /// All rows of a space in these blocks, without regard to a viewer.
    pub fn rows_in_blocks(&self, space: Space, blocks: BlockRange) -> RowSet {
        self.row_set(space, |_| {
            let mut ids = RoaringTreemap::new();
            ids.insert_range(self.ids_in_blocks(space, blocks));
            ids
        })
    }

    /// The rows of one address, without regard to a viewer. The caller intersects them with the viewer's rows.
    pub fn rows_of_address(&self, space: Space, address: Address) -> RowSet {
        self.rows_of_addresses(space, &[VisibleAddress::in_all_blocks(address)])
    }

    /// The rows of these addresses in their blocks, without regard to a viewer: rows with one of them as a side, logs
    /// by their emitter. The caller intersects them with the viewer's rows.
    pub fn rows_of_addresses(&self, space: Space, addresses: &[VisibleAddress]) -> RowSet {
        let roles: &[Role] = match space {
            Space::Transactions => &[Role::Sender, Role::Recipient],
            Space::Transfers => &[Role::TransferSender, Role::TransferRecipient],
            Space::Frames => &[Role::Caller, Role::Callee],
            Space::Logs => &[Role::Emitter],
        };
        self.row_set(space, |blocks| self.union(addresses.iter(), roles, blocks))
    }

    /// Those of these logs that have this first topic.
    pub fn with_first_topic(&self, logs: &RowSet, topic0: B256) -> RowSet {
        let ids = match self.first_topic(topic0) {
            Some(list) => list.intersection(&logs.ids),
            None => RoaringTreemap::new(),
        };
        logs.with_ids(ids)
    }

    /// The transfers of a token in these blocks, without regard to a viewer.
    pub fn transfers_of_token(&self, token: &[VisibleAddress]) -> RowSet {
        self.row_set(Space::Transfers, |blocks| {
            self.union(token.iter(), &[Role::Token], blocks)
        })
    }

    fn select_in(&self, space: Space, scope: &Scope, blocks: BlockRange) -> RoaringTreemap {
        match space {
            Space::Transactions => self.transactions(scope, blocks),
            Space::Transfers => self.transfers(scope, blocks),
            Space::Frames => self.frames(scope, blocks),
            Space::Logs => self.logs(scope, blocks),
        }
    }

    /// R12, R13, R15: transactions with visible sides, deployments by a visible sender, those in which the viewer has a
    /// part, shared ones, those of grants and of members, and those with a surviving transfer (K12).
    fn transactions(&self, scope: &Scope, blocks: BlockRange) -> RoaringTreemap {
        const SIDES: &[Role] = &[Role::Sender, Role::Recipient];
        let mut rows = self.by_sides(scope, (Role::Sender, Role::Recipient), self.deployments(), blocks);
        rows |= self.own_transactions(scope, blocks);
        rows |= self.union(scope.members.iter(), SIDES, blocks);
        rows |= self.granted(&scope.grants, SIDES, blocks);
        rows |= self.shared(scope, blocks);
        if scope.anchor == HiddenTransfers::Keep {
            let transfers = self.transfers(scope, blocks);
            rows |= self.transfer_owners.owners_of(&transfers, self.end(Space::Transfers));
        }
        rows - self.ids_of(&scope.withheld, blocks)
    }

    /// R12, R14, HD10: transfers with visible sides, those of own addresses and of grants, and those of own and shared
    /// transactions.
    fn transfers(&self, scope: &Scope, blocks: BlockRange) -> RoaringTreemap {
        const SIDES: &[Role] = &[Role::TransferSender, Role::TransferRecipient];
        let no_deployments = RoaringTreemap::new();
        let mut rows = self.by_sides(
            scope,
            (Role::TransferSender, Role::TransferRecipient),
            &no_deployments,
            blocks,
        );
        if scope.one_sided == PartialRows::Drop {
            let administered = self.union(scope.administered.iter(), SIDES, blocks);
            rows &= self.union(scope.event_tokens.iter(), &[Role::Token], blocks) | administered;
        }
        rows |= self.union(scope.own.iter(), &[Role::TransferSender], blocks);
        rows |= self.union(scope.own_receivers.iter(), &[Role::TransferRecipient], blocks);
        rows |= self.granted(&scope.grants, SIDES, blocks);
        let transactions = match scope.participant_rows {
            ParticipantRows::All => self.own_transactions(scope, blocks) | self.shared(scope, blocks),
            ParticipantRows::Granted => self.shared(scope, blocks),
        };
        rows |= self.transfer_owners.rows_of(&transactions, self.end(Space::Transfers));
        rows -= self.of_closed(scope, Role::Token, blocks);
        rows - self.withheld_rows(&self.transfer_owners, scope, blocks, Space::Transfers)
    }

    /// R12: frames with visible sides, frames of own and shared transactions with a side that is a party of the
    /// transaction, and those of grants; only frames of selected transactions.
    fn frames(&self, scope: &Scope, blocks: BlockRange) -> RoaringTreemap {
        let end = self.end(Space::Frames);
        let mut rows = self.by_sides(scope, (Role::Caller, Role::Callee), self.failed_creations(), blocks);
        let transactions = self.own_transactions(scope, blocks) | self.shared(scope, blocks);
        rows |= self.frame_owners.rows_of(&transactions, end) & self.party_frames();
        rows |= self.granted(&scope.grants, &[Role::Caller, Role::Callee], blocks);
        self.frame_owners
            .retain_rows_of(rows, &self.transactions(scope, blocks), end)
    }

    /// K1: the rows that survive by their sides. `deployments` are the rows without a second side.
    fn by_sides(
        &self,
        scope: &Scope,
        (first, second): (Role, Role),
        deployments: &RoaringTreemap,
        blocks: BlockRange,
    ) -> RoaringTreemap {
        let from = self.union(scope.all_visible(), &[first], blocks);
        let to = self.union(scope.all_visible(), &[second], blocks);
        match scope.one_sided {
            PartialRows::Keep => from | to,
            PartialRows::Drop => {
                let administered = self.union(scope.administered.iter(), &[first, second], blocks);
                (&from & &to) | (from & deployments) | administered
            }
        }
    }

    /// spec/30 section 6: logs that the viewer may see, without those that have to be evaluated one by one.
    fn logs(&self, scope: &Scope, blocks: BlockRange) -> RoaringTreemap {
        let mut rows = self.union(scope.emitters.iter(), &[Role::Emitter], blocks);
        let mut events = Union::default();
        for (emitter, topic0) in &scope.events {
            self.add_event(&mut events, emitter, *topic0, blocks);
        }
        rows |= events.finish();
        for event in &scope.event_logs {
            rows |= self.event_logs(event, blocks);
        }
        if scope.participant_rows == ParticipantRows::All {
            let own = self.own_transactions(scope, blocks);
            rows |= self.log_owners.rows_of(&own, self.end(Space::Logs));
        }
        rows - self.hidden_logs(scope, blocks)
    }

    /// Logs that have to be evaluated one by one (spec/30 section 11): those whose visibility depends on their
    /// parameters or on an ABI, and those of shared transactions.
    fn log_candidates(&self, scope: &Scope, blocks: BlockRange) -> RoaringTreemap {
        let mut candidates = Union::default();
        for (emitter, topic0) in &scope.log_candidates {
            match topic0 {
                Some(topic0) => self.add_event(&mut candidates, emitter, *topic0, blocks),
                None => {
                    if let Some(list) = self.list(emitter.address, Role::Emitter) {
                        candidates.add(list, &self.ids_in_both(Space::Logs, emitter.blocks, blocks));
                    }
                }
            }
        }
        let transactions = match scope.participant_rows {
            ParticipantRows::All => self.shared(scope, blocks),
            ParticipantRows::Granted => self.own_transactions(scope, blocks) | self.shared(scope, blocks),
        };
        let mut rows = candidates.finish();
        rows |= self.log_owners.rows_of(&transactions, self.end(Space::Logs));
        rows - self.hidden_logs(scope, blocks) - self.logs(scope, blocks)
    }

    /// The logs of an event with the given number of topics and party.
    fn event_logs(&self, event: &EventLogs, blocks: BlockRange) -> RoaringTreemap {
        let none = RoaringTreemap::new;
        let (Some(list), Some(counted)) = (
            self.event(event.emitter.address, event.topic0),
            self.with_topics(event.topics),
        ) else {
            return none();
        };
        let ids = self.ids_in_both(Space::Logs, event.emitter.blocks, blocks);
        let mut union = Union::default();
        match event.party {
            // The rows of the party are few, those of the event may be many.
            Some((position, party)) => {
                let Some(of_party) = Role::of_topic(position).and_then(|role| self.list(party, role)) else {
                    return none();
                };
                union.add(of_party, &ids);
                list.intersection(&union.finish()) & counted
            }
            None => {
                union.add(list, &ids);
                union.finish() & counted
            }
        }
    }

    fn add_event<'a>(&'a self, union: &mut Union<'a>, emitter: &VisibleAddress, topic0: B256, blocks: BlockRange) {
        if let Some(list) = self.event(emitter.address, topic0) {
            union.add(list, &self.ids_in_both(Space::Logs, emitter.blocks, blocks));
        }
    }

    /// HD28: the logs of withheld transactions and closed contracts.
    fn hidden_logs(&self, scope: &Scope, blocks: BlockRange) -> RoaringTreemap {
        let withheld = self.withheld_rows(&self.log_owners, scope, blocks, Space::Logs);
        withheld | self.of_closed(scope, Role::Emitter, blocks)
    }

    fn of_closed(&self, scope: &Scope, role: Role, blocks: BlockRange) -> RoaringTreemap {
        let closed: Vec<_> = scope
            .closed
            .iter()
            .copied()
            .map(VisibleAddress::in_all_blocks)
            .collect();
        self.union(closed.iter(), &[role], blocks)
    }

    /// Transactions that the viewer sent or received (HD10).
    fn own_transactions(&self, scope: &Scope, blocks: BlockRange) -> RoaringTreemap {
        let sent = self.union(scope.own.iter(), &[Role::Sender], blocks);
        sent | self.union(scope.own_receivers.iter(), &[Role::Recipient], blocks)
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

    /// The rows of grants: those of the target, in its blocks and times, with one of the counterparties of each list.
    fn granted(&self, grants: &[Grant], roles: &[Role], blocks: BlockRange) -> RoaringTreemap {
        let mut rows = RoaringTreemap::new();
        // Many grants of one owner often have the same target and the same list.
        let mut target: Option<(&VisibleAddress, RoaringTreemap)> = None;
        let mut list: Option<(&[Address], RoaringTreemap)> = None;
        for grant in grants {
            if target.as_ref().is_none_or(|(address, _)| *address != &grant.target) {
                let union = self.union(std::iter::once(&grant.target), roles, blocks);
                target = Some((&grant.target, union));
            }
            let mut granted = target.as_ref().map(|(_, rows)| rows.clone()).unwrap_or_default();
            if let (Some(times), Some(role)) = (grant.times, roles.first()) {
                granted = within(&granted, &self.ids_in_times(role.space(), times));
            }
            for counterparties in &grant.counterparties {
                if granted.is_empty() {
                    break;
                }
                if list.as_ref().is_none_or(|(addresses, _)| addresses != counterparties) {
                    let others: Vec<_> = counterparties
                        .iter()
                        .copied()
                        .map(VisibleAddress::in_all_blocks)
                        .collect();
                    list = Some((counterparties, self.union(others.iter(), roles, blocks)));
                }
                if let Some((_, others)) = &list {
                    granted &= others;
                }
            }
            rows |= granted;
        }
        rows
    }

    /// The rows of blocks from the first to the last of these times, both included.
    fn ids_in_times(&self, space: Space, (first, last): (Timestamp, Timestamp)) -> Range<u64> {
        let after = |time: Timestamp| Timestamp::from_micros(time.micros().saturating_add(1));
        self.ids_between(space, first.max(after(Timestamp::from_micros(0))), after(last))
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

//! Who answers for what a mined transaction did (HD2, HD38): its sender for what could be known when it was judged.
//!
//! Between the trace and the block a payee may delegate their wallet, or put code at their address. An honest payment enters
//! that code then, and what it does is not the payer's doing: it is judged by the rights of whom it belongs to. Only
//! payments are honest in this sense; a call with data asks for what it gets, and is judged as its sender's.

use super::{
    mined::MinedSend,
    target::Member,
    trace::{Place, Run},
};
use crate::{knobs::Knobs, snapshot::Snapshot, visibility::owns};
use gw_evm::{
    code::{delegation, probes_accounts},
    trace::{Change, Frame, FrameKind, Trace},
};
use gw_types::{Address, Bytes, DenyReason, Timestamp, UserId};
use std::collections::{BTreeMap, HashMap, HashSet};

/// No row has it.
pub(super) const NOBODY: UserId = UserId::fixed(0);

/// Why a transaction is convicted, and whether that is its sender's doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) reason: DenyReason,
    pub(super) of_sender: bool,
}

/// One mined transaction to be judged.
pub(super) struct Deed<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) sent: &'a MinedSend<'a>,
    pub(super) member: &'a Member,
    pub(super) trace: &'a Trace,
    pub(super) now: Timestamp,
    pub(super) knobs: &'a Knobs,
}

/// Code of others that a frame enters.
#[derive(Clone, Copy, Debug)]
struct Entry {
    frame: usize,
    at: Address,
    /// Whether it was only paid.
    paid: bool,
}

impl Deed<'_> {
    /// Judged as its sender's; what is not the sender's doing by whose it is.
    pub(super) fn judge(&self) -> Result<(), Fault> {
        let changes = self.trace.changes.as_ref();
        let changes = changes.ok_or(Fault { reason: DenyReason::TracingUnavailable, of_sender: true })?;
        let run = Run::mined(self.snapshot, self.sent, self.member.clone(), self.trace, self.knobs);
        let Err(reason) = run.judge().and_then(|()| run.upgrades(changes)) else { return Ok(()) };
        let entries = self.entries(&run);
        if entries.is_empty() {
            return Err(Fault { reason, of_sender: true });
        }
        let paid: Vec<Entry> = entries.iter().copied().filter(|entry| entry.paid).collect();
        let excused = self.without(&run, &paid, changes, true);
        let guests = || paid.iter().try_for_each(|entry| self.as_its_owner(&run, *entry, changes));
        if !paid.is_empty() && excused.and_then(|()| guests()).is_ok() {
            return Ok(());
        }
        let of_sender = self.without(&run, &entries, changes, false).is_err();
        Err(Fault { reason, of_sender })
    }

    /// Where code is entered that the sender could not know: of wallets that others delegated, of contracts that came after
    /// the send was judged, or that nobody is shown.
    fn entries(&self, run: &Run<'_>) -> Vec<Entry> {
        let is_unknown = |address: Address| {
            let wallet = delegation(run.code(address)).is_some()
                && address != self.sent.sender
                && !self.member.owns(self.snapshot, address);
            let unseen = || self.snapshot.withheld_before(address, self.sent.at).any(|change| change.created);
            wallet || self.sent.came.contains(&address) || unseen()
        };
        let mut within: Vec<bool> = Vec::with_capacity(self.trace.frames.len());
        let mut entries = Vec::new();
        for (index, frame) in self.trace.frames.iter().enumerate() {
            let is_below = frame.parent.and_then(|parent| within.get(parent)).copied().unwrap_or_default();
            let at = frame.to.filter(|to| !is_below && !frame.is_creation() && is_unknown(*to));
            if let Some(at) = at {
                let paid = frame.kind == FrameKind::Call && frame.input.is_empty();
                entries.push(Entry { frame: index, at, paid });
            }
            within.push(is_below || at.is_some());
        }
        entries
    }

    /// The sender's own part: as if these entries had met wallets. Strictly, what nothing but code below them explains is
    /// excused only if no code of the sender's part looks at accounts; otherwise whatever may be theirs is.
    fn without(
        &self,
        run: &Run<'_>,
        entries: &[Entry],
        changes: &BTreeMap<Address, Change>,
        strictly: bool,
    ) -> Result<(), DenyReason> {
        let below = self.below(entries);
        let kept = |index: usize| !below.contains(&index) || entries.iter().any(|entry| entry.frame == index);
        let entered: HashSet<Address> = entries.iter().map(|entry| entry.at).collect();
        let own = self.named(run, |index| !below.contains(&index));
        let theirs = self.named(run, |index| below.contains(&index));
        let codes = own.iter().map(|address| run.code(*address));
        let probes = codes.chain(self.created_codes(|index| !below.contains(&index))).any(probes_accounts);
        let is_sides = |address: &Address| {
            own.contains(address)
                || entered.contains(address)
                || [self.sent.sender, self.sent.coinbase].contains(address)
                || (strictly && (probes || !theirs.contains(address)))
        };
        let mut part = part(self.trace, kept, |address| is_sides(address));
        for (_, account) in part.touched.iter_mut().filter(|(address, _)| entered.contains(*address)) {
            account.code = Bytes::new();
        }
        let mut judged = Run::mined(self.snapshot, self.sent, self.member.clone(), &part, self.knobs);
        let place = |address: &Address| {
            let own = self.member.owns(self.snapshot, *address);
            (*address, if own { Place::Own } else { Place::Wallet })
        };
        judged.excused = entered.iter().map(place).collect();
        judged.judge()?;
        let changes = changes.iter().filter(|(address, _)| !theirs.contains(*address) || own.contains(*address));
        judged.upgrades(&changes.map(|(address, change)| (*address, change.clone())).collect())
    }

    /// What an entry led to, by the rights of whom the code belongs to that was entered.
    fn as_its_owner(&self, run: &Run<'_>, entry: Entry, changes: &BTreeMap<Address, Change>) -> Result<(), DenyReason> {
        let below = self.below(&[entry]);
        let theirs = self.named(run, |index| below.contains(&index));
        let own = self.named(run, |index| !below.contains(&index));
        // Who paid is no matter of theirs.
        let payer = self.trace.frames.get(entry.frame).map(|frame| frame.from);
        let shows = |address: &Address| theirs.contains(address) && Some(*address) != payer;
        let part = part(self.trace, |index| below.contains(&index), shows);
        let is_wallet = delegation(run.code(entry.at)).is_some();
        let sent = MinedSend { sender: entry.at, ..self.sent.clone() };
        let changes: BTreeMap<Address, Change> = changes
            .iter()
            .filter(|(address, _)| theirs.contains(*address) && !own.contains(*address))
            .map(|(address, change)| (*address, change.clone()))
            .collect();
        let mut said = Err(DenyReason::ContractNotPermitted);
        for member in self.owners(entry.at, is_wallet) {
            let mut judged = Run::mined(self.snapshot, &sent, member, &part, self.knobs);
            judged.org = None;
            if !is_wallet {
                judged.excused = HashMap::from([(entry.at, Place::Created)]);
            }
            said = judged.judge().and_then(|()| judged.upgrades(&changes));
            if said.is_ok() {
                break;
            }
        }
        said
    }

    /// Whose code stands at an address: of a wallet who owns it, of a contract who deployed it, in its organization alone.
    /// Where nobody is known, nobody's rights.
    fn owners(&self, at: Address, is_wallet: bool) -> Vec<Member> {
        let member = |user| Member::new(self.snapshot, user, self.now);
        if is_wallet {
            let users = self.snapshot.links_at(at).iter().map(|link| link.user);
            let mut owners: Vec<Member> = users.filter(|user| owns(self.snapshot, *user, at)).map(member).collect();
            if owners.is_empty() {
                owners.push(member(NOBODY));
            }
            return owners;
        }
        let deployer = self.snapshot.contract(at).and_then(|contract| contract.deployer);
        vec![member(deployer.unwrap_or(NOBODY)).restricted_to(self.snapshot.owner(at))]
    }

    /// The frames of these entries and below them.
    fn below(&self, entries: &[Entry]) -> HashSet<usize> {
        let mut below: HashSet<usize> = entries.iter().map(|entry| entry.frame).collect();
        for (index, frame) in self.trace.frames.iter().enumerate() {
            if frame.parent.is_some_and(|parent| below.contains(&parent)) {
                below.insert(index);
            }
        }
        below
    }

    /// The addresses that these frames name, and what runs at them.
    fn named(&self, run: &Run<'_>, which: impl Fn(usize) -> bool) -> HashSet<Address> {
        let frames = self.trace.frames.iter().enumerate().filter(|(index, _)| which(*index));
        let of = |frame: &Frame| [Some(frame.from), frame.to].into_iter().flatten().collect::<Vec<_>>();
        frames.flat_map(|(_, frame)| of(frame)).flat_map(|address| run.runs_at(address).collect::<Vec<_>>()).collect()
    }

    fn created_codes(&self, which: impl Fn(usize) -> bool) -> impl Iterator<Item = &[u8]> {
        let frames = self.trace.frames.iter().enumerate().filter(move |(index, _)| which(*index));
        let created = frames.map(|(_, frame)| frame).filter(|frame| frame.is_creation());
        created.flat_map(|frame| [frame.input.as_ref(), frame.output.as_ref()])
    }
}

/// A part of a trace: these frames, and of what was touched these accounts.
fn part(trace: &Trace, keep: impl Fn(usize) -> bool, shows: impl Fn(&Address) -> bool) -> Trace {
    let mut places: HashMap<usize, usize> = HashMap::new();
    let mut frames: Vec<Frame> = Vec::new();
    for (index, frame) in trace.frames.iter().enumerate().filter(|(index, _)| keep(*index)) {
        places.insert(index, frames.len());
        let parent = frame.parent.and_then(|parent| places.get(&parent)).copied();
        frames.push(Frame { parent, ..frame.clone() });
    }
    let touched = trace.touched.iter().filter(|(address, _)| shows(address));
    Trace {
        frames,
        touched: touched.map(|(address, account)| (*address, account.clone())).collect(),
        changes: None,
        top: trace.top.clone(),
    }
}

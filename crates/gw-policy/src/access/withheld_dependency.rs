//! Whether a mined transaction rests on what is withheld (HD28): what it did may tell of it then, and is withheld too.
//!
//! Read from the chain's own state, which is not the one that is shown. Being paid, or paying in plain sight, rests on
//! nothing: whoever was paid by a thief goes on. Nor does anything that another side than the thief's sends: consequences fall
//! on the sender's side only (HD38), or one member could have everybody's transactions withheld.

use super::trace::Run;
use crate::snapshot::{AccountChange, undone_balance};
use gw_evm::{
    code::{probes_accounts, reads_own_balance},
    trace::{Frame, FrameKind},
};
use gw_types::{Address, U256};
use std::collections::HashSet;

impl Run<'_> {
    /// Whether anything it read, entered or wrote may be other than what is shown.
    pub(super) fn depends_on_withheld(&self) -> bool {
        if !self.snapshot.withholds_state(u64::MAX) {
            return false;
        }
        let entered = self
            .trace
            .frames
            .iter()
            .filter(|frame| !frame.is_creation())
            .filter_map(|frame| frame.to);
        let executed: HashSet<Address> = entered.flat_map(|address| self.runs_at(address)).collect();
        let creations = || self.trace.frames.iter().filter(|frame| frame.is_creation());
        let probes = executed.iter().any(|address| probes_accounts(self.code(*address)))
            || creations().any(|frame| probes_accounts(&frame.input) || probes_accounts(&frame.output));
        // Nodes list the beneficiary in every run.
        let names_beneficiary = self.may_ask_for_beneficiary(executed.iter().copied());
        let is_listed_only =
            |address: Address| address == self.coinbase && !executed.contains(&address) && !names_beneficiary;
        let looked_at = self.trace.touched.iter().any(|(address, account)| {
            let of = || self.withheld(*address);
            let slots = of().any(|change| account.slots.keys().any(|slot| change.slots.contains_key(slot)));
            let code = || of().any(|change| change.code.is_some());
            let balance = || probes && of().any(|change| change.balance.is_some());
            slots || (!is_listed_only(*address) && (code() || (*address != self.coinbase && balance())))
        });
        looked_at
            || executed
                .iter()
                .any(|address| self.withheld(*address).any(|change| change.code.is_some()))
            || self.trace.frames.iter().any(|frame| self.frame_depends(frame))
    }

    fn withheld(&self, address: Address) -> impl Iterator<Item = &AccountChange> {
        self.snapshot.withheld_from(address, self.at, &self.side)
    }

    fn has_withheld_balance(&self, address: Address) -> bool {
        self.withheld(address).any(|change| change.balance.is_some())
    }

    fn frame_depends(&self, frame: &Frame) -> bool {
        // As whom its code runs.
        let runs_as = match frame.kind {
            FrameKind::Call | FrameKind::StaticCall | FrameKind::Create | FrameKind::Create2 => frame.to,
            FrameKind::DelegateCall | FrameKind::CallCode => Some(frame.from),
            FrameKind::SelfDestruct => None,
        };
        let codes = || {
            let entered = frame
                .to
                .into_iter()
                .flat_map(|to| self.runs_at(to))
                .map(|at| self.code(at));
            entered.chain([frame.input.as_ref()].into_iter().filter(|_| frame.is_creation()))
        };
        let asks_itself = runs_as.is_some_and(|at| self.has_withheld_balance(at)) && codes().any(reads_own_balance);
        let numbers = frame.kind == FrameKind::Create && self.withheld(frame.from).any(|change| change.nonce.is_some());
        let gives_all = frame.kind == FrameKind::SelfDestruct && self.has_withheld_balance(frame.from);
        let moves = !frame.value.is_zero();
        let meets_new = || frame.parent.is_some() && frame.to.is_some_and(|to| self.may_be_new(to));
        let pays = moves && (self.may_lack(frame.from) || meets_new());
        asks_itself || numbers || gives_all || pays
    }

    /// Whether the account could pay all that it pays here out of one of the two balances only, or of none.
    fn may_lack(&self, payer: Address) -> bool {
        if !self.has_withheld_balance(payer) {
            return false;
        }
        let held = self
            .trace
            .touched
            .get(&payer)
            .map_or(U256::ZERO, |account| account.balance);
        let shown = undone_balance(self.withheld(payer), held);
        let pays = |frame: &&Frame| frame.from == payer && frame.kind != FrameKind::SelfDestruct;
        let paid = self
            .trace
            .frames
            .iter()
            .filter(pays)
            .fold(U256::ZERO, |sum, frame| sum.saturating_add(frame.value));
        paid > held.min(shown)
    }

    /// Whether the account is there on the chain and not to see, or the other way: a payment to it costs other gas then.
    fn may_be_new(&self, payee: Address) -> bool {
        let account = self.trace.touched.get(&payee);
        let (balance, nonce) = account.map_or((U256::ZERO, 0), |account| (account.balance, account.nonce));
        let has_code = account.is_some_and(|account| !account.code.is_empty());
        let shown_balance = undone_balance(self.withheld(payee), balance);
        // Whoever has a nonce of their own keeps it; what was created is not entered.
        let held = !balance.is_zero() || nonce > 0 || has_code;
        let shown = !shown_balance.is_zero() || nonce > 0 || has_code;
        held != shown
    }
}

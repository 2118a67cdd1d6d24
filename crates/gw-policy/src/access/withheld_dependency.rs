//! Detects whether a mined transaction depends on withheld changes (HD28). Its outcome may then reveal them, so it is
//! withheld, too.
//!
//! The transaction ran on the chain's own state, which differs from the shown state. Receiving a payment, or paying out
//! of a balance that is shown, is no dependency, so a person who was paid with stolen funds can keep sending. Only
//! changes by the sender's own side count, because only that side bears the consequences (HD38). Otherwise one member
//! could cause the transactions of all users to be withheld.

use super::trace::TraceEvaluator;
use crate::snapshot::{AccountChange, undone_balance};
use gw_evm::{
    code::{probes_accounts, reads_own_balance},
    trace::{Frame, FrameKind},
};
use gw_types::{Address, U256};
use std::collections::HashSet;

impl TraceEvaluator<'_> {
    /// Whether anything that the transaction read, entered or wrote may differ from the shown state.
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
        // Nodes list the beneficiary in every trace.
        let names_beneficiary = self.may_ask_for_beneficiary(executed.iter().copied());
        let is_listed_only =
            |address: Address| address == self.coinbase && !executed.contains(&address) && !names_beneficiary;
        let touches_withheld = self.trace.touched.iter().any(|(address, account)| {
            let changes = || self.withheld(*address);
            let slots = changes().any(|change| account.slots.keys().any(|slot| change.slots.contains_key(slot)));
            let code = || changes().any(|change| change.code.is_some());
            let balance = || probes && changes().any(|change| change.balance.is_some());
            slots || (!is_listed_only(*address) && (code() || (*address != self.coinbase && balance())))
        });
        touches_withheld
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
        // The account in whose context the frame's code runs.
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
                .map(|address| self.code(address));
            entered.chain([frame.input.as_ref()].into_iter().filter(|_| frame.is_creation()))
        };
        let reads_balance =
            runs_as.is_some_and(|address| self.has_withheld_balance(address)) && codes().any(reads_own_balance);
        let uses_nonce =
            frame.kind == FrameKind::Create && self.withheld(frame.from).any(|change| change.nonce.is_some());
        let transfers_all = frame.kind == FrameKind::SelfDestruct && self.has_withheld_balance(frame.from);
        let has_value = !frame.value.is_zero();
        let pays_new_account = || frame.parent.is_some() && frame.to.is_some_and(|to| self.may_be_new(to));
        let pays = has_value && (self.may_lack_funds(frame.from) || pays_new_account());
        reads_balance || uses_nonce || transfers_all || pays
    }

    /// Whether the real or the shown balance of the account does not cover all payments that it makes in this
    /// transaction.
    fn may_lack_funds(&self, payer: Address) -> bool {
        if !self.has_withheld_balance(payer) {
            return false;
        }
        let real_balance = self
            .trace
            .touched
            .get(&payer)
            .map_or(U256::ZERO, |account| account.balance);
        let shown_balance = undone_balance(self.withheld(payer), real_balance);
        let is_payment = |frame: &&Frame| frame.from == payer && frame.kind != FrameKind::SelfDestruct;
        let paid = self
            .trace
            .frames
            .iter()
            .filter(is_payment)
            .fold(U256::ZERO, |sum, frame| sum.saturating_add(frame.value));
        paid > real_balance.min(shown_balance)
    }

    /// Whether the account exists on the chain but not in the shown state, or the reverse. The gas of a payment to it
    /// differs then.
    fn may_be_new(&self, payee: Address) -> bool {
        let account = self.trace.touched.get(&payee);
        let (balance, nonce) = account.map_or((U256::ZERO, 0), |account| (account.balance, account.nonce));
        let has_code = account.is_some_and(|account| !account.code.is_empty());
        let shown_balance = undone_balance(self.withheld(payee), balance);
        // Nonces of wallets are not withheld, and entering a contract whose creation is withheld is a dependency
        // anyway, so only the balance can differ here.
        let exists = !balance.is_zero() || nonce > 0 || has_code;
        let is_shown = !shown_balance.is_zero() || nonce > 0 || has_code;
        exists != is_shown
    }
}

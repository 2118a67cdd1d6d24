//! Checks the accounts that an execution touches, whether a frame entered them or not (X5, HD29).

use super::{AddressClass, TraceEvaluator, TraceState};
use gw_types::{Address, DenyReason};

impl<'a> TraceEvaluator<'a> {
    /// Checks every touched account, whether a frame entered it or not (X5).
    pub(super) fn check_touches(&self, state: &mut TraceState<'a>) -> Result<(), DenyReason> {
        self.trace.touched.keys().try_for_each(|address| {
            self.current_check.set(Some((None, Some(*address))));
            if state.implementations.contains(address) {
                Ok(())
            } else if state.executed.contains(address) || self.created.contains(address) {
                self.admit(state, *address).map(drop)
            } else if *address == self.coinbase {
                state.hidden_beneficiary |= !self.may_ask_about(self.classify(*address));
                Ok(())
            } else {
                self.check_touch(state, *address)
            }
        })
    }

    /// HD29: touching an account needs the right to read its balance and code directly.
    pub(super) fn check_touch(&self, state: &mut TraceState<'a>, address: Address) -> Result<(), DenyReason> {
        let class = self.admit(state, address)?;
        if matches!(class, AddressClass::OwnOrg(_)) {
            self.check_url_contract(address)?;
        }
        let is_hidden_wallet = matches!(class, AddressClass::Wallet);
        if is_hidden_wallet || address == self.sender || self.may_ask_about(class) {
            Ok(())
        } else {
            Err(DenyReason::ContractNotPermitted)
        }
    }

    /// HD17: through a personal URL only the listed contracts may be accessed, not others that they call.
    pub(super) fn check_url_contract(&self, address: Address) -> Result<(), DenyReason> {
        let is_in_scope = self
            .url_contracts
            .as_ref()
            .is_none_or(|contracts| contracts.contains(&address));
        if is_in_scope {
            Ok(())
        } else {
            Err(DenyReason::ContractNotPermitted)
        }
    }
}

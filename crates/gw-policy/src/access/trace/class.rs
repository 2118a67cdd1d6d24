//! Classifies and admits the addresses of an execution (X6).

use super::{TraceEvaluator, TraceState};
use crate::{
    principal::{contract_access, is_public, target_status},
    snapshot::Contract,
};
use gw_evm::code::delegation;
use gw_types::{Address, DenyReason, OrgId};
use std::sync::Arc;

/// The class of an address in one execution (X6).
#[derive(Clone, Copy, Debug)]
pub(in crate::access) enum AddressClass<'s> {
    /// The zero address or a precompile.
    Public,
    /// The sender, an address of the caller, or an own reservation, without code of others.
    Own,
    /// Shared infrastructure with its pinned code.
    Shared,
    /// An address that gets its code in this execution, or a contract that is not registered yet and will belong to the
    /// caller's organization.
    Created,
    /// A registered contract of an organization that the caller is a member of.
    OwnOrg(&'s Arc<Contract>),
    /// A contract of another organization, or one whose registration was deleted (HD27).
    ForeignOrg,
    /// An address without code of its own that is not Full.
    Wallet,
    /// Unregistered code.
    UnregisteredCode,
    /// An address that a post-execution violation closed (HD28).
    Quarantined,
}

impl<'a> TraceEvaluator<'a> {
    /// Whether the address is shared infrastructure with its pinned code (X6).
    pub(in crate::access) fn shared(&self, address: Address) -> bool {
        self.snapshot
            .shared(address)
            .is_some_and(|shared| shared.pin.is_none_or(|pin| pin.is_code(self.code(address))))
    }

    /// The reason for an address that no row of X6 admits: `CodehashMismatch` for a shared address, whose tag is void
    /// because its code is not the pinned code (D3).
    pub(super) fn refusal(&self, address: Address, otherwise: DenyReason) -> DenyReason {
        if self.snapshot.is_tagged_shared(address) {
            DenyReason::CodehashMismatch
        } else {
            otherwise
        }
    }

    /// Whether the address is closed to the caller (HD28).
    pub(super) fn is_closed(&self, address: Address) -> bool {
        self.principal.is_closed(self.snapshot, address)
    }

    pub(super) fn classify(&self, address: Address) -> AddressClass<'a> {
        if let Some(class) = self.class_overrides.get(&address) {
            return *class;
        }
        if self.is_closed(address) {
            // Executions may still enter a closed public address, but its balance must not be read.
            return if is_public(address) {
                AddressClass::Wallet
            } else {
                AddressClass::Quarantined
            };
        }
        if self.shared(address) {
            return AddressClass::Shared;
        }
        if let Some(contract) = self.snapshot.contract(address) {
            return match self.principal.rights_in(contract.org) {
                Some(_) => AddressClass::OwnOrg(contract),
                None => AddressClass::ForeignOrg,
            };
        }
        if is_public(address) {
            return AddressClass::Public;
        }
        let code = self.code(address);
        if let Some(retired) = self.snapshot.retired(address) {
            // HD27: no user has access to it. Its organization may deploy there again if the code is gone.
            let is_redeployed = code.is_empty() && self.created.contains(&address) && Some(retired.org) == self.org;
            return if is_redeployed {
                AddressClass::Created
            } else {
                AddressClass::ForeignOrg
            };
        }
        // An EIP-7702 wallet is a wallet; its delegate is classified separately (HD15).
        let is_wallet = code.is_empty() || delegation(code).is_some();
        let is_own_org = |org: &OrgId| self.principal.rights_in(*org).is_some();
        if !is_wallet
            && self
                .pending_contracts
                .and_then(|pending| pending.get(&address))
                .is_some_and(is_own_org)
        {
            return AddressClass::Created;
        }
        if !is_wallet {
            return if address == self.sender {
                AddressClass::Own
            } else {
                AddressClass::UnregisteredCode
            };
        }
        if self.created.contains(&address) {
            return AddressClass::Created;
        }
        let is_own = address == self.sender
            || self.principal.owns(self.snapshot, address)
            || !target_status(self.snapshot, &self.principal, address, self.policy_settings)
                .reserved_in
                .is_empty();
        if is_own {
            AddressClass::Own
        } else {
            AddressClass::Wallet
        }
    }

    /// Whether the caller may read balance and code directly.
    pub(super) fn may_ask_about(&self, class: AddressClass<'a>) -> bool {
        match class {
            AddressClass::Public | AddressClass::Own | AddressClass::Shared | AddressClass::Created => true,
            AddressClass::OwnOrg(contract) => {
                contract_access(self.snapshot, &self.principal, contract, self.policy_settings).is_some()
            }
            AddressClass::ForeignOrg
            | AddressClass::Wallet
            | AddressClass::UnregisteredCode
            | AddressClass::Quarantined => false,
        }
    }

    /// Admits an address by the rows of X6 that frames and touches have in common. `check_execution` refuses addresses
    /// that may not be delegated to, `check_touch` those that may only be entered.
    pub(super) fn admit(&self, state: &mut TraceState<'a>, address: Address) -> Result<AddressClass<'a>, DenyReason> {
        if let Some(class) = state.admitted.get(&address) {
            return Ok(*class);
        }
        let class = self.classify(address);
        match class {
            AddressClass::OwnOrg(contract) => self.past.of_contract(&self.principal, contract)?,
            AddressClass::Own => self.past.of_account(self.snapshot, &self.principal, address)?,
            AddressClass::Public | AddressClass::Shared => self.past.of_utility(&self.principal)?,
            AddressClass::Created => {}
            AddressClass::ForeignOrg => return Err(self.refusal(address, DenyReason::CrossOrg)),
            AddressClass::UnregisteredCode => return Err(self.refusal(address, DenyReason::Unregistered)),
            AddressClass::Quarantined => return Err(DenyReason::ContractNotPermitted),
            AddressClass::Wallet => {
                self.past.of_utility(&self.principal)?;
                state.wallets.insert(address);
            }
        }
        state.admitted.insert(address, class);
        Ok(class)
    }
}

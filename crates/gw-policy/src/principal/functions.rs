//! Function and parameter rules: which functions of a contract may be called, and with which parameters (spec/20 §5
//! F1-F3, G7).

use super::Principal;
use crate::snapshot::{Constraint, Contract, FunctionRule, ParamRule, Snapshot};
use gw_evm::abi::Arguments;
use gw_types::{Address, DenyReason, OrgId, Timestamp};

/// The functions that the union of a caller's grants permits.
#[derive(Clone, Debug)]
pub enum Functions<'s> {
    /// Every function, and calldata without a selector.
    All,
    /// Only functions with a rule in this list. Rules for one selector are alternatives.
    Only(Vec<&'s FunctionRule>),
}

impl<'s> Functions<'s> {
    /// The functions that one grant permits: `None` is all of them, an empty list none (F1).
    pub fn of_grant(functions: Option<&'s [FunctionRule]>) -> Self {
        functions.map_or(Self::All, |rules| Self::Only(rules.iter().collect()))
    }

    /// The union of two sets of functions; an unrestricted set wins (G7).
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        match (self, other) {
            (Self::All, _) | (_, Self::All) => Self::All,
            (Self::Only(mut rules), Self::Only(more)) => {
                rules.extend(more);
                Self::Only(rules)
            }
        }
    }

    /// Whether only listed functions are permitted.
    pub fn restricted(&self) -> bool {
        matches!(self, Self::Only(_))
    }

    /// Checks calldata against the rules: its selector must have a rule, and every parameter condition of at least one
    /// rule for it must hold.
    ///
    /// # Errors
    /// `FunctionNotPermitted` if no rule has the selector, `ParamRule` if the parameters satisfy none.
    pub fn permit(
        &self,
        snapshot: &Snapshot,
        principal: &Principal,
        contract: &Contract,
        input: &[u8],
    ) -> Result<(), DenyReason> {
        let Self::Only(rules) = self else { return Ok(()) };
        let selector = input.first_chunk::<4>().ok_or(DenyReason::FunctionNotPermitted)?;
        let mut candidates = rules.iter().filter(|rule| rule.selector == *selector).peekable();
        if candidates.peek().is_none() {
            return Err(DenyReason::FunctionNotPermitted);
        }
        if candidates.clone().any(|rule| rule.params.is_empty()) {
            return Ok(());
        }
        // Without an ABI, or with short data, dirty padding or trailing bytes, no argument can be read, so no rule
        // holds (F3).
        let arguments = contract
            .abi
            .as_ref()
            .and_then(|abi| abi.arguments(input).ok())
            .ok_or(DenyReason::ParamRule)?;
        let holds = |rule: &ParamRule| holds(snapshot, principal, contract.org, &arguments, rule);
        if candidates.any(|rule| rule.params.iter().all(holds)) {
            Ok(())
        } else {
            Err(DenyReason::ParamRule)
        }
    }
}

/// Whether one parameter satisfies its rule. A missing parameter, or one that is not a single word, does not.
fn holds(snapshot: &Snapshot, principal: &Principal, org: OrgId, arguments: &Arguments, rule: &ParamRule) -> bool {
    let Some(argument) = arguments.word(rule.index) else {
        return false;
    };
    match &rule.must_be {
        Constraint::Own => argument
            .address()
            .is_some_and(|address| principal.owns(snapshot, address)),
        Constraint::Org => argument
            .address()
            .is_some_and(|address| belongs(snapshot, org, address, principal.now)),
        Constraint::Word(word) => argument.word == *word,
        Constraint::OneOf(words) => words.contains(&argument.word),
        Constraint::Compare(comparison, word) => comparison.holds(Some(argument.kind), &argument.word, word),
    }
}

/// Whether an address belongs to an organization: as its contract or its reservation (F3, F4). The wallets of members
/// do not count: a decision on them would reveal whose wallet an address is (RT26).
pub fn belongs(snapshot: &Snapshot, org: OrgId, address: Address, now: Timestamp) -> bool {
    snapshot.contract(address).is_some_and(|contract| contract.org == org)
        || snapshot
            .reservations(address)
            .iter()
            .any(|reservation| reservation.org == org && reservation.expires_at > now)
}

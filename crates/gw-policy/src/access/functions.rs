//! Which functions of a contract may be called, and with which parameters (spec/20 §5 F1-F3, G7).

use super::target::Member;
use crate::snapshot::{Contract, FunctionRule, MustBe, ParamRule, Snapshot};
use gw_evm::abi::Arguments;
use gw_types::{Address, DenyReason, OrgId, Timestamp};

/// The functions a caller's grants open together.
#[derive(Clone, Debug)]
pub enum Functions<'s> {
    /// Every function; also calldata without a selector.
    All,
    /// Only those with a rule here. Rules for one selector are alternatives.
    Only(Vec<&'s FunctionRule>),
}

impl<'s> Functions<'s> {
    /// What one grant opens: `None` is everything, an empty list nothing (F1).
    pub fn of_grant(functions: Option<&'s [FunctionRule]>) -> Self {
        functions.map_or(Self::All, |rules| Self::Only(rules.iter().collect()))
    }

    /// Both together: unrestricted wins (G7).
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

    /// Whether something is left out.
    pub fn restricted(&self) -> bool {
        matches!(self, Self::Only(_))
    }

    /// Whether the calldata may be sent: its selector has a rule, and all parameters of at least one rule hold.
    pub fn permit(
        &self,
        snapshot: &Snapshot,
        member: &Member,
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
        // No ABI, short data, dirty padding, trailing bytes: no argument to look at, so no rule holds (F3).
        let arguments = contract
            .abi
            .as_ref()
            .and_then(|abi| abi.arguments(input).ok())
            .ok_or(DenyReason::ParamRule)?;
        let holds = |rule: &ParamRule| holds(snapshot, member, contract.org, &arguments, rule);
        if candidates.any(|rule| rule.params.iter().all(holds)) {
            Ok(())
        } else {
            Err(DenyReason::ParamRule)
        }
    }
}

/// Whether one parameter is what its rule demands; a parameter that is not there, or not one word, is not.
fn holds(snapshot: &Snapshot, member: &Member, org: OrgId, arguments: &Arguments, rule: &ParamRule) -> bool {
    let Some(argument) = arguments.word(rule.index) else {
        return false;
    };
    match &rule.must_be {
        MustBe::Own => argument.address().is_some_and(|address| member.owns(snapshot, address)),
        MustBe::Org => argument
            .address()
            .is_some_and(|address| belongs(snapshot, org, address, member.now)),
        MustBe::Word(word) => argument.word == *word,
        MustBe::OneOf(words) => words.contains(&argument.word),
        MustBe::Compare(comparison, word) => comparison.holds(Some(argument.kind), &argument.word, word),
    }
}

/// Whether an address is an organization's: its contract or its reservation (F3, F4). The wallets of members are not: a
/// verdict on them would tell whose wallet an address is (RT26).
pub fn belongs(snapshot: &Snapshot, org: OrgId, address: Address, now: Timestamp) -> bool {
    snapshot.contract(address).is_some_and(|contract| contract.org == org)
        || snapshot
            .reservations(address)
            .iter()
            .any(|held| held.org == org && held.expires_at > now)
}

//! Whether the rules of a grant can ever be judged (F2-F4): a rule that the ABI does not bear is refused when it is
//! written, because it would deny everything when it is used.

use crate::{AdminState, error::Failure};
use gw_evm::abi::{ContractAbi, WordKind};
use gw_policy::access::belongs;
use gw_store::record::{Comparison, Contract, EventRule, EventRules, FunctionRule, MustBe, Organization, ParamRule};
use gw_types::{Address, B256};
use std::sync::Arc;

/// Most literal rules of one grant (F4).
const MOST_LITERALS: usize = 100;

/// The uploaded ABI, else the built-in one of `metadata.token_type` (K1).
pub(super) fn effective_abi(contract: &Contract) -> Result<Option<Arc<ContractAbi>>, Failure> {
    if let Some(text) = &contract.abi {
        let abi =
            ContractAbi::parse(text).map_err(|why| Failure::bad(format!("the stored abi is malformed: {why}")))?;
        return Ok(Some(Arc::new(abi)));
    }
    let token_type = contract.metadata.get("token_type").and_then(serde_json::Value::as_str);
    Ok(token_type.and_then(gw_evm::abi::builtin))
}

/// F3: every parameter rule names an input of the function that fits one word, and `self` an address.
pub(super) fn check_functions(rules: Option<&[FunctionRule]>, abi: Option<&ContractAbi>) -> Result<(), Failure> {
    for rule in rules.unwrap_or_default() {
        if rule.param_rules.is_empty() {
            continue;
        }
        let Some(abi) = abi else {
            return Err(Failure::bad("parameter rules need an ABI: upload it first"));
        };
        let selector = hex::encode(rule.selector);
        if !abi.has_function(rule.selector) {
            return Err(Failure::bad(format!("selector 0x{selector} is not in the ABI")));
        }
        for param in &rule.param_rules {
            let kind = abi.function_input(rule.selector, usize::from(param.index));
            check_param(param, kind, &format!("function 0x{selector}"))?;
        }
    }
    Ok(())
}

/// F4: topics are in the ABI, parameters fit, literal addresses are the organization's own.
pub(super) fn check_events(
    state: &AdminState,
    org: &Organization,
    rules: &EventRules,
    abi: Option<&ContractAbi>,
) -> Result<(), Failure> {
    let list = match rules {
        EventRules::Unset => return Ok(()),
        EventRules::List(list) if list.is_empty() => return Ok(()),
        EventRules::Wildcard => &[] as &[EventRule],
        EventRules::List(list) => list,
    };
    let Some(abi) = abi else {
        return Err(Failure::bad("event rules need an ABI: upload it first"));
    };
    let mut literals = 0;
    for rule in list {
        let Some(event) = abi.declared(&rule.topic0).first() else {
            return Err(Failure::bad(format!("topic0 {} is not in the ABI", rule.topic0)));
        };
        for param in &rule.param_rules {
            let kind = event.input_kind(usize::from(param.index));
            check_param(param, kind, "the event")?;
            for literal in param.must_be.literals() {
                literals += 1;
                if kind == Some(WordKind::Address) && !owned(state, org, literal.word) {
                    return Err(Failure::forbidden("a listed address does not belong to the organization"));
                }
            }
        }
    }
    if literals > MOST_LITERALS {
        return Err(Failure::bad(format!("at most {MOST_LITERALS} literal rules")));
    }
    Ok(())
}

fn check_param(rule: &ParamRule, kind: Option<WordKind>, of: &str) -> Result<(), Failure> {
    let Some(kind) = kind else {
        return Err(Failure::bad(format!("{of} has no one-word parameter {}", rule.index)));
    };
    if rule.must_be.literals().iter().any(|literal| !kind.is_clean(&literal.word)) {
        return Err(Failure::bad(format!("the literal does not fit the type of parameter {} of {of}", rule.index)));
    }
    let ordered = match rule.must_be {
        MustBe::Own | MustBe::Org if kind != WordKind::Address => {
            let text = "is no address: neither `self` nor `org` can hold";
            return Err(Failure::bad(format!("parameter {} of {of} {text}", rule.index)));
        }
        MustBe::Own | MustBe::Org | MustBe::Literal(_) | MustBe::OneOf(_) => false,
        MustBe::Compare(Comparison::NotEqual, _) => false,
        MustBe::Compare(_, _) => true,
    };
    if ordered && !matches!(kind, WordKind::Uint(_) | WordKind::Int(_)) {
        return Err(Failure::bad(format!(
            "parameter {} of {of} is no number: it is neither less nor more",
            rule.index
        )));
    }
    Ok(())
}

/// Whether the word is an address of the organization.
fn owned(state: &AdminState, org: &Organization, word: B256) -> bool {
    belongs(&state.feed.pin().snapshot, org.id, Address::from_word(word), state.clock.now())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(index: u16, must_be: &str) -> Vec<FunctionRule> {
        let param_rules = vec![ParamRule { index, must_be: MustBe::parse(must_be).unwrap() }];
        vec![FunctionRule { selector: [0x70, 0xa0, 0x82, 0x31], param_rules }]
    }

    #[test]
    fn f3_rules_must_fit_the_abi() {
        let abi = gw_evm::abi::builtin("ERC20").unwrap();
        let abi = &*abi;
        assert!(check_functions(Some(&rule(0, "self")), Some(abi)).is_ok());
        assert!(check_functions(Some(&rule(0, "self")), None).is_err(), "no ABI");
        assert!(check_functions(Some(&rule(1, "self")), Some(abi)).is_err(), "no such parameter");
        let long = format!("0x{}", "1".repeat(64));
        assert!(check_functions(Some(&rule(0, &long)), Some(abi)).is_err(), "longer than an address");
        let rule_of = |index, must_be: &str| {
            let must_be = serde_json::from_str(must_be).unwrap();
            let param_rules = vec![ParamRule { index, must_be }];
            [FunctionRule { selector: [0xa9, 0x05, 0x9c, 0xbb], param_rules }]
        };
        let less = r#"{"op":"lt","value":"0x64"}"#;
        assert!(check_functions(Some(&rule_of(1, less)), Some(abi)).is_ok());
        assert!(check_functions(Some(&rule_of(0, less)), Some(abi)).is_err(), "an address has no order");
        assert!(check_functions(Some(&rule_of(0, r#"{"op":"org"}"#)), Some(abi)).is_ok());
        assert!(check_functions(Some(&rule_of(1, r#"{"op":"org"}"#)), Some(abi)).is_err(), "an amount is no address");
        let mut unknown = rule(0, "self");
        unknown[0].selector = [1, 2, 3, 4];
        assert!(check_functions(Some(&unknown), Some(abi)).is_err());
        unknown[0].param_rules.clear();
        assert!(check_functions(Some(&unknown), None).is_ok(), "a bare selector needs no ABI");
    }
}

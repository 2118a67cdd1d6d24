//! Whether the rules of a grant can ever be judged (F2-F4): a rule that the ABI does not bear is refused when it is
//! written, because it would deny everything when it is used.

use crate::{AdminState, error::Failure};
use gw_evm::abi::{ContractAbi, WordKind};
use gw_policy::access::belongs;
use gw_store::record::{
    Comparison, Contract, EventRule, EventRules, FunctionRule, Literal, MustBe, Organization, ParamRule,
};
use gw_types::{Address, B256};
use std::sync::Arc;

/// The bytes of an ABI word.
const WORD: usize = 32;

/// Most bytes of the function rules of one grant, as JSON.
const MOST_FUNCTIONS: usize = 64 * 1024;

/// Most literal rules of one grant (F4).
const MOST_LITERALS: usize = 100;

/// The uploaded ABI, else the built-in one of `metadata.token_type` (K1).
pub(super) fn effective_abi(contract: &Contract) -> Result<Option<Arc<ContractAbi>>, Failure> {
    if let Some(text) = &contract.abi {
        let abi =
            ContractAbi::parse(text).map_err(|why| Failure::bad(format!("the stored abi cannot be used: {why}")))?;
        return Ok(Some(Arc::new(abi)));
    }
    let token_type = contract.metadata.get("token_type").and_then(serde_json::Value::as_str);
    Ok(token_type.and_then(gw_evm::abi::builtin))
}

/// Refuses rules that every list of grants would carry along for everybody.
fn check_size(rules: &[FunctionRule]) -> Result<(), Failure> {
    let text = serde_json::to_string(rules).map_err(|_| Failure::bad("functions cannot be read"))?;
    if text.len() <= MOST_FUNCTIONS {
        return Ok(());
    }
    Err(Failure::bad(format!(
        "functions must have at most {MOST_FUNCTIONS} bytes as JSON"
    )))
}

/// F3: every parameter rule names an input of the function that fits one word, and `self` an address.
pub(super) fn check_functions(rules: Option<&mut Vec<FunctionRule>>, abi: Option<&ContractAbi>) -> Result<(), Failure> {
    let Some(rules) = rules else { return Ok(()) };
    check_size(rules)?;
    for rule in rules {
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
        for param in &mut rule.param_rules {
            let kind = abi.function_input(rule.selector, usize::from(param.index));
            check_param(param, kind, &format!("function 0x{selector}"))?;
        }
    }
    Ok(())
}

/// F4: topics are in the ABI, parameters fit, literal addresses are the organization's own contracts or reservations;
/// whose wallet an address is makes no difference (RT26).
pub(super) fn check_events(
    state: &AdminState,
    org: &Organization,
    rules: &mut EventRules,
    abi: Option<&ContractAbi>,
) -> Result<(), Failure> {
    let list = match rules {
        EventRules::Unset => return Ok(()),
        EventRules::List(list) if list.is_empty() => return Ok(()),
        EventRules::Wildcard => &mut [] as &mut [EventRule],
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
        for param in &mut rule.param_rules {
            let kind = event.input_kind(usize::from(param.index));
            check_param(param, kind, "the event")?;
            for literal in param.must_be.literals() {
                literals += 1;
                if kind == Some(WordKind::Address) && !owned(state, org, literal.word) {
                    return Err(Failure::forbidden(
                        "a listed address does not belong to the organization",
                    ));
                }
            }
        }
    }
    if literals > MOST_LITERALS {
        return Err(Failure::bad(format!("at most {MOST_LITERALS} literal rules")));
    }
    Ok(())
}

fn check_param(rule: &mut ParamRule, kind: Option<WordKind>, of: &str) -> Result<(), Failure> {
    let Some(kind) = kind else {
        return Err(Failure::bad(format!("{of} has no one-word parameter {}", rule.index)));
    };
    let bound = matches!(
        &rule.must_be,
        MustBe::Compare(
            Comparison::Less | Comparison::AtMost | Comparison::More | Comparison::AtLeast,
            _
        )
    );
    for literal in rule.must_be.literals_mut() {
        fit(literal, kind, bound).map_err(|why| Failure::bad(format!("parameter {} of {of} {why}", rule.index)))?;
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

/// The literal as the word it means (F4): it has the length of its type, or is the whole word. What is compared with by
/// order is a number and may be written as one.
fn fit(literal: &mut Literal, kind: WordKind, bound: bool) -> Result<(), String> {
    if bound
        && matches!(kind, WordKind::Uint(_) | WordKind::Int(_))
        && literal.word.first().is_some_and(|byte| byte & 0x80 == 0)
    {
        let (name, _) = described(kind);
        return if kind.is_clean(&literal.word) {
            Ok(())
        } else {
            Err(format!("is `{name}`: the literal is too large"))
        };
    }
    let given = literal.bytes();
    match given.as_deref().and_then(|bytes| kind.literal(bytes)) {
        Some(word) if word == literal.word => Ok(()),
        Some(word) => {
            *literal = Literal::whole(word);
            Ok(())
        }
        None => {
            let ((name, own), digits) = (described(kind), literal.text.len().saturating_sub(2));
            Err(if given.is_none_or(|bytes| bytes.len() != own && bytes.len() != WORD) {
                format!(
                    "is `{name}`: its literal has {} hex digits, or {} as a whole word, not {digits}",
                    own * 2,
                    WORD * 2
                )
            } else {
                format!("is `{name}`: the literal is none, its padding or its value is wrong")
            })
        }
    }
}

/// The name of a type, and the bytes its values have.
fn described(kind: WordKind) -> (String, usize) {
    match kind {
        WordKind::Address => ("address".to_owned(), 20),
        WordKind::Uint(bits) => (format!("uint{bits}"), bits / 8),
        WordKind::Int(bits) => (format!("int{bits}"), bits / 8),
        WordKind::Bool => ("bool".to_owned(), 1),
        WordKind::FixedBytes(size) => (format!("bytes{size}"), size),
        WordKind::Function => ("function".to_owned(), 24),
    }
}

/// Whether the word is an address of the organization.
fn owned(state: &AdminState, org: &Organization, word: B256) -> bool {
    belongs(
        &state.feed.pin().snapshot,
        org.id,
        Address::from_word(word),
        state.clock.now(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(index: u16, must_be: &str) -> Vec<FunctionRule> {
        let param_rules = vec![ParamRule {
            index,
            must_be: MustBe::parse(must_be).unwrap(),
        }];
        vec![FunctionRule {
            selector: [0x70, 0xa0, 0x82, 0x31],
            param_rules,
        }]
    }

    fn check(rules: &[FunctionRule], abi: Option<&ContractAbi>) -> Result<Vec<FunctionRule>, String> {
        let mut rules = rules.to_vec();
        match check_functions(Some(&mut rules), abi) {
            Ok(()) => Ok(rules),
            Err(failure) => Err(format!("{failure:?}")),
        }
    }

    #[test]
    fn f3_rules_must_fit_the_abi() {
        let abi = gw_evm::abi::builtin("ERC20").unwrap();
        let abi = &*abi;
        assert!(check(&rule(0, "self"), Some(abi)).is_ok());
        assert!(check(&rule(0, "self"), None).is_err(), "no ABI");
        assert!(check(&rule(1, "self"), Some(abi)).is_err(), "no such parameter");
        let rule_of = |index, must_be: &str| {
            let must_be = serde_json::from_str(must_be).unwrap();
            let param_rules = vec![ParamRule { index, must_be }];
            [FunctionRule {
                selector: [0xa9, 0x05, 0x9c, 0xbb],
                param_rules,
            }]
        };
        let less = r#"{"op":"lt","value":"0x64"}"#;
        assert!(check(&rule_of(1, less), Some(abi)).is_ok());
        assert!(check(&rule_of(0, less), Some(abi)).is_err(), "an address has no order");
        assert!(check(&rule_of(0, r#"{"op":"org"}"#), Some(abi)).is_ok());
        assert!(
            check(&rule_of(1, r#"{"op":"org"}"#), Some(abi)).is_err(),
            "an amount is no address"
        );
        let mut unknown = rule(0, "self");
        unknown[0].selector = [1, 2, 3, 4];
        assert!(check(&unknown, Some(abi)).is_err());
        unknown[0].param_rules.clear();
        assert!(check(&unknown, None).is_ok(), "a bare selector needs no ABI");
    }

    /// F3, F4: a literal that is shorter or longer than its type means something else than was meant.
    #[test]
    fn f3_f4_literals_have_the_length_of_their_type() {
        let abi = r#"[{"type":"function","name":"f","stateMutability":"view","outputs":[],"inputs":[
            {"name":"a","type":"address"},{"name":"b","type":"bytes4"},{"name":"c","type":"uint256"},
            {"name":"d","type":"int16"},{"name":"e","type":"bool"}]}]"#;
        let abi = ContractAbi::parse(abi).unwrap();
        let selector = abi.json().functions().next().unwrap().selector().0;
        let given = |index: u16, must_be: &str| {
            let must_be = serde_json::from_str(must_be).unwrap();
            let rules = [FunctionRule {
                selector,
                param_rules: vec![ParamRule { index, must_be }],
            }];
            let rules = check(&rules, Some(&abi))?;
            Ok::<_, String>(
                rules[0].param_rules[0]
                    .must_be
                    .literals()
                    .iter()
                    .map(|l| l.word)
                    .collect::<Vec<_>>(),
            )
        };
        let text = |digits: &str| format!("\"0x{digits}\"");
        let word = |digits: &str| format!("0x{digits}").parse::<B256>().unwrap();
        let padded = |digits: &str| format!("{digits:0>64}");
        let address = "f39fd6e51aad88f6f4ce6ab8827279cfffb92266";
        for (index, good, means) in [
            (0, address.to_owned(), padded(address)),
            (0, padded(address), padded(address)),
            (1, "12345678".to_owned(), format!("12345678{}", "0".repeat(56))),
            (2, padded("64"), padded("64")),
            (3, "fffe".to_owned(), format!("{}fffe", "f".repeat(60))),
            (4, "01".to_owned(), padded("1")),
        ] {
            assert_eq!(given(index, &text(&good)), Ok(vec![word(&means)]), "{index}: {good}");
        }
        for (index, bad) in [
            (0, address.trim_start_matches("f3").to_owned()),
            (0, address.trim_start_matches('f').to_owned()),
            (0, format!("{address}00")),
            (0, format!("1{}", padded(address).split_off(1))),
            (1, "123456".to_owned()),
            (1, "1234567890".to_owned()),
            (2, "64".to_owned()),
            (2, "064".to_owned()),
            (3, "ff".to_owned()),
            (3, "0000ff".to_owned()),
            (4, "1".to_owned()),
            (4, "02".to_owned()),
        ] {
            let why = given(index, &text(&bad)).unwrap_err();
            assert!(
                why.contains(&format!("parameter {index} of function")),
                "{index}: {bad}: {why}"
            );
        }
        let short = given(0, &text(address.trim_start_matches("f3"))).unwrap_err();
        assert!(
            short.contains("is `address`: its literal has 40 hex digits, or 64 as a whole word, not 38"),
            "{short}"
        );
        // Each of several, and what is compared with; a bound is a number.
        let list = |one: &str, other: &str| format!(r#"{{"op":"in","value":["0x{one}","0x{other}"]}}"#);
        assert!(given(0, &list(address, address)).is_ok());
        assert!(given(0, &list(address, "12")).is_err());
        assert!(given(2, r#"{"op":"ne","value":"0x64"}"#).is_err());
        assert_eq!(
            given(2, r#"{"op":"gte","value":"0x64"}"#),
            Ok(vec![word(&padded("64"))])
        );
        assert!(
            given(3, r#"{"op":"lt","value":"0x10000"}"#)
                .unwrap_err()
                .contains("too large")
        );
    }
}

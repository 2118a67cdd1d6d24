//! Validation of the rules of a grant (F2-F4). A rule that does not fit the ABI is rejected when it is written, because
//! it would deny every call when it is applied.

use crate::{AdminState, error::AdminError};
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
const MAX_FUNCTIONS_BYTES: usize = 64 * 1024;

/// Most literal rules of one grant (F4).
const MAX_LITERALS: usize = 100;

/// The uploaded ABI, else the built-in one of `metadata.token_type` (K1).
pub(super) fn effective_abi(contract: &Contract) -> Result<Option<Arc<ContractAbi>>, AdminError> {
    if let Some(text) = &contract.abi {
        let abi = ContractAbi::parse(text)
            .map_err(|error| AdminError::bad_request(format!("the stored abi cannot be used: {error}")))?;
        return Ok(Some(Arc::new(abi)));
    }
    let token_type = contract.metadata.get("token_type").and_then(serde_json::Value::as_str);
    Ok(token_type.and_then(gw_evm::abi::builtin))
}

/// Limits the size of the rules: every list of grants returns them.
fn check_size(rules: &[FunctionRule]) -> Result<(), AdminError> {
    let text = serde_json::to_string(rules).map_err(|_| AdminError::bad_request("functions cannot be read"))?;
    if text.len() <= MAX_FUNCTIONS_BYTES {
        return Ok(());
    }
    Err(AdminError::bad_request(format!(
        "functions must have at most {MAX_FUNCTIONS_BYTES} bytes as JSON"
    )))
}

/// F3: every parameter rule names a one-word input of the function, and the input of `self` is an address.
pub(super) fn check_functions(
    rules: Option<&mut Vec<FunctionRule>>,
    abi: Option<&ContractAbi>,
) -> Result<(), AdminError> {
    let Some(rules) = rules else { return Ok(()) };
    check_size(rules)?;
    for rule in rules {
        if rule.param_rules.is_empty() {
            continue;
        }
        let Some(abi) = abi else {
            return Err(AdminError::bad_request("parameter rules need an ABI: upload it first"));
        };
        let selector = hex::encode(rule.selector);
        if !abi.has_function(rule.selector) {
            return Err(AdminError::bad_request(format!(
                "selector 0x{selector} is not in the ABI"
            )));
        }
        for param in &mut rule.param_rules {
            let kind = abi.function_input(rule.selector, usize::from(param.index));
            check_param(param, kind, &format!("function 0x{selector}"))?;
        }
    }
    Ok(())
}

/// F4: topics are in the ABI, parameters fit their type, and literal addresses are contracts or reservations of the
/// organization. Whether an address is a user's wallet makes no difference (RT26).
pub(super) fn check_events(
    state: &AdminState,
    org: &Organization,
    rules: &mut EventRules,
    abi: Option<&ContractAbi>,
) -> Result<(), AdminError> {
    let list = match rules {
        EventRules::Unset => return Ok(()),
        EventRules::List(list) if list.is_empty() => return Ok(()),
        EventRules::Wildcard => &mut [] as &mut [EventRule],
        EventRules::List(list) => list,
    };
    let Some(abi) = abi else {
        return Err(AdminError::bad_request("event rules need an ABI: upload it first"));
    };
    let mut literals = 0;
    for rule in list {
        let Some(event) = abi.declared(&rule.topic0).first() else {
            return Err(AdminError::bad_request(format!(
                "topic0 {} is not in the ABI",
                rule.topic0
            )));
        };
        for param in &mut rule.param_rules {
            let kind = event.input_kind(usize::from(param.index));
            check_param(param, kind, "the event")?;
            for literal in param.must_be.literals() {
                literals += 1;
                if kind == Some(WordKind::Address) && !belongs_to_org(state, org, literal.word) {
                    return Err(AdminError::forbidden(
                        "a listed address does not belong to the organization",
                    ));
                }
            }
        }
    }
    if literals > MAX_LITERALS {
        return Err(AdminError::bad_request(format!("at most {MAX_LITERALS} literal rules")));
    }
    Ok(())
}

fn check_param(rule: &mut ParamRule, kind: Option<WordKind>, owner: &str) -> Result<(), AdminError> {
    let Some(kind) = kind else {
        return Err(AdminError::bad_request(format!(
            "{owner} has no one-word parameter {}",
            rule.index
        )));
    };
    let is_bound = matches!(
        &rule.must_be,
        MustBe::Compare(
            Comparison::Less | Comparison::AtMost | Comparison::More | Comparison::AtLeast,
            _
        )
    );
    for literal in rule.must_be.literals_mut() {
        check_literal(literal, kind, is_bound)
            .map_err(|problem| AdminError::bad_request(format!("parameter {} of {owner} {problem}", rule.index)))?;
    }
    let is_ordered = match rule.must_be {
        MustBe::Own | MustBe::Org if kind != WordKind::Address => {
            let text = "is no address: neither `self` nor `org` can hold";
            return Err(AdminError::bad_request(format!(
                "parameter {} of {owner} {text}",
                rule.index
            )));
        }
        MustBe::Own | MustBe::Org | MustBe::Literal(_) | MustBe::OneOf(_) => false,
        MustBe::Compare(Comparison::NotEqual, _) => false,
        MustBe::Compare(_, _) => true,
    };
    if is_ordered && !matches!(kind, WordKind::Uint(_) | WordKind::Int(_)) {
        return Err(AdminError::bad_request(format!(
            "parameter {} of {owner} is no number: it is neither less nor more",
            rule.index
        )));
    }
    Ok(())
}

/// Checks that the literal has the length of its type or is a whole word, and replaces it by the whole word (F4). The
/// literal of an ordering comparison is a number, so a whole word that holds a number is accepted.
fn check_literal(literal: &mut Literal, kind: WordKind, is_bound: bool) -> Result<(), String> {
    if is_bound
        && matches!(kind, WordKind::Uint(_) | WordKind::Int(_))
        && literal.word.first().is_some_and(|byte| byte & 0x80 == 0)
    {
        let (name, _) = type_of(kind);
        return if kind.is_clean(&literal.word) {
            Ok(())
        } else {
            Err(format!("is `{name}`: the literal is too large"))
        };
    }
    let bytes = literal.bytes();
    match bytes.as_deref().and_then(|bytes| kind.literal(bytes)) {
        Some(word) if word == literal.word => Ok(()),
        Some(word) => {
            *literal = Literal::whole(word);
            Ok(())
        }
        None => {
            let ((name, type_bytes), digits) = (type_of(kind), literal.text.len().saturating_sub(2));
            Err(
                if bytes.is_none_or(|bytes| bytes.len() != type_bytes && bytes.len() != WORD) {
                    format!(
                        "is `{name}`: its literal has {} hex digits, or {} as a whole word, not {digits}",
                        type_bytes * 2,
                        WORD * 2
                    )
                } else {
                    format!("is `{name}`: the literal is none, its padding or its value is wrong")
                },
            )
        }
    }
}

/// The Solidity name of a type, and the number of bytes of its values.
fn type_of(kind: WordKind) -> (String, usize) {
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
fn belongs_to_org(state: &AdminState, org: &Organization, word: B256) -> bool {
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

    /// F3, F4: a literal that is shorter or longer than its type would have another value than intended.
    #[test]
    fn f3_f4_literals_have_the_length_of_their_type() {
        let abi = r#"[{"type":"function","name":"f","stateMutability":"view","outputs":[],"inputs":[
            {"name":"a","type":"address"},{"name":"b","type":"bytes4"},{"name":"c","type":"uint256"},
            {"name":"d","type":"int16"},{"name":"e","type":"bool"}]}]"#;
        let abi = ContractAbi::parse(abi).unwrap();
        let selector = abi.json().functions().next().unwrap().selector().0;
        let check_literal_at = |index: u16, must_be: &str| {
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
        for (index, good, expected) in [
            (0, address.to_owned(), padded(address)),
            (0, padded(address), padded(address)),
            (1, "12345678".to_owned(), format!("12345678{}", "0".repeat(56))),
            (2, padded("64"), padded("64")),
            (3, "fffe".to_owned(), format!("{}fffe", "f".repeat(60))),
            (4, "01".to_owned(), padded("1")),
        ] {
            assert_eq!(
                check_literal_at(index, &text(&good)),
                Ok(vec![word(&expected)]),
                "{index}: {good}"
            );
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
            let why = check_literal_at(index, &text(&bad)).unwrap_err();
            assert!(
                why.contains(&format!("parameter {index} of function")),
                "{index}: {bad}: {why}"
            );
        }
        let short = check_literal_at(0, &text(address.trim_start_matches("f3"))).unwrap_err();
        assert!(
            short.contains("is `address`: its literal has 40 hex digits, or 64 as a whole word, not 38"),
            "{short}"
        );
        // Every literal of a list is checked, and so is a literal of a comparison; a bound is a number.
        let list = |first: &str, second: &str| format!(r#"{{"op":"in","value":["0x{first}","0x{second}"]}}"#);
        assert!(check_literal_at(0, &list(address, address)).is_ok());
        assert!(check_literal_at(0, &list(address, "12")).is_err());
        assert!(check_literal_at(2, r#"{"op":"ne","value":"0x64"}"#).is_err());
        assert_eq!(
            check_literal_at(2, r#"{"op":"gte","value":"0x64"}"#),
            Ok(vec![word(&padded("64"))])
        );
        assert!(
            check_literal_at(3, r#"{"op":"lt","value":"0x10000"}"#)
                .unwrap_err()
                .contains("too large")
        );
    }
}

//! Data of travel-rule records (spec/60 section 11, "IVMS101"), checked when a record is made (CO-38).

mod errors;
mod export;

use gw_compliance::ivms101::{DataFormat, DataRules, FieldError, MAX_SIZE, PartyData, Problem, TransferParty};
use gw_types::{Address, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};

const LINKED: Address = Address::repeat_byte(0xa1);
const OTHER: Address = Address::repeat_byte(0xa2);

/// 2026-11-29T23:59:59Z.
fn now() -> Timestamp {
    Timestamp::parse("2026-11-29T23:59:59Z").unwrap()
}

fn rules(party: TransferParty) -> DataRules<'static> {
    DataRules {
        party,
        required: DataFormat::FreeForm,
        accounts: &[OTHER, LINKED],
        now: now(),
    }
}

fn check(party: TransferParty, data: &Value) -> Result<DataFormat, FieldError> {
    PartyData::parse(&data.to_string(), &rules(party)).map(|data| data.format())
}

/// An originator that is a natural person, with all members that are checked.
fn natural() -> Value {
    json!({
        "originatorPersons": [{
            "naturalPerson": {
                "name": {
                    "nameIdentifier": [
                        {"primaryIdentifier": "Example", "secondaryIdentifier": "Ada", "nameIdentifierType": "LEGL"},
                        {"primaryIdentifier": "Sample", "nameIdentifierType": "ALIA"}
                    ],
                    "localNameIdentifier": [{"primaryIdentifier": "例", "nameIdentifierType": "LEGL"}]
                },
                "geographicAddress": [{
                    "addressType": "HOME", "streetName": "Main Street", "buildingNumber": "1", "postCode": "8000",
                    "townName": "Zürich", "country": "CH"
                }],
                "nationalIdentification": {
                    "nationalIdentifier": "X1234567", "nationalIdentifierType": "CCPT", "countryOfIssue": "CH"
                },
                "customerIdentification": "C-1",
                "dateAndPlaceOfBirth": {"dateOfBirth": "1990-02-28", "placeOfBirth": "Bern"},
                "countryOfResidence": "CH"
            }
        }],
        "accountNumber": [LINKED.to_string()],
        "other": {"kept": true}
    })
}

/// A beneficiary that is a legal person.
fn legal() -> Value {
    json!({
        "beneficiaryPersons": [{
            "legalPerson": {
                "name": {"nameIdentifier": [
                    {"legalPersonName": "Example AG", "legalPersonNameIdentifierType": "LEGL"}
                ]},
                "geographicAddress": [
                    {"addressType": "GEOG", "addressLine": ["1 Main Street", "Zürich"], "country": "CH"}
                ],
                "nationalIdentification": {
                    "nationalIdentifier": "506700GE1G29325QX363", "nationalIdentifierType": "LEIX"
                },
                "customerNumber": "C-2",
                "countryOfRegistration": "CH"
            }
        }],
        "accountNumber": [LINKED.to_string()]
    })
}

/// Replaces the value at a pointer, or adds a member there; `null` removes it.
fn changed(mut data: Value, pointer: &str, value: Value) -> Value {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = data.pointer_mut(parent).unwrap_or_else(|| panic!("{pointer}"));
    match parent {
        Value::Object(members) if value.is_null() => assert!(members.remove(name).is_some(), "{pointer}"),
        Value::Object(members) => {
            members.insert(name.to_owned(), value);
        }
        Value::Array(items) => items[name.parse::<usize>().unwrap()] = value,
        other => panic!("{pointer}: {other}"),
    }
    data
}

const NATURAL: &str = "/originatorPersons/0/naturalPerson";
const LEGAL: &str = "/beneficiaryPersons/0/legalPerson";

fn at(person: &str, rest: &str) -> String {
    format!("{person}{rest}")
}

#[test]
fn co38_data_of_both_kinds_of_persons_is_accepted() {
    assert_eq!(check(TransferParty::Originator, &natural()), Ok(DataFormat::Ivms101));
    assert_eq!(check(TransferParty::Beneficiary, &legal()), Ok(DataFormat::Ivms101));
}

/// CO-38: data without persons has any form, unless the organization requires IVMS101.
#[test]
fn co38_data_without_persons_is_free_unless_the_organization_requires_the_standard() {
    let free = r#" {"name":"Ada","n":1.10,"id":12345678901234567890123,"empty":{}} "#;
    let data = PartyData::parse(free, &rules(TransferParty::Originator)).unwrap();
    assert_eq!((data.format(), data.as_json()), (DataFormat::FreeForm, free.trim()));
    assert_eq!(serde_json::to_string(&data).unwrap(), free.trim());
    let strict = |party| DataRules {
        required: DataFormat::Ivms101,
        ..rules(party)
    };
    for (party, pointer) in [
        (TransferParty::Originator, "/originatorPersons"),
        (TransferParty::Beneficiary, "/beneficiaryPersons"),
    ] {
        let error = PartyData::parse(free, &strict(party)).unwrap_err();
        assert_eq!((error.pointer.as_str(), error.problem), (pointer, Problem::Missing));
        assert_eq!(error.to_string(), format!("`{pointer}`: this member is required"));
    }
    assert!(PartyData::parse(&natural().to_string(), &strict(TransferParty::Originator)).is_ok());
    // Persons of the other party are no way around the rules.
    let error = check(TransferParty::Beneficiary, &natural()).unwrap_err();
    assert_eq!(
        (error.pointer.as_str(), error.problem),
        ("/beneficiaryPersons", Problem::Missing)
    );
}

#[test]
fn co38_what_is_no_object_or_too_large_is_refused() {
    let problem = |text: &str| {
        PartyData::parse(text, &rules(TransferParty::Originator))
            .unwrap_err()
            .problem
    };
    for text in ["[]", "null", "1", "\"a\""] {
        assert_eq!(problem(text), Problem::NotAnObject, "{text}");
    }
    assert_eq!(problem("{"), Problem::NotJson);
    assert_eq!(problem(r#"{"a":1,"a":2}"#), Problem::Duplicate);
    let sized = |size: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(size - 8));
    assert_eq!(sized(100).len(), 100);
    assert!(PartyData::parse(&sized(MAX_SIZE), &rules(TransferParty::Originator)).is_ok());
    assert_eq!(problem(&sized(MAX_SIZE + 1)), Problem::TooLarge);
    assert_eq!(
        problem(&format!("{}1{}", "{\"a\":".repeat(17), "}".repeat(17))),
        Problem::TooDeep
    );
}

#[test]
fn co38_persons_are_of_one_kind() {
    for (pointer, value, expected, problem) in [
        ("/originatorPersons", json!(null), None, None),
        (
            "/originatorPersons",
            json!([]),
            Some("/originatorPersons"),
            Some(Problem::NotAnArray),
        ),
        (
            "/originatorPersons",
            json!({}),
            Some("/originatorPersons"),
            Some(Problem::NotAnArray),
        ),
        (
            "/originatorPersons/0",
            json!(1),
            Some("/originatorPersons/0"),
            Some(Problem::NotAnObject),
        ),
        (
            "/originatorPersons/0/legalPerson",
            json!({}),
            Some("/originatorPersons/0"),
            Some(Problem::PersonKind),
        ),
    ] {
        let outcome = check(TransferParty::Originator, &changed(natural(), pointer, value));
        match (expected, problem) {
            (Some(pointer), Some(problem)) => {
                let error = outcome.unwrap_err();
                assert_eq!((error.pointer.as_str(), error.problem), (pointer, problem));
            }
            _ => assert_eq!(outcome, Ok(DataFormat::FreeForm)),
        }
    }
    // Each person is checked.
    let person = natural().pointer("/originatorPersons/0").unwrap().clone();
    let two = changed(natural(), "/originatorPersons", json!([person, {}]));
    assert_eq!(
        check(TransferParty::Originator, &two).unwrap_err().pointer,
        "/originatorPersons/1"
    );
}

/// CO-38: the originator needs something that identifies it, the beneficiary does not.
#[test]
fn co38_an_originator_is_identified() {
    const MEMBERS: [&str; 4] = [
        "geographicAddress",
        "nationalIdentification",
        "customerIdentification",
        "dateAndPlaceOfBirth",
    ];
    let with_only = |kept: &[&str]| {
        let removed = MEMBERS.iter().filter(|member| !kept.contains(member));
        removed.fold(natural(), |data, member| {
            changed(data, &format!("{NATURAL}/{member}"), json!(null))
        })
    };
    for member in MEMBERS {
        assert!(
            check(TransferParty::Originator, &with_only(&[member])).is_ok(),
            "{member}"
        );
    }
    let error = check(TransferParty::Originator, &with_only(&[])).unwrap_err();
    assert_eq!(
        (error.pointer.as_str(), error.problem),
        (NATURAL, Problem::Identification)
    );
    let number = changed(with_only(&[]), &format!("{NATURAL}/customerNumber"), json!("C-1"));
    assert!(check(TransferParty::Originator, &number).is_ok());

    let person = |data: &Value, key: &str| data.pointer(&format!("/{key}/0")).unwrap().clone();
    let bare = person(&with_only(&[]), "originatorPersons");
    let beneficiary = changed(legal(), "/beneficiaryPersons", json!([bare]));
    assert!(check(TransferParty::Beneficiary, &beneficiary).is_ok());

    // A birth does not identify a legal person.
    let mut company = person(&legal(), "beneficiaryPersons");
    for member in ["geographicAddress", "nationalIdentification", "customerNumber"] {
        company = changed(company, &format!("/legalPerson/{member}"), json!(null));
    }
    let birth = json!({"dateOfBirth": "1990-02-28", "placeOfBirth": "Bern"});
    let company = changed(company, "/legalPerson/dateAndPlaceOfBirth", birth);
    let error = check(
        TransferParty::Originator,
        &changed(natural(), "/originatorPersons", json!([company])),
    )
    .unwrap_err();
    assert_eq!(error.problem, Problem::Identification);
}

/// CO-38: the forms that the issues of the standard allow.
#[test]
fn co38_both_issues_of_the_standard_are_accepted() {
    let name = json!([{"nameIdentifier": [
        {"primaryIdentifier": "Example", "naturalPersonNameIdentifierType": "LEGL"}
    ]}]);
    assert!(
        check(
            TransferParty::Originator,
            &changed(natural(), &at(NATURAL, "/name"), name)
        )
        .is_ok()
    );
    let address = json!({"streetName": "Main Street", "buildingName": "Tower", "country": "SS"});
    assert!(
        check(
            TransferParty::Originator,
            &changed(natural(), &at(NATURAL, "/geographicAddress"), address)
        )
        .is_ok()
    );
}

/// CO-38: a birth is a day of the calendar before today, in UTC.
#[test]
fn co38_a_birth_is_in_the_past() {
    for (date, problem) in [
        ("1990-02-28", None),
        ("2000-02-29", None),
        ("2026-11-28", None),
        ("2026-11-29", Some(Problem::BirthDate)),
        ("2026-11-30", Some(Problem::BirthDate)),
        ("9999-12-31", Some(Problem::BirthDate)),
        ("1990-02-30", Some(Problem::Date)),
        ("1900-02-29", Some(Problem::Date)),
        ("1990-00-01", Some(Problem::Date)),
        ("1990-1-1", Some(Problem::Date)),
        ("19900101", Some(Problem::Date)),
        ("1990-01-01T00:00:00Z", Some(Problem::Date)),
        ("01-01-1990", Some(Problem::Date)),
        ("+990-01-01", Some(Problem::Date)),
        ("+1990-02-28", Some(Problem::Date)),
        ("-1990-02-28", Some(Problem::Date)),
        ("1990-01-0１", Some(Problem::Date)),
    ] {
        let pointer = at(NATURAL, "/dateAndPlaceOfBirth/dateOfBirth");
        let outcome = check(TransferParty::Originator, &changed(natural(), &pointer, json!(date)));
        assert_eq!(
            outcome.err().map(|error| (error.pointer, error.problem)),
            problem.map(|problem| (pointer, problem))
        );
    }
    // A clock without a date makes no date past.
    let rules = DataRules {
        now: Timestamp::from_micros(i64::MIN),
        ..rules(TransferParty::Originator)
    };
    assert!(PartyData::parse(&natural().to_string(), &rules).is_err());
}

/// CO-38: an account is a linked address of the originator, or the beneficiary's address.
#[test]
fn co38_an_account_is_an_address_of_the_party() {
    let lower = format!("{LINKED:#x}");
    let upper = format!("0X{}", lower.trim_start_matches("0x").to_uppercase());
    let stranger = Address::repeat_byte(0xa3).to_string();
    let not_named = Some(("/accountNumber", Problem::Account));
    for (accounts, expected) in [
        (json!([lower]), None),
        (json!([upper]), None),
        (json!([stranger, "GB33BUKB20201555555555", OTHER.to_string()]), None),
        (json!([format!("eip155:1:{lower}")]), None),
        (json!([format!("did:pkh:eip155:137:{lower}")]), None),
        (json!([stranger]), not_named),
        (
            json!([format!("bip122:000000000019d6689c085ae165831e93:{lower}")]),
            not_named,
        ),
        (json!([lower.trim_start_matches("0x")]), not_named),
        (json!([format!("{lower}00")]), not_named),
        (json!([lower, 1]), Some(("/accountNumber/1", Problem::NotAText))),
        (json!([]), Some(("/accountNumber", Problem::NotAnArray))),
        (json!(lower), Some(("/accountNumber", Problem::NotAnArray))),
        (json!(null), Some(("/accountNumber", Problem::Missing))),
    ] {
        for (party, data) in [
            (TransferParty::Originator, natural()),
            (TransferParty::Beneficiary, legal()),
        ] {
            let outcome = check(party, &changed(data, "/accountNumber", accounts.clone()));
            let error = outcome.as_ref().err();
            let error = error.map(|error| (error.pointer.as_str(), error.problem));
            assert_eq!(error, expected, "{accounts}");
        }
    }
    let nobody = DataRules {
        accounts: &[],
        ..rules(TransferParty::Originator)
    };
    assert!(PartyData::parse(&natural().to_string(), &nobody).is_err());
}

proptest! {
    /// No text makes the checks fail otherwise than by an error.
    #[test]
    fn co38_any_change_of_the_text_is_checked(at in 0usize..1000, with in "[\\[\\]{}\",:0-9a-z]{0,5}") {
        for (party, data) in [(TransferParty::Originator, natural()), (TransferParty::Beneficiary, legal())] {
            let mut text: Vec<char> = data.to_string().chars().collect();
            let at = at * text.len() / 1000;
            let end = (at + with.len()).min(text.len());
            text.splice(at..end, with.chars());
            let text: String = text.into_iter().collect();
            if let Ok(data) = PartyData::parse(&text, &rules(party)) {
                prop_assert_eq!(data.as_json(), text.trim());
            }
        }
    }
}

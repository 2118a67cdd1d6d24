//! The table of errors: a change of good data, and where it is found.

use super::{LEGAL, NATURAL, at, changed, check, legal, natural};
use gw_compliance::ivms101::{Problem, TransferParty};
use serde_json::{Value, json};

/// CO-38: each rule, with the pointer to the value that breaks it.
#[test]
fn co38_errors_point_to_the_value() {
    let cases: Vec<(TransferParty, Value, String, Problem)> = [
        // Persons.
        (NATURAL, "", json!(null), "/originatorPersons/0", Problem::PersonKind),
        (NATURAL, "", json!("Ada"), NATURAL, Problem::NotAnObject),
        // Names.
        (NATURAL, "/name", json!(null), "+/name", Problem::Missing),
        (NATURAL, "/name", json!("Ada"), "+/name", Problem::NotAnArray),
        (NATURAL, "/name", json!([]), "+/name", Problem::NotAnArray),
        (NATURAL, "/name", json!({}), "+/name/nameIdentifier", Problem::Missing),
        (
            NATURAL,
            "/name/nameIdentifier",
            json!([]),
            "+/name/nameIdentifier",
            Problem::NotAnArray,
        ),
        (
            NATURAL,
            "/name/nameIdentifier/1",
            json!(1),
            "+/name/nameIdentifier/1",
            Problem::NotAnObject,
        ),
        (
            NATURAL,
            "/name/nameIdentifier/0/nameIdentifierType",
            json!("BIRT"),
            "+/name",
            Problem::LegalName,
        ),
        (
            NATURAL,
            "/name/nameIdentifier/0/nameIdentifierType",
            json!("legl"),
            "+/name/nameIdentifier/0/nameIdentifierType",
            Problem::Code,
        ),
        (
            NATURAL,
            "/name/nameIdentifier/0/nameIdentifierType",
            json!(null),
            "+/name/nameIdentifier/0/nameIdentifierType",
            Problem::Missing,
        ),
        (
            NATURAL,
            "/name/nameIdentifier/0/primaryIdentifier",
            json!(" "),
            "+/name/nameIdentifier/0/primaryIdentifier",
            Problem::NotAText,
        ),
        (
            NATURAL,
            "/name/nameIdentifier/0/secondaryIdentifier",
            json!(1),
            "+/name/nameIdentifier/0/secondaryIdentifier",
            Problem::NotAText,
        ),
        (
            LEGAL,
            "/name/nameIdentifier/0/legalPersonName",
            json!(null),
            "+/name/nameIdentifier/0/legalPersonName",
            Problem::Missing,
        ),
        (
            LEGAL,
            "/name/nameIdentifier/0/legalPersonNameIdentifierType",
            json!("TRAD"),
            "+/name",
            Problem::LegalName,
        ),
        (
            LEGAL,
            "/name/nameIdentifier/0/legalPersonNameIdentifierType",
            json!("ALIA"),
            "+/name/nameIdentifier/0/legalPersonNameIdentifierType",
            Problem::Code,
        ),
        // Addresses.
        (
            NATURAL,
            "/geographicAddress",
            json!([]),
            "+/geographicAddress",
            Problem::NotAnArray,
        ),
        (
            NATURAL,
            "/geographicAddress/0",
            json!("Bern"),
            "+/geographicAddress/0",
            Problem::NotAnObject,
        ),
        (
            NATURAL,
            "/geographicAddress/0/streetName",
            json!(null),
            "+/geographicAddress/0",
            Problem::Address,
        ),
        (
            NATURAL,
            "/geographicAddress/0/buildingNumber",
            json!(null),
            "+/geographicAddress/0",
            Problem::Address,
        ),
        (
            NATURAL,
            "/geographicAddress/0/buildingNumber",
            json!(1),
            "+/geographicAddress/0/buildingNumber",
            Problem::NotAText,
        ),
        (
            NATURAL,
            "/geographicAddress/0/country",
            json!("XX"),
            "+/geographicAddress/0/country",
            Problem::Country,
        ),
        (
            NATURAL,
            "/geographicAddress/0/country",
            json!("ch"),
            "+/geographicAddress/0/country",
            Problem::Country,
        ),
        (
            NATURAL,
            "/geographicAddress/0/country",
            json!(null),
            "+/geographicAddress/0/country",
            Problem::Missing,
        ),
        (
            NATURAL,
            "/geographicAddress/0/addressType",
            json!("OTHR"),
            "+/geographicAddress/0/addressType",
            Problem::Code,
        ),
        (
            LEGAL,
            "/geographicAddress/0/addressLine",
            json!(null),
            "+/geographicAddress/0",
            Problem::Address,
        ),
        (
            LEGAL,
            "/geographicAddress/0/addressLine",
            json!([]),
            "+/geographicAddress/0/addressLine",
            Problem::NotAnArray,
        ),
        (
            LEGAL,
            "/geographicAddress/0/addressLine/1",
            json!(""),
            "+/geographicAddress/0/addressLine/1",
            Problem::NotAText,
        ),
        // Identification.
        (
            NATURAL,
            "/nationalIdentification/nationalIdentifierType",
            json!("PASS"),
            "+/nationalIdentification/nationalIdentifierType",
            Problem::Code,
        ),
        (
            NATURAL,
            "/nationalIdentification/nationalIdentifierType",
            json!("LEIX"),
            "+/nationalIdentification/nationalIdentifier",
            Problem::Lei,
        ),
        (
            NATURAL,
            "/nationalIdentification/countryOfIssue",
            json!("CHE"),
            "+/nationalIdentification/countryOfIssue",
            Problem::Country,
        ),
        (
            LEGAL,
            "/nationalIdentification/nationalIdentifier",
            json!("506700GE1G29325QX364"),
            "+/nationalIdentification/nationalIdentifier",
            Problem::Lei,
        ),
        (
            LEGAL,
            "/nationalIdentification/nationalIdentifier",
            json!(null),
            "+/nationalIdentification/nationalIdentifier",
            Problem::Missing,
        ),
        (
            NATURAL,
            "/customerIdentification",
            json!(7),
            "+/customerIdentification",
            Problem::NotAText,
        ),
        (
            LEGAL,
            "/customerNumber",
            json!(""),
            "+/customerNumber",
            Problem::NotAText,
        ),
        (
            NATURAL,
            "/countryOfResidence",
            json!("UK"),
            "+/countryOfResidence",
            Problem::Country,
        ),
        (
            LEGAL,
            "/countryOfRegistration",
            json!("EU"),
            "+/countryOfRegistration",
            Problem::Country,
        ),
        // Birth.
        (
            NATURAL,
            "/dateAndPlaceOfBirth/placeOfBirth",
            json!(null),
            "+/dateAndPlaceOfBirth/placeOfBirth",
            Problem::Missing,
        ),
        (
            NATURAL,
            "/dateAndPlaceOfBirth/dateOfBirth",
            json!(null),
            "+/dateAndPlaceOfBirth/dateOfBirth",
            Problem::Missing,
        ),
        (
            NATURAL,
            "/dateAndPlaceOfBirth",
            json!("1990-01-01"),
            "+/dateAndPlaceOfBirth",
            Problem::NotAnObject,
        ),
    ]
    .into_iter()
    .map(|(person, change, value, pointer, problem)| {
        let (party, data) = match person {
            NATURAL => (TransferParty::Originator, natural()),
            _ => (TransferParty::Beneficiary, legal()),
        };
        let pointer = match pointer.strip_prefix('+') {
            Some(rest) => at(person, rest),
            None => pointer.to_owned(),
        };
        (party, changed(data, &at(person, change), value), pointer, problem)
    })
    .collect();
    for (party, data, pointer, problem) in cases {
        let error = check(party, &data).unwrap_err();
        assert_eq!(
            (error.pointer.as_str(), error.problem),
            (pointer.as_str(), problem),
            "{data}"
        );
    }
}

//! The rules for persons (spec/60 section 11).

use super::{
    DataRules, FieldError, Problem, TransferParty,
    country::is_country,
    is_lei,
    json::{Pointer, Tree},
};
use gw_types::{Address, Timestamp};
use std::collections::BTreeMap;
use time::{Date, OffsetDateTime, macros::format_description};

type Members = BTreeMap<String, Tree>;

const NATURAL_NAME_TYPES: &[&str] = &["ALIA", "BIRT", "MAID", "LEGL", "MISC"];
const LEGAL_NAME_TYPES: &[&str] = &["LEGL", "SHRT", "TRAD"];
const ADDRESS_TYPES: &[&str] = &["HOME", "BIZZ", "GEOG"];
const IDENTIFIER_TYPES: &[&str] = &[
    "ARNU", "CCPT", "RAID", "DRLC", "FIIN", "TXID", "SOCS", "IDCD", "LEIX", "MISC",
];
const LEGAL_NAME: &str = "LEGL";
const LEI: &str = "LEIX";
/// The customer number of natural persons, and that of legal ones in the first issue of the standard.
const CUSTOMER_NUMBERS: &[&str] = &["customerIdentification", "customerNumber"];

/// Checks the data of a party.
pub(super) fn check_party(members: &Members, rules: &DataRules<'_>) -> Result<(), FieldError> {
    let root = &Pointer::ROOT;
    let name = rules.party.persons();
    let at = root.member(name);
    let persons = required(members, root, name)?;
    for (index, person) in array(persons, &at)?.iter().enumerate() {
        let at = at.item(index);
        check_person(object(person, &at)?, &at, rules.party, rules.now)?;
    }
    let at = root.member("accountNumber");
    let accounts = array(required(members, root, "accountNumber")?, &at)?;
    let mut is_named = false;
    for (index, account) in accounts.iter().enumerate() {
        let account = text(account, &at.item(index))?;
        is_named |= account_address(account).is_some_and(|address| rules.accounts.contains(&address));
    }
    if is_named {
        Ok(())
    } else {
        Err(at.error(Problem::Account))
    }
}

/// Checks a provider: a legal person that is identified as an originator is.
pub(super) fn check_provider(members: &Members, now: Timestamp) -> Result<(), FieldError> {
    if !members.contains_key("legalPerson") || members.contains_key("naturalPerson") {
        return Err(Pointer::ROOT.error(Problem::NotALegalPerson));
    }
    check_person(members, &Pointer::ROOT, TransferParty::Originator, now)
}

fn check_person(person: &Members, at: &Pointer<'_>, party: TransferParty, now: Timestamp) -> Result<(), FieldError> {
    match (person.get("naturalPerson"), person.get("legalPerson")) {
        (Some(natural), None) => {
            let at = at.member("naturalPerson");
            let natural = object(natural, &at)?;
            check_names(natural, &at, check_natural_name)?;
            let has_birth = check_birth(natural, &at, now)?;
            check_country(natural, &at, "countryOfResidence")?;
            check_identification(natural, &at, party, has_birth)
        }
        (None, Some(legal)) => {
            let at = at.member("legalPerson");
            let legal = object(legal, &at)?;
            check_names(legal, &at, check_legal_name)?;
            check_country(legal, &at, "countryOfRegistration")?;
            check_identification(legal, &at, party, false)
        }
        (Some(_), Some(_)) | (None, None) => Err(at.error(Problem::PersonKind)),
    }
}

/// Checks a name and gives its type.
type NameCheck = for<'a> fn(&'a Members, &Pointer<'_>) -> Result<&'a str, FieldError>;

/// `name` is an object, or an array of objects, with `nameIdentifier` arrays.
fn check_names(person: &Members, at: &Pointer<'_>, check: NameCheck) -> Result<(), FieldError> {
    let names = required(person, at, "name")?;
    let at = at.member("name");
    let mut has_legal_name = false;
    for_each_object(names, &at, |name, at| {
        let identifiers = required(name, at, "nameIdentifier")?;
        let at = at.member("nameIdentifier");
        for (index, identifier) in array(identifiers, &at)?.iter().enumerate() {
            let at = at.item(index);
            has_legal_name |= check(object(identifier, &at)?, &at)? == LEGAL_NAME;
        }
        Ok(())
    })?;
    if has_legal_name {
        Ok(())
    } else {
        Err(at.error(Problem::LegalName))
    }
}

fn check_natural_name<'a>(name: &'a Members, at: &Pointer<'_>) -> Result<&'a str, FieldError> {
    required_text(name, at, "primaryIdentifier")?;
    optional_text(name, at, "secondaryIdentifier")?;
    // The second issue of the standard renamed the member.
    let member = if name.contains_key("naturalPersonNameIdentifierType") {
        "naturalPersonNameIdentifierType"
    } else {
        "nameIdentifierType"
    };
    code(name, at, member, NATURAL_NAME_TYPES)
}

fn check_legal_name<'a>(name: &'a Members, at: &Pointer<'_>) -> Result<&'a str, FieldError> {
    required_text(name, at, "legalPersonName")?;
    code(name, at, "legalPersonNameIdentifierType", LEGAL_NAME_TYPES)
}

/// Checks what identifies a person. An originator needs one of them.
fn check_identification(
    person: &Members,
    at: &Pointer<'_>,
    party: TransferParty,
    has_birth: bool,
) -> Result<(), FieldError> {
    let mut is_identified = has_birth;
    if let Some(addresses) = person.get("geographicAddress") {
        for_each_object(addresses, &at.member("geographicAddress"), check_address)?;
        is_identified = true;
    }
    for member in CUSTOMER_NUMBERS {
        is_identified |= optional_text(person, at, member)?.is_some();
    }
    if let Some(identification) = person.get("nationalIdentification") {
        let at = at.member("nationalIdentification");
        check_national_identification(object(identification, &at)?, &at)?;
        is_identified = true;
    }
    match party {
        TransferParty::Originator if !is_identified => Err(at.error(Problem::Identification)),
        TransferParty::Originator | TransferParty::Beneficiary => Ok(()),
    }
}

fn check_address(address: &Members, at: &Pointer<'_>) -> Result<(), FieldError> {
    if address.contains_key("addressType") {
        code(address, at, "addressType", ADDRESS_TYPES)?;
    }
    let mut has_lines = false;
    if let Some(lines) = address.get("addressLine") {
        let at = at.member("addressLine");
        for (index, line) in array(lines, &at)?.iter().enumerate() {
            text(line, &at.item(index))?;
            has_lines = true;
        }
    }
    let street = optional_text(address, at, "streetName")?;
    let number = optional_text(address, at, "buildingNumber")?;
    let building = optional_text(address, at, "buildingName")?;
    let has_street = street.is_some() && (number.is_some() || building.is_some());
    if !has_lines && !has_street {
        return Err(at.error(Problem::Address));
    }
    required(address, at, "country")?;
    check_country(address, at, "country")
}

fn check_national_identification(identification: &Members, at: &Pointer<'_>) -> Result<(), FieldError> {
    let identifier = required_text(identification, at, "nationalIdentifier")?;
    let kind = code(identification, at, "nationalIdentifierType", IDENTIFIER_TYPES)?;
    if kind == LEI && !is_lei(identifier) {
        return Err(at.member("nationalIdentifier").error(Problem::Lei));
    }
    check_country(identification, at, "countryOfIssue")
}

/// Checks `dateAndPlaceOfBirth` and says whether it is there.
fn check_birth(person: &Members, at: &Pointer<'_>, now: Timestamp) -> Result<bool, FieldError> {
    let Some(birth) = person.get("dateAndPlaceOfBirth") else {
        return Ok(false);
    };
    let at = at.member("dateAndPlaceOfBirth");
    let birth = object(birth, &at)?;
    required_text(birth, &at, "placeOfBirth")?;
    let date = required_text(birth, &at, "dateOfBirth")?;
    let at = at.member("dateOfBirth");
    let date = calendar_date(date).ok_or_else(|| at.error(Problem::Date))?;
    // A time that has no date has no past either.
    let today = OffsetDateTime::from_unix_timestamp(now.secs()).map_or(Date::MIN, OffsetDateTime::date);
    if date < today {
        Ok(true)
    } else {
        Err(at.error(Problem::BirthDate))
    }
}

/// A date in the form YYYY-MM-DD and in no other.
fn calendar_date(text: &str) -> Option<Date> {
    if text.len() != 10 {
        return None;
    }
    Date::parse(text, format_description!("[year]-[month]-[day]")).ok()
}

/// The address that an account names: alone, or at the end of an account id with its chain (CAIP-10).
fn account_address(account: &str) -> Option<Address> {
    let (chain, address) = account.rsplit_once(':').unwrap_or(("", account));
    let is_evm = chain.is_empty() || chain.contains("eip155");
    let digits = address.strip_prefix("0x").or_else(|| address.strip_prefix("0X"))?;
    if is_evm { digits.parse().ok() } else { None }
}

fn check_country(members: &Members, at: &Pointer<'_>, name: &str) -> Result<(), FieldError> {
    match optional_text(members, at, name)? {
        Some(country) if !is_country(country) => Err(at.member(name).error(Problem::Country)),
        Some(_) | None => Ok(()),
    }
}

fn code<'a>(members: &'a Members, at: &Pointer<'_>, name: &str, codes: &[&str]) -> Result<&'a str, FieldError> {
    let code = required_text(members, at, name)?;
    if codes.contains(&code) {
        Ok(code)
    } else {
        Err(at.member(name).error(Problem::Code))
    }
}

/// An object, or each object of an array: the issues of the standard differ.
fn for_each_object(
    tree: &Tree,
    at: &Pointer<'_>,
    mut check: impl FnMut(&Members, &Pointer<'_>) -> Result<(), FieldError>,
) -> Result<(), FieldError> {
    if let Some(members) = tree.as_object() {
        return check(members, at);
    }
    for (index, item) in array(tree, at)?.iter().enumerate() {
        let at = at.item(index);
        check(object(item, &at)?, &at)?;
    }
    Ok(())
}

fn required<'a>(members: &'a Members, at: &Pointer<'_>, name: &str) -> Result<&'a Tree, FieldError> {
    members.get(name).ok_or_else(|| at.member(name).error(Problem::Missing))
}

fn required_text<'a>(members: &'a Members, at: &Pointer<'_>, name: &str) -> Result<&'a str, FieldError> {
    text(required(members, at, name)?, &at.member(name))
}

fn optional_text<'a>(members: &'a Members, at: &Pointer<'_>, name: &str) -> Result<Option<&'a str>, FieldError> {
    members.get(name).map(|value| text(value, &at.member(name))).transpose()
}

fn object<'a>(tree: &'a Tree, at: &Pointer<'_>) -> Result<&'a Members, FieldError> {
    tree.as_object().ok_or_else(|| at.error(Problem::NotAnObject))
}

fn array<'a>(tree: &'a Tree, at: &Pointer<'_>) -> Result<&'a [Tree], FieldError> {
    let items = tree.as_array().filter(|items| !items.is_empty());
    items.ok_or_else(|| at.error(Problem::NotAnArray))
}

fn text<'a>(tree: &'a Tree, at: &Pointer<'_>) -> Result<&'a str, FieldError> {
    let text = tree.as_text().filter(|text| !text.trim().is_empty());
    text.ok_or_else(|| at.error(Problem::NotAText))
}

//! Data about the originator and the beneficiary of a travel-rule record (spec/60 section 11, "IVMS101").
//!
//! Data is an object of any form, unless it has persons of IVMS101 or the organization requires them. Then it is
//! checked by the rules of that section. Members that IVMS101 does not know are kept.
//!
//! Not here: sealing the data at rest, and the wire protocols between providers.
//!
//! Invariant: accepted data keeps its text, byte for byte; nothing is read from it in two ways.

mod country;
mod export;
mod json;
mod lei;
mod person;

use self::json::{Pointer, Tree};
use gw_types::{Address, Timestamp};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::{collections::BTreeMap, fmt};

pub use export::{FreeFormData, IdentityPayload, ProviderData};
pub use lei::is_lei;

/// The largest data, in bytes (section 11).
pub const MAX_SIZE: usize = 16 * 1024;

/// Whose data it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransferParty {
    /// Who sends.
    Originator,
    /// Who receives.
    Beneficiary,
}

/// The form of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataFormat {
    /// An object of any form.
    FreeForm,
    /// An originator or a beneficiary of IVMS101.
    Ivms101,
}

/// What data is checked against.
#[derive(Clone, Copy, Debug)]
pub struct DataRules<'a> {
    /// Whose data it is.
    pub party: TransferParty,
    /// The organization's `travel_rule_data`: whether other forms than IVMS101 are refused.
    pub required: DataFormat,
    /// The addresses of which `accountNumber` names one: those linked to the originator, or that of the beneficiary.
    pub accounts: &'a [Address],
    /// The current time: a birth lies before its day, in UTC.
    pub now: Timestamp,
}

/// Checked data about a party.
#[derive(Clone, Debug)]
pub struct PartyData {
    text: Box<RawValue>,
    format: DataFormat,
}

/// Why data is refused: where, and what is wrong. Neither holds a value of the data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{pointer}`: {problem}")]
pub struct FieldError {
    /// A JSON pointer (RFC 6901) to the value, or to where one is missing.
    pub pointer: String,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// More than 16 KiB.
    #[error("the data must not exceed 16 KiB")]
    TooLarge,
    /// More than 16 levels.
    #[error("the data must not nest deeper than 16 levels")]
    TooDeep,
    /// No JSON text.
    #[error("this is not valid JSON")]
    NotJson,
    /// An object names a member twice.
    #[error("this member stands here twice")]
    Duplicate,
    /// Another type than an object.
    #[error("this must be an object")]
    NotAnObject,
    /// Another type than an array, or an empty one.
    #[error("this must be an array with at least one element")]
    NotAnArray,
    /// Another type than a string, or a blank one.
    #[error("this must be a string that is not blank")]
    NotAText,
    /// Absent.
    #[error("this member is required")]
    Missing,
    /// Neither a natural nor a legal person, or both.
    #[error("a person must have either naturalPerson or legalPerson")]
    PersonKind,
    /// A provider that is no legal person.
    #[error("a provider must be a legalPerson")]
    NotALegalPerson,
    /// No name of the type LEGL.
    #[error("a person needs a name of the type LEGL")]
    LegalName,
    /// Nothing identifies the originator.
    #[error(
        "a person needs geographicAddress, a customer number, nationalIdentification or, if natural, \
         dateAndPlaceOfBirth"
    )]
    Identification,
    /// Neither lines nor a street with a building.
    #[error("an address needs addressLine, or streetName with buildingNumber or buildingName")]
    Address,
    /// A code that the standard does not list.
    #[error("this is not a code of IVMS101")]
    Code,
    /// No assigned alpha-2 code.
    #[error("this must be a country code of ISO 3166-1 alpha-2")]
    Country,
    /// No day of the calendar.
    #[error("this must be a date in the form YYYY-MM-DD")]
    Date,
    /// Today or later.
    #[error("a date of birth must be in the past")]
    BirthDate,
    /// Wrong form or check digits.
    #[error("this is not a legal entity identifier with valid check digits")]
    Lei,
    /// No account is one of the originator's linked addresses, or the beneficiary's address.
    #[error("accountNumber must include a linked address of the originator, or the beneficiary_address")]
    Account,
}

impl TransferParty {
    /// The name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Originator => "originator",
            Self::Beneficiary => "beneficiary",
        }
    }

    /// The member with the persons.
    const fn persons(self) -> &'static str {
        match self {
            Self::Originator => "originatorPersons",
            Self::Beneficiary => "beneficiaryPersons",
        }
    }
}

impl PartyData {
    /// Checks the text of a JSON object.
    ///
    /// # Errors
    /// [`FieldError`] for the first rule that is broken.
    pub fn parse(text: &str, rules: &DataRules<'_>) -> Result<Self, FieldError> {
        let tree = read_object(text)?;
        let format = format(&tree, rules.required);
        match format {
            DataFormat::FreeForm => {}
            DataFormat::Ivms101 => person::check_party(&tree, rules)?,
        }
        Self::new(text, format)
    }

    /// Reads data that was checked before it was stored. Its form shows from its persons.
    ///
    /// # Errors
    /// [`FieldError`] if the text is no JSON object within the limits.
    pub fn from_stored(text: &str) -> Result<Self, FieldError> {
        Self::new(text, format(&read_object(text)?, DataFormat::FreeForm))
    }

    /// The JSON text, as it was given.
    pub fn as_json(&self) -> &str {
        self.text.get()
    }

    /// The form that was recognized.
    pub const fn format(&self) -> DataFormat {
        self.format
    }

    fn new(text: &str, format: DataFormat) -> Result<Self, FieldError> {
        let text = RawValue::from_string(text.to_owned()).map_err(|_| Pointer::ROOT.error(Problem::NotJson))?;
        Ok(Self { text, format })
    }
}

impl fmt::Display for TransferParty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text of the data.
impl Serialize for PartyData {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

/// The members of an object within the limits.
fn read_object(text: &str) -> Result<BTreeMap<String, Tree>, FieldError> {
    if text.len() > MAX_SIZE {
        return Err(Pointer::ROOT.error(Problem::TooLarge));
    }
    match Tree::read(text)? {
        Tree::Object(members) => Ok(members),
        Tree::Array(_) | Tree::Text(_) | Tree::Other => Err(Pointer::ROOT.error(Problem::NotAnObject)),
    }
}

/// Data with persons of either party is IVMS101, and must then fit its own party.
fn format(members: &BTreeMap<String, Tree>, required: DataFormat) -> DataFormat {
    let has_persons = [TransferParty::Originator, TransferParty::Beneficiary]
        .into_iter()
        .any(|party| members.contains_key(party.persons()));
    if has_persons { DataFormat::Ivms101 } else { required }
}

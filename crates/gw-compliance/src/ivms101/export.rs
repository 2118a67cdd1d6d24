//! The payload of IVMS101 that a provider sends to another one.

use super::{DataFormat, FieldError, PartyData, Problem, TransferParty, json::Pointer, person, read_object};
use gw_types::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

/// The sending provider: `{"legalPerson": {...}}`, from the settings of the organization.
#[derive(Clone, Debug)]
pub struct ProviderData(Box<RawValue>);

/// The payload of a record: originator, beneficiary and sending provider. Serialize it to text.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IdentityPayload<'a> {
    originator: &'a RawValue,
    beneficiary: &'a RawValue,
    #[serde(rename = "originatingVASP")]
    provider: OriginatingProvider<'a>,
}

/// The standard wraps the person once more.
#[derive(Clone, Copy, Debug, Serialize)]
struct OriginatingProvider<'a> {
    #[serde(rename = "originatingVASP")]
    person: &'a RawValue,
}

/// Why a record has no payload: the data of this party has another form than IVMS101.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the data of the {0} is not in the form of IVMS101")]
pub struct FreeFormData(pub TransferParty);

impl ProviderData {
    /// Checks the text of a JSON object with the member `legalPerson`: its name of the type LEGL, and an address, a
    /// customer number or a national identification.
    ///
    /// # Errors
    /// [`FieldError`] for the first rule that is broken.
    pub fn parse(text: &str, now: Timestamp) -> Result<Self, FieldError> {
        person::check_provider(&read_object(text)?, now)?;
        RawValue::from_string(text.to_owned())
            .map(Self)
            .map_err(|_| Pointer::ROOT.error(Problem::NotJson))
    }

    /// The JSON text, as it was given.
    pub fn as_json(&self) -> &str {
        self.0.get()
    }
}

impl<'a> IdentityPayload<'a> {
    /// Joins the data of a record and its provider.
    ///
    /// # Errors
    /// [`FreeFormData`] if the data of a party is not in the form of IVMS101.
    pub fn new(
        originator: &'a PartyData,
        beneficiary: &'a PartyData,
        provider: &'a ProviderData,
    ) -> Result<Self, FreeFormData> {
        for (party, data) in [
            (TransferParty::Originator, originator),
            (TransferParty::Beneficiary, beneficiary),
        ] {
            match data.format {
                DataFormat::Ivms101 => {}
                DataFormat::FreeForm => return Err(FreeFormData(party)),
            }
        }
        Ok(Self {
            originator: &originator.text,
            beneficiary: &beneficiary.text,
            provider: OriginatingProvider { person: &provider.0 },
        })
    }
}

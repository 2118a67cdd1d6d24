//! The payload for another provider.

use super::{changed, legal, natural, now, rules};
use gw_compliance::ivms101::{
    DataFormat, FreeFormData, IdentityPayload, PartyData, Problem, ProviderData, TransferParty,
};
use serde_json::{Value, json};

fn provider() -> Value {
    let person = legal().pointer("/beneficiaryPersons/0").unwrap().clone();
    changed(person, "/legalPerson/customerNumber", json!(null))
}

/// CO-38: the payload joins the data as it was given, with the provider.
#[test]
fn co38_a_record_is_exported_as_one_payload() {
    let party = |data: Value, party| PartyData::parse(&data.to_string(), &rules(party)).unwrap();
    let originator = party(natural(), TransferParty::Originator);
    let beneficiary = party(legal(), TransferParty::Beneficiary);
    let sender = ProviderData::parse(&provider().to_string(), now()).unwrap();
    let payload = IdentityPayload::new(&originator, &beneficiary, &sender).unwrap();
    assert_eq!(
        serde_json::to_string(&payload).unwrap(),
        format!(
            r#"{{"originator":{},"beneficiary":{},"originatingVASP":{{"originatingVASP":{}}}}}"#,
            natural(),
            legal(),
            provider()
        )
    );

    let stored = PartyData::from_stored(originator.as_json()).unwrap();
    assert_eq!(
        (stored.format(), stored.as_json()),
        (DataFormat::Ivms101, originator.as_json())
    );
    let free = PartyData::from_stored(r#"{"name":"Ada"}"#).unwrap();
    assert_eq!(free.format(), DataFormat::FreeForm);
    let refused = |originator, beneficiary| IdentityPayload::new(originator, beneficiary, &sender).err();
    assert_eq!(
        refused(&free, &beneficiary),
        Some(FreeFormData(TransferParty::Originator))
    );
    assert_eq!(
        refused(&originator, &free),
        Some(FreeFormData(TransferParty::Beneficiary))
    );
    let message = refused(&originator, &free).unwrap().to_string();
    assert_eq!(message, "the data of the beneficiary is not in the form of IVMS101");
}

/// CO-38: the provider is a legal person with a legal name and an identification.
#[test]
fn co38_a_provider_is_an_identified_legal_person() {
    let error = |data: Value| {
        let error = ProviderData::parse(&data.to_string(), now()).unwrap_err();
        (error.pointer, error.problem)
    };
    let sender = ProviderData::parse(&provider().to_string(), now()).unwrap();
    assert_eq!(sender.as_json(), provider().to_string());
    assert_eq!(error(json!([])), (String::new(), Problem::NotAnObject));
    assert_eq!(error(json!({})), (String::new(), Problem::NotALegalPerson));
    assert_eq!(
        error(natural().pointer("/originatorPersons/0").unwrap().clone()).1,
        Problem::NotALegalPerson
    );
    assert_eq!(
        error(changed(provider(), "/naturalPerson", json!({}))).1,
        Problem::NotALegalPerson
    );
    let lei = "/legalPerson/nationalIdentification/nationalIdentifier";
    assert_eq!(
        error(changed(provider(), lei, json!("5067"))),
        (lei.to_owned(), Problem::Lei)
    );
    let bare = ["geographicAddress", "nationalIdentification"].iter();
    let bare = bare.fold(provider(), |data, member| {
        changed(data, &format!("/legalPerson/{member}"), json!(null))
    });
    assert_eq!(error(bare), ("/legalPerson".to_owned(), Problem::Identification));
}

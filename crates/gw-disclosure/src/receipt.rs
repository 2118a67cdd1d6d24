//! Consent receipts in the shape of ISO/IEC TS 27560 (spec/50 section 9): request, grant and events of a disclosure as
//! one document, for its owner.

use crate::wire::EventRow;
use gw_policy::disclosure::scope::level_text;
use gw_store::{
    read::Page,
    record::{DisclosureGrant, DisclosureRequest},
};
use gw_types::{ExternalId, Timestamp};
use serde::Serialize;
use serde_json::{Value, json};

/// The version of the schema that the receipt names.
const SCHEMA: &str = "ISO/IEC TS 27560:2023";

/// What a receipt is about.
#[derive(Debug)]
pub(crate) struct Disclosure<'a> {
    pub(crate) owner: &'a ExternalId,
    /// Its name; `None` if it was deleted.
    pub(crate) organization: Option<&'a str>,
    pub(crate) request: &'a DisclosureRequest,
    pub(crate) grant: &'a DisclosureGrant,
    /// The newest events, and the number of all.
    pub(crate) events: &'a Page<EventRow>,
    /// The base URL of the gateway, without a slash at its end.
    pub(crate) base_url: &'a str,
    pub(crate) now: Timestamp,
}

/// The receipt, without a signature.
pub(crate) fn receipt(disclosure: &Disclosure<'_>) -> Value {
    let Disclosure {
        owner,
        organization,
        request,
        grant,
        events,
        base_url,
        now,
    } = disclosure;
    let scope = &grant.scope;
    let grantee = grant.grantee.as_ref().map(ExternalId::as_str);
    json!({
        "schema_version": SCHEMA,
        "receipt_id": grant.id.to_string(),
        "record_id": request.id.to_string(),
        "pii_principal_id": owner.as_str(),
        "issued_at": now.to_rfc3339(),
        "pii_processing": [{
            "purpose": request.reason,
            "lawful_basis": request.legal_basis.as_deref().unwrap_or("consent"),
            "pii_information": pii_information(grant),
            "disclosure_level": level_text(scope.level),
            "pii_controllers": [request.org.to_string()],
            "recipient_third_parties": grantee.into_iter().collect::<Vec<_>>(),
            "retention_period": { "from": grant.granted_at.to_rfc3339(), "until": grant.expires_at.to_rfc3339() },
            "collection_method": "owner's approval",
            "withdrawal_method": format!("POST {base_url}/api/v1/me/disclosure/requests/{}/revoke", request.id),
        }],
        "party_identification": parties(request, *organization, grantee),
        "event_count": events.total,
        "events": events_of(disclosure, &events.rows),
    })
}

/// The classes of data that the grant covers, and what narrows them.
fn pii_information(grant: &DisclosureGrant) -> Value {
    let scope = &grant.scope;
    let classes = match scope.methods.as_deref() {
        None => vec!["transaction_history"],
        Some(methods) => methods.iter().map(String::as_str).collect(),
    };
    let narrowing = json!({
        "addresses": scope.addresses.as_ref().map(|list| {
            list.iter().map(|address| format!("{address:#x}")).collect::<Vec<_>>()
        }),
        "date_range": scope.dates.map(|(start, end)| json!({"start": start.to_rfc3339(), "end": end.to_rfc3339()})),
        "include_future_addresses": grant.include_future_addresses,
    });
    classes
        .into_iter()
        .map(|class| json!({ "pii_type": class, "scope": narrowing }))
        .collect()
}

fn parties(request: &DisclosureRequest, organization: Option<&str>, grantee: Option<&str>) -> Value {
    let organization = json!({
        "party_id": request.org.to_string(),
        "party_name": organization,
        "party_role": "controller",
    });
    let grantee = grantee.map(|did| json!({ "party_id": did, "party_role": "recipient" }));
    std::iter::once(organization).chain(grantee).collect()
}

/// The consent itself, its end, and what happened under it.
fn events_of(disclosure: &Disclosure<'_>, events: &[EventRow]) -> Value {
    let grant = disclosure.grant;
    let state = grant.status_at(disclosure.now);
    let given = json!({
        "event_time": grant.granted_at.to_rfc3339(),
        "event_type": "explicit consent",
        "event_state": "consent given",
        "entity_id": disclosure.owner.as_str(),
        "validity_duration": { "until": grant.expires_at.to_rfc3339() },
    });
    let withdrawn = grant.revoked_at.map(|at| {
        json!({
            "event_time": at.to_rfc3339(),
            "event_type": "withdrawal",
            "event_state": "consent withdrawn",
            "reason": grant.revoked_reason,
        })
    });
    let is_expired = state == gw_policy::disclosure::GrantStatus::Expired;
    let expired = is_expired.then(|| {
        json!({
            "event_time": grant.expires_at.to_rfc3339(),
            "event_type": "expiry",
            "event_state": "consent expired",
        })
    });
    let accesses = events.iter().map(access);
    std::iter::once(given)
        .chain(withdrawn)
        .chain(expired)
        .chain(accesses)
        .collect()
}

fn access(event: &EventRow) -> Value {
    #[derive(Serialize)]
    struct Access<'a> {
        event_type: &'static str,
        #[serde(flatten)]
        event: &'a EventRow,
    }
    let access = Access {
        event_type: "access",
        event,
    };
    // An event has no key that is not a string.
    serde_json::to_value(access).unwrap_or_default()
}

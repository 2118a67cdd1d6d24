//! Every rejection of spec/10 DS-4 and DS-5, one changed claim at a time.

use super::*;
use crate::directory::KeySetError;
use gw_testkit::jwt::SigningKey;
use serde_json::{Value, json};
use std::sync::LazyLock;

const AUTHORITY: &str = "https://login.microsoftonline.com";
const CLIENT: &str = "11111111-aaaa-4aaa-8aaa-111111111111";
const TENANT: &str = "22222222-bbbb-4bbb-8bbb-222222222222";
const OTHER: &str = "33333333-cccc-4ccc-8ccc-333333333333";
const OID: &str = "44444444-dddd-4ddd-8ddd-444444444444";
const MACHINE: &str = "55555555-eeee-4eee-8eee-555555555555";
const NONCE: &str = "n-0123456789abcdef";
const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

/// Generated once, because key generation is slow.
static KEY: LazyLock<SigningKey> = LazyLock::new(|| SigningKey::generate("k1"));
static STRANGER: LazyLock<SigningKey> = LazyLock::new(|| SigningKey::generate("k1"));

fn rules() -> Rules {
    Rules {
        authority: AUTHORITY.into(),
        client_id: CLIENT.into(),
        sp_audience: CLIENT.into(),
        sp_clients: Vec::new(),
        sp_role: None,
    }
}

fn keys() -> KeySet {
    set(&[KEY.jwk()]).unwrap()
}

fn set(keys: &[Value]) -> Result<KeySet, KeySetError> {
    KeySet::parse(json!({ "keys": keys }).to_string().as_bytes())
}

/// A user's id token.
fn person() -> Value {
    let now = NOW.secs();
    json!({
        "iss": format!("{AUTHORITY}/{TENANT}/v2.0"), "aud": CLIENT, "tid": TENANT, "oid": OID, "sub": "pairwise",
        "nonce": NONCE, "iat": now, "nbf": now, "exp": now + 3600, "ver": "2.0", "name": "Somebody",
    })
}

/// A service principal's access token, v2.
fn machine_v2() -> Value {
    let now = NOW.secs();
    json!({
        "iss": format!("{AUTHORITY}/{TENANT}/v2.0"), "aud": CLIENT, "tid": TENANT, "oid": OID, "sub": OID,
        "azp": MACHINE, "idtyp": "app", "roles": ["Ledger.Use"],
        "iat": now, "nbf": now, "exp": now + 3600, "ver": "2.0",
    })
}

/// A service principal's access token, v1: another issuer, the audience as a URI, `appid`.
fn machine_v1() -> Value {
    let mut claims = machine_v2();
    claims["iss"] = format!("https://sts.windows.net/{TENANT}/").into();
    claims["aud"] = format!("api://{CLIENT}").into();
    claims["appid"] = MACHINE.into();
    claims["ver"] = "1.0".into();
    without(&mut claims, "azp");
    without(&mut claims, "idtyp");
    claims
}

fn without(claims: &mut Value, name: &str) {
    claims.as_object_mut().unwrap().remove(name);
}

fn with(mut claims: Value, name: &str, value: impl Into<Value>) -> Value {
    match value.into() {
        Value::Null => without(&mut claims, name),
        value => claims[name] = value,
    }
    claims
}

fn as_person(claims: &Value) -> Result<Identity, Fault> {
    id_token(&KEY.sign(claims), &keys(), &rules(), NONCE, NOW)
}

fn as_machine(claims: &Value) -> Result<Identity, Fault> {
    service_principal(&KEY.sign(claims), &keys(), &rules(), NOW)
}

fn expected() -> Identity {
    Identity {
        tenant: TENANT.parse().unwrap(),
        subject: ExternalId::new(&format!("directory:{OID}")).unwrap(),
    }
}

#[test]
fn ds4_a_good_id_token_names_tenant_and_person() {
    assert_eq!(as_person(&person()), Ok(expected()));
    // `nbf` is optional, and an audience list with one entry is accepted.
    assert_eq!(as_person(&with(person(), "nbf", Value::Null)), Ok(expected()));
    assert_eq!(as_person(&with(person(), "aud", json!([CLIENT]))), Ok(expected()));
    // A GUID has one canonical spelling, so another spelling makes no second account.
    assert_eq!(as_person(&with(person(), "oid", OID.to_uppercase())), Ok(expected()));
}

#[test]
fn ds4_every_wrong_claim_of_an_id_token_is_refused() {
    let now = NOW.secs();
    let table: Vec<(&str, Value, Fault)> = vec![
        ("expired", (now - 60).into(), Fault::Expired),
        ("exp", Value::Null, Fault::Malformed),
        ("exp", "soon".into(), Fault::Malformed),
        ("exp", i64::MIN.into(), Fault::Expired),
        ("nbf", (now + 61).into(), Fault::NotYet),
        ("iat", (now + 61).into(), Fault::NotYet),
        ("iat", i64::MAX.into(), Fault::NotYet),
        ("iat", Value::Null, Fault::Malformed),
        ("tid", Value::Null, Fault::TenantId),
        ("tid", "common".into(), Fault::TenantId),
        ("tid", TENANT.replace('-', "").into(), Fault::TenantId),
        ("tid", "00000000-0000-0000-0000-000000000000".into(), Fault::TenantId),
        ("tid", OTHER.into(), Fault::Issuer),
        ("iss", format!("{AUTHORITY}/{OTHER}/v2.0").into(), Fault::Issuer),
        ("iss", format!("{AUTHORITY}/common/v2.0").into(), Fault::Issuer),
        ("iss", format!("{AUTHORITY}/{{tenantid}}/v2.0").into(), Fault::Issuer),
        ("iss", format!("{AUTHORITY}/{TENANT}/v2.0/").into(), Fault::Issuer),
        (
            "iss",
            format!("https://evil.example/{TENANT}/v2.0").into(),
            Fault::Issuer,
        ),
        (
            "iss",
            format!("https://sts.windows.net/{TENANT}/").into(),
            Fault::Issuer,
        ),
        ("aud", OTHER.into(), Fault::Audience),
        ("aud", format!("api://{CLIENT}").into(), Fault::Audience),
        ("aud", json!([CLIENT, OTHER]), Fault::Audience),
        ("aud", json!([]), Fault::Audience),
        ("aud", Value::Null, Fault::Malformed),
        ("nonce", Value::Null, Fault::Nonce),
        ("nonce", "".into(), Fault::Nonce),
        ("nonce", "another".into(), Fault::Nonce),
        ("oid", Value::Null, Fault::Subject),
        ("oid", "".into(), Fault::Subject),
        ("oid", "with blank".into(), Fault::Subject),
        // An object id that is not a GUID is rejected.
        ("oid", "alice".into(), Fault::Subject),
        ("oid", "00000000-0000-0000-0000-000000000000".into(), Fault::Subject),
        ("oid", "x".repeat(300).into(), Fault::Subject),
    ];
    for (name, value, fault) in table {
        let claim = if name == "expired" { "exp" } else { name };
        assert_eq!(
            as_person(&with(person(), claim, value.clone())),
            Err(fault),
            "{name} {value}"
        );
    }
    // A service principal's token is not an id token: it has no nonce.
    assert_eq!(as_person(&machine_v2()), Err(Fault::Nonce));
    // An empty expected nonce is rejected, because it would match any login.
    let empty = id_token(&KEY.sign(&with(person(), "nonce", "")), &keys(), &rules(), "", NOW);
    assert_eq!(empty, Err(Fault::Nonce));
}

#[test]
fn ds4_clocks_may_be_a_minute_apart() {
    let now = NOW.secs();
    assert!(as_person(&with(person(), "exp", now - 59)).is_ok());
    assert!(as_person(&with(person(), "nbf", now + 60)).is_ok());
    assert!(as_person(&with(person(), "iat", now + 60)).is_ok());
}

#[test]
fn ds4_ds6_only_rs256_under_a_known_key_counts() {
    let claims = person();
    let verify = |token: &str, keys: &KeySet| id_token(token, keys, &rules(), NONCE, NOW);
    let header = |change: Value| {
        let mut header = json!({ "alg": "RS256", "typ": "JWT", "kid": "k1" });
        for (name, value) in change.as_object().unwrap() {
            header[name] = value.clone();
        }
        KEY.sign_as(&header, &claims)
    };
    assert!(verify(&header(json!({})), &keys()).is_ok());
    for alg in ["none", "HS256", "RS512", "PS256", "ES256", "rs256"] {
        assert_eq!(
            verify(&header(json!({ "alg": alg })), &keys()),
            Err(Fault::Algorithm),
            "{alg}"
        );
    }
    assert_eq!(
        verify(&header(json!({ "crit": ["b64"], "b64": false })), &keys()),
        Err(Fault::Algorithm)
    );
    assert_eq!(verify(&header(json!({ "kid": "k2" })), &keys()), Err(Fault::UnknownKey));
    assert_eq!(verify(&header(json!({ "kid": null })), &keys()), Err(Fault::Malformed));
    // A key inside the token is ignored.
    let own_key = STRANGER.sign_as(&json!({ "alg": "RS256", "kid": "k1", "jwk": STRANGER.jwk() }), &claims);
    assert_eq!(verify(&own_key, &keys()), Err(Fault::Signature));
    assert_eq!(verify(&STRANGER.sign(&claims), &keys()), Err(Fault::Signature));
    // If two keys share an id, either may have signed.
    assert!(verify(&STRANGER.sign(&claims), &set(&[KEY.jwk(), STRANGER.jwk()]).unwrap()).is_ok());

    let good = KEY.sign(&claims);
    let parts: Vec<&str> = good.split('.').collect();
    for broken in [
        String::new(),
        "a.b.c".to_owned(),
        parts[..2].join("."),
        format!("{good}."),
        format!("{good}=="),
        format!("{}.{}.", parts[0], parts[1]),
        format!(
            "{}.{}.{}",
            parts[0],
            KEY.sign(&with(person(), "oid", OTHER)).split('.').nth(1).unwrap(),
            parts[2]
        ),
        "x".repeat(20_000),
    ] {
        let fault = verify(&broken, &keys()).unwrap_err();
        assert!(
            matches!(fault, Fault::Malformed | Fault::Signature),
            "{fault:?} {broken}"
        );
    }
}

#[test]
fn ds4_a_keys_issuer_template_must_fit() {
    let under = |issuer: &str| {
        let mut key = KEY.jwk();
        key["issuer"] = issuer.into();
        let keys = set(&[key]).unwrap();
        let person = id_token(&KEY.sign(&person()), &keys, &rules(), NONCE, NOW);
        let older = service_principal(&KEY.sign(&machine_v1()), &keys, &rules(), NOW);
        assert_eq!(person, older);
        person
    };
    assert!(under(&format!("{AUTHORITY}/{{tenantid}}/v2.0")).is_ok());
    assert!(under(&format!("{AUTHORITY}/{TENANT}/v2.0")).is_ok());
    // The tenant of personal accounts has its own signing keys.
    assert_eq!(
        under(&format!("{AUTHORITY}/9188040d-6c67-4c5b-b112-36a304b66dad/v2.0")),
        Err(Fault::KeyIssuer)
    );
    assert_eq!(under("https://evil.example/{tenantid}/v2.0"), Err(Fault::KeyIssuer));
}

#[test]
fn ds5_both_forms_of_a_machines_token_are_taken() {
    assert_eq!(as_machine(&machine_v2()), Ok(expected()));
    assert_eq!(as_machine(&machine_v1()), Ok(expected()));
    // The audience may be configured as a URI or as a GUID, in either case.
    for configured in [CLIENT.to_owned(), format!("api://{CLIENT}"), CLIENT.to_uppercase()] {
        let rules = Rules {
            sp_audience: configured.clone(),
            ..rules()
        };
        for claims in [machine_v1(), machine_v2()] {
            assert!(
                service_principal(&KEY.sign(&claims), &keys(), &rules, NOW).is_ok(),
                "{configured}"
            );
        }
    }
    // Without `idtyp`, a token is an application's own if its subject is its object id.
    assert!(as_machine(&with(machine_v2(), "idtyp", Value::Null)).is_ok());
}

#[test]
fn ds5_every_token_that_is_no_machines_is_refused() {
    let now = NOW.secs();
    for (form, claims) in [("v1", machine_v1()), ("v2", machine_v2())] {
        let client = if form == "v1" { "appid" } else { "azp" };
        let table: Vec<(&str, Value, Fault)> = vec![
            ("exp", (now - 60).into(), Fault::Expired),
            ("exp", Value::Null, Fault::Malformed),
            ("nbf", (now + 61).into(), Fault::NotYet),
            ("tid", "contoso.example".into(), Fault::TenantId),
            ("tid", OTHER.into(), Fault::Issuer),
            ("iss", format!("https://sts.windows.net/{OTHER}/").into(), Fault::Issuer),
            ("iss", format!("https://sts.windows.net/{TENANT}").into(), Fault::Issuer),
            ("aud", OTHER.into(), Fault::Audience),
            ("aud", format!("api://{OTHER}").into(), Fault::Audience),
            ("aud", "https://graph.microsoft.com".into(), Fault::Audience),
            ("aud", json!([CLIENT, OTHER]), Fault::Audience),
            ("nonce", NONCE.into(), Fault::Nonce),
            ("nonce", "".into(), Fault::Nonce),
            ("scp", "user_impersonation".into(), Fault::NotAppOnly),
            ("scp", "".into(), Fault::NotAppOnly),
            ("idtyp", "user".into(), Fault::NotAppOnly),
            (client, Value::Null, Fault::Client),
            (client, "".into(), Fault::Client),
            (
                "oid",
                Value::Null,
                if form == "v1" {
                    Fault::NotAppOnly
                } else {
                    Fault::Subject
                },
            ),
        ];
        for (name, value, fault) in table {
            assert_eq!(
                as_machine(&with(claims.clone(), name, value.clone())),
                Err(fault),
                "{form}: {name} {value}"
            );
        }
    }
    // A user's access token: the subject is not the object id.
    let person_v1 = with(machine_v1(), "sub", "pairwise");
    assert_eq!(as_machine(&person_v1), Err(Fault::NotAppOnly));
    // A login's id token with the same audience.
    assert_eq!(as_machine(&person()), Err(Fault::Nonce));
    // v1 and v2 name the client in different claims.
    assert_eq!(
        as_machine(&with(with(machine_v2(), "azp", Value::Null), "appid", MACHINE)),
        Err(Fault::Client)
    );
}

#[test]
fn ds5_listed_clients_and_roles_are_required_where_configured() {
    let verify = |claims: &Value, rules: Rules| service_principal(&KEY.sign(claims), &keys(), &rules, NOW);
    let listed = |client: &str| Rules {
        sp_clients: vec![OTHER.into(), client.into()],
        ..rules()
    };
    let role = |role: &str| Rules {
        sp_role: Some(role.into()),
        ..rules()
    };
    for claims in [machine_v1(), machine_v2()] {
        assert!(verify(&claims, listed(MACHINE)).is_ok());
        assert_eq!(verify(&claims, listed(CLIENT)), Err(Fault::Client));
        assert!(verify(&claims, role("Ledger.Use")).is_ok());
        assert_eq!(verify(&claims, role("ledger.use")), Err(Fault::Role));
        assert_eq!(
            verify(&with(claims, "roles", Value::Null), role("Ledger.Use")),
            Err(Fault::Role)
        );
    }
}

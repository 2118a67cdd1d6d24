use super::*;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde_json::{Value, json};

pub(super) const ISSUER: &str = "https://gate.example";
pub(super) const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);
pub(super) const ACCESS: &str = "access-secret-of-32-bytes-or-more";
pub(super) const REFRESH: &str = "refresh-secret-of-32-bytes-or-more";

pub(super) fn secrets(current: &str, previous: &[&str]) -> TokenSecrets {
    TokenSecrets {
        current: Secret::new(current),
        previous: previous.iter().copied().map(Secret::new).collect(),
    }
}

const LIVES: TokenLives = TokenLives {
    access: Seconds(3_600),
    refresh: Seconds(7 * 86_400),
};

pub(super) fn codec() -> TokenCodec {
    TokenCodec::new(ISSUER, &secrets(ACCESS, &[]), &secrets(REFRESH, &[]))
        .unwrap()
        .with_lives(LIVES)
}

pub(super) fn claims() -> AccessClaims {
    AccessClaims {
        subject: ExternalId::new("did:test:alice").unwrap(),
        token: TokenId::fixed(7),
        session: SessionId::fixed(8),
        issued_at: NOW,
        expires_at: NOW.plus(Seconds(300)),
        kyc: true,
        amr: Amr::Zk,
    }
}

pub(super) fn refresh_claims() -> RefreshClaims {
    let AccessClaims {
        subject,
        token,
        session,
        issued_at,
        expires_at,
        amr,
        ..
    } = claims();
    RefreshClaims {
        subject,
        token,
        session,
        issued_at,
        expires_at,
        amr,
    }
}

pub(super) fn payload() -> Value {
    json!({
        "iss": ISSUER, "aud": AUDIENCE, "sub": "did:test:alice",
        "jti": "00000000-0000-0000-0000-000000000007", "sid": "00000000-0000-0000-0000-000000000008",
        "iat": NOW.secs(), "nbf": NOW.secs(), "exp": NOW.secs() + 300, "amr": ["zk"], "kyc": true,
    })
}

/// A forged token: `header` and `payload` as given, signed by HMAC-SHA256 with `key`.
pub(super) fn forge(header: &Value, payload: &Value, key: &str) -> String {
    let signed = format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(header.to_string()),
        URL_SAFE_NO_PAD.encode(payload.to_string())
    );
    let tag = Hmac::<Sha256>::new_from_slice(key.as_bytes())
        .unwrap()
        .chain_update(&signed)
        .finalize()
        .into_bytes();
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag))
}

fn at_header() -> Value {
    json!({"alg": "HS256", "typ": "at+jwt"})
}

/// Checks a valid payload in which `member` is replaced.
fn with(member: &str, value: Value) -> Result<AccessClaims, TokenError> {
    let mut payload = payload();
    payload[member] = value;
    codec().access(&forge(&at_header(), &payload, ACCESS), NOW)
}

#[test]
fn tk1_what_is_signed_is_read_back() {
    let access = codec().sign_access(&claims());
    assert_eq!(codec().access(access.expose(), NOW), Ok(claims()));
    let refresh = codec().sign_refresh(&refresh_claims());
    assert_eq!(codec().refresh(refresh.expose(), NOW), Ok(refresh_claims()));
    assert_eq!(
        codec().access(&forge(&at_header(), &payload(), ACCESS), NOW),
        Ok(claims()),
        "the forger is faithful"
    );
}

#[test]
fn tk1_another_library_reads_and_writes_the_same_tokens() {
    let text = codec().sign_access(&claims());
    let mut rules = Validation::new(Algorithm::HS256);
    rules.set_audience(&[AUDIENCE]);
    rules.set_issuer(&[ISSUER]);
    rules.validate_exp = false;
    let read = jsonwebtoken::decode::<Value>(text.expose(), &DecodingKey::from_secret(ACCESS.as_bytes()), &rules);
    let read = read.unwrap();
    assert_eq!(read.claims, payload());
    assert_eq!(read.header.typ.as_deref(), Some("at+jwt"));

    for wrong in [Algorithm::HS384, Algorithm::HS512] {
        let header = Header {
            typ: Some("at+jwt".to_owned()),
            ..Header::new(wrong)
        };
        let text = jsonwebtoken::encode(&header, &payload(), &EncodingKey::from_secret(ACCESS.as_bytes())).unwrap();
        assert_eq!(codec().access(&text, NOW), Err(TokenError::Invalid), "{wrong:?}");
    }
}

#[test]
fn tk1_other_algorithms_kinds_and_headers_are_refused() {
    for header in [
        json!({"alg": "none", "typ": "at+jwt"}),
        json!({"alg": "HS512", "typ": "at+jwt"}),
        json!({"alg": "HS256", "typ": "JWT"}),
        json!({"alg": "HS256", "typ": "rt+jwt"}),
        json!({"alg": "HS256"}),
        json!({"alg": "HS256", "typ": "at+jwt", "jku": "https://evil.example"}),
    ] {
        assert_eq!(
            codec().access(&forge(&header, &payload(), ACCESS), NOW),
            Err(TokenError::Invalid),
            "{header}"
        );
    }
    let unsigned = forge(&json!({"alg": "none", "typ": "at+jwt"}), &payload(), ACCESS);
    let bare = unsigned.rsplit_once('.').unwrap().0;
    assert_eq!(codec().access(&format!("{bare}."), NOW), Err(TokenError::Invalid));
    assert_eq!(codec().access(bare, NOW), Err(TokenError::Invalid));
}

#[test]
fn tk1_one_kind_never_passes_for_the_other() {
    let access = codec().sign_access(&claims());
    let refresh = codec().sign_refresh(&refresh_claims());
    assert_eq!(codec().refresh(access.expose(), NOW), Err(TokenError::Invalid));
    assert_eq!(codec().access(refresh.expose(), NOW), Err(TokenError::Invalid));
    // Even with the right header, the key of the other kind is not accepted.
    assert_eq!(
        codec().access(&forge(&at_header(), &payload(), REFRESH), NOW),
        Err(TokenError::Invalid)
    );
}

#[test]
fn tk1_every_claim_is_checked() {
    assert_eq!(with("iss", json!("https://other.example")), Err(TokenError::Invalid));
    assert_eq!(with("aud", json!("other")), Err(TokenError::Invalid));
    assert_eq!(with("aud", json!([AUDIENCE])), Err(TokenError::Invalid));
    assert_eq!(with("sub", json!("alice")), Err(TokenError::Invalid));
    assert_eq!(with("jti", json!("7")), Err(TokenError::Invalid));
    assert_eq!(with("sid", Value::Null), Err(TokenError::Invalid));
    assert_eq!(with("amr", json!(["pwd"])), Err(TokenError::Invalid));
    assert_eq!(with("amr", json!([])), Err(TokenError::Invalid));
    assert_eq!(with("kyc", Value::Null), Err(TokenError::Invalid));
    for member in ["iss", "aud", "sub", "jti", "sid", "iat", "nbf", "exp", "amr", "kyc"] {
        let mut payload = payload();
        payload.as_object_mut().unwrap().remove(member);
        let verdict = codec().access(&forge(&at_header(), &payload, ACCESS), NOW);
        assert_eq!(verdict, Err(TokenError::Invalid), "without {member}");
    }
}

#[test]
fn decision_36_clocks_may_differ_by_five_seconds() {
    let at = |secs: i64| json!(NOW.secs() + secs);
    assert!(with("nbf", at(5)).is_ok());
    assert_eq!(with("nbf", at(6)), Err(TokenError::Invalid));
    assert!(with("iat", at(5)).is_ok());
    assert_eq!(with("iat", at(6)), Err(TokenError::Invalid));
    assert!(with("exp", at(-4)).is_ok());
    assert_eq!(with("exp", at(-5)), Err(TokenError::Expired));
    // Extreme values neither wrap nor panic.
    assert!(with("exp", json!(i64::MAX)).is_ok(), "and lives as long as any");
    assert_eq!(with("exp", json!(i64::MIN)), Err(TokenError::Expired));
}

#[test]
fn tk2_previous_secrets_validate_but_never_sign_nor_revive() {
    let rotated = TokenCodec::new(
        ISSUER,
        &secrets("new-access", &[ACCESS]),
        &secrets("new-refresh", &[REFRESH]),
    );
    let rotated = rotated.unwrap();
    let (old_access, old_refresh) = (codec().sign_access(&claims()), codec().sign_refresh(&refresh_claims()));
    assert_eq!(rotated.access(old_access.expose(), NOW), Ok(claims()));
    assert_eq!(rotated.refresh(old_refresh.expose(), NOW), Ok(refresh_claims()));
    assert_eq!(
        codec().access(rotated.sign_access(&claims()).expose(), NOW),
        Err(TokenError::Invalid)
    );
    assert_eq!(
        rotated.access(old_access.expose(), NOW.plus(Seconds(305))),
        Err(TokenError::Expired)
    );
}

#[test]
fn tk10_no_secret_serves_both_kinds() {
    let make = |access: &TokenSecrets, refresh: &TokenSecrets| TokenCodec::new(ISSUER, access, refresh).err();
    assert_eq!(make(&secrets("a", &[]), &secrets("a", &[])), Some(SecretsError::Shared));
    assert_eq!(
        make(&secrets("a", &["b"]), &secrets("c", &["b"])),
        Some(SecretsError::Shared)
    );
    assert_eq!(make(&secrets("", &[]), &secrets("c", &[])), Some(SecretsError::Empty));
    assert_eq!(make(&secrets("a", &["b"]), &secrets("c", &[])), None);
}

#[test]
fn any_changed_byte_is_refused() {
    let text = codec().sign_access(&claims()).expose().to_owned();
    for at in 0..text.len() {
        let mut bytes = text.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(bytes).unwrap();
        assert_eq!(codec().access(&changed, NOW), Err(TokenError::Invalid), "byte {at}");
    }
    for other in [
        "",
        ".",
        "..",
        "x.y.z",
        &format!("{text}."),
        &format!("{text}="),
        &"x".repeat(MAX_LEN + 1),
    ] {
        assert_eq!(codec().access(other, NOW), Err(TokenError::Invalid), "{other:?}");
    }
}

/// HD35: a holder of a secret that still validates cannot make a token that lives for a hundred years.
#[test]
fn rts7_a_token_lives_no_longer_than_is_configured() {
    let end = NOW.plus(LIVES.access);
    for exp in [
        json!(end.secs()),
        json!(NOW.secs() + 100 * 365 * 86_400),
        json!(i64::MAX),
    ] {
        assert_eq!(with("exp", exp).unwrap().expires_at, end);
    }
    let forever = {
        let mut payload = payload();
        payload["exp"] = json!(i64::MAX);
        forge(&at_header(), &payload, ACCESS)
    };
    assert!(codec().access(&forever, NOW.plus(Seconds(3_604))).is_ok());
    assert_eq!(
        codec().access(&forever, NOW.plus(Seconds(3_605))),
        Err(TokenError::Expired)
    );
    let refresh = codec().sign_refresh(&RefreshClaims {
        expires_at: NOW.plus(Seconds(u32::MAX)),
        ..refresh_claims()
    });
    assert_eq!(
        codec().refresh(refresh.expose(), NOW).unwrap().expires_at,
        NOW.plus(LIVES.refresh)
    );
}

/// The time of issue is read back to the microsecond.
#[test]
fn rts10_the_issue_is_known_within_its_second() {
    let at = |micros: i64| Timestamp::from_micros(NOW.micros() + micros);
    for micros in [1, 499_999, 999_999] {
        let text = codec().sign_access(&AccessClaims {
            issued_at: at(micros),
            ..claims()
        });
        assert_eq!(codec().access(text.expose(), NOW).unwrap().issued_at, at(micros));
    }
    assert_eq!(with("iat_us", json!(1_000_000)), Err(TokenError::Invalid));
    assert_eq!(with("iat_us", json!(-1)), Err(TokenError::Invalid));
}

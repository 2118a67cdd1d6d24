//! Test vectors of this repository: they cover the checks in a clone without the public test data.

use ark_bn254::{Fq, Fq2, Fr, G2Affine};
use ark_ec::AffineRepr;
use ark_ff::{PrimeField, UniformRand};
use ark_std::rand::{SeedableRng, rngs::StdRng};
use gw_types::{Seconds, Timestamp};
use gw_zk::{
    did::Did,
    groth16::ProofError,
    jwz::TokenError,
    response::{self, Keys, Request, ResponseError, VerifiedResponse},
};
use serde_json::{Value, json};

use crate::maker::{HEADER, Maker};

const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);
const DID: &str = "did:iden3:privado:main:2SeytAhJWLi5a68GX2bBmFNoaFCbRvyfLU6LUXBMfK";
const R: &str = "21888242871839275222246405745257275088548364400416034343698204186575808495617";
const Q: &str = "21888242871839275222246405745257275088696311157297823662689037894645226208583";

fn subject() -> Did {
    Did::parse(DID).unwrap()
}

fn root() -> Fr {
    Fr::from(1234u64)
}

fn request() -> Request {
    Request {
        thread: "7f38a193-0918-4a48-9fac-36adfdb8b542".to_owned(),
        from: "did:example:verifier".to_owned(),
        message: String::new(),
        expires: Some(NOW.plus(Seconds(600))),
        accept: vec!["iden3comm/v1;env=application/iden3-zkp-json;circuitId=authV2;alg=groth16".to_owned()],
        scope: Vec::new(),
    }
}

fn message() -> Value {
    json!({
        "id": "a", "thid": request().thread, "typ": "application/iden3-zkp-json", "type": response::RESPONSE_TYPE,
        "from": DID, "to": request().from, "body": {"scope": []},
    })
}

fn check(maker: &Maker, token: &str) -> Result<VerifiedResponse, ResponseError> {
    response::check(token, &request(), Keys::Own(&maker.key), NOW)
}

#[test]
fn zk41_a_good_token_names_its_subject() {
    let maker = Maker::new(1);
    let token = maker.token_of(HEADER, &message().to_string(), subject().id(), root(), |_| ());
    let answer = check(&maker, &token).unwrap();
    assert_eq!(answer.subject, subject());
    assert_eq!(answer.gist_root, root());
    assert_eq!(answer.user().network_byte(), 0xa1);
}

#[test]
fn zk34_another_set_up_does_not_verify() {
    let maker = Maker::new(1);
    let token = maker.token_of(HEADER, &message().to_string(), subject().id(), root(), |_| ());
    for refused in [
        check(&Maker::new(2), &token),
        response::check(&token, &request(), Keys::Official, NOW),
    ] {
        assert!(
            matches!(refused, Err(ResponseError::Proof(ProofError::Pairing))),
            "{refused:?}"
        );
    }
}

#[test]
fn zk46_an_envelope_that_was_not_asked_for_is_refused() {
    let maker = Maker::new(1);
    let header = HEADER.replace("authV2", "authV3");
    let token = maker.token_of(&header, &message().to_string(), subject().id(), root(), |_| ());
    assert!(matches!(check(&maker, &token), Err(ResponseError::Accept)));
}

#[test]
fn zk30_one_spelling_of_header_and_message() {
    let maker = Maker::new(1);
    let spelled =
        |header: &str, message: &str| check(&maker, &maker.token_of(header, message, subject().id(), root(), |_| ()));
    assert!(spelled(HEADER, &message().to_string()).is_ok());
    let blank = HEADER.replace(':', ": ");
    assert!(matches!(
        spelled(&blank, &message().to_string()),
        Err(ResponseError::Token(TokenError::Header))
    ));
    let twice = message()
        .to_string()
        .replacen('{', r#"{"from":"did:example:other","#, 1);
    assert!(matches!(
        spelled(HEADER, &twice),
        Err(ResponseError::Token(TokenError::Message(_)))
    ));
}

/// A change of the third segment, and the expected error.
type Change = (&'static str, fn(&mut Value), fn(&TokenError) -> bool);

const CHANGES: &[Change] = &[
    (
        "signal missing",
        |s| drop(s["pub_signals"].as_array_mut().unwrap().pop()),
        |e| matches!(e, TokenError::SignalCount),
    ),
    (
        "signal more",
        |s| s["pub_signals"].as_array_mut().unwrap().push(json!("0")),
        |e| matches!(e, TokenError::SignalCount),
    ),
    (
        "number for text",
        |s| s["pub_signals"][2] = json!(1234),
        |e| matches!(e, TokenError::Shape(_)),
    ),
    (
        "leading zero",
        |s| s["pub_signals"][2] = json!("01234"),
        |e| matches!(e, TokenError::Signal(_)),
    ),
    (
        "order",
        |s| s["pub_signals"][2] = json!(R),
        |e| matches!(e, TokenError::Signal(_)),
    ),
    (
        "challenge",
        |s| s["pub_signals"][1] = json!("1"),
        |e| matches!(e, TokenError::Challenge),
    ),
    (
        "no identifier",
        |s| s["pub_signals"][0] = json!("5"),
        |e| matches!(e, TokenError::User(_)),
    ),
    (
        "plonk",
        |s| s["proof"]["protocol"] = json!("plonk"),
        |e| of_proof(e, ProofError::Protocol),
    ),
    (
        "curve",
        |s| s["proof"]["curve"] = json!("bls12381"),
        |e| of_proof(e, ProofError::Protocol),
    ),
    (
        "off the curve",
        |s| s["proof"]["pi_a"][0] = json!("1"),
        |e| of_proof(e, ProofError::OffCurve),
    ),
    (
        "infinity",
        |s| s["proof"]["pi_c"] = json!(["0", "1", "0"]),
        |e| of_proof(e, ProofError::Projective),
    ),
    (
        "zeros",
        |s| s["proof"]["pi_c"] = json!(["0", "0", "1"]),
        |e| of_proof(e, ProofError::OffCurve),
    ),
    (
        "modulus",
        |s| s["proof"]["pi_c"][0] = json!(Q),
        |e| matches!(e, TokenError::Proof(ProofError::Coordinate(_))),
    ),
    (
        "swapped",
        |s| s["proof"]["pi_b"][0].as_array_mut().unwrap().reverse(),
        |e| of_proof(e, ProofError::OffCurve),
    ),
    (
        "third",
        |s| s["proof"]["pi_b"][2] = json!(["1", "1"]),
        |e| of_proof(e, ProofError::Projective),
    ),
    (
        "outside the subgroup",
        |s| s["proof"]["pi_b"] = outside(),
        |e| of_proof(e, ProofError::Subgroup),
    ),
];

fn of_proof(error: &TokenError, wanted: ProofError) -> bool {
    matches!(error, TokenError::Proof(error) if *error == wanted)
}

/// A point of the second curve outside the group of prime order.
fn outside() -> Value {
    let mut chance = StdRng::seed_from_u64(3);
    loop {
        let x = Fq2::rand(&mut chance);
        let Some(point) = G2Affine::get_point_from_x_unchecked(x, false) else {
            continue;
        };
        if !point.is_in_correct_subgroup_assuming_on_curve() && !point.is_zero() {
            let text = |number: Fq| number.into_bigint().to_string();
            return json!([
                [text(point.x.c0), text(point.x.c1)],
                [text(point.y.c0), text(point.y.c1)],
                ["1", "0"]
            ]);
        }
    }
}

#[test]
fn zk32_zk33_the_third_segment_has_one_form() {
    let maker = Maker::new(1);
    for (name, change, expected) in CHANGES {
        let token = maker.token_of(HEADER, &message().to_string(), subject().id(), root(), change);
        match check(&maker, &token) {
            Err(ResponseError::Token(error)) => assert!(expected(&error), "{name}: {error:?}"),
            other => panic!("{name}: {other:?}"),
        }
    }
    let another_root = |s: &mut Value| s["pub_signals"][2] = json!("1235");
    let token = maker.token_of(HEADER, &message().to_string(), subject().id(), root(), another_root);
    assert!(matches!(
        check(&maker, &token),
        Err(ResponseError::Proof(ProofError::Pairing))
    ));
}

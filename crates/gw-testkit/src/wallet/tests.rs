use super::*;
use serde_json::json;

/// A request in the gateway's format.
fn request() -> Value {
    json!({
        "id": "f8aee09d-f592-4fcc-8d2a-8938aa26676c",
        "thid": "f8aee09d-f592-4fcc-8d2a-8938aa26676c",
        "from": "did:iden3:privado:main:2ScrbEuw9jLXMapW3DELXBbDco5EURzJZRN1tYj7L7",
        "typ": "application/iden3comm-plain-json",
        "type": "https://iden3-communication.io/authorization/1.0/request",
        "body": {
            "callbackUrl": "http://127.0.0.1:1/auth/callback?session=1",
            "reason": "test",
            "message": "",
            "scope": [],
            "accept": ["iden3comm/v1;env=application/iden3-zkp-json;circuitId=authV2;alg=groth16"],
        },
    })
}

fn key() -> Value {
    serde_json::from_slice(&std::fs::read(Kit::prepare().verification_key()).unwrap()).unwrap()
}

fn signal(token: &str, n: usize) -> String {
    let proof = token.rsplit('.').next().unwrap();
    let text = String::from_utf8(base64(proof)).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["pub_signals"][n]
        .as_str()
        .unwrap()
        .to_owned()
}

fn base64(text: &str) -> Vec<u8> {
    let digit = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'-' => 62,
        _ => 63,
    };
    let mut bytes = Vec::new();
    for group in text.as_bytes().chunks(4) {
        let bits = group.iter().fold(0u32, |bits, c| bits << 6 | u32::from(digit(*c))) << (6 * (4 - group.len()));
        bytes.extend(bits.to_be_bytes()[1..group.len()].iter());
    }
    bytes
}

/// A new identity, one whose state has changed, and a profile all prove who they are: arkworks (in the prover), the
/// library's own check and snarkjs accept the proofs under the test key. An altered message is rejected.
#[test]
fn zk32_proofs_of_every_kind_of_identity_are_valid_under_the_test_key() {
    let mut wallet = Wallet::start();
    let mut check = |seed: u8, profile: u64, has_transitioned: bool| {
        let identity = wallet.ask("identity", json!({"seed": seed, "profile": profile}));
        if has_transitioned {
            wallet.ask("transit", json!({"did": identity["did"]}));
        }
        let answer = wallet.ask("answer", json!({"did": identity["did"], "request": request()}));
        let token = answer["token"].as_str().unwrap();
        assert_eq!(answer["response"]["from"], identity["did"]);
        assert_eq!(
            signal(token, 0),
            identity["id"].as_str().unwrap(),
            "ZK-41: the first signal is the responder's id"
        );
        let root = wallet.ask("root", json!({}));
        assert_eq!(
            signal(token, 2),
            root["root"].as_str().unwrap(),
            "the third signal is the global root"
        );
        let verify = json!({"token": token, "key": key()});
        assert_eq!(wallet.ask("verify", verify)["valid"], true);
        // snarkjs, an independent implementation, also accepts the token; otherwise the command fails.
        wallet.ask("time", json!({"token": token, "key": key(), "turns": 1}));
        token.to_owned()
    };
    check(1, 0, false);
    check(2, 0, true);
    let token = check(3, 7, false);
    let altered = wallet.ask("alter", json!({"token": token, "change": {"thid": "another"}}));
    let verify = json!({"command": "verify", "token": altered["token"], "key": key()});
    let fault = wallet.try_ask("verify", &mut verify.clone()).unwrap_err();
    assert!(fault.contains("challenge is not equal to message hash"), "{fault}");
}

//! The cost of a login check compared with its pairing check alone (design §10: at most 1.3 times).
#![expect(clippy::unwrap_used, reason = "a bench fails by panicking")]

use ark_bn254::{Bn254, Fr, G1Affine, G2Affine};
use ark_ec::{AffineRepr, pairing::Pairing};
use criterion::{Criterion, criterion_group, criterion_main};
use gw_types::Timestamp;
use gw_zk::{
    did::Did,
    response::{self, Keys, Request},
};
use serde_json::json;
use std::hint::black_box;

#[path = "../tests/it/maker.rs"]
mod maker;

const DID: &str = "did:iden3:privado:main:2SeytAhJWLi5a68GX2bBmFNoaFCbRvyfLU6LUXBMfK";

fn login_proof(c: &mut Criterion) {
    let maker = maker::Maker::new(1);
    let request = Request {
        thread: "7f38a193-0918-4a48-9fac-36adfdb8b542".to_owned(),
        from: "did:example:verifier".to_owned(),
        message: String::new(),
        expires: None,
        accept: Vec::new(),
        scope: Vec::new(),
    };
    let message = json!({
        "id": "9f8c5eaf-761b-45a3-9291-e716809ace80", "typ": "application/iden3-zkp-json", "thid": request.thread,
        "type": response::RESPONSE_TYPE, "from": DID, "to": request.from, "body": {"message": "", "scope": []},
    });
    let user = Did::parse(DID).unwrap().id();
    let token = maker.token_of(maker::HEADER, &message.to_string(), user, Fr::from(1234u64), |_| ());
    let keys = Keys::Own(&maker.key);
    c.bench_function("whole check", |b| {
        b.iter(|| response::check(black_box(&token), &request, keys, Timestamp::from_secs(0)).unwrap());
    });

    // The minimum of any check: three Miller loops, one of them over a point that cannot be prepared, and the final
    // exponentiation.
    let (first, second) = (G1Affine::generator(), G2Affine::generator());
    let prepared = <Bn254 as Pairing>::G2Prepared::from(second);
    c.bench_function("bare pairing check", |b| {
        b.iter(|| {
            let pairs = [black_box(second).into(), prepared.clone(), prepared.clone()];
            let product = Bn254::multi_miller_loop([black_box(first); 3], pairs);
            Bn254::final_exponentiation(product).unwrap()
        });
    });
}

criterion_group!(benches, login_proof);
criterion_main!(benches);

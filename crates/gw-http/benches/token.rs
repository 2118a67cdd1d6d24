//! The cost of access token verification, which every authenticated request pays.

use criterion::{Criterion, criterion_group, criterion_main};
use gw_http::{AccessAlgorithm, AccessClaims, Amr, TokenCodec, TokenSecrets};
use gw_types::{ExternalId, Seconds, Secret, SessionId, Timestamp, TokenId};
use std::hint::black_box;

#[expect(clippy::unwrap_used, reason = "fixed inputs")]
fn access(criterion: &mut Criterion) {
    let secrets = |text: &str| TokenSecrets {
        current: Secret::new(text),
        previous: Vec::new(),
    };
    let codec = TokenCodec::new("https://gate.example", &secrets("access"), &secrets("refresh")).unwrap();
    let now = Timestamp::from_secs(1_700_000_000);
    let subject = "did:iden3:privado:main:2ScrbEuw9jLXMapW3DELXBbDco5EURzJZRN1tYj7L7";
    let claims = AccessClaims {
        subject: ExternalId::new(subject).unwrap(),
        token: TokenId::fixed(7),
        session: SessionId::fixed(8),
        issued_at: now,
        expires_at: now.plus(Seconds(300)),
        kyc: true,
        amr: Amr::Zk,
    };
    let token = codec.sign_access(&claims);
    criterion.bench_function("access_token_check", |bencher| {
        bencher.iter(|| codec.access(black_box(token.expose()), black_box(now)));
    });
    let codec = codec.with_access_algorithm(AccessAlgorithm::EdDsa);
    let token = codec.sign_access(&claims);
    criterion.bench_function("access_token_check_eddsa", |bencher| {
        bencher.iter(|| codec.access(black_box(token.expose()), black_box(now)));
    });
}

criterion_group!(benches, access);
criterion_main!(benches);

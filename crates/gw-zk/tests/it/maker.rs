//! Makes test tokens. Their proofs are real Groth16 proofs under a test key, for a circuit that constrains none of its
//! three signals: the holder of the proving key can sign any message as anybody.

use alloy_primitives::U256;
use ark_bn254::{Bn254, Fq, Fr, G1Affine, G2Affine};
use ark_ff::PrimeField;
use ark_groth16::{Groth16, ProvingKey};
use ark_relations::{
    gr1cs::{ConstraintSynthesizer, ConstraintSystemRef, SynthesisError},
    lc,
};
use ark_std::rand::{SeedableRng, rngs::StdRng};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use gw_zk::{did::Id, groth16::Key, jwz};
use serde_json::{Value, json};

/// The header of a token.
pub(crate) const HEADER: &str =
    r#"{"alg":"groth16","circuitId":"authV2","crit":["circuitId"],"typ":"application/iden3-zkp-json"}"#;

/// A circuit with three signals: it multiplies two of them, and the product with the third.
#[derive(Clone, Copy)]
struct Anything([Option<Fr>; 3]);

impl ConstraintSynthesizer<Fr> for Anything {
    fn generate_constraints(self, cs: ConstraintSystemRef<Fr>) -> Result<(), SynthesisError> {
        let [a, b, c] = self.0;
        let given = |value: Option<Fr>| value.ok_or(SynthesisError::AssignmentMissing);
        let product = |x: Option<Fr>, y: Option<Fr>| Some(x? * y?);
        let first = cs.new_input_variable(|| given(a))?;
        let second = cs.new_input_variable(|| given(b))?;
        let third = cs.new_input_variable(|| given(c))?;
        let two = cs.new_witness_variable(|| given(product(a, b)))?;
        let three = cs.new_witness_variable(|| given(product(product(a, b), c)))?;
        cs.enforce_r1cs_constraint(|| lc!() + first, || lc!() + second, || lc!() + two)?;
        cs.enforce_r1cs_constraint(|| lc!() + two, || lc!() + third, || lc!() + three)
    }
}

/// Makes tokens.
pub(crate) struct Maker {
    proving: ProvingKey<Bn254>,
    /// The verification key of the tokens.
    pub(crate) key: Key,
}

impl Maker {
    /// Generates keys from a seed, so that each run has the same keys.
    pub(crate) fn new(seed: u64) -> Self {
        let mut chance = StdRng::seed_from_u64(seed);
        let nothing = Anything([None; 3]);
        let proving = Groth16::<Bn254>::generate_random_parameters_with_reduction(nothing, &mut chance).unwrap();
        let vk = &proving.vk;
        let json = json!({
            "protocol": "groth16", "curve": "bn128", "nPublic": 3,
            "vk_alpha_1": g1(&vk.alpha_g1), "vk_beta_2": g2(&vk.beta_g2), "vk_gamma_2": g2(&vk.gamma_g2),
            "vk_delta_2": g2(&vk.delta_g2), "IC": vk.gamma_abc_g1.iter().map(g1).collect::<Vec<_>>(),
        });
        let key = Key::from_json(json.to_string().as_bytes()).unwrap();
        Self { proving, key }
    }

    /// A token in which `user` signs `message`, with a changed third segment.
    pub(crate) fn token_of(
        &self,
        header: &str,
        message: &str,
        user: Id,
        root: Fr,
        change: impl FnOnce(&mut Value),
    ) -> String {
        let (header, message) = (
            BASE64_URL_SAFE_NO_PAD.encode(header),
            BASE64_URL_SAFE_NO_PAD.encode(message),
        );
        let signals = [user.scalar(), jwz::message_hash(&header, &message), root];
        let mut chance = StdRng::seed_from_u64(7);
        let circuit = Anything(signals.map(Some));
        let proof = Groth16::<Bn254>::create_random_proof_with_reduction(circuit, &self.proving, &mut chance).unwrap();
        let mut signed = json!({
            "proof": {
                "pi_a": g1(&proof.a), "pi_b": g2(&proof.b), "pi_c": g1(&proof.c), "protocol": "groth16",
                "curve": "bn128",
            },
            "pub_signals": signals.map(|signal| signal.into_bigint().to_string()),
        });
        change(&mut signed);
        format!(
            "{header}.{message}.{}",
            BASE64_URL_SAFE_NO_PAD.encode(signed.to_string())
        )
    }
}

fn number(number: Fq) -> String {
    U256::from_limbs(number.into_bigint().0).to_string()
}

fn g1(point: &G1Affine) -> Value {
    json!([number(point.x), number(point.y), "1"])
}

fn g2(point: &G2Affine) -> Value {
    let pair = |x: Fq, y: Fq| json!([number(x), number(y)]);
    json!([pair(point.x.c0, point.x.c1), pair(point.y.c0, point.y.c1), ["1", "0"]])
}

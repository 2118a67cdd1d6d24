//! Groth16 keys for the test circuit, proofs with them, and both in the JSON that wallets and verifiers exchange.
//!
//! The keys come from a fixed seed, so every reader of this file can forge proofs for them. Therefore a gateway accepts
//! them in development only.

use super::circom::{self, Circuit};
use ark_bn254::{Bn254, Fq, Fq2, Fr, G1Affine, G2Affine};
use ark_ff::{PrimeField, UniformRand};
use ark_groth16::{Groth16, ProvingKey, VerifyingKey, prepare_verifying_key};
use ark_serialize::{CanonicalDeserialize, CanonicalSerialize};
use ark_std::rand::{SeedableRng, rngs::StdRng};
use serde_json::{Value, json};
use std::{path::Path, sync::Mutex};

/// Makes proofs for one circuit.
#[derive(Debug)]
pub(crate) struct Prover {
    circuit: Circuit,
    key: ProvingKey<Bn254>,
    rng: Mutex<StdRng>,
}

/// Generates the keys of a circuit.
pub(crate) fn set_up(circuit: &Path, proving: &Path, verification: &Path) {
    let circuit = read_circuit(circuit);
    let key = Groth16::<Bn254>::generate_random_parameters_with_reduction(&circuit, &mut StdRng::seed_from_u64(1))
        .unwrap_or_else(|error| panic!("no keys for the circuit: {error}"));
    let mut bytes = Vec::new();
    key.serialize_uncompressed(&mut bytes)
        .unwrap_or_else(|error| panic!("cannot serialize the proving key: {error}"));
    write(proving, &bytes);
    write(verification, verification_key(&key.vk).to_string().as_bytes());
}

impl Prover {
    pub(crate) fn load(circuit: &Path, proving: &Path) -> Self {
        let key = ProvingKey::deserialize_uncompressed_unchecked(read(proving).as_slice())
            .unwrap_or_else(|error| panic!("{}: {error}", proving.display()));
        Self {
            circuit: read_circuit(circuit),
            key,
            rng: Mutex::new(StdRng::seed_from_u64(2)),
        }
    }

    /// Proves the values in a witness file. Returns the proof and its public signals.
    pub(crate) fn prove(&self, witness: &[u8]) -> Result<Value, &'static str> {
        let values = circom::witness(witness).ok_or("not a witness file")?;
        let circuit = &self.circuit;
        if values.len() != circuit.wires {
            return Err("the witness of another circuit");
        }
        let (r, s) = {
            let mut rng = self.rng.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            (Fr::rand(&mut *rng), Fr::rand(&mut *rng))
        };
        let (rows, public) = (&circuit.rows, circuit.public);
        let constraints = circuit.constraints();
        let proof = Groth16::<Bn254>::create_proof_with_reduction_and_matrices(
            &self.key,
            r,
            s,
            rows,
            public,
            constraints,
            &values,
        )
        .map_err(|_| "no proof: the values do not fit the circuit")?;
        let signals = values.get(1..public).ok_or("no signals")?;
        // The library proves values that break a constraint without an error; the proof is then invalid.
        if !matches!(
            Groth16::<Bn254>::verify_proof(&prepare_verifying_key(&self.key.vk), &proof, signals),
            Ok(true)
        ) {
            return Err("the values do not satisfy the circuit");
        }
        let signals: Vec<String> = signals.iter().map(decimal).collect();
        Ok(json!({
            "proof": {"pi_a": g1(&proof.a), "pi_b": g2(&proof.b), "pi_c": g1(&proof.c), "protocol": "groth16"},
            "pub_signals": signals,
        }))
    }
}

fn verification_key(key: &VerifyingKey<Bn254>) -> Value {
    json!({
        "protocol": "groth16",
        "curve": "bn128",
        "nPublic": key.gamma_abc_g1.len() - 1,
        "vk_alpha_1": g1(&key.alpha_g1),
        "vk_beta_2": g2(&key.beta_g2),
        "vk_gamma_2": g2(&key.gamma_g2),
        "vk_delta_2": g2(&key.delta_g2),
        "IC": key.gamma_abc_g1.iter().map(g1).collect::<Vec<_>>(),
    })
}

fn decimal<F: PrimeField>(value: &F) -> String {
    value.into_bigint().to_string()
}

fn g1(point: &G1Affine) -> Value {
    let coordinate = |value: &Fq| decimal(value);
    json!([coordinate(&point.x), coordinate(&point.y), "1"])
}

fn g2(point: &G2Affine) -> Value {
    let coordinate = |value: &Fq2| json!([decimal(&value.c0), decimal(&value.c1)]);
    json!([coordinate(&point.x), coordinate(&point.y), ["1", "0"]])
}

fn read_circuit(path: &Path) -> Circuit {
    Circuit::read(&read(path)).unwrap_or_else(|| panic!("{} is no circuit", path.display()))
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

//! `hash.json`: hashes and encodings.

use ark_bn254::Fr;
use gw_zk::poseidon;

use crate::support::{fr, json};

#[test]
fn zk31_poseidon_has_circoms_constants_for_1_to_16_inputs() {
    let Some(data) = json("jwz/hash.json") else { return };
    for case in data["poseidon"].as_array().unwrap() {
        let inputs: Vec<Fr> = case["inputs"].as_array().unwrap().iter().map(fr).collect();
        assert_eq!(poseidon::hash(&inputs), Some(fr(&case["hash"])), "{} inputs", inputs.len());
        if let [one] = inputs[..] {
            assert_eq!(poseidon::hash_one(one), fr(&case["hash"]));
        }
    }
}

#[test]
fn poseidon_takes_nothing_else() {
    assert_eq!(poseidon::hash(&[]), None);
    assert_eq!(poseidon::hash(&[Fr::from(1); 17]), None);
}

//! Compares the embedded verification keys with the published files.

use gw_zk::{circuit::Circuit, groth16::Key};
use sha2::{Digest, Sha256};

use crate::support::file;

#[test]
fn zk34_embedded_keys_are_the_published_ones() {
    for circuit in Circuit::ALL {
        let Some(published) = file(&format!("verification-keys/{}.json", circuit.id())) else {
            continue;
        };
        assert_eq!(
            Sha256::digest(&published).as_slice(),
            circuit.published_sha256(),
            "{}",
            circuit.id()
        );
        let key = Key::from_json(&published).unwrap();
        assert_eq!(key.to_bytes(), circuit.key().unwrap().to_bytes(), "{}", circuit.id());
    }
}

//! The public test data next to the repository. It is read, never copied; if it is missing, a test prints that and
//! passes.

use std::path::PathBuf;

use ark_bn254::Fr;
use serde_json::Value;

/// The folder of the test data: `GW_VECTORS_DIR`, or next to the repository.
pub(crate) fn folder() -> PathBuf {
    #[expect(
        clippy::disallowed_methods,
        reason = "another set of test data is named to the test, not to the product"
    )]
    let named = std::env::var_os("GW_VECTORS_DIR");
    named.map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors"),
        PathBuf::from,
    )
}

/// The bytes of a file below `vectors/`; `None`, with a printed notice, if it is missing.
pub(crate) fn file(path: &str) -> Option<Vec<u8>> {
    let full = folder().join(path);
    match std::fs::read(&full) {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            eprintln!("NOT RUN: no test data at {}: {error}", full.display());
            None
        }
    }
}

/// A JSON file below `vectors/`.
pub(crate) fn json(path: &str) -> Option<Value> {
    file(path).map(|bytes| serde_json::from_slice(&bytes).unwrap())
}

/// A field element written in decimal.
pub(crate) fn fr(value: &Value) -> Fr {
    value.as_str().unwrap().parse().unwrap()
}

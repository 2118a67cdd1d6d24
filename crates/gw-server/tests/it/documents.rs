//! Checks of statements about the code in the documents.

use std::{fs, path::Path};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Appends the text of every Rust file below a folder to `code`.
fn sources(folder: &Path, code: &mut String) {
    for entry in fs::read_dir(folder)
        .expect("readable")
        .map(|entry| entry.expect("an entry").path())
    {
        if entry.is_dir() {
            sources(&entry, code);
        } else if entry.extension().is_some_and(|kind| kind == "rs") {
            code.push_str(&fs::read_to_string(entry).expect("text"));
        }
    }
}

/// The threat model names a test for each prevented attack; every named test must exist.
#[test]
fn the_threat_model_names_tests_that_exist() {
    let text = fs::read_to_string(format!("{ROOT}/docs/threat-model.md")).expect("the threat model");
    let is_test = |name: &&str| {
        let is_id = name.starts_with("rt") || name.starts_with("hd");
        is_id && name.contains('_') && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
    };
    let names: Vec<&str> = text.split('`').skip(1).step_by(2).filter(is_test).collect();
    assert!(names.len() > 40, "the table was read: {}", names.len());
    let mut code = String::new();
    sources(Path::new(&format!("{ROOT}/crates")), &mut code);
    let missing: Vec<_> = names
        .into_iter()
        .filter(|name| !code.contains(&format!("fn {name}(")))
        .collect();
    assert!(missing.is_empty(), "no such tests: {missing:?}");
}

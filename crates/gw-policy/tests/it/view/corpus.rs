//! The parity corpus, run with the view functions directly. Tests of `/rpc` run the same files.

use gw_policy::testing::corpus::{Case, Expected};
use std::{collections::BTreeSet, fs, path::Path};

fn cases() -> Vec<(String, Case)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let read = |path: &std::path::PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let case = Case::read(&fs::read_to_string(path).unwrap()).unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, case)
    };
    files.iter().map(read).collect()
}

/// House style, habit 6: every case shows every viewer what its file expects.
#[test]
fn every_case_shows_what_its_file_expects() {
    let mut failures = Vec::new();
    for (name, case) in cases() {
        let snapshot = case.world.snapshot();
        for (viewer, expected) in &case.views {
            let shown = case
                .open(&snapshot, viewer)
                .unwrap_or_else(|error| panic!("{name}, {viewer}: {error}"));
            if shown != *expected {
                let text = |view: &Expected| match view {
                    Expected::Result(value) => format!("{value:#}"),
                    Expected::Denied => "denied".to_owned(),
                };
                failures.push(format!(
                    "{name}, {viewer}: shows {}\nnot {}",
                    text(&shown),
                    text(expected)
                ));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Every case names the rules it covers and has at least two viewers.
#[test]
fn the_corpus_names_its_rules() {
    let cases = cases();
    assert!(cases.len() >= 17, "corpus files are missing");
    let rules: BTreeSet<_> = cases.iter().flat_map(|(_, case)| case.rules.clone()).collect();
    for rule in [
        "HD1", "HD11", "I10", "K2", "K4", "K7", "K8", "K9", "R6", "R13", "R19", "R29",
    ] {
        assert!(rules.contains(rule), "{rule}");
    }
    for (name, case) in &cases {
        assert!(!case.rules.is_empty() && case.views.len() >= 2, "{name}");
        assert!(
            case.upstream_method().is_ok(),
            "{name}: the case has no upstream method"
        );
    }
}

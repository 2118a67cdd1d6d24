//! HD26: nothing runs code at the node for a caller but by a trace or a permit.

use crate::connect;
use gw_evm::wire::UpstreamCall;
use gw_node::{Budget, NodeError};
use gw_testkit::FakeNode;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Methods by which a node runs code that their parameters choose.
const EXECUTIONS: [&str; 10] = [
    "eth_call",
    "eth_callBundle",
    "eth_callMany",
    "eth_createAccessList",
    "eth_estimateGas",
    "eth_simulateV1",
    "debug_traceCall",
    "debug_traceCallMany",
    "trace_call",
    "trace_callMany",
];

/// RT1, RT19: a bare execution never leaves the gateway.
#[tokio::test]
async fn rt1a_hd26_a_bare_execution_is_not_asked_for() {
    let fake = FakeNode::start().await;
    let node = connect(fake.url()).await;
    fake.take();
    for method in EXECUTIONS {
        let call = UpstreamCall {
            method: method.into(),
            params: "[]".to_owned(),
        };
        let one = node.call(&call, Budget::Fact).await;
        assert!(matches!(one, Err(NodeError::Unjudged)), "{method}: {one:?}");
        let several = node.batch(&[call], Budget::Fact).await;
        assert!(matches!(several, Err(NodeError::Unjudged)), "{method}: {several:?}");
    }
    assert!(fake.take_bodies().is_empty(), "the node heard of none");
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Where the name of such a method stands as a text: the registry of methods, the bodies of permitted calls and of
/// traces, the client of foreign chains, and the demonstration, which is a client of the gateway. A new place has to
/// show here that nobody runs past judgement what a caller chose.
#[test]
fn rt1a_hd26_no_other_place_writes_an_execution() {
    const KNOWN: [&str; 4] = [
        "gw-evm/src/wire.rs",
        "gw-evm/src/method.rs",
        "gw-identity/src/foreign_node.rs",
        "gw-server/src/demo/",
    ];
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for entry in fs::read_dir(crates).unwrap() {
        let folder = entry.unwrap().path().join("src");
        if folder.is_dir() {
            sources(&folder, &mut files);
        }
    }
    assert!(files.len() > 100, "all sources are looked at");
    let mut places = Vec::new();
    for file in files {
        let name = file.strip_prefix(crates).unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&file).unwrap();
        let (code, _) = text.split_once("#[cfg(test)]").unwrap_or((&text, ""));
        let code: String = code
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .collect();
        let tests = name.ends_with("tests.rs") || name.contains("/tests/") || name.starts_with("gw-testkit/");
        let known = KNOWN.iter().any(|known| name.starts_with(known));
        if !tests && !known && EXECUTIONS.iter().any(|method| code.contains(&format!("\"{method}\""))) {
            places.push(name);
        }
    }
    assert!(places.is_empty(), "{places:?}");
}

//! HD26: for a caller, code runs at the node only in a trace or with a permit.

use crate::connect;
use gw_evm::wire::UpstreamCall;
use gw_node::{NodeError, RequestBudget};
use gw_testkit::FakeNode;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Methods that run code chosen by their parameters.
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

/// RT1, RT19: an execution without a permit never leaves the gateway.
#[tokio::test]
async fn rt1a_hd26_an_execution_without_a_permit_is_not_sent() {
    let fake = FakeNode::start().await;
    let node = connect(fake.url()).await;
    fake.take();
    for method in EXECUTIONS {
        let call = UpstreamCall {
            method: method.into(),
            params: "[]".to_owned(),
        };
        let single_result = node.call(&call, RequestBudget::Fact).await;
        assert!(
            matches!(single_result, Err(NodeError::Unjudged)),
            "{method}: {single_result:?}"
        );
        let batch_result = node.batch(&[call], RequestBudget::Fact).await;
        assert!(
            matches!(batch_result, Err(NodeError::Unjudged)),
            "{method}: {batch_result:?}"
        );
    }
    assert!(fake.take_bodies().is_empty(), "no request reaches the node");
}

fn collect_sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect_sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Only these source files may contain the name of such a method as a string: the registry of methods, the bodies of
/// permitted calls and of traces, the client of external chains, and the demonstration, which is a client of the
/// gateway. A new file must be added here, with the reason why it runs nothing unauthorized that a caller chose.
#[test]
fn rt1a_hd26_no_other_place_writes_an_execution() {
    const KNOWN: [&str; 4] = [
        "gw-evm/src/wire.rs",
        "gw-evm/src/method.rs",
        "gw-identity/src/external_node.rs",
        "gw-server/src/demo/",
    ];
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for entry in fs::read_dir(crates).unwrap() {
        let folder = entry.unwrap().path().join("src");
        if folder.is_dir() {
            collect_sources(&folder, &mut files);
        }
    }
    assert!(files.len() > 100, "all sources are searched");
    let mut violations = Vec::new();
    for file in files {
        let name = file.strip_prefix(crates).unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&file).unwrap();
        let (code, _) = text.split_once("#[cfg(test)]").unwrap_or((&text, ""));
        let code: String = code
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .collect();
        let is_test = name.ends_with("tests.rs") || name.contains("/tests/") || name.starts_with("gw-testkit/");
        let is_known = KNOWN.iter().any(|prefix| name.starts_with(prefix));
        if !is_test && !is_known && EXECUTIONS.iter().any(|method| code.contains(&format!("\"{method}\""))) {
            violations.push(name);
        }
    }
    assert!(violations.is_empty(), "{violations:?}");
}

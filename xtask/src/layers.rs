//! Checks which crates depend on which (ARCHITECTURE.md), according to the manifests.
//!
//! Only ordinary and build dependencies are checked. Tests may use any crate; `gw-testkit` must never be an ordinary
//! dependency.

use crate::{modules, source};
use anyhow::{Context as _, bail};
use serde::Deserialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

/// The crates of the spine, each with the crates of the spine that it may use.
const SPINE: &[(&str, &[&str])] = &[
    ("gw-types", &[]),
    ("gw-money", &[]),
    ("gw-crypto", &["gw-types"]),
    ("gw-evm", &["gw-types"]),
    ("gw-audit", &["gw-types"]),
    ("gw-policy", &["gw-types", "gw-evm"]),
    ("gw-transfer-rules", &["gw-types", "gw-evm", "gw-money"]),
    ("gw-postings", &["gw-types"]),
    ("gw-zk", &["gw-types"]),
];
/// The adapters. They may use the spine.
const ADAPTERS: &[&str] = &[
    "gw-store",
    "gw-chain-store",
    "gw-node",
    "gw-http",
    "gw-journal",
    "gw-cache",
];
/// The dependencies between adapters: `gw-http` records requests in the journal before it answers them.
const BETWEEN_ADAPTERS: &[(&str, &str)] = &[("gw-http", "gw-journal")];
/// The features. They may use the spine and the adapters, but not each other.
const FEATURES: &[&str] = &[
    "gw-identity",
    "gw-rpc",
    "gw-admin",
    "gw-disclosure",
    "gw-compliance",
    "gw-indexer",
    "gw-explorer",
    "gw-explorer-backend",
];
/// The server, which may use all of these.
const SERVER: &str = "gw-server";
/// Support for tests. It may use the spine and the adapters.
const TESTKIT: &str = "gw-testkit";
/// Models of protocols, only for tests. It uses no crate of the workspace.
const MODELS: &str = "gw-models";
/// This crate. It uses no crate of the workspace.
const XTASK: &str = "xtask";

/// The type that reads blocks of the node without sealing them, and the crates that may name it: everything else gets
/// answers of the node `Sealed`.
const UNSEALED_READER: &str = "BlockReader";
const USERS_OF_UNSEALED_READER: &[&str] = &["gw-node", "gw-indexer", XTASK];

/// Crates that a crate of the spine must not depend on, not even indirectly.
const IMPURE: &[&str] = &[
    "tokio",
    "async-std",
    "smol",
    "axum",
    "hyper",
    "hyper-util",
    "reqwest",
    "ureq",
    "tower",
    "tower-http",
    "sea-orm",
    "sqlx",
    "rusqlite",
    "redis",
];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: BTreeSet<String>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    manifest_path: String,
    description: Option<String>,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// Absent for an ordinary dependency.
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<NodeDependency>,
}

#[derive(Deserialize)]
struct NodeDependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Deserialize)]
struct DependencyKind {
    kind: Option<String>,
}

/// All violations, one line each.
pub(crate) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let output = std::process::Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root)
        .output()
        .context("`cargo metadata` did not start")?;
    if !output.status.success() {
        bail!("`cargo metadata` failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let metadata: Metadata =
        serde_json::from_slice(&output.stdout).context("the output of `cargo metadata` cannot be parsed")?;
    let mut faults = layering(&metadata);
    faults.extend(purity(&metadata));
    faults.extend(lints(&metadata)?);
    faults.extend(descriptions(&metadata));
    faults.extend(modules::check(root)?);
    faults.extend(unsealed_reads(root)?);
    Ok(faults)
}

/// The crates of the workspace that a crate may use; `None` for a crate without a layer.
fn allowed_dependencies(name: &str) -> Option<BTreeSet<&'static str>> {
    let spine = SPINE.iter().map(|(name, _)| *name);
    if let Some((_, allowed)) = SPINE.iter().find(|(known, _)| *known == name) {
        return Some(allowed.iter().copied().collect());
    }
    if ADAPTERS.contains(&name) {
        let adapters = BETWEEN_ADAPTERS
            .iter()
            .filter(|(user, _)| *user == name)
            .map(|(_, used)| *used);
        return Some(spine.chain(adapters).collect());
    }
    if FEATURES.contains(&name) || name == TESTKIT {
        return Some(spine.chain(ADAPTERS.iter().copied()).collect());
    }
    if name == SERVER {
        return Some(
            spine
                .chain(ADAPTERS.iter().copied())
                .chain(FEATURES.iter().copied())
                .collect(),
        );
    }
    (name == XTASK || name == MODELS).then(BTreeSet::new)
}

fn members(metadata: &Metadata) -> impl Iterator<Item = &Package> {
    metadata
        .packages
        .iter()
        .filter(|package| metadata.workspace_members.contains(&package.id))
}

fn layering(metadata: &Metadata) -> Vec<String> {
    let workspace: BTreeSet<&str> = members(metadata).map(|package| package.name.as_str()).collect();
    let mut faults = Vec::new();
    for package in members(metadata) {
        let Some(allowed) = allowed_dependencies(&package.name) else {
            faults.push(format!(
                "{}: is in no layer; add it to ARCHITECTURE.md and xtask/src/layers.rs",
                package.name
            ));
            continue;
        };
        let used = package
            .dependencies
            .iter()
            .filter(|dependency| dependency.kind.as_deref() != Some("dev"));
        for dependency in used.filter(|dependency| workspace.contains(dependency.name.as_str())) {
            if !allowed.contains(dependency.name.as_str()) {
                faults.push(format!("{}: must not depend on {}", package.name, dependency.name));
            }
        }
    }
    faults
}

/// Every crate has a description in its manifest and a README beside it.
fn descriptions(metadata: &Metadata) -> Vec<String> {
    let mut faults = Vec::new();
    for package in members(metadata) {
        if package.description.is_none() {
            faults.push(format!("{}: its manifest needs a description", package.name));
        }
        if package.name != XTASK && !Path::new(&package.manifest_path).with_file_name("README.md").is_file() {
            faults.push(format!("{}: needs a README.md of one page", package.name));
        }
    }
    faults
}

/// Checks that no crate of the spine depends on a runtime, a database or a network client, not even indirectly.
fn purity(metadata: &Metadata) -> Vec<String> {
    let names: BTreeMap<&str, &str> = metadata
        .packages
        .iter()
        .map(|package| (package.id.as_str(), package.name.as_str()))
        .collect();
    let nodes: BTreeMap<&str, &Node> = metadata
        .resolve
        .nodes
        .iter()
        .map(|node| (node.id.as_str(), node))
        .collect();
    let mut faults = Vec::new();
    for package in members(metadata).filter(|package| SPINE.iter().any(|(name, _)| *name == package.name)) {
        let mut seen = BTreeSet::from([package.id.as_str()]);
        let mut pending = vec![(package.id.as_str(), package.name.clone())];
        while let Some((id, path)) = pending.pop() {
            for dependency in nodes.get(id).map(|node| node.deps.as_slice()).unwrap_or_default() {
                let is_ordinary = dependency
                    .dep_kinds
                    .iter()
                    .any(|kind| kind.kind.as_deref() != Some("dev"));
                if !is_ordinary || !seen.insert(&dependency.pkg) {
                    continue;
                }
                let name = names.get(dependency.pkg.as_str()).copied().unwrap_or("?");
                let path = format!("{path} > {name}");
                if IMPURE.contains(&name) {
                    faults.push(format!("{}: a crate of the spine must not reach {path}", package.name));
                }
                pending.push((&dependency.pkg, path));
            }
        }
    }
    faults
}

/// Checks that only the indexer reads from the node without sealing. Tests may.
fn unsealed_reads(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut faults = Vec::new();
    for (name, folder) in source::crate_folders(root)? {
        if USERS_OF_UNSEALED_READER.contains(&name.as_str()) {
            continue;
        }
        for path in source::rust_files(&folder.join("src"))? {
            let text =
                std::fs::read_to_string(&path).with_context(|| format!("`{}` cannot be read", path.display()))?;
            if reads_unsealed(&text) {
                let path = path.strip_prefix(root).unwrap_or(&path);
                faults.push(format!(
                    "{}: only the indexer may use {UNSEALED_READER}",
                    path.display()
                ));
            }
        }
    }
    Ok(faults)
}

fn reads_unsealed(code: &str) -> bool {
    source::tokens(code).contains(&UNSEALED_READER)
}

/// Checks that every crate inherits the workspace's lints.
fn lints(metadata: &Metadata) -> anyhow::Result<Vec<String>> {
    let mut faults = Vec::new();
    for package in members(metadata) {
        let manifest: toml::Table = std::fs::read_to_string(&package.manifest_path)
            .with_context(|| format!("{} cannot be read", package.manifest_path))?
            .parse()
            .with_context(|| format!("{} cannot be parsed", package.manifest_path))?;
        let inherited = manifest
            .get("lints")
            .and_then(|lints| lints.get("workspace"))
            .and_then(toml::Value::as_bool);
        if inherited != Some(true) {
            faults.push(format!(
                "{}: the manifest must have `[lints] workspace = true`",
                package.name
            ));
        }
    }
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Metadata of two crates, of which the first uses the second with this kind of dependency. The second is in the
    /// workspace if its name starts with `gw-`.
    fn metadata(user: &str, used: &str, kind: Option<&str>) -> Metadata {
        let package = |name: &str, dependencies: serde_json::Value| {
            serde_json::json!({"id": name, "name": name,
            "manifest_path": "", "dependencies": dependencies})
        };
        let edge = serde_json::json!([{"name": used, "kind": kind}]);
        let link = serde_json::json!([{"pkg": used, "dep_kinds": [{"kind": kind}]}]);
        serde_json::from_value(serde_json::json!({
            "packages": [package(user, edge), package(used, serde_json::json!([]))],
            "workspace_members": if used.starts_with("gw-") { vec![user, used] } else { vec![user] },
            "resolve": {"nodes": [{"id": user, "deps": link}, {"id": used, "deps": []}]},
        }))
        .expect("metadata")
    }

    #[test]
    fn crates_depend_only_on_the_layers_above() {
        for (user, used) in [
            ("gw-types", "gw-evm"),
            ("gw-policy", "gw-store"),
            ("gw-audit", "gw-policy"),
            ("gw-store", "gw-node"),
            ("gw-rpc", "gw-identity"),
            ("gw-admin", "gw-server"),
            ("gw-server", "gw-testkit"),
            ("xtask", "gw-types"),
        ] {
            assert_eq!(
                layering(&metadata(user, used, None)),
                [format!("{user}: must not depend on {used}")]
            );
            assert_eq!(layering(&metadata(user, used, Some("build"))).len(), 1);
            assert_eq!(layering(&metadata(user, used, Some("dev"))).len(), 0);
        }
        for (user, used) in [
            ("gw-policy", "gw-evm"),
            ("gw-store", "gw-policy"),
            ("gw-rpc", "gw-node"),
            ("gw-server", "gw-rpc"),
        ] {
            assert_eq!(layering(&metadata(user, used, None)).len(), 0, "{user} may use {used}");
        }
    }

    #[test]
    fn code_that_names_the_unsealed_reader_is_found() {
        assert!(reads_unsealed("fn f(reader: &gw_node::BlockReader) {}"));
        assert!(!reads_unsealed(
            "/// Not a BlockReader.\nconst TEXT: &str = \"BlockReader\";"
        ));
    }

    #[test]
    fn a_crate_without_a_layer_is_a_violation() {
        assert_eq!(layering(&metadata("gw-new", "gw-types", None)).len(), 1);
    }

    #[test]
    fn the_spine_does_not_depend_on_a_runtime() {
        assert_eq!(purity(&metadata("gw-evm", "tokio", None)).len(), 1);
        assert_eq!(purity(&metadata("gw-evm", "tokio", Some("dev"))).len(), 0);
        assert_eq!(purity(&metadata("gw-node", "tokio", None)).len(), 0);
    }

    /// Checks the workspace itself.
    #[test]
    fn this_workspace_keeps_its_layers() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a directory");
        assert_eq!(check(root).expect("checked"), Vec::<String>::new());
    }
}

//! Who may depend on whom (ARCHITECTURE.md), read from the manifests.
//!
//! Ordinary and build dependencies are judged; tests may use what they like, with one exception: whatever a crate
//! uses in tests, `gw-testkit` is never an ordinary dependency.

use anyhow::{Context as _, bail};
use serde::Deserialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

/// The spine: each uses those before it that are listed.
const SPINE: &[(&str, &[&str])] = &[
    ("gw-types", &[]),
    ("gw-evm", &["gw-types"]),
    ("gw-audit", &["gw-types"]),
    ("gw-policy", &["gw-types", "gw-evm"]),
    ("gw-zk", &["gw-types"]),
];
/// Adapters use the spine.
const ADAPTERS: &[&str] = &["gw-store", "gw-node", "gw-http", "gw-journal", "gw-cache"];
/// Features use the spine and the adapters, never each other.
const FEATURES: &[&str] = &["gw-identity", "gw-rpc", "gw-admin"];
/// The one place where everything meets.
const SERVER: &str = "gw-server";
/// For tests; may use the spine and the adapters.
const TESTKIT: &str = "gw-testkit";
/// Models of protocols; tests alone.
const MODELS: &str = "gw-models";
/// Uses nothing of ours.
const XTASK: &str = "xtask";

/// What a pure crate must not even reach through others.
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
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// Absent for an ordinary one.
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

/// Every fault, a line each.
pub(crate) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let output = std::process::Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root)
        .output()
        .context("`cargo metadata` did not start")?;
    if !output.status.success() {
        bail!("`cargo metadata` failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let metadata: Metadata = serde_json::from_slice(&output.stdout).context("`cargo metadata` is not understood")?;
    let mut faults = layering(&metadata);
    faults.extend(purity(&metadata));
    faults.extend(lints(&metadata)?);
    Ok(faults)
}

/// What a crate of ours may use of ours; `None` for a crate the map does not know.
fn may_use(name: &str) -> Option<BTreeSet<&'static str>> {
    let spine = SPINE.iter().map(|(name, _)| *name);
    if let Some((_, above)) = SPINE.iter().find(|(known, _)| *known == name) {
        return Some(above.iter().copied().collect());
    }
    if ADAPTERS.contains(&name) {
        return Some(spine.collect());
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
    let ours: BTreeSet<&str> = members(metadata).map(|package| package.name.as_str()).collect();
    let mut faults = Vec::new();
    for package in members(metadata) {
        let Some(allowed) = may_use(&package.name) else {
            faults.push(format!(
                "{}: is in no layer; ARCHITECTURE.md and xtask must say which",
                package.name
            ));
            continue;
        };
        let used = package
            .dependencies
            .iter()
            .filter(|dependency| dependency.kind.as_deref() != Some("dev"));
        for dependency in used.filter(|dependency| ours.contains(dependency.name.as_str())) {
            if !allowed.contains(dependency.name.as_str()) {
                faults.push(format!("{}: must not depend on {}", package.name, dependency.name));
            }
        }
    }
    faults
}

/// No crate of the spine reaches a runtime, a database or a network client, however far down.
fn purity(metadata: &Metadata) -> Vec<String> {
    let names: BTreeMap<&str, &str> = metadata
        .packages
        .iter()
        .map(|package| (package.id.as_str(), package.name.as_str()))
        .collect();
    let below: BTreeMap<&str, &Node> = metadata
        .resolve
        .nodes
        .iter()
        .map(|node| (node.id.as_str(), node))
        .collect();
    let mut faults = Vec::new();
    for package in members(metadata).filter(|package| SPINE.iter().any(|(name, _)| *name == package.name)) {
        let mut seen = BTreeSet::from([package.id.as_str()]);
        let mut open = vec![(package.id.as_str(), package.name.clone())];
        while let Some((id, path)) = open.pop() {
            for dependency in below.get(id).map(|node| node.deps.as_slice()).unwrap_or_default() {
                let ordinary = dependency
                    .dep_kinds
                    .iter()
                    .any(|kind| kind.kind.as_deref() != Some("dev"));
                if !ordinary || !seen.insert(&dependency.pkg) {
                    continue;
                }
                let name = names.get(dependency.pkg.as_str()).copied().unwrap_or("?");
                let path = format!("{path} > {name}");
                if IMPURE.contains(&name) {
                    faults.push(format!("{}: the spine is pure, but it reaches {path}", package.name));
                }
                open.push((&dependency.pkg, path));
            }
        }
    }
    faults
}

/// Every crate takes the workspace's lints.
fn lints(metadata: &Metadata) -> anyhow::Result<Vec<String>> {
    let mut faults = Vec::new();
    for package in members(metadata) {
        let manifest: toml::Table = std::fs::read_to_string(&package.manifest_path)
            .with_context(|| format!("{} cannot be read", package.manifest_path))?
            .parse()
            .with_context(|| format!("{} is no manifest", package.manifest_path))?;
        let inherited = manifest
            .get("lints")
            .and_then(|lints| lints.get("workspace"))
            .and_then(toml::Value::as_bool);
        if inherited != Some(true) {
            faults.push(format!("{}: must say `[lints] workspace = true`", package.name));
        }
    }
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A workspace of two crates of ours and one foreign; `kind` says how the first uses the others.
    fn world(user: &str, used: &str, kind: Option<&str>) -> Metadata {
        let package = |name: &str, dependencies: serde_json::Value| serde_json::json!({"id": name, "name": name, "manifest_path": "", "dependencies": dependencies});
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
    fn arrows_point_upwards_only() {
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
                layering(&world(user, used, None)),
                [format!("{user}: must not depend on {used}")]
            );
            assert_eq!(layering(&world(user, used, Some("build"))).len(), 1);
            assert_eq!(layering(&world(user, used, Some("dev"))).len(), 0);
        }
        for (user, used) in [
            ("gw-policy", "gw-evm"),
            ("gw-store", "gw-policy"),
            ("gw-rpc", "gw-node"),
            ("gw-server", "gw-rpc"),
        ] {
            assert_eq!(layering(&world(user, used, None)).len(), 0, "{user} may use {used}");
        }
    }

    #[test]
    fn a_crate_without_a_layer_is_a_fault() {
        assert_eq!(layering(&world("gw-new", "gw-types", None)).len(), 1);
    }

    #[test]
    fn the_spine_reaches_no_runtime() {
        assert_eq!(purity(&world("gw-evm", "tokio", None)).len(), 1);
        assert_eq!(purity(&world("gw-evm", "tokio", Some("dev"))).len(), 0);
        assert_eq!(purity(&world("gw-node", "tokio", None)).len(), 0);
    }

    /// The check itself, on this workspace.
    #[test]
    fn this_workspace_keeps_its_layers() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a directory");
        assert_eq!(check(root).expect("checked"), Vec::<String>::new());
    }
}

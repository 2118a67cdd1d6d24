//! Checks the dependencies against `deny.toml`: licences, sources, banned crates, and crates that must have only one
//! version. Also checks that every dependency of a manifest is used, and an ordinary one by
//! code that is no test.
//!
//! `cargo deny` reads the same file. This check covers less: it reads the licences in the manifests, not the licence
//! texts, so `confidence-threshold` does not matter here, and it knows no security advisories. A setting that it does
//! not know is an error.

use crate::{modules, say, source};
use anyhow::{Context as _, bail};
use serde::Deserialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    graph: Graph,
    licenses: Licenses,
    bans: Bans,
    #[serde(rename = "sources")]
    _sources: Sources,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Graph {
    all_features: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Licenses {
    /// The version of the settings, which is 2 in `cargo deny` since 0.16.
    version: u8,
    #[serde(rename = "confidence-threshold")]
    _confidence_threshold: f64,
    allow: Vec<String>,
    private: PrivateLicenses,
}

/// Whether the crates of the workspace, which are not published, need no licence.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PrivateLicenses {
    ignore: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Bans {
    multiple_versions: Severity,
    wildcards: Severity,
    /// Whether a dependency on a path needs no version.
    allow_wildcard_paths: bool,
    deny: Vec<Ban>,
}

/// What to do about a violation.
#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum Severity {
    Allow,
    Warn,
    Deny,
}

/// The only supported answer to a source that is not listed.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Denied {
    Deny,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Sources {
    #[serde(rename = "unknown-registry")]
    _unknown_registry: Denied,
    #[serde(rename = "unknown-git")]
    _unknown_git: Denied,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
    #[serde(default)]
    deny_multiple_versions: bool,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    /// `None` for crates of the workspace.
    source: Option<String>,
    manifest_path: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    rename: Option<String>,
    /// Absent for an ordinary dependency.
    kind: Option<String>,
    /// The required version.
    req: String,
    path: Option<String>,
}

/// The only allowed source of crates.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// All violations, one line each.
pub(crate) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let text = std::fs::read_to_string(root.join("deny.toml")).context("deny.toml cannot be read")?;
    let rules: Rules = toml::from_str(&text).context("deny.toml cannot be parsed")?;
    if rules.licenses.version != 2 {
        bail!("deny.toml: only version 2 of the licence settings is supported");
    }
    let mut arguments = vec!["metadata", "--format-version", "1", "--locked"];
    arguments.extend(rules.graph.all_features.then_some("--all-features"));
    let output = std::process::Command::new("cargo")
        .args(arguments)
        .current_dir(root)
        .output()
        .context("`cargo metadata` did not start")?;
    if !output.status.success() {
        bail!("`cargo metadata` failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let metadata: Metadata =
        serde_json::from_slice(&output.stdout).context("the output of `cargo metadata` cannot be parsed")?;
    let mut faults = violations(&rules, &metadata);
    for package in metadata
        .packages
        .iter()
        .filter(|package| metadata.workspace_members.contains(&package.id))
    {
        faults.extend(unused(package)?);
        faults.extend(used_only_in_tests(package)?);
    }
    Ok(faults)
}

fn violations(rules: &Rules, metadata: &Metadata) -> Vec<String> {
    let mut faults = Vec::new();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in &metadata.packages {
        let is_member = metadata.workspace_members.contains(&package.id);
        if is_member {
            faults.extend(wildcards(rules, package));
            if rules.licenses.private.ignore {
                continue;
            }
        }
        versions.entry(&package.name).or_default().insert(&package.version);
        let name = format!("{} {}", package.name, package.version);
        if !is_member && package.source.as_deref() != Some(REGISTRY) {
            faults.push(format!(
                "{name}: comes from {}",
                package.source.as_deref().unwrap_or("a path")
            ));
        }
        let license = package.license.as_deref().unwrap_or_default();
        if !is_licensed(license, &rules.licenses.allow) {
            faults.push(format!("{name}: the licence `{license}` is not allowed"));
        }
    }
    let several = versions.iter().filter(|(_, versions)| versions.len() > 1);
    match rules.bans.multiple_versions {
        Severity::Allow => {}
        Severity::Warn => say::line(format_args!("{} dependencies have several versions", several.count())),
        Severity::Deny => {
            faults.extend(
                several.map(|(name, versions)| format!("{name}: has {} versions, may have one", versions.len())),
            );
        }
    }
    for ban in &rules.bans.deny {
        let count = versions.get(ban.name.as_str()).map_or(0, BTreeSet::len);
        if ban.deny_multiple_versions && count > 1 {
            faults.push(format!("{}: has {count} versions, may have one", ban.name));
        } else if !ban.deny_multiple_versions && count > 0 {
            faults.push(format!("{}: is banned", ban.name));
        }
    }
    faults
}

/// The dependencies of a crate that accept every version.
fn wildcards(rules: &Rules, package: &Package) -> Vec<String> {
    let is_accepted = |dependency: &&Dependency| {
        dependency.req != "*" || (rules.bans.allow_wildcard_paths && dependency.path.is_some())
    };
    let names = package
        .dependencies
        .iter()
        .filter(|dependency| !is_accepted(dependency));
    let lines = names.map(|dependency| format!("{}: accepts every version of {}", package.name, dependency.name));
    match rules.bans.wildcards {
        Severity::Allow => Vec::new(),
        Severity::Warn => {
            lines.for_each(say::line);
            Vec::new()
        }
        Severity::Deny => lines.collect(),
    }
}

/// Whether the allowed licences satisfy an SPDX expression.
fn is_licensed(license: &str, allow: &[String]) -> bool {
    let allow: Vec<_> = allow
        .iter()
        .filter_map(|text| spdx::Licensee::parse(text).ok())
        .collect();
    spdx::Expression::parse_mode(license, spdx::ParseMode::LAX).is_ok_and(|expression| {
        expression.evaluate(|required| allow.iter().any(|licensee| licensee.satisfies(required)))
    })
}

/// The dependencies of a crate whose names do not occur in the crate's code.
fn unused(package: &Package) -> anyhow::Result<Vec<String>> {
    let manifest = Path::new(&package.manifest_path);
    let folder = manifest.parent().context("the manifest has no folder")?;
    let mut text = String::new();
    collect(folder, &mut text)?;
    let manifest = std::fs::read_to_string(manifest)
        .with_context(|| format!("the manifest of {} cannot be read", package.name))?;
    let is_named = |name: &str| {
        let ident = name.replace('-', "_");
        // A feature may enable a dependency or one of its features.
        let in_features = [format!("\"{name}/"), format!("\"dep:{name}\""), format!("\"{name}?/")];
        text.match_indices(&ident)
            .any(|(at, _)| is_word(&text, at, ident.len()))
            || in_features.iter().any(|name| manifest.contains(name))
    };
    let names: BTreeSet<&str> = package
        .dependencies
        .iter()
        .map(|dependency| dependency.rename.as_deref().unwrap_or(&dependency.name))
        .collect();
    let unnamed = names.into_iter().filter(|name| !is_named(name));
    Ok(unnamed
        .map(|name| format!("{}: does not use {name}", package.name))
        .collect())
}

/// The ordinary dependencies of a crate that only its tests name.
fn used_only_in_tests(package: &Package) -> anyhow::Result<Vec<String>> {
    let manifest = Path::new(&package.manifest_path);
    let folder = manifest.parent().context("the manifest has no folder")?.join("src");
    let words = modules::words_outside_tests(&folder)?;
    let mut text = String::new();
    for file in source::rust_files(&folder)? {
        text.push_str(&std::fs::read_to_string(&file).with_context(|| format!("`{}` cannot be read", file.display()))?);
    }
    let manifest = std::fs::read_to_string(manifest)
        .with_context(|| format!("the manifest of {} cannot be read", package.name))?;
    let is_used = |name: &str| {
        let ident = name.replace('-', "_");
        // An attribute may name a path in a string. A feature may enable a dependency or one of its features.
        words.contains(&ident)
            || text.contains(&format!("\"{ident}::"))
            || [format!("\"{name}/"), format!("\"dep:{name}\""), format!("\"{name}?/")]
                .iter()
                .any(|name| manifest.contains(name))
    };
    let ordinary = package
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind.is_none());
    Ok(ordinary
        .map(|dependency| dependency.rename.as_deref().unwrap_or(&dependency.name))
        .filter(|name| !is_used(name))
        .map(|name| {
            format!(
                "{}: only tests use {name}, so it must be a dev-dependency",
                package.name
            )
        })
        .collect())
}

fn is_word(text: &str, at: usize, length: usize) -> bool {
    let is_word_byte = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let bytes = text.as_bytes();
    !is_word_byte(at.checked_sub(1).and_then(|previous| bytes.get(previous))) && !is_word_byte(bytes.get(at + length))
}

/// Appends all Rust code in a folder to `text`.
fn collect(folder: &Path, text: &mut String) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| format!("`{}` cannot be read", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, text)?;
        } else if path.extension().is_some_and(|suffix| suffix == "rs") {
            read(&path, text)?;
        }
    }
    Ok(())
}

/// Appends a file to `text`, and the files that it includes from other crates by `#[path = "…"]`.
fn read(path: &Path, text: &mut String) -> anyhow::Result<()> {
    let code = std::fs::read_to_string(path).with_context(|| format!("`{}` cannot be read", path.display()))?;
    let folder = path.parent().context("the file has no folder")?;
    for included in code
        .lines()
        .filter_map(|line| line.trim().strip_prefix("#[path = \"")?.strip_suffix("\"]"))
    {
        // The path is relative to the file, or to the folder of its module.
        let candidates = [folder.join(included), path.with_extension("").join(included)];
        let included_path = candidates.iter().find(|candidate| candidate.is_file());
        text.push_str(&std::fs::read_to_string(included_path.with_context(|| {
            format!("`{included}`, which `{}` includes, is missing", path.display())
        })?)?);
    }
    text.push_str(&code);
    text.push('\n');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str, license: &str, source: Option<&str>) -> Package {
        Package {
            id: format!("{name} {version}"),
            name: name.to_owned(),
            version: version.to_owned(),
            license: Some(license.to_owned()),
            source: source.map(str::to_owned),
            manifest_path: String::new(),
            dependencies: Vec::new(),
        }
    }

    #[test]
    fn licences_sources_bans_and_versions_are_checked() {
        let rules: Rules = toml::from_str(
            "[graph]\nall-features = true\n[sources]\nunknown-registry = \"deny\"\nunknown-git = \"deny\"\n\
             [licenses]\nversion = 2\nconfidence-threshold = 0.9\nprivate.ignore = true\n\
             allow = [\"MIT\", \"Apache-2.0 WITH LLVM-exception\"]\n[bans]\nmultiple-versions = \"allow\"\n\
             wildcards = \"deny\"\nallow-wildcard-paths = true\ndeny = [{ crate = \"bad\" }, \
             { crate = \"one\", deny-multiple-versions = true }]",
        )
        .unwrap();
        let fine = [
            package("a", "1.0.0", "MIT OR GPL-3.0", Some(REGISTRY)),
            package("b", "1.0.0", "MIT/Apache-2.0", Some(REGISTRY)),
            package("c", "1.0.0", "Apache-2.0 WITH LLVM-exception", Some(REGISTRY)),
            package("one", "1.0.0", "MIT", Some(REGISTRY)),
        ];
        let bad = [
            package("d", "1.0.0", "GPL-3.0", Some(REGISTRY)),
            package("e", "1.0.0", "MIT", Some("git+https://example.com/e")),
            package("bad", "1.0.0", "MIT", Some(REGISTRY)),
            package("one", "2.0.0", "MIT", Some(REGISTRY)),
        ];
        let packages = fine.into_iter().chain(bad).collect();
        let faults = violations(
            &rules,
            &Metadata {
                packages,
                workspace_members: BTreeSet::new(),
            },
        );
        let expected = [
            "d 1.0.0: the licence `GPL-3.0` is not allowed",
            "e 1.0.0: comes from git+https://example.com/e",
            "bad: is banned",
            "one: has 2 versions, may have one",
        ];
        assert_eq!(faults, expected);
    }

    #[test]
    fn wildcards_are_checked_and_unknown_settings_are_errors() {
        let dependency = |name: &str, req: &str, path: Option<&str>| Dependency {
            name: name.to_owned(),
            rename: None,
            kind: None,
            req: req.to_owned(),
            path: path.map(str::to_owned),
        };
        let mut member = package("m", "1.0.0", "", None);
        member.dependencies = vec![
            dependency("a", "^1", None),
            dependency("b", "*", None),
            dependency("c", "*", Some("/c")),
        ];
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../deny.toml")).unwrap();
        let rules: Rules = toml::from_str(&text).unwrap();
        let metadata = Metadata {
            workspace_members: BTreeSet::from([member.id.clone()]),
            packages: vec![member],
        };
        assert_eq!(violations(&rules, &metadata), ["m: accepts every version of b"]);
        for (known, unknown) in [
            ("[bans]", "[bans]\nskip = []"),
            ("unknown-git = \"deny\"", "unknown-git = \"warn\""),
            ("[graph]", "[graph]\ntargets = []"),
        ] {
            assert!(
                toml::from_str::<Rules>(&text.replace(known, unknown)).is_err(),
                "{unknown}"
            );
        }
    }

    #[test]
    fn a_name_within_a_longer_one_does_not_count_as_use() {
        let text = "use hex_literal::hex; extern crate serde;";
        let is_used = |name: &str| text.match_indices(name).any(|(at, _)| is_word(text, at, name.len()));
        assert!(is_used("hex") && is_used("serde") && !is_used("literal"));
    }
}

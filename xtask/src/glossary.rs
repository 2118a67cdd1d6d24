//! Counts retired names that are still in the code: old names of types and functions, and names of variables that do
//! not describe their content.
//!
//! Only identifiers count, not comments and texts, and not the functions in [`FOREIGN`]. A name after a dot counts if
//! the workspace defines a function or a field of this name; otherwise it belongs to a type of another crate.

use crate::source;
use anyhow::Context as _;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::{Path, PathBuf},
};

/// Names that are retired in all crates.
const EVERYWHERE: &[&str] = &["said", "told", "beside", "Beside", "shoulder", "judged_again"];

/// Names that are retired only in some crates, by crate; elsewhere they have another meaning.
const BY_CRATE: &[(&str, &[&str])] = &[
    (
        "gw-rpc",
        &[
            "Asked",
            "Judged",
            "Found",
            "Recorder",
            "Room",
            "Reply",
            "Said",
            "InFlight",
            "Rates",
            "Breakers",
            "Party",
            "Inner",
            "Origin",
            "Meters",
            "Ended",
            "Pins",
            "Rehearsal",
            "Rehearsed",
            "Trial",
            "Tried",
            "LiveFault",
            "BodyFault",
            "FundsUnknown",
            "Ready",
            "Facts",
            "Fate",
            "MinedGate",
            "Unseen",
            "News",
            "Who",
            "Stranger",
            "Seat",
            "Sockets",
            "Outbox",
            "Ending",
            "Turn",
            "found",
            "asked",
            "on",
            "of",
            "edge",
            "knobs",
            "judged",
            "extras",
        ],
    ),
    (
        "gw-policy",
        &[
            "Question",
            "Member",
            "Standing",
            "Reach",
            "Person",
            "Refused",
            "Checks",
            "Judged",
            "Place",
            "Above",
            "Knobs",
            "OneSided",
            "Anchor",
            "NoAbi",
            "AddressQuery",
            "Qualifies",
            "Admission",
            "Rendering",
            "MustBe",
            "TxRight",
            "GroupSays",
            "TargetSays",
            "GrantSays",
            "Way",
            "StoppedAt",
            "MinedFinding",
            "Subject",
            "found",
            "on",
            "of",
            "knobs",
            "judged",
            "extras",
            "held",
        ],
    ),
    (
        "gw-evm",
        &[
            "Extra",
            "Extras",
            "Listed",
            "Unexamined",
            "Mention",
            "Held",
            "Lookup",
            "unambiguous",
            "found",
            "on",
            "of",
            "extras",
            "held",
        ],
    ),
    (
        "gw-node",
        &[
            "Gate", "Upkeep", "Patience", "Budget", "Trail", "Resend", "found", "on", "of", "extras",
        ],
    ),
    (
        "gw-store",
        &[
            "Policy",
            "Since",
            "Stamp",
            "Reads",
            "plant",
            "lot",
            "TenantEnd",
            "ToggleChange",
            "Linked",
            "found",
            "on",
            "of",
            "knobs",
            "provenance",
        ],
    ),
    (
        "gw-audit",
        &["Draft", "Placed", "Walk", "Out", "Input", "found", "on", "of"],
    ),
    (
        "gw-journal",
        &[
            "Found", "Mark", "Kept", "Visited", "Reached", "Base", "Sizes", "Options", "found", "on", "of",
        ],
    ),
    (
        "gw-cache",
        &[
            "Space", "Window", "pace", "living", "among", "most", "life", "found", "on", "of",
        ],
    ),
    (
        "gw-http",
        &[
            "Edge",
            "Presented",
            "OwnOrigins",
            "WrongTokens",
            "found",
            "on",
            "of",
            "edge",
            "provenance",
        ],
    ),
    (
        "gw-identity",
        &[
            "Provenance",
            "act",
            "SecuritySink",
            "Proved",
            "LoggedIn",
            "Refusal",
            "Attempt",
            "Failures",
            "entitles",
            "enter",
            "machine",
            "detached",
            "ChainAway",
            "found",
            "on",
            "of",
            "edge",
            "provenance",
            "examined",
        ],
    ),
    (
        "gw-admin",
        &[
            "Failure",
            "Who",
            "may_touch",
            "exclusive",
            "mirror",
            "nowhere",
            "found",
            "on",
            "of",
            "edge",
            "knobs",
            "provenance",
            "extras",
        ],
    ),
    (
        "gw-server",
        &[
            "Patient",
            "Busy",
            "Foundation",
            "Ground",
            "dress",
            "Switch",
            "complain",
            "tidy",
            "or_kept",
            "in_step",
            "ask_daily",
            "Shown",
            "Word",
            "Fault",
            "Trust",
            "found",
            "on",
            "of",
            "edge",
            "knobs",
            "extras",
        ],
    ),
    (
        "gw-zk",
        &["Examined", "Shown", "Term", "found", "on", "of", "examined", "held"],
    ),
    ("gw-crypto", &["found", "on", "of"]),
    ("gw-models", &["found", "on", "of"]),
    ("gw-types", &["found", "on", "of"]),
    ("xtask", &["found", "on", "of"]),
    (
        "gw-testkit",
        &[
            "found", "on", "of", "asked", "judged", "edge", "knobs", "extras", "held",
        ],
    ),
];

/// Names that stay although they are retired elsewhere in the same list: crate, name and reason.
const KEPT: &[(&str, &str, &str)] = &[
    ("gw-policy", "Member", "a step of a test that adds a member to a group"),
    (
        "gw-rpc",
        "Origin",
        "the origin of a web page (RFC 6454), a type of gw-http",
    ),
    ("gw-rpc", "Ready", "`Poll::Ready` of the standard library"),
    (
        "gw-server",
        "Busy",
        "the exit code and error for a lock that another process holds",
    ),
    (
        "gw-server",
        "edge",
        "the section of the configuration about the listeners; a `ChainEdge`, the edge of a Merkle tree",
    ),
    (
        "gw-store",
        "Linked",
        "the outcome of a link, beside the outcomes without one",
    ),
    ("gw-zk", "Term", "a term of JSON-LD"),
];

/// Functions of other crates whose names are retired here: the module in front of the name, and the name.
const FOREIGN: &[(&str, &str)] = &[("option", "of")]; // A strategy of proptest.

/// The file with the number of occurrences that each retired name may still have. It may only shrink.
const REMAINING: &str = "xtask/glossary.toml";

/// Numbers of occurrences, by crate and name.
pub(crate) type Counts = BTreeMap<String, BTreeMap<String, usize>>;

/// The number of occurrences of each retired name, without the kept ones.
pub(crate) fn count(root: &Path) -> anyhow::Result<Counts> {
    let mut files = Vec::new();
    for (name, folder) in source::crate_folders(root)? {
        for path in source::rust_files(&folder)? {
            let text =
                std::fs::read_to_string(&path).with_context(|| format!("`{}` cannot be read", path.display()))?;
            files.push((name.clone(), text));
        }
    }
    Ok(count_in(&files, BY_CRATE, KEPT))
}

/// All differences between the code and the numbers in [`REMAINING`], one line each.
pub(crate) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    Ok(compare(&count(root)?, &remaining(root)?))
}

/// Lowers the numbers in [`REMAINING`] to those of the code. It raises none.
pub(crate) fn lower(root: &Path) -> anyhow::Result<()> {
    let counts = count(root)?;
    let mut text = String::from(
        "# How often each retired name may still occur, by crate (`cargo xtask glossary`). These numbers may only\n\
         # shrink: `cargo xtask glossary lower` lowers them after a rename.\n",
    );
    for (package, names) in remaining(root)? {
        let lowered: Vec<(&String, usize)> = names
            .iter()
            .map(|(name, allowed)| (name, number(&counts, &package, name).min(*allowed)))
            .filter(|(_, count)| *count > 0)
            .collect();
        if !lowered.is_empty() {
            // Writing to a string does not fail.
            let _ = write!(text, "\n[{package}]\n");
        }
        for (name, count) in lowered {
            let _ = writeln!(text, "{name} = {count}");
        }
    }
    let path = table(root);
    std::fs::write(&path, text).with_context(|| format!("`{}` cannot be written", path.display()))
}

fn table(root: &Path) -> PathBuf {
    root.join(REMAINING)
}

fn remaining(root: &Path) -> anyhow::Result<Counts> {
    let path = table(root);
    let text = std::fs::read_to_string(&path).with_context(|| format!("`{}` cannot be read", path.display()))?;
    toml::from_str(&text).with_context(|| format!("`{}` cannot be parsed", path.display()))
}

fn number(counts: &Counts, package: &str, name: &str) -> usize {
    counts
        .get(package)
        .and_then(|names| names.get(name))
        .copied()
        .unwrap_or(0)
}

fn compare(counts: &Counts, remaining: &Counts) -> Vec<String> {
    let pairs: BTreeSet<(&String, &String)> = counts
        .iter()
        .chain(remaining)
        .flat_map(|(package, names)| names.keys().map(move |name| (package, name)))
        .collect();
    let lines = pairs.into_iter().filter_map(|(package, name)| {
        let (count, allowed) = (number(counts, package, name), number(remaining, package, name));
        match count.cmp(&allowed) {
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => Some(format!(
                "{package}: the retired name `{name}` occurs {count} times, may occur {allowed} times"
            )),
            std::cmp::Ordering::Less => Some(format!(
                "{package}: `{name}` occurs {count} times, {REMAINING} still says {allowed}; run `cargo xtask \
                 glossary lower`"
            )),
        }
    });
    lines.collect()
}

/// Counts the retired names in files, each with the name of its crate.
fn count_in(files: &[(String, String)], by_crate: &[(&str, &[&str])], kept: &[(&str, &str, &str)]) -> Counts {
    let files: Vec<(&String, Vec<&str>)> = files
        .iter()
        .map(|(package, text)| (package, source::tokens(text)))
        .collect();
    let members: BTreeSet<&str> = files.iter().flat_map(|(_, tokens)| members(tokens)).collect();
    let mut counts = Counts::new();
    for (package, tokens) in &files {
        let own = by_crate
            .iter()
            .find(|(known, _)| known == package)
            .map_or(&[][..], |(_, names)| *names);
        let is_retired = |name: &str| {
            (EVERYWHERE.contains(&name) || own.contains(&name))
                && !kept.iter().any(|(known, kept, _)| known == package && *kept == name)
        };
        for (at, token) in tokens.iter().enumerate() {
            let is_after_dot = at.checked_sub(1).and_then(|previous| tokens.get(previous)) == Some(&".");
            let module = at.checked_sub(2).and_then(|start| tokens.get(start..at));
            let is_foreign = FOREIGN
                .iter()
                .any(|(known, name)| name == token && module == Some(&[*known, "::"]));
            if is_retired(token) && !is_foreign && (!is_after_dot || members.contains(token)) {
                let names = counts.entry((*package).clone()).or_default();
                *names.entry((*token).to_owned()).or_default() += 1;
            }
        }
    }
    counts
}

/// The names of the functions and fields that the code defines.
fn members<'a>(tokens: &[&'a str]) -> BTreeSet<&'a str> {
    let token = |at: usize| tokens.get(at).copied().unwrap_or_default();
    let mut names = BTreeSet::new();
    let mut is_in_type = false;
    let mut depth = 0_usize;
    for at in 0..tokens.len() {
        match token(at) {
            "fn" => {
                names.insert(token(at + 1));
            }
            "struct" | "enum" if depth == 0 => is_in_type = true,
            ";" if depth == 0 => is_in_type = false,
            "{" if is_in_type => depth += 1,
            "}" if is_in_type => {
                depth = depth.saturating_sub(1);
                is_in_type = depth > 0;
            }
            name if depth > 0 && source::is_word(name) && token(at + 1) == ":" => {
                names.insert(name);
            }
            _ => {}
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(text: &str) -> Counts {
        toml::from_str(text).expect("a table")
    }

    #[test]
    fn names_count_except_foreign_members_and_kept_names() {
        let code = "struct A<T> { pub asked: u8 } enum B { C { held: u8 } } struct D(u8); fn edge(told: u8) { \
                    let found: u8 = 1; } // told\nfn f() { a.asked; a.held; a.edge(); a.found; a.told; y..said; \
                    prop::option::of(a); A::of(a) }";
        let files = [
            ("one".to_owned(), code.to_owned()),
            ("two".to_owned(), "a.asked()".to_owned()),
        ];
        let names: &[&str] = &["asked", "edge", "found", "held", "kept", "of"];
        let counted = count_in(
            &files,
            &[("one", names), ("two", names)],
            &[("one", "held", "for a reason")],
        );
        let expected = counts("[one]\nasked = 2\nedge = 2\nfound = 1\nof = 1\nsaid = 1\ntold = 1\n[two]\nasked = 1");
        assert_eq!(counted, expected);
    }

    #[test]
    fn the_counts_may_be_neither_higher_nor_lower_than_the_table() {
        let table = counts("[a]\nx = 2\ny = 2\nz = 2");
        let faults = compare(&counts("[a]\nx = 3\ny = 1\nz = 2\n[b]\nx = 1"), &table);
        assert_eq!(faults.len(), 3, "{faults:?}");
        assert_eq!(
            faults.first().map(String::as_str),
            Some("a: the retired name `x` occurs 3 times, may occur 2 times")
        );
        assert_eq!(
            faults.last().map(String::as_str),
            Some("b: the retired name `x` occurs 1 times, may occur 0 times")
        );
    }
}

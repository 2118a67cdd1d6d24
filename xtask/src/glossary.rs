//! Counts retired names that are still in the code: old names of types and functions, and names of variables that do
//! not describe their content.
//!
//! Only identifiers count, not comments and texts. A name after a dot does not count either: it is a method or a field,
//! perhaps of another crate's type.

use anyhow::Context as _;
use std::{
    collections::BTreeMap,
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
        ],
    ),
    (
        "gw-node",
        &[
            "Gate", "Upkeep", "Patience", "Budget", "Trail", "Resend", "found", "on", "of",
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
        &["Edge", "Presented", "OwnOrigins", "WrongTokens", "found", "on", "of"],
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
        ],
    ),
    ("gw-zk", &["Examined", "Shown", "Term", "found", "on", "of"]),
];

/// The number of occurrences of each retired name, by crate and name.
pub(crate) fn count(root: &Path) -> anyhow::Result<BTreeMap<(String, String), usize>> {
    let mut counts = BTreeMap::new();
    let crates = root.join("crates");
    for entry in std::fs::read_dir(&crates).with_context(|| format!("{} cannot be read", crates.display()))? {
        let folder = entry?.path();
        let name = folder
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default()
            .to_owned();
        let own = BY_CRATE
            .iter()
            .find(|(known, _)| *known == name)
            .map_or(&[][..], |(_, names)| *names);
        let mut files = Vec::new();
        sources(&folder, &mut files)?;
        for file in files {
            let text = std::fs::read_to_string(&file).with_context(|| format!("{} cannot be read", file.display()))?;
            for word in identifiers(&text) {
                if EVERYWHERE.contains(&word) || own.contains(&word) {
                    *counts.entry((name.clone(), word.to_owned())).or_default() += 1;
                }
            }
        }
    }
    Ok(counts)
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            sources(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// The identifiers in Rust code, except those that follow a dot.
fn identifiers(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    let mut dots = 0;
    while let Some(first) = rest.chars().next() {
        let skipped = skipped(rest);
        let length = skipped.unwrap_or_else(|| {
            let word = rest
                .find(|c: char| !(c.is_alphanumeric() || c == '_'))
                .unwrap_or(rest.len());
            word.max(first.len_utf8())
        });
        let (token, behind) = rest.split_at_checked(length).unwrap_or((rest, ""));
        if skipped.is_none() {
            let is_word = first.is_alphabetic() || first == '_';
            // Two dots are a range operator, so an identifier behind them counts.
            if is_word && dots != 1 {
                words.push(token);
            }
            if !first.is_whitespace() {
                dots = if first == '.' { dots + 1 } else { 0 };
            }
        }
        rest = behind;
    }
    words
}

/// The length of the comment, string, character or lifetime at the start of the code; `None` if there is none.
fn skipped(code: &str) -> Option<usize> {
    let end_of = |start: usize, end: &str| {
        code.get(start..)
            .and_then(|rest| rest.find(end))
            .map(|at| start + at + end.len())
    };
    if code.starts_with("//") {
        return Some(code.find('\n').unwrap_or(code.len()));
    }
    if code.starts_with("/*") {
        return Some(end_of(2, "*/").unwrap_or(code.len()));
    }
    let raw = code.strip_prefix("br").or_else(|| code.strip_prefix('r'));
    if let Some(raw) = raw {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw.trim_start_matches('#').starts_with('"') {
            let start = code.len() - raw.len() + hashes + 1;
            return Some(end_of(start, &format!("\"{}", "#".repeat(hashes))).unwrap_or(code.len()));
        }
    }
    let quoted = if code.starts_with("b\"") {
        Some(2)
    } else {
        code.starts_with('"').then_some(1)
    };
    if let Some(start) = quoted {
        let mut is_escaped = false;
        let inner = code.get(start..)?;
        for (at, c) in inner.char_indices() {
            match c {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                '"' => return Some(start + at + 1),
                _ => {}
            }
        }
        return Some(code.len());
    }
    if code.starts_with('\'') {
        let inner = code.get(1..)?;
        let mut chars = inner.char_indices();
        return match (chars.next(), chars.next()) {
            (Some((_, '\\')), Some(_)) => inner.get(2..)?.find('\'').map(|at| at + 4),
            (Some(_), Some((at, '\''))) => Some(at + 2),
            // A lifetime.
            _ => Some(
                1 + inner
                    .find(|c: char| !(c.is_alphanumeric() || c == '_'))
                    .unwrap_or(inner.len()),
            ),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_identifiers_in_code_count() {
        let code = "fn said(b: &'said str) { /* told */ let x = \"told \\\" told\"; x.told(); r#\"told\"#; 'a'; '\\''; y..said } // told";
        assert_eq!(
            identifiers(code),
            ["fn", "said", "b", "str", "let", "x", "x", "y", "said"]
        );
    }
}

//! Counts retired names that are still in the code: old names of types and functions, and names of variables that do
//! not describe their content.
//!
//! Only identifiers count, not comments and texts. A name after a dot does not count either: it is a method or a field,
//! perhaps of another crate's type.

use crate::source;
use anyhow::Context as _;
use std::{collections::BTreeMap, path::Path};

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
        for file in source::rust_files(&folder)? {
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

/// The identifiers in Rust code, except those that follow a dot.
fn identifiers(text: &str) -> Vec<&str> {
    let tokens = source::tokens(text);
    let after_dot = |at: usize| at.checked_sub(1).and_then(|previous| tokens.get(previous)) == Some(&".");
    let words = tokens.iter().enumerate();
    words
        .filter(|(at, token)| source::is_word(token) && !after_dot(*at))
        .map(|(_, token)| *token)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_identifiers_in_code_count() {
        let code = "fn said(b: &'said str) { /* told */ let x = \"told \\\" told\"; x.told(); r#\"told\"#; 'a'; '\\''; \
                    y..said } // told";
        assert_eq!(
            identifiers(code),
            ["fn", "said", "b", "str", "let", "x", "x", "y", "said"]
        );
    }
}

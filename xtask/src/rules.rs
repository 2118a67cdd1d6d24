//! Checks that every rule id in the code, its tests or the documents has a row in `docs/rules-index.md`, so that a
//! reader of this repository can look it up.
//!
//! In Rust files, comments and function names are searched; in documents, the whole text.

use anyhow::Context as _;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

/// Families of ids without a hyphen.
const PLAIN: &[&str] = &[
    "HD", "A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L", "M", "N", "O", "R", "T", "U", "V", "W", "X",
];
/// Families of ids with a hyphen.
const HYPHENATED: &[&str] = &["AU", "CO", "DI", "DS", "E", "LK", "MK", "OA", "PU", "TK", "WS", "ZK"];
/// Folders in which the letter of a family has another meaning: curve groups, circuits and token versions.
const OTHER_MEANINGS: &[(&str, &[&str])] = &[
    ("crates/gw-zk/", &["G", "V"]),
    ("crates/gw-testkit/src/wallet/", &["G", "V"]),
];

/// All spellings of one mentioned id, of which the index needs one.
type Mention = BTreeSet<String>;

/// One line for each id without a row, with the first file that mentions it.
pub(crate) fn missing(root: &Path) -> anyhow::Result<Vec<String>> {
    let index = root.join("docs/rules-index.md");
    let text = std::fs::read_to_string(&index).with_context(|| format!("`{}` cannot be read", index.display()))?;
    let rows: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" |").next())
        .collect();
    let mut missing: BTreeMap<Mention, PathBuf> = BTreeMap::new();
    for path in sources(root)? {
        if path == index {
            continue;
        }
        let text = std::fs::read_to_string(&path).with_context(|| format!("`{}` cannot be read", path.display()))?;
        let relative = path.strip_prefix(root).unwrap_or(&path);
        let excluded = OTHER_MEANINGS
            .iter()
            .find(|(folder, _)| relative.starts_with(folder))
            .map(|(_, families)| *families);
        let mentions = if path.extension().is_some_and(|suffix| suffix == "rs") {
            ids_in_code(&text)
        } else {
            ids_in_prose(&text)
        };
        for mention in mentions {
            let is_excluded = mention.iter().any(|id| {
                excluded
                    .unwrap_or_default()
                    .iter()
                    .any(|family| is_in_family(id, family))
            });
            if !is_excluded && !mention.iter().any(|id| rows.contains(id.as_str())) {
                missing.entry(mention).or_insert_with(|| relative.to_owned());
            }
        }
    }
    let line = |(mention, path): (Mention, PathBuf)| {
        let id = mention.into_iter().next().unwrap_or_default();
        format!(
            "{id}, which {} mentions, has no row in docs/rules-index.md",
            path.display()
        )
    };
    Ok(missing.into_iter().map(line).collect())
}

fn is_in_family(id: &str, family: &str) -> bool {
    id.strip_prefix(family)
        .is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
}

/// The Rust files of all crates, and the documents.
fn sources(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md"]
        .map(|name| root.join(name))
        .into();
    let mut folders = ["crates", "xtask", "docs"].map(|name| root.join(name)).to_vec();
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).with_context(|| format!("`{}` cannot be read", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|suffix| suffix == "rs" || suffix == "md") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn ids_in_code(text: &str) -> BTreeSet<Mention> {
    let mut prose = String::new();
    let mut mentions = BTreeSet::new();
    for line in text.lines() {
        if let Some((_, comment)) = line.split_once("//") {
            prose.push_str(comment.trim_start_matches(['/', '!']));
            prose.push(' ');
        } else {
            // Separates this comment from the next one.
            prose.push_str("// ");
        }
        if let Some((_, name)) = line.split_once("fn ") {
            mentions.extend(ids_in_name(name));
        }
    }
    mentions.extend(ids_in_prose(&prose));
    mentions
}

/// The ids at the start of a function's name: `hd23_e1_…`, `d40_…` for decision 40.
fn ids_in_name(name: &str) -> BTreeSet<Mention> {
    let end = name
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(name.len());
    let parts: Vec<&str> = name.get(..end).unwrap_or_default().split('_').collect();
    let is_last = |at: usize| at + 1 == parts.len();
    let ids = parts.iter().enumerate().map_while(|(at, part)| {
        let upper = part.to_ascii_uppercase();
        let digits = upper.find(|c: char| c.is_ascii_digit()).filter(|_| !is_last(at))?;
        let (family, number) = upper.split_at_checked(digits)?;
        let is_integer = matches!(
            (family, number),
            ("U" | "I", "8" | "16" | "32" | "64" | "128") | ("F", "32" | "64")
        );
        if is_integer { None } else { spellings(family, number) }
    });
    ids.collect()
}

/// The spellings of the id with this family and number, such as `E1` and `E-1`, or `D40` and `decision 40`.
fn spellings(family: &str, number: &str) -> Option<Mention> {
    let digits = number.trim_end_matches(|c: char| c.is_ascii_lowercase() || c.is_ascii_uppercase());
    let suffix = number.get(digits.len()..)?.to_ascii_lowercase();
    let is_number = (1..=2).contains(&digits.len()) && !digits.starts_with('0') && suffix.len() <= 1;
    if !is_number || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut ids = Mention::new();
    if PLAIN.contains(&family) {
        ids.insert(format!("{family}{digits}{suffix}"));
    }
    if HYPHENATED.contains(&family) {
        ids.insert(format!("{family}-{digits}{suffix}"));
    }
    if family == "D" {
        ids.insert(format!("decision {digits}"));
    }
    (!ids.is_empty()).then_some(ids)
}

fn ids_in_prose(text: &str) -> BTreeSet<Mention> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '–' | '.' | ':' | '/' | '+');
    let words: Vec<&str> = text
        .split(|c: char| !is_word(c))
        .filter(|word| !word.is_empty())
        .collect();
    let mut mentions = BTreeSet::new();
    for (at, word) in words.iter().enumerate() {
        let word = word.trim_end_matches(['.', ':', '-', '–']);
        // `V3 circuit` is a circuit version, not visibility rule V3.
        let is_circuit = words.get(at + 1).is_some_and(|next| next.starts_with("circuit"));
        match id_in_word(word) {
            Some(mention) if !is_circuit => {
                mentions.insert(mention);
            }
            Some(_) => {}
            // A range of ids.
            None => {
                let ends = word.split_once('–').or_else(|| {
                    word.split_once("-")
                        .filter(|(_, end)| end.starts_with(|c: char| c.is_ascii_uppercase()))
                });
                mentions.extend(
                    ends.into_iter()
                        .flat_map(|(first, last)| [id_in_word(first), id_in_word(last)])
                        .flatten(),
                );
            }
        }
        if matches!(word, "decision" | "decisions" | "Decision" | "Decisions") {
            mentions.extend(decisions(words.get(at + 1..).unwrap_or_default()));
        }
    }
    mentions
}

fn id_in_word(word: &str) -> Option<Mention> {
    let digits = word.find(|c: char| c.is_ascii_digit())?;
    let (family, number) = word.split_at_checked(digits)?;
    let has_suffix = number.ends_with(|c: char| c.is_ascii_uppercase());
    let family = if HYPHENATED.contains(&family.trim_end_matches('-')) {
        family.trim_end_matches('-')
    } else {
        family
    };
    if has_suffix { None } else { spellings(family, number) }
}

/// The ids in a list such as `17 to 20 and 50`; of a range only both ends.
fn decisions(words: &[&str]) -> Vec<Mention> {
    let mut ids = Vec::new();
    for word in words {
        let number = word.trim_end_matches(['.', ':']);
        if (1..=2).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit()) {
            ids.push(Mention::from([format!("decision {number}")]));
        } else if !matches!(*word, "and" | "to") {
            break;
        }
    }
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(mentions: BTreeSet<Mention>) -> Vec<String> {
        mentions
            .into_iter()
            .map(|mention| mention.into_iter().collect::<Vec<_>>().join(" or "))
            .collect()
    }

    #[test]
    fn ids_are_found_in_comments_and_names() {
        let code = "/// Grants (F1-F4, HD20; ZK-43 and decisions 17 to 20).\nfn hd23_e1_a_name(v: u256) {} // \
                    IpAddr::V4, B256, P-256\n\
                    fn d40_of_a_test() {}\nfn u8_of(x: u8) {}\nlet k9 = 1;";
        let expected = [
            "D40 or decision 40",
            "E-1 or E1",
            "F1",
            "F4",
            "HD20",
            "HD23",
            "ZK-43",
            "decision 17",
            "decision 20",
        ];
        assert_eq!(ids(ids_in_code(code)), expected);
        assert_eq!(
            ids(ids_in_prose("a V3 circuit, I10; utf-8, RFC 9110, ERC-20.")),
            ["I10"]
        );
    }

    #[test]
    fn every_id_has_a_row() {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .map(PathBuf::from)
            .unwrap();
        assert_eq!(missing(&root).unwrap(), Vec::<String>::new());
    }
}

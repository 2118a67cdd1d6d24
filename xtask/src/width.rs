//! Checks the width of lines. `rustfmt` leaves long strings, comments and the arguments of many macros as they are.

use crate::source;
use anyhow::Context as _;
use std::path::Path;

/// The folders whose Rust files are checked.
const FOLDERS: &[&str] = &["crates", "xtask", "fuzz/fuzz_targets"];

/// One line for each line of code that is too wide.
pub(crate) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let width = max_width(root)?;
    let mut faults = Vec::new();
    for folder in FOLDERS {
        for path in source::rust_files(&root.join(folder))? {
            let text =
                std::fs::read_to_string(&path).with_context(|| format!("`{}` cannot be read", path.display()))?;
            let name = path.strip_prefix(root).unwrap_or(&path).display();
            let lines = text.lines().enumerate().filter(|(_, line)| is_too_wide(line, width));
            faults.extend(lines.map(|(at, line)| {
                let length = line.chars().count();
                format!("{name}:{}: {length} characters, may have {width}", at + 1)
            }));
        }
    }
    Ok(faults)
}

/// `max_width` of rustfmt.toml.
fn max_width(root: &Path) -> anyhow::Result<usize> {
    let text = std::fs::read_to_string(root.join("rustfmt.toml")).context("rustfmt.toml cannot be read")?;
    let settings: toml::Table = text.parse().context("rustfmt.toml cannot be parsed")?;
    settings
        .get("max_width")
        .and_then(toml::Value::as_integer)
        .and_then(|width| usize::try_from(width).ok())
        .context("rustfmt.toml has no max_width")
}

/// Whether a line is too wide although it could be broken. A word that is too wide by itself, such as a URL or a test
/// vector, cannot be broken.
fn is_too_wide(line: &str, width: usize) -> bool {
    let indentation = line.chars().take_while(|c| c.is_whitespace()).count();
    let longest = line.split_whitespace().map(|word| word.chars().count()).max();
    line.chars().count() > width && indentation + longest.unwrap_or(0) <= width
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_that_can_be_broken_are_too_wide() {
        for (line, expected) in [
            ("    1234 6789", false),
            ("    1234 67890", true),
            ("    // see https://ab", false),
            ("  ééé", false),
            ("12345678901234 5", false),
            ("       // 34567", true),
        ] {
            assert_eq!(is_too_wide(line, 13), expected, "{line}");
        }
    }

    #[test]
    fn every_line_of_this_workspace_is_narrow() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a directory");
        assert_eq!(check(root).expect("checked"), Vec::<String>::new());
    }
}

//! Reads Rust code as a list of tokens, which is enough for checks that need neither types nor macros.

use anyhow::Context as _;
use std::path::{Path, PathBuf};

/// The Rust files in a folder and its subfolders, sorted. A folder that does not exist has none.
pub(crate) fn rust_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop().filter(|folder| folder.is_dir()) {
        for entry in std::fs::read_dir(&folder).with_context(|| format!("`{}` cannot be read", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The folders of all crates of the workspace with the names of the crates, sorted by name.
pub(crate) fn crate_folders(root: &Path) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let crates = root.join("crates");
    let mut folders = vec![("xtask".to_owned(), root.join("xtask"))];
    for entry in std::fs::read_dir(&crates).with_context(|| format!("`{}` cannot be read", crates.display()))? {
        let folder = entry?.path();
        if let Some(name) = folder.file_name().and_then(|name| name.to_str()) {
            folders.push((name.to_owned(), folder.clone()));
        }
    }
    folders.sort();
    Ok(folders)
}

/// The tokens of Rust code without comments, strings, characters and lifetimes: words, `::`, `..`, and single
/// characters.
pub(crate) fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = skipped(rest);
        let length = skipped.unwrap_or_else(|| {
            if rest.starts_with("::") || rest.starts_with("..") {
                return 2;
            }
            let word = rest.find(|c: char| !is_word_char(c)).unwrap_or(rest.len());
            word.max(first.len_utf8())
        });
        let (token, behind) = rest.split_at_checked(length).unwrap_or((rest, ""));
        if skipped.is_none() && !first.is_whitespace() {
            tokens.push(token);
        }
        rest = behind;
    }
    tokens
}

/// Whether a token is an identifier or a keyword.
pub(crate) fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
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
            _ => Some(1 + inner.find(|c: char| !is_word_char(c)).unwrap_or(inner.len())),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_strings_characters_and_lifetimes_are_no_tokens() {
        let code = "fn said(b: &'said str) { /* told */ let x = \"told \\\" told\"; x.told(); r#\"told\"#; 'a'; '\\''; \
                    a::b; y..said } // told";
        assert_eq!(
            tokens(code).join(" "),
            "fn said ( b : & str ) { let x = ; x . told ( ) ; ; ; ; a :: b ; y .. said }"
        );
    }
}

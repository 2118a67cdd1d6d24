//! Reads signed notes from files of an operator or an auditor.

use anyhow::{Context as _, bail};
use gw_audit::{Checkpoint, CheckpointPublicKey, TrustedHeads};
use serde_json::Value;
use std::path::Path;

/// Reads the checkpoints and lists of chains in a file: plain notes, log lines as JSON, or a copy of `trusted-heads`.
///
/// # Errors
/// If the file cannot be read, holds no note, or holds a note that none of the keys signed. The database is compared
/// with these notes, so an unverifiable note is not ignored.
pub(super) fn read(path: &Path, keys: &[CheckpointPublicKey]) -> anyhow::Result<Vec<Checkpoint>> {
    let name = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("{name} cannot be read"))?;
    let notes = split(&text);
    if notes.is_empty() {
        bail!("{name} holds no signed note");
    }
    let open = |note: &String| {
        Checkpoint::open(note, keys).with_context(|| {
            format!(
                "{name} holds a note that none of the known keys signed: {}",
                first_line(note)
            )
        })
    };
    notes.iter().map(open).collect()
}

fn first_line(note: &str) -> &str {
    note.lines().next().unwrap_or_default()
}

fn split(text: &str) -> Vec<String> {
    if let Ok(heads) = serde_json::from_str::<TrustedHeads>(text) {
        return heads.notes().map(str::to_owned).collect();
    }
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let logged: Vec<_> = lines
        .filter_map(|line| {
            let fields = line.get("fields").unwrap_or(&line);
            fields.get("note")?.as_str().map(str::to_owned)
        })
        .collect();
    if logged.is_empty() {
        Checkpoint::split_notes(text)
    } else {
        logged
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_audit::{CheckpointKey, Hash};

    #[test]
    fn rl2_notes_are_read_from_plain_text_and_from_log_lines() {
        let key = CheckpointKey::from_seed(&[3; 32]);
        let notes = [1, 2].map(|size| Checkpoint::new("test/access/1", size, Hash::ZERO).sign(&key));
        let plain = format!("{}\n{}", notes[0], notes[1]);
        assert_eq!(split(&plain), notes);
        let logged = notes
            .clone()
            .map(|note| serde_json::json!({"level": "INFO", "fields": {"note": note}}).to_string());
        assert_eq!(split(&logged.join("\n")), notes);
        let flat = notes.clone().map(|note| serde_json::json!({"note": note}).to_string());
        assert_eq!(split(&flat.join("\n")), notes);
    }
}

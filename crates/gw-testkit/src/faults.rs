//! The table "fault, promised, observed" of `docs/reliability.md`.
//!
//! A test of a fault is a [`Scenario`]: it writes down each promise and whether it saw it kept, and fails at its end if one
//! was broken. What it saw is its row of the table, so the table tells what the last run saw; a row that differs from the
//! document fails the test too. With `GW_WRITE_TABLES=1` the row is written into the document instead.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// Set to `1`, this writes rows into the document.
pub const WRITE: &str = "GW_WRITE_TABLES";
const HEAD: &str = "| Id | Fault | Promised | Observed |\n|---|---|---|---|\n";

/// One fault on its way to a row.
#[derive(Debug)]
#[must_use = "a scenario says what it saw when it ends"]
pub struct Scenario {
    id: &'static str,
    fault: &'static str,
    promises: Vec<Promise>,
}

#[derive(Debug)]
struct Promise {
    text: &'static str,
    /// What was seen in place of it.
    broken: Option<String>,
}

impl Scenario {
    /// A fault by the id of its row.
    pub const fn new(id: &'static str, fault: &'static str) -> Self {
        Self {
            id,
            fault,
            promises: Vec::new(),
        }
    }

    /// Notes a promise, and what was seen if it was broken. The same promise seen several times is one.
    pub fn promise(&mut self, text: &'static str, seen: Result<(), String>) {
        let broken = seen.err();
        match self.promises.iter_mut().find(|promise| promise.text == text) {
            Some(promise) => promise.broken = promise.broken.take().or(broken),
            None => self.promises.push(Promise { text, broken }),
        }
    }

    /// Notes a promise that is kept if `kept`; `seen` tells of the other case.
    pub fn expect(&mut self, text: &'static str, kept: bool, seen: impl core::fmt::Debug) {
        self.promise(text, if kept { Ok(()) } else { Err(format!("{seen:?}")) });
    }

    /// Compares the row with the document, or writes it there.
    ///
    /// # Panics
    /// When a promise was broken, or the document says otherwise.
    pub fn end(self, document: &Path) {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let row = self.row();
        let text = fs::read_to_string(document).unwrap_or_else(|error| panic!("{}: {error}", document.display()));
        let known = text.lines().any(|line| line == row.trim_end());
        if !known && writes() {
            fs::write(document, with_row(&text, self.id, &row)).unwrap_or_else(|error| panic!("{error}"));
        }
        let broken: Vec<_> = self
            .promises
            .iter()
            .filter(|promise| promise.broken.is_some())
            .collect();
        assert!(broken.is_empty(), "{}: promises were broken: {broken:#?}", self.id);
        assert!(
            known || writes(),
            "{} does not have the row that was seen ({WRITE}=1 writes it):\n{row}",
            document.display()
        );
    }

    fn row(&self) -> String {
        let (mut promised, mut observed) = (String::new(), String::new());
        for promise in &self.promises {
            let gap = if promised.is_empty() { "" } else { "; " };
            let _ = write!(promised, "{gap}{}", promise.text);
            if promise.broken.is_some() {
                let _ = write!(
                    observed,
                    "{}**broken**: {}",
                    if observed.is_empty() { "" } else { "; " },
                    promise.text
                );
            }
        }
        if observed.is_empty() {
            let _ = write!(observed, "all {} kept", self.promises.len());
        }
        format!("| {} | {} | {promised} | {observed} |\n", self.id, self.fault)
    }
}

/// The ids of the rows of a document, in order.
///
/// # Panics
/// When it cannot be read.
pub fn ids(document: &Path) -> Vec<String> {
    let text = fs::read_to_string(document).unwrap_or_else(|error| panic!("{}: {error}", document.display()));
    let rows = text.split_once(HEAD).map(|(_, rows)| rows).unwrap_or_default();
    rows.lines()
        .map_while(|line| Some(line.strip_prefix("| ")?.split(" | ").next()?.to_owned()))
        .collect()
}

/// The document of this repository.
pub fn document() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reliability.md")
}

/// The text with this row in the place of the one with the same id, else in the order of ids.
fn with_row(text: &str, id: &str, row: &str) -> String {
    let (before, rest) = text
        .split_once(HEAD)
        .unwrap_or_else(|| panic!("the document has no table of faults"));
    let end = rest
        .lines()
        .take_while(|line| line.starts_with("| "))
        .map(|line| line.len() + 1)
        .sum::<usize>();
    let (rows, after) = rest.split_at(end.min(rest.len()));
    let mut rows: Vec<&str> = rows
        .lines()
        .filter(|line| !line.starts_with(&format!("| {id} |")))
        .chain([row.trim_end()])
        .collect();
    rows.sort_unstable();
    format!("{before}{HEAD}{}\n{after}", rows.join("\n"))
}

/// Whether rows are written into the document.
#[expect(
    clippy::disallowed_methods,
    reason = "writing into the sources must be asked for from outside"
)]
pub fn writes() -> bool {
    std::env::var_os(WRITE).is_some_and(|value| value == "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_their_order_and_their_neighbours() {
        let text = format!("# Title\n\n{HEAD}| a | x | y | z |\n| c | x | y | z |\n\nmore\n");
        let text = with_row(&text, "b", "| b | 1 | 2 | 3 |\n");
        let text = with_row(&text, "c", "| c | new | 2 | 3 |\n");
        assert_eq!(
            text,
            format!("# Title\n\n{HEAD}| a | x | y | z |\n| b | 1 | 2 | 3 |\n| c | new | 2 | 3 |\n\nmore\n")
        );
    }

    #[test]
    fn a_broken_promise_stands_in_the_row() {
        let mut scenario = Scenario::new("f", "the disk is full");
        scenario.expect("nothing is lost", true, 0);
        scenario.expect("503 in a second", false, "20 s");
        scenario.expect("nothing is lost", true, 0);
        let row = "| f | the disk is full | nothing is lost; 503 in a second | **broken**: 503 in a second |\n";
        assert_eq!(scenario.row(), row);
    }
}

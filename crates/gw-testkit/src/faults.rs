//! The table "fault, promised, observed" in `docs/reliability.md`.
//!
//! A test of a fault is a [`Scenario`]: it records each promise and whether it was kept, and fails at its end if one
//! was broken. The record is a row of the table. The test also fails if the row differs from the document, so the table
//! shows the last run. With `GW_WRITE_TABLES=1` the row is written into the document instead.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// If set to `1`, rows are written into the document.
pub const WRITE: &str = "GW_WRITE_TABLES";
const HEAD: &str = "| Id | Fault | Promised | Observed |\n|---|---|---|---|\n";

/// A fault that is being tested.
#[derive(Debug)]
#[must_use = "call `end`, which checks the scenario and its row"]
pub struct Scenario {
    id: &'static str,
    fault: &'static str,
    promises: Vec<Promise>,
}

#[derive(Debug)]
struct Promise {
    text: &'static str,
    /// What was observed instead.
    broken: Option<String>,
}

impl Scenario {
    /// Creates the scenario of the row with this id.
    pub const fn new(id: &'static str, fault: &'static str) -> Self {
        Self {
            id,
            fault,
            promises: Vec::new(),
        }
    }

    /// Records a promise, and the observation if it was broken. A promise that is recorded several times appears once.
    pub fn promise(&mut self, text: &'static str, observation: Result<(), String>) {
        let broken = observation.err();
        match self.promises.iter_mut().find(|promise| promise.text == text) {
            Some(promise) => promise.broken = promise.broken.take().or(broken),
            None => self.promises.push(Promise { text, broken }),
        }
    }

    /// Records a promise that is kept if `kept`; `observation` is recorded otherwise.
    pub fn expect(&mut self, text: &'static str, kept: bool, observation: impl core::fmt::Debug) {
        self.promise(text, if kept { Ok(()) } else { Err(format!("{observation:?}")) });
    }

    /// Compares the row with the document, or writes it there.
    ///
    /// # Panics
    /// If a promise was broken, or the document has another row.
    pub fn end(self, document: &Path) {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let row = self.row();
        let text = fs::read_to_string(document).unwrap_or_else(|error| panic!("{}: {error}", document.display()));
        let is_current = text.lines().any(|line| line == row.trim_end());
        if !is_current && writes() {
            fs::write(document, with_row(&text, self.id, &row)).unwrap_or_else(|error| panic!("{error}"));
        }
        let broken: Vec<_> = self
            .promises
            .iter()
            .filter(|promise| promise.broken.is_some())
            .collect();
        assert!(broken.is_empty(), "{}: promises were broken: {broken:#?}", self.id);
        assert!(
            is_current || writes(),
            "{} does not have the observed row (run with {WRITE}=1 to write it):\n{row}",
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
/// If the document cannot be read.
pub fn ids(document: &Path) -> Vec<String> {
    let text = fs::read_to_string(document).unwrap_or_else(|error| panic!("{}: {error}", document.display()));
    let rows = text.split_once(HEAD).map(|(_, rows)| rows).unwrap_or_default();
    rows.lines()
        .map_while(|line| Some(line.strip_prefix("| ")?.split(" | ").next()?.to_owned()))
        .collect()
}

/// The path of `docs/reliability.md`.
pub fn document() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reliability.md")
}

/// Replaces the row with this id, or inserts it in the order of ids.
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
    reason = "the environment enables writing into the sources"
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
    fn a_broken_promise_is_in_the_row() {
        let mut scenario = Scenario::new("f", "the disk is full");
        scenario.expect("nothing is lost", true, 0);
        scenario.expect("503 in a second", false, "20 s");
        scenario.expect("nothing is lost", true, 0);
        let row = "| f | the disk is full | nothing is lost; 503 in a second | **broken**: 503 in a second |\n";
        assert_eq!(scenario.row(), row);
    }
}

//! All problems of a configuration, reported together.

use super::variable::{Entry, Redaction};

/// Exit code for a rejected configuration (`EX_CONFIG` of `sysexits.h`).
pub const EXIT_CONFIG: u8 = 78;

/// Characters of a value that a problem repeats; the rest is cut.
const SHOWN_MAX: usize = 60;

/// A variable and the rule that it breaks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    name: String,
    rule: String,
}

impl Problem {
    /// A problem from a variable's name and the rule in words.
    pub fn new(name: &str, rule: impl Into<String>) -> Self {
        Self {
            name: escaped(name),
            rule: rule.into(),
        }
    }

    /// A problem for a text that breaks the rule of the variable's kind. Repeats the text only if it may be shown.
    pub(super) fn malformed(entry: &dyn Entry, text: &str) -> Self {
        let rule = match entry.shown() {
            Redaction::Plain => format!("must be {}, found `{}`", entry.kind(), escaped(text)),
            Redaction::Origin | Redaction::Secret => format!("must be {}", entry.kind()),
        };
        Self::new(entry.name(), rule)
    }

    /// The name of the variable.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl core::fmt::Display for Problem {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}: {}", self.name, self.rule)
    }
}

/// All problems of one configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report(Vec<Problem>);

impl Report {
    /// Adds a problem, unless it is already in the report.
    pub fn add(&mut self, problem: Problem) {
        if !self.0.contains(&problem) {
            self.0.push(problem);
        }
    }

    /// The value, if the report has no problem. `build` fails with the name of a variable that has no value although
    /// the rules should ensure one.
    ///
    /// # Errors
    ///
    /// The report.
    pub(super) fn into_result<T>(mut self, build: impl FnOnce() -> Result<T, &'static str>) -> Result<T, Self> {
        if !self.is_empty() {
            return Err(self);
        }
        build().map_err(|name| {
            self.add(Problem::new(name, "has no value"));
            self
        })
    }

    /// Whether the report has no problem.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the report has a problem with this variable.
    pub fn names(&self, name: &str) -> bool {
        self.0.iter().any(|problem| problem.name == name)
    }

    /// Keeps the problems with variables of which `is_kept` holds.
    pub(super) fn retain(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.0.retain(|problem| is_kept(&problem.name));
    }

    /// The problems in the order in which they were added.
    pub fn problems(&self) -> &[Problem] {
        &self.0
    }
}

/// One line per problem.
impl core::fmt::Display for Report {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl core::error::Error for Report {}

/// Escapes line breaks and control characters, so that a problem stays on one line, and cuts long texts.
fn escaped(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN_MAX).flat_map(char::escape_debug).collect();
    if text.chars().count() > SHOWN_MAX {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_one_line() {
        let problem = Problem::new("EVIL\nNAME", "x");
        assert_eq!(problem.to_string(), "EVIL\\nNAME: x");
    }
}

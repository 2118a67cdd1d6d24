//! Everything that is wrong with a configuration, reported together.

use super::variable::{Entry, Shown};

/// Exit code of a refused configuration (`EX_CONFIG`).
pub const EXIT_CONFIG: u8 = 78;

/// Longest value repeated in a problem.
const SHOWN_MAX: usize = 60;

/// One variable and the rule it breaks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    name: String,
    rule: String,
}

impl Problem {
    /// A variable and a rule in words.
    pub fn new(name: &str, rule: impl Into<String>) -> Self {
        Self {
            name: escaped(name),
            rule: rule.into(),
        }
    }

    /// A text that is not of the variable's kind. Only what may be shown is repeated.
    pub(super) fn malformed(entry: &dyn Entry, text: &str) -> Self {
        let rule = match entry.shown() {
            Shown::Plain => format!("must be {}, found `{}`", entry.kind(), escaped(text)),
            Shown::Origin | Shown::Secret => format!("must be {}", entry.kind()),
        };
        Self::new(entry.name(), rule)
    }

    /// The variable.
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
    /// Notes one more.
    pub fn add(&mut self, problem: Problem) {
        if !self.0.contains(&problem) {
            self.0.push(problem);
        }
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a variable is among them.
    pub fn names(&self, name: &str) -> bool {
        self.0.iter().any(|problem| problem.name == name)
    }

    /// The problems in the order found.
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

/// One line whatever the text holds.
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

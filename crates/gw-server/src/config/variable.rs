//! What a configuration variable is: its name, how its text becomes a value, its default and where it must be set.
//!
//! Not here: which variables there are ([`super::registry`]) and where texts come from ([`super::source`]).

use super::Environment;

/// The part of the service a variable belongs to; also the chapters of `docs/configuration.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// What kind of deployment this is.
    Deployment,
    /// Listeners, origins, addresses that are believed.
    Edge,
    /// Rates and numbers of requests.
    Limits,
    /// Tokens and who may log in.
    Identity,
    /// The administration interface.
    Admin,
    /// The upstream node.
    Node,
    /// Who may do and see what.
    Policy,
    /// The policy store.
    Store,
    /// Journal, audit store, checkpoints.
    Audit,
    /// Logs and the end of the process.
    Operation,
}

impl Section {
    /// Every section in the order of the reference.
    pub const ALL: [Self; 10] = [
        Self::Deployment,
        Self::Edge,
        Self::Limits,
        Self::Identity,
        Self::Admin,
        Self::Node,
        Self::Policy,
        Self::Store,
        Self::Audit,
        Self::Operation,
    ];

    /// The chapter's title.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::Edge => "Listeners and origins",
            Self::Limits => "Limits",
            Self::Identity => "Identity and tokens",
            Self::Admin => "Administration",
            Self::Node => "Upstream node",
            Self::Policy => "Access and privacy policy",
            Self::Store => "Policy store",
            Self::Audit => "Journal and audit",
            Self::Operation => "Logs and shutdown",
        }
    }
}

/// How a text becomes a value, and the rule a refused text is answered with.
#[derive(Debug)]
pub struct Kind<T> {
    /// Completes "must be …".
    pub rule: &'static str,
    /// `None` when the text breaks the rule.
    pub parse: fn(&str) -> Option<T>,
}

/// The value of a variable nobody set.
#[derive(Clone, Copy, Debug)]
pub enum Default {
    /// Stays unset.
    Unset,
    /// The same everywhere.
    Text(&'static str),
    /// One for production, one for development and test.
    ByEnvironment {
        /// In production.
        production: &'static str,
        /// In development and test.
        other: &'static str,
    },
    /// Derived from other values; the text says how.
    Derived(&'static str),
}

impl Default {
    /// The text to parse, where there is one.
    pub fn text(self, environment: Environment) -> Option<&'static str> {
        match self {
            Self::Text(text) => Some(text),
            Self::ByEnvironment { production, other } => Some(if environment == Environment::Production {
                production
            } else {
                other
            }),
            Self::Unset | Self::Derived(_) => None,
        }
    }
}

/// How much of a value may be shown in problems and by `config print`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// All of it.
    Plain,
    /// Scheme, host and port: path and query of an upstream address may hold a key.
    Origin,
    /// Whether it is set. Secrets may come from `<NAME>_FILE` and never from the configuration file.
    Secret,
}

/// One typed variable of the registry.
#[derive(Debug)]
pub struct Variable<T: 'static> {
    name: &'static str,
    meaning: &'static str,
    section: Section,
    kind: &'static Kind<T>,
    default: Default,
    shown: Shown,
    required: bool,
    rule: &'static str,
}

impl<T> Variable<T> {
    /// A plain, optional variable without default.
    pub const fn new(section: Section, kind: &'static Kind<T>) -> Self {
        Self {
            name: "",
            meaning: "",
            section,
            kind,
            default: Default::Unset,
            shown: Shown::Plain,
            required: false,
            rule: "",
        }
    }

    /// Set by the registry from the declaration itself.
    pub(super) const fn declared(mut self, name: &'static str, meaning: &'static str) -> Self {
        self.name = name;
        self.meaning = meaning;
        self
    }

    /// The value when nobody sets it.
    pub const fn default(mut self, text: &'static str) -> Self {
        self.default = Default::Text(text);
        self
    }

    /// The value when nobody sets it, in production and elsewhere.
    pub const fn default_by_environment(mut self, production: &'static str, other: &'static str) -> Self {
        self.default = Default::ByEnvironment { production, other };
        self
    }

    /// Says how the value is found when nobody sets it.
    pub const fn derived(mut self, how: &'static str) -> Self {
        self.default = Default::Derived(how);
        self
    }

    /// Never shown, never in the configuration file.
    pub const fn secret(mut self) -> Self {
        self.shown = Shown::Secret;
        self
    }

    /// Shown without path, query and credentials.
    pub const fn shown_as_origin(mut self) -> Self {
        self.shown = Shown::Origin;
        self
    }

    /// Must be set in production.
    pub const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// A rule beyond the kind's own, enforced in [`super::rules`].
    pub const fn rule(mut self, rule: &'static str) -> Self {
        self.rule = rule;
        self
    }

    /// The typed value of a text.
    pub(super) fn parse(&self, text: &str) -> Option<T> {
        (self.kind.parse)(text)
    }
}

/// A variable without its type: what reading, reporting and printing need.
pub trait Entry: Sync {
    /// The name in the environment and in the configuration file.
    fn name(&self) -> &'static str;
    /// One sentence for the reference.
    fn meaning(&self) -> &'static str;
    /// Its chapter.
    fn section(&self) -> Section;
    /// Completes "must be …".
    fn kind(&self) -> &'static str;
    /// Whether a text is acceptable.
    fn accepts(&self, text: &str) -> bool;
    /// The value when unset.
    fn unset(&self) -> Default;
    /// What may be shown.
    fn shown(&self) -> Shown;
    /// Whether production refuses to start without it.
    fn is_required(&self) -> bool;
    /// Rules beyond the kind's own.
    fn extra_rule(&self) -> &'static str;
}

impl<T> Entry for Variable<T> {
    fn name(&self) -> &'static str {
        self.name
    }
    fn meaning(&self) -> &'static str {
        self.meaning.trim_ascii()
    }
    fn section(&self) -> Section {
        self.section
    }
    fn kind(&self) -> &'static str {
        self.kind.rule
    }
    fn accepts(&self, text: &str) -> bool {
        self.parse(text).is_some()
    }
    fn unset(&self) -> Default {
        self.default
    }
    fn shown(&self) -> Shown {
        self.shown
    }
    fn is_required(&self) -> bool {
        self.required
    }
    fn extra_rule(&self) -> &'static str {
        self.rule
    }
}

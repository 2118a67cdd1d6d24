//! The type of a configuration variable: its name, parser, default and requirements.
//!
//! The list of variables is in [`super::registry`], the sources of their texts are in [`super::source`].

use super::Environment;

/// The part of the service that a variable belongs to, and its chapter in `docs/configuration.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// Kind of deployment.
    Deployment,
    /// Listeners, origins and trusted networks.
    Edge,
    /// Rate, connection and concurrency limits.
    Limits,
    /// Tokens and logins.
    Identity,
    /// The administration interface.
    Admin,
    /// The upstream node.
    Node,
    /// Access and privacy policy.
    Policy,
    /// The policy store.
    Store,
    /// The explorer: its database, indexer and data API.
    Explorer,
    /// Journal, audit store, checkpoints.
    Audit,
    /// Logs and shutdown.
    Operation,
    /// The explorer's backend, which is a process of its own.
    ExplorerBackend,
}

impl Section {
    /// Every section in the order of the reference.
    pub const ALL: [Self; 12] = [
        Self::Deployment,
        Self::Edge,
        Self::Limits,
        Self::Identity,
        Self::Admin,
        Self::Node,
        Self::Policy,
        Self::Store,
        Self::Explorer,
        Self::Audit,
        Self::Operation,
        Self::ExplorerBackend,
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
            Self::Explorer => "Explorer",
            Self::Audit => "Journal and audit",
            Self::Operation => "Logs and shutdown",
            Self::ExplorerBackend => "Explorer backend (`ledger-gateway explorer`)",
        }
    }
}

/// The parser of a variable's text, and the rule that is reported for a rejected text.
#[derive(Debug)]
pub struct Kind<T> {
    /// Completes the sentence "must be …".
    pub rule: &'static str,
    /// Returns `None` if the text breaks the rule.
    pub parse: fn(&str) -> Option<T>,
}

/// The default of a variable.
#[derive(Clone, Copy, Debug)]
pub enum DefaultValue {
    /// No default.
    Unset,
    /// One text for all environments.
    Text(&'static str),
    /// One text for production, another for development and test.
    ByEnvironment {
        /// In production.
        production: &'static str,
        /// In development and test.
        other: &'static str,
    },
    /// Derived from other values; the text describes how, for people.
    Derived(&'static str),
}

impl DefaultValue {
    /// The default's text in an environment, if the default is a text.
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

/// How much of a value is shown in problems and by `config print`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redaction {
    /// The whole value.
    Plain,
    /// Scheme, host and port only: path and query of an upstream address may contain a key.
    Origin,
    /// Only whether the value is set. Secrets may come from `<NAME>_FILE` but never from the configuration file.
    Secret,
}

/// One typed variable of the registry.
#[derive(Debug)]
pub struct Variable<T: 'static> {
    name: &'static str,
    meaning: &'static str,
    section: Section,
    kind: &'static Kind<T>,
    default: DefaultValue,
    shown: Redaction,
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
            default: DefaultValue::Unset,
            shown: Redaction::Plain,
            required: false,
            rule: "",
        }
    }

    /// Sets the name and the meaning; only the `registry!` macro calls this.
    pub(super) const fn declared(mut self, name: &'static str, meaning: &'static str) -> Self {
        self.name = name;
        self.meaning = meaning;
        self
    }

    /// Sets one default for all environments.
    pub const fn default(mut self, text: &'static str) -> Self {
        self.default = DefaultValue::Text(text);
        self
    }

    /// Sets separate defaults for production and for development and test.
    pub const fn default_by_environment(mut self, production: &'static str, other: &'static str) -> Self {
        self.default = DefaultValue::ByEnvironment { production, other };
        self
    }

    /// Declares that the default is derived from other values; `description` explains how, for the reference.
    pub const fn derived(mut self, description: &'static str) -> Self {
        self.default = DefaultValue::Derived(description);
        self
    }

    /// Marks a secret: never shown, and not accepted in the configuration file.
    pub const fn secret(mut self) -> Self {
        self.shown = Redaction::Secret;
        self
    }

    /// Shows only scheme, host and port of the value.
    pub const fn shown_as_origin(mut self) -> Self {
        self.shown = Redaction::Origin;
        self
    }

    /// Marks a variable that must be set in production.
    pub const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Describes a rule in addition to the kind's rule; [`super::rules`] enforces it.
    pub const fn rule(mut self, rule: &'static str) -> Self {
        self.rule = rule;
        self
    }

    /// Parses a text; `None` if the text breaks the kind's rule.
    pub(super) fn parse(&self, text: &str) -> Option<T> {
        (self.kind.parse)(text)
    }
}

/// A `Variable` without its value type, for reading, reporting and printing.
pub trait Entry: Sync {
    /// The name in the environment and in the configuration file.
    fn name(&self) -> &'static str;
    /// The description for the reference.
    fn meaning(&self) -> &'static str;
    /// The chapter of the reference.
    fn section(&self) -> Section;
    /// The kind's rule; completes the sentence "must be …".
    fn kind(&self) -> &'static str;
    /// Whether a text satisfies the kind's rule.
    fn accepts(&self, text: &str) -> bool;
    /// The default.
    fn unset(&self) -> DefaultValue;
    /// How much of the value may be shown.
    fn shown(&self) -> Redaction;
    /// Whether production refuses to start without the variable.
    fn is_required(&self) -> bool;
    /// Rules in addition to the kind's rule; empty if there are none.
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
    fn unset(&self) -> DefaultValue {
        self.default
    }
    fn shown(&self) -> Redaction {
        self.shown
    }
    fn is_required(&self) -> bool {
        self.required
    }
    fn extra_rule(&self) -> &'static str {
        self.rule
    }
}

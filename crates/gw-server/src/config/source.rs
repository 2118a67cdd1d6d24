//! Sources of the texts, strongest first: environment, configuration file, default; secrets also from `<NAME>_FILE`.
//!
//! Every problem is collected; a bad value never falls back to the default.

use super::{
    Environment,
    registry::ENVIRONMENT,
    report::{Problem, Report},
    variable::{Entry, Redaction, Variable},
};
use std::{collections::BTreeMap, path::Path};
use zeroize::Zeroizing;

/// Environment variable with the path of the configuration file.
const CONFIG_FILE: &str = "CONFIG_FILE";

/// The only supported format version of the configuration file.
const FILE_VERSION: i64 = 1;

/// Where a value was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The environment.
    Environment,
    /// A file named by `<NAME>_FILE`.
    SecretFile,
    /// The configuration file.
    File,
}

impl Source {
    /// The name that `config print` shows.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Environment => "environment",
            Self::SecretFile => "secret file",
            Self::File => "file",
        }
    }
}

/// The process environment as a value, so that tests can construct one.
#[derive(Clone, Debug, Default)]
pub struct ProcessEnv(BTreeMap<String, Zeroizing<String>>);

impl ProcessEnv {
    /// Reads the environment of this process. Drops names that are not UTF-8 and replaces the bad bytes of values with
    /// U+FFFD.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
    pub fn read() -> Self {
        let pairs = std::env::vars_os();
        Self(
            pairs
                .filter_map(|(name, value)| {
                    Some((
                        name.into_string().ok()?,
                        Zeroizing::new(value.to_string_lossy().into_owned()),
                    ))
                })
                .collect(),
        )
    }

    /// Makes an environment from name and value pairs.
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self(
            pairs
                .into_iter()
                .map(|(name, value)| (name.to_owned(), Zeroizing::new(value.to_owned())))
                .collect(),
        )
    }

    /// The value of a variable. An empty value counts as unset, because container tools pass unset variables on as
    /// empty.
    fn get(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .map(|value| value.as_str())
            .filter(|value| !value.is_empty())
    }
}

struct Setting {
    text: Zeroizing<String>,
    source: Source,
}

/// The texts of all variables that are set and well-formed.
pub struct Settings {
    values: BTreeMap<&'static str, Setting>,
    environment: Option<Environment>,
}

impl core::fmt::Debug for Settings {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.values.keys()).finish()
    }
}

impl Settings {
    /// Reads these variables and adds every problem to the report.
    pub fn read(
        env: &ProcessEnv,
        variables: impl IntoIterator<Item = &'static dyn Entry>,
        report: &mut Report,
    ) -> Self {
        let mut file = match env.get(CONFIG_FILE) {
            Some(path) => read_file(Path::new(path), report),
            None => BTreeMap::new(),
        };
        let mut values = BTreeMap::new();
        for entry in variables {
            if let Some(setting) = setting(entry, env, &mut file, report) {
                if entry.accepts(&setting.text) {
                    values.insert(entry.name(), setting);
                } else {
                    report.add(Problem::malformed(entry, &setting.text));
                }
            }
        }
        for name in file.keys() {
            report.add(Problem::new(name, "unknown in the configuration file"));
        }
        let mut settings = Self {
            values,
            environment: None,
        };
        settings.environment = if report.names(ENVIRONMENT.name()) {
            None
        } else {
            settings.parsed(&ENVIRONMENT, Environment::Development)
        };
        settings
    }

    /// The kind of deployment; `None` if ENVIRONMENT is malformed.
    pub fn environment(&self) -> Option<Environment> {
        self.environment
    }

    /// The value that is set, or the default. An unknown environment uses the defaults of production.
    pub fn get<T>(&self, variable: &Variable<T>) -> Option<T> {
        self.parsed(variable, self.environment.unwrap_or(Environment::Production))
    }

    /// Where the value was set; `None` means that the default applies.
    pub fn source(&self, entry: &dyn Entry) -> Option<Source> {
        self.values.get(entry.name()).map(|setting| setting.source)
    }

    /// Whether the variable is set.
    pub fn is_set(&self, entry: &dyn Entry) -> bool {
        self.values.contains_key(entry.name())
    }

    /// The text that is set, or the default's text.
    pub fn text(&self, entry: &dyn Entry) -> Option<&str> {
        let default = || entry.unset().text(self.environment.unwrap_or(Environment::Production));
        self.values
            .get(entry.name())
            .map(|setting| setting.text.as_str())
            .or_else(default)
    }

    fn parsed<T>(&self, variable: &Variable<T>, environment: Environment) -> Option<T> {
        match self.values.get(variable.name()) {
            Some(setting) => variable.parse(&setting.text),
            None => variable.unset().text(environment).and_then(|text| variable.parse(text)),
        }
    }
}

/// The text of one variable from the strongest source that sets it. Removes the variable's keys from `file`.
fn setting(
    entry: &dyn Entry,
    env: &ProcessEnv,
    file: &mut BTreeMap<String, Zeroizing<String>>,
    report: &mut Report,
) -> Option<Setting> {
    let name = entry.name();
    let from_env = env.get(name).map(|text| Setting {
        text: Zeroizing::new(text.to_owned()),
        source: Source::Environment,
    });
    let from_file = file.remove(name);
    if entry.shown() != Redaction::Secret {
        return from_env.or_else(|| {
            from_file.map(|text| Setting {
                text,
                source: Source::File,
            })
        });
    }
    if from_file.is_some() {
        report.add(Problem::new(name, "a secret must not be in the configuration file"));
    }
    let path_name = format!("{name}_FILE");
    let path_in_file = file.remove(&path_name);
    let Some(path) = env
        .get(&path_name)
        .or_else(|| path_in_file.as_ref().map(|path| path.as_str()))
    else {
        return from_env;
    };
    if from_env.is_some() {
        report.add(Problem::new(name, format!("set together with {path_name}")));
        return None;
    }
    match std::fs::read_to_string(path).map(Zeroizing::new) {
        Ok(text) => {
            let text = Zeroizing::new(text.trim_end_matches(['\r', '\n']).to_owned());
            if text.is_empty() {
                report.add(Problem::new(&path_name, "names an empty file"));
                return None;
            }
            Some(Setting {
                text,
                source: Source::SecretFile,
            })
        }
        Err(error) => {
            report.add(Problem::new(&path_name, format!("cannot be read: {}", error.kind())));
            None
        }
    }
}

/// Reads the configuration file: TOML with `version = 1` and flat scalar keys.
fn read_file(path: &Path, report: &mut Report) -> BTreeMap<String, Zeroizing<String>> {
    let mut values = BTreeMap::new();
    let table = match std::fs::read_to_string(path) {
        Ok(text) => text.parse::<toml::Table>(),
        Err(error) => {
            report.add(Problem::new(CONFIG_FILE, format!("cannot be read: {}", error.kind())));
            return values;
        }
    };
    let mut table = match table {
        Ok(table) => table,
        // Only the message: the parser's full text quotes the line, which may contain a secret.
        Err(error) => {
            report.add(Problem::new(
                CONFIG_FILE,
                format!("is not valid TOML: {}", error.message()),
            ));
            return values;
        }
    };
    match table.remove("version") {
        Some(toml::Value::Integer(FILE_VERSION)) => {}
        Some(_) => report.add(Problem::new(
            CONFIG_FILE,
            "must contain `version = 1`; this version is not supported",
        )),
        None => report.add(Problem::new(CONFIG_FILE, "must contain `version = 1`")),
    }
    for (name, value) in table {
        let text = match value {
            toml::Value::String(text) => text,
            toml::Value::Integer(number) => number.to_string(),
            toml::Value::Boolean(flag) => flag.to_string(),
            toml::Value::Float(_) | toml::Value::Datetime(_) | toml::Value::Array(_) | toml::Value::Table(_) => {
                report.add(Problem::new(
                    &name,
                    "must be a string, a whole number or a boolean in the configuration file",
                ));
                continue;
            }
        };
        values.insert(name, Zeroizing::new(text));
    }
    values
}

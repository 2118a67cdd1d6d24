//! The scope of a disclosure: validation (the table of spec/50 section 2), the default level (rule 6), and narrowing by
//! the owner (rule 14).

use super::coverage;
use crate::snapshot::DisclosureScope;
use gw_types::{Address, Level, Timestamp};
use std::collections::BTreeSet;

/// Most entries of `methods`.
pub const MAX_METHODS: usize = 50;
/// Most entries of `addresses`.
pub const MAX_ADDRESSES: usize = 200;

/// A scope as a request or an approval names it. An absent member is not set; an empty list lifts the restriction,
/// which is not possible below a request that has it (rule 14).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopeInput {
    /// `methods`
    pub methods: Option<Vec<String>>,
    /// `addresses`
    pub addresses: Option<Vec<String>>,
    /// `date_range.start` and `date_range.end`, if there is a `date_range`.
    pub date_range: Option<(Option<String>, Option<String>)>,
    /// `disclosure_level`
    pub level: Option<String>,
}

/// Why a scope is refused. Its text is the answer's text, with status 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ScopeError {
    /// Neither a class of data nor the form of a JSON-RPC method.
    #[error("scope.methods contains an invalid method")]
    Method,
    /// Too many methods.
    #[error("scope.methods must have at most 50 entries")]
    MethodCount,
    /// A method occurs twice.
    #[error("scope.methods contains a duplicate")]
    DuplicateMethod,
    /// Not 20 bytes of hex.
    #[error("scope.addresses contains an invalid address")]
    Address,
    /// Too many addresses.
    #[error("scope.addresses must have at most 200 entries")]
    AddressCount,
    /// Start or end is missing, or is no RFC 3339 time.
    #[error("scope.date_range needs start and end as RFC 3339 times")]
    DateRange,
    /// The range ends before it starts.
    #[error("scope.date_range.start must not be after scope.date_range.end")]
    DateOrder,
    /// None of the three levels.
    #[error("scope.disclosure_level must be full, pseudonymous or redacted")]
    Level,
    /// The approval discloses more than was requested (rule 14).
    #[error("scope must be a subset of the requested scope")]
    NotSubset,
}

/// The members of a valid scope that are set. The inner `None` lifts a restriction.
#[derive(Debug, Default)]
struct ValidScope {
    methods: Option<Option<Vec<String>>>,
    addresses: Option<Option<Vec<Address>>>,
    dates: Option<(Timestamp, Timestamp)>,
    level: Option<Level>,
}

/// The scope of a new request. The level is `redacted` if none is named (rule 6).
///
/// # Errors
/// [`ScopeError`] for the first member that breaks its rule.
pub fn requested(input: &ScopeInput) -> Result<DisclosureScope, ScopeError> {
    let scope = validate(input)?;
    Ok(DisclosureScope {
        level: scope.level.unwrap_or(Level::Redacted),
        dates: scope.dates,
        addresses: scope.addresses.flatten(),
        methods: scope.methods.flatten(),
    })
}

/// The scope of an approval: what it does not set is what was requested, and the result must be a subset of that (rule
/// 14).
///
/// # Errors
/// [`ScopeError::NotSubset`] if it discloses more than was requested; any other [`ScopeError`] for a member that breaks
/// its rule.
pub fn approved(parent: &DisclosureScope, input: &ScopeInput) -> Result<DisclosureScope, ScopeError> {
    let scope = validate(input)?;
    let merged = DisclosureScope {
        level: scope.level.unwrap_or(parent.level),
        dates: scope.dates.or(parent.dates),
        addresses: scope.addresses.unwrap_or_else(|| parent.addresses.clone()),
        methods: scope.methods.unwrap_or_else(|| parent.methods.clone()),
    };
    if is_subset(&merged, parent) {
        Ok(merged)
    } else {
        Err(ScopeError::NotSubset)
    }
}

/// Whether `child` discloses nothing that `parent` does not disclose (rule 14). A parent without methods restricts
/// none, so its owner may also disclose activity, which has to be named.
///
/// Inclusion of the lists is not enough for methods: a list without a class of data discloses transactions (rule 24),
/// and a class of activity without method names discloses the activity of all methods (rule 25). So a child that drops
/// the classes, or the method names, of its parent is no subset.
pub fn is_subset(child: &DisclosureScope, parent: &DisclosureScope) -> bool {
    let methods = match (&child.methods, &parent.methods) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(child), Some(parent)) => {
            let names = |methods: &[String]| methods.iter().any(|method| !coverage::is_class(method));
            let classes = |methods: &[String]| methods.iter().any(|method| coverage::is_class(method));
            child.iter().all(|method| parent.contains(method))
                && (!classes(parent) || classes(child))
                && (!names(parent) || names(child) || !coverage::names_activity(child))
        }
    };
    let addresses = match (&child.addresses, &parent.addresses) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(child), Some(parent)) => child.iter().all(|address| parent.contains(address)),
    };
    let dates = match (child.dates, parent.dates) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some((start, end)), Some((first, last))) => first <= start && end <= last,
    };
    methods && addresses && dates && child.level <= parent.level
}

/// The level of a stored row (rule 6, decision 30): an unknown one reads as redacted, `truncated` as pseudonymous.
pub fn stored_level(text: &str) -> Level {
    match text {
        "full" => Level::Full,
        "pseudonymous" | "truncated" => Level::Pseudonymous,
        _ => Level::Redacted,
    }
}

/// The text of a level in columns and answers. A grant discloses nothing at `Hidden`, which is shown as redacted.
pub const fn level_text(level: Level) -> &'static str {
    match level {
        Level::Full => "full",
        Level::Pseudonymous => "pseudonymous",
        Level::Redacted | Level::Hidden => "redacted",
    }
}

fn validate(input: &ScopeInput) -> Result<ValidScope, ScopeError> {
    Ok(ValidScope {
        methods: input.methods.as_deref().map(methods).transpose()?,
        addresses: input.addresses.as_deref().map(addresses).transpose()?,
        dates: input.date_range.as_ref().map(dates).transpose()?,
        level: input.level.as_deref().map(level).transpose()?,
    })
}

fn methods(list: &[String]) -> Result<Option<Vec<String>>, ScopeError> {
    if list.len() > MAX_METHODS {
        return Err(ScopeError::MethodCount);
    }
    let mut seen = BTreeSet::new();
    for method in list {
        if !coverage::is_class(method) && (!is_method_name(method) || resembles_class(method)) {
            return Err(ScopeError::Method);
        }
        if !seen.insert(method) {
            return Err(ScopeError::DuplicateMethod);
        }
    }
    Ok((!list.is_empty()).then(|| list.to_vec()))
}

/// Whether the text is a class with an error in it, which must not count as the name of a method: a list without a
/// class restricts no transactions (rule 24). No JSON-RPC method has a name like these.
fn resembles_class(text: &str) -> bool {
    let is_one_of = |part: &str, words: &[&str]| words.iter().any(|word| part.eq_ignore_ascii_case(word));
    text.split_once('_').is_some_and(|(first, second)| {
        is_one_of(first, &["transaction", "transactions", "activity", "full"])
            || is_one_of(second, &["history", "logs", "disclosure"])
    })
}

/// `^[a-z0-9]+_[A-Za-z0-9]+$`
fn is_method_name(text: &str) -> bool {
    let is_prefix = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.split_once('_').is_some_and(|(prefix, name)| {
        !prefix.is_empty()
            && !name.is_empty()
            && prefix.bytes().all(is_prefix)
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// An address that occurs twice, in any case, is kept once.
fn addresses(list: &[String]) -> Result<Option<Vec<Address>>, ScopeError> {
    if list.len() > MAX_ADDRESSES {
        return Err(ScopeError::AddressCount);
    }
    let mut listed = Vec::with_capacity(list.len());
    for text in list {
        let address: Address = text.parse().map_err(|_| ScopeError::Address)?;
        if !listed.contains(&address) {
            listed.push(address);
        }
    }
    Ok((!listed.is_empty()).then_some(listed))
}

fn dates((start, end): &(Option<String>, Option<String>)) -> Result<(Timestamp, Timestamp), ScopeError> {
    let time = |text: &Option<String>| {
        let text = text.as_deref().ok_or(ScopeError::DateRange)?;
        Timestamp::parse(text).map_err(|_| ScopeError::DateRange)
    };
    let (start, end) = (time(start)?, time(end)?);
    if start <= end {
        Ok((start, end))
    } else {
        Err(ScopeError::DateOrder)
    }
}

fn level(text: &str) -> Result<Level, ScopeError> {
    match text {
        "full" => Ok(Level::Full),
        "pseudonymous" => Ok(Level::Pseudonymous),
        "redacted" => Ok(Level::Redacted),
        _ => Err(ScopeError::Level),
    }
}

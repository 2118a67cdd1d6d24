//! Which rows and which classes of data a grant covers (spec/50 rules 23 to 27). `/rpc` and the explorer use the same
//! functions.

use crate::snapshot::{DisclosureGrant, DisclosureScope};
use gw_types::{Address, OrgId, Timestamp};
use std::cmp::Reverse;

const TRANSACTIONS: &str = "transaction_history";
const ACTIVITY: &str = "activity_logs";
const EVERYTHING: &str = "full_disclosure";

/// A class of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataClass {
    /// Transactions, token transfers, logs, and the feeds of them.
    Transactions,
    /// The owner's calls.
    Activity,
}

/// `DISCLOSURE_STRICT_SCOPE`: whether a scope that names classes limits transactions (rule 24, divergence D1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClassCheck {
    /// It does.
    #[default]
    Strict,
    /// It limits activity only.
    ActivityOnly,
}

/// A grant does not cover a class of data: 403 with this text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("grant scope does not include {}", .0.as_str())]
pub struct ClassNotCovered(pub DataClass);

impl DataClass {
    /// The name of the class in a scope.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Transactions => TRANSACTIONS,
            Self::Activity => ACTIVITY,
        }
    }
}

/// A call of the owner, as its access record tells.
#[derive(Clone, Copy, Debug)]
pub struct ActivityRow<'a> {
    /// When it was made.
    pub time: Timestamp,
    /// The JSON-RPC method.
    pub method: &'a str,
    /// The organization in which it was made.
    pub org: Option<OrgId>,
}

/// Whether an entry of `methods` is a class of data.
pub(super) fn is_class(method: &str) -> bool {
    [TRANSACTIONS, ACTIVITY, EVERYTHING].contains(&method)
}

/// Whether a list names a class that discloses activity.
pub(super) fn names_activity(methods: &[String]) -> bool {
    methods.iter().any(|method| method == ACTIVITY || method == EVERYTHING)
}

/// Whether the scope covers a class of data (rules 24 and 25). Transactions are covered unless the scope names other
/// classes only; activity needs to be named.
///
/// # Errors
/// [`ClassNotCovered`] if it does not.
pub fn check_class(scope: &DisclosureScope, class: DataClass, check: ClassCheck) -> Result<(), ClassNotCovered> {
    let methods = scope.methods.as_deref();
    let covers = match class {
        DataClass::Transactions => match methods {
            None => true,
            // No request can have an empty list: a row that has it covers nothing (R1).
            Some([]) => false,
            Some(methods) => {
                check == ClassCheck::ActivityOnly
                    || !methods.iter().any(|method| is_class(method))
                    || methods
                        .iter()
                        .any(|method| method == TRANSACTIONS || method == EVERYTHING)
            }
        },
        DataClass::Activity => methods.is_some_and(names_activity),
    };
    if covers { Ok(()) } else { Err(ClassNotCovered(class)) }
}

/// The names of JSON-RPC methods to which the scope narrows activity; none if it does not narrow it (rule 25).
pub fn activity_methods(scope: &DisclosureScope) -> impl Iterator<Item = &str> {
    let methods = scope.methods.as_deref().unwrap_or_default();
    methods.iter().map(String::as_str).filter(|method| !is_class(method))
}

/// Whether a row of the chain is inside the scope's dates and addresses (rule 23).
///
/// `time` is the block time; `None` and a time of 0 mean that it is missing, and such a row is in no range. `sides` are
/// the addresses of the row's sender and receiver.
pub fn covers_row(scope: &DisclosureScope, time: Option<Timestamp>, sides: &[Address]) -> bool {
    let time = time.filter(|time| time.micros() != 0);
    let in_dates = scope
        .dates
        .is_none_or(|(start, end)| time.is_some_and(|time| start <= time && time <= end));
    let in_addresses = scope
        .addresses
        .as_ref()
        .is_none_or(|addresses| sides.iter().any(|side| addresses.contains(side)));
    in_dates && in_addresses
}

/// Whether a call of the owner is in the activity that the grant discloses (rule 25): inside the grant's lifetime, the
/// scope's dates and method names, and made in the grant's organization.
pub fn covers_activity(grant: &DisclosureGrant, row: &ActivityRow<'_>) -> bool {
    if check_class(&grant.scope, DataClass::Activity, ClassCheck::Strict).is_err() {
        return false;
    }
    let methods = grant.scope.methods.as_deref().unwrap_or_default();
    let mut names = methods.iter().filter(|method| !is_class(method)).peekable();
    let in_names = names.peek().is_none() || names.any(|name| name == row.method);
    let in_dates = grant
        .scope
        .dates
        .is_none_or(|(start, end)| start <= row.time && row.time <= end);
    in_names && in_dates && grant.granted_at <= row.time && row.time <= grant.expires_at && row.org == Some(grant.org)
}

/// The grant that gives the highest level for a row, among those that cover it (rule 27). On equal level, the one with
/// the lowest id.
///
/// `grants` are grants on an address of the row. A grant that has ended at `now`, and one whose organization the viewer
/// is not a current member of (rule 26), does not count.
pub fn strongest_for_row<'a>(
    grants: impl IntoIterator<Item = &'a DisclosureGrant>,
    is_member: impl Fn(OrgId) -> bool,
    check: ClassCheck,
    now: Timestamp,
    time: Option<Timestamp>,
    sides: &[Address],
) -> Option<&'a DisclosureGrant> {
    grants
        .into_iter()
        .filter(|grant| grant.is_active(now) && is_member(grant.org))
        .filter(|grant| check_class(&grant.scope, DataClass::Transactions, check).is_ok())
        .filter(|grant| covers_row(&grant.scope, time, sides))
        .max_by_key(|grant| (grant.scope.level, Reverse(grant.id)))
}

//! Declares every variable that the gateway reads: name, type, default, requirements and meaning. Each section of the
//! reference has its own module.
//!
//! The reference `docs/configuration.md` is generated from this list. The gateway reads no variable outside it.

use super::variable::Entry;

/// Declares the statics and `ENTRIES` of a section from one list, so that they cannot differ.
macro_rules! registry {
    ($($(#[doc = $doc:literal])* $name:ident: $type:ty = $variable:expr;)*) => {
        $(
            $(#[doc = $doc])*
            pub static $name: Variable<$type> = $variable.declared(stringify!($name), concat!($($doc),*));
        )*

        /// The variables of this section, in the order of the reference.
        pub(super) static ENTRIES: &[&dyn crate::config::variable::Entry] = &[$(&$name),*];
    };
}

/// A kind for a single variable, written inline.
macro_rules! kind {
    ($type:ty, $rule:literal, $parse:expr) => {{
        static KIND: Kind<$type> = Kind {
            rule: $rule,
            parse: $parse,
        };
        &KIND
    }};
}

mod admin;
mod audit;
mod deployment;
mod edge;
mod identity;
mod limits;
mod node;
mod operation;
mod policy;
mod store;

pub use {
    admin::*, audit::*, deployment::*, edge::*, identity::*, limits::*, node::*, operation::*, policy::*, store::*,
};

/// Seconds in an hour.
const HOUR: u64 = 3600;
/// Seconds in a day.
const DAY: u64 = 24 * HOUR;

/// Requirements on every secret in production, older secrets included (RTS7).
const STRONG: &str =
    "in production at least 32 bytes, 8 of them distinct, and different from every other secret, older ones included";
const STRONG_EACH: &str = "in production each at least 32 bytes, 8 of them distinct, and different from every other \
                           secret, older ones included";

/// Limits on networks whose peers are trusted (RTS7).
const NARROW: &str = "in production no network wider than /8 (IPv6: /7): list only your own machines";

/// The entries of all sections, in the order of the reference.
static SECTIONS: &[&[&dyn Entry]] = &[
    deployment::ENTRIES,
    edge::ENTRIES,
    limits::ENTRIES,
    identity::ENTRIES,
    admin::ENTRIES,
    node::ENTRIES,
    policy::ENTRIES,
    store::ENTRIES,
    audit::ENTRIES,
    operation::ENTRIES,
];

/// All variables, in the order of the reference.
pub fn all() -> impl Iterator<Item = &'static dyn Entry> {
    SECTIONS.iter().copied().flatten().copied()
}

//! The schema of function and event rules in the API description; `gw-store` parses and writes them.
#![expect(dead_code, reason = "carries the description only")]

use serde::Serialize;
use utoipa::ToSchema;

/// One permitted function.
#[derive(Serialize, ToSchema)]
pub(crate) struct FunctionRule {
    /// Four bytes, `0x` and hex digits.
    selector: String,
    /// Conditions on parameters, which must all hold.
    #[schema(required = false)]
    param_rules: Vec<ParamRule>,
}

/// A condition on one parameter.
#[derive(Serialize, ToSchema)]
pub(crate) struct ParamRule {
    /// The position in the ABI's inputs, from 0.
    index: u16,
    must_be: Constraint,
}

/// The condition on a parameter.
#[derive(Serialize, ToSchema)]
#[schema(as = MustBe)]
#[serde(untagged)]
pub(crate) enum Constraint {
    /// `self` for an address linked to the caller, or a hex literal of at most 32 bytes.
    Text(String),
    Operator(Comparison),
}

/// An operator with the literals that it compares with.
#[derive(Serialize, ToSchema)]
pub(crate) struct Comparison {
    /// `eq`, `ne`, `in`, `lt`, `lte`, `gt`, `gte`, `self` or `org`.
    op: String,
    /// A hex literal; for `in` a list of them; absent for `self` and `org`.
    value: Option<Literals>,
}

/// One hex literal, or several.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum Literals {
    One(String),
    Several(Vec<String>),
}

/// One permitted event; one of its parameter rules must hold.
#[derive(Serialize, ToSchema)]
pub(crate) struct EventRule {
    /// The event's first topic.
    topic0: String,
    /// The event's name, for people.
    #[schema(required = false)]
    name: String,
    /// Conditions on parameters, of which one must hold; an empty list is no condition.
    #[schema(required = false)]
    param_rules: Vec<ParamRule>,
}

/// The events that a grant shows: `"*"` for every event, or a list. Requests may also use `{wildcard, rules}`.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum EventRulesField {
    Wildcard(String),
    Rules(Vec<EventRule>),
}

//! `/approved-code`: creation code that sends may run with `DEPLOYMENTS=approved` (spec/02 HD2). Super only, all of it.
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod list;

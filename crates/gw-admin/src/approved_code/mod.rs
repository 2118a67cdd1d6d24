//! `/approved-code`: the creation code that sends may run with `DEPLOYMENTS=approved` (spec/02 HD2). All operations are
//! super only.
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod list;

//! `/status` and `/system`: how it is, and toggles of tracing (spec/80 §11, spec/20 N4, X9). Any administrator reads them,
//! super turns them.
//!
//! A change is a row of policy: it holds on every instance with the next snapshot, and ends by itself.
pub(crate) mod status;
pub(crate) mod toggles;

//! `/status` and `/system`: the instance status and the tracing toggles (spec/80 §11, spec/20 N4, X9). Every
//! administrator reads them, super changes them.
//!
//! A toggle change is a policy row: every instance applies it with its next snapshot, and it expires by itself.
pub(crate) mod status;
pub(crate) mod toggles;

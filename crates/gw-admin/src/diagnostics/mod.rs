//! Diagnostics: the outcome of a call and the reasons for it, from the pipeline that serves callers (spec/20 §16).

pub(crate) mod access_check;
pub(crate) mod dry_run;
pub(crate) mod explorer;
mod impersonation;
pub(crate) mod test_request;
pub(crate) mod view_as;

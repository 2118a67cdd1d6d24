//! The compliance check of a send, and its position among the other checks (spec/60 §7): after access, KYC and both
//! traces, before recipients, and again directly before the transaction goes out. Rules of thresholds, sanctions and
//! travel records are not part of this version.

use gw_policy::{
    Snapshot,
    access::{Permit, TraceVerdict},
};
use gw_types::DenyReason;
use std::fmt::Debug;

/// A send that access and both traces permit.
#[derive(Clone, Copy, Debug)]
pub struct PermittedSend<'a> {
    /// The policy snapshot that permits it.
    pub snapshot: &'a Snapshot,
    /// The permit.
    pub permit: &'a Permit,
    /// Its simulated runs on the state of the head, and on that of the next block.
    pub runs: [&'a TraceVerdict; 2],
}

/// Decides whether a permitted send complies.
pub trait ComplianceCheck: Debug + Send + Sync {
    /// Checks one send.
    ///
    /// # Errors
    /// The reason for the access record; the caller gets the opaque denial.
    fn check(&self, send: &PermittedSend<'_>) -> Result<(), DenyReason>;
}

/// No rules: every send complies.
#[derive(Clone, Copy, Debug)]
pub struct NoComplianceRules;

impl ComplianceCheck for NoComplianceRules {
    fn check(&self, _: &PermittedSend<'_>) -> Result<(), DenyReason> {
        Ok(())
    }
}

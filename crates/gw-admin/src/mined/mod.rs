//! `/mined`: what mined transactions were found to have done, and clearing it (spec/02 HD2). Super only: an organization's
//! administrator may be the one who gains by it.
pub(crate) mod clear_quarantine;
pub(crate) mod clear_suspension;
pub(crate) mod quarantines;
pub(crate) mod suspensions;

use crate::{error::Failure, wire::ClearMinedRequest};

/// Why something is cleared.
fn reason(body: &ClearMinedRequest) -> Result<&str, Failure> {
    let reason = body.reason.trim();
    if reason.is_empty() || reason.chars().count() > 500 {
        return Err(Failure::bad("reason must have 1 to 500 characters"));
    }
    Ok(reason)
}

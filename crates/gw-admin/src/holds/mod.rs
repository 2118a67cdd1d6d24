//! `/legal-holds`: what keeps entries of the audit log from being pruned or erased (spec/70 rule 24). Super only, all of it.
pub(crate) mod lift;
pub(crate) mod list;
pub(crate) mod place;

use crate::error::Failure;

/// Why a hold is placed or lifted.
fn reason(text: &str) -> Result<&str, Failure> {
    let reason = text.trim();
    if reason.is_empty() || reason.chars().count() > 500 {
        return Err(Failure::bad("reason must have 1 to 500 characters"));
    }
    Ok(reason)
}

//! `/legal-holds`: holds that keep entries of the audit log from being pruned or erased (spec/70 rule 24). All
//! operations are super only.
pub(crate) mod get;
pub(crate) mod lift;
pub(crate) mod list;
pub(crate) mod place;

use crate::error::AdminError;

/// The reason for placing or lifting a hold, trimmed; 1 to 500 characters.
fn reason(text: &str) -> Result<&str, AdminError> {
    let reason = text.trim();
    if reason.is_empty() || reason.chars().count() > 500 {
        return Err(AdminError::bad_request("reason must have 1 to 500 characters"));
    }
    Ok(reason)
}

//! `/orgs/{org_id}/webhook`: the address that events of disclosure are posted to.
pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod set;
pub(crate) mod test;

/// The 404 text if an organization has no webhook.
const UNKNOWN: &str = "webhook not found";

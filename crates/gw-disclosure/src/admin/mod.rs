//! Routes of administrators below `/api/v1/admin/disclosure`.

pub(crate) mod check_access;
pub(crate) mod counters;
pub(crate) mod grants;
pub(crate) mod requests;

use crate::{DisclosureState, caller::Admin, error::AdminError, error::NO_GRANT, error::NO_REQUEST};
use gw_store::record::{DisclosureRequestDetails, GrantWithRequest};

/// A request of an organization that the administrator may read (rule 3).
///
/// # Errors
/// 403, or for the platform token 404, for a request that does not exist; 403 for one of another organization.
async fn readable_request(
    state: &DisclosureState,
    admin: &Admin,
    id: &str,
) -> Result<DisclosureRequestDetails, AdminError> {
    let found = match id.parse() {
        Ok(id) => state.store.read().find_disclosure_request(id).await?,
        Err(_) => None,
    };
    let details = found.filter(|details| admin.may_read(details.request.org));
    let details = details.ok_or_else(|| admin.unknown(NO_REQUEST))?;
    admin.origin.set_org(details.request.org);
    Ok(details)
}

/// A grant of an organization that the administrator may read (rule 3).
///
/// # Errors
/// As [`readable_request`].
async fn readable_grant(state: &DisclosureState, admin: &Admin, id: &str) -> Result<GrantWithRequest, AdminError> {
    let found = match id.parse() {
        Ok(id) => state.store.read().find_disclosure_grant(id).await?,
        Err(_) => None,
    };
    let grant = found.filter(|found| admin.may_read(found.grant.org));
    let grant = grant.ok_or_else(|| admin.unknown(NO_GRANT))?;
    admin.origin.set_org(grant.grant.org);
    Ok(grant)
}

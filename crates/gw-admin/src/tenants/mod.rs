//! `/directory-tenants`: tenants whose users may log in with the directory (spec/80 §9). All operations are super only.
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod update;

use crate::{error::AdminError, input};
use gw_types::{AllowedTenantId, TenantId};

/// The id of a row of the list, from the path.
fn row(id: &str) -> Result<AllowedTenantId, AdminError> {
    id.parse().map_err(|_| AdminError::not_found("tenant not found"))
}

/// A tenant id of the directory; the nil UUID is rejected.
fn tenant(text: &str) -> Result<TenantId, AdminError> {
    let tenant: TenantId = input::id(text, "tenant_id")?;
    if tenant.0.is_nil() {
        Err(AdminError::bad_request("tenant_id must be a UUID"))
    } else {
        Ok(tenant)
    }
}

/// An optional id; an empty text counts as absent.
fn reference<T: std::str::FromStr>(text: Option<&str>, what: &str) -> Result<Option<T>, AdminError> {
    text.filter(|text| !text.is_empty())
        .map(|text| input::id(text, what))
        .transpose()
}

//! `/directory-tenants`: whose users may log in with the directory (spec/80 §9). Super only, all of it.
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod update;

use crate::{error::Failure, input};
use gw_types::{AllowedTenantId, TenantId};

/// A row of the list, by its id in the path.
fn row(id: &str) -> Result<AllowedTenantId, Failure> {
    id.parse().map_err(|_| Failure::not_found("tenant not found"))
}

/// A tenant's id as the directory writes it.
fn tenant(text: &str) -> Result<TenantId, Failure> {
    let tenant: TenantId = input::id(text, "tenant_id")?;
    if tenant.0.is_nil() {
        Err(Failure::bad("tenant_id must be a UUID"))
    } else {
        Ok(tenant)
    }
}

/// A reference that an empty text clears.
fn reference<T: std::str::FromStr>(text: Option<&str>, what: &str) -> Result<Option<T>, Failure> {
    text.filter(|text| !text.is_empty())
        .map(|text| input::id(text, what))
        .transpose()
}

//! `/shared-infrastructure`: contracts that every organization may call (spec/80 §9). All operations are super only.
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod refresh_codehash;
pub(crate) mod update;

use crate::{error::AdminError, input, wire::SharedInfraInput};
use gw_store::record;
use gw_types::B256;

/// Validates the request and converts it to the store's input.
fn parse_input(body: &SharedInfraInput) -> Result<record::SharedInfraInput, AdminError> {
    let input = record::SharedInfraInput {
        name: input::name(&body.name)?,
        description: input::text(body.description.as_deref().unwrap_or_default(), "description", 1000)?,
        codehash: pin(body.codehash.as_deref(), "codehash")?,
        implementation_codehash: pin(body.implementation_codehash.as_deref(), "implementation_codehash")?,
    };
    if input.implementation_codehash.is_some() && input.codehash.is_none() {
        return Err(AdminError::bad_request("implementation_codehash needs a codehash"));
    }
    Ok(input)
}

/// An optional hash; an empty text counts as absent.
fn pin(text: Option<&str>, what: &str) -> Result<Option<B256>, AdminError> {
    text.filter(|text| !text.is_empty())
        .map(|text| input::hash(text, what))
        .transpose()
}

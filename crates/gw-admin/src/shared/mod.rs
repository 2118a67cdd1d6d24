//! `/shared-infrastructure`: contracts that every organization may call (spec/80 §9). Super only, all of it.
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod refresh_codehash;
pub(crate) mod update;

use crate::{error::Failure, input, wire::SharedInfraInput};
use gw_store::record;
use gw_types::B256;

/// What a request says of a shared contract.
fn said(body: &SharedInfraInput) -> Result<record::SharedInfraInput, Failure> {
    let input = record::SharedInfraInput {
        name: input::name(&body.name)?,
        description: input::text(body.description.as_deref().unwrap_or_default(), "description", 1000)?,
        codehash: pin(body.codehash.as_deref(), "codehash")?,
        implementation_codehash: pin(body.implementation_codehash.as_deref(), "implementation_codehash")?,
    };
    if input.implementation_codehash.is_some() && input.codehash.is_none() {
        return Err(Failure::bad("implementation_codehash needs a codehash"));
    }
    Ok(input)
}

/// A hash that an empty text leaves out.
fn pin(text: Option<&str>, what: &str) -> Result<Option<B256>, Failure> {
    text.filter(|text| !text.is_empty())
        .map(|text| input::hash(text, what))
        .transpose()
}

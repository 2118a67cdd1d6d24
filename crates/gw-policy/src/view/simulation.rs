//! Results from an evaluated trace (spec/20 X4, HD3; decision 44).
//!
//! A [`TraceVerdict`] contains its trace, and only [`evaluate_trace`](crate::access::evaluate_trace) creates one, so no
//! execution is disclosed without an evaluation.

use super::{error::DisclosedError, shape::Shape, state::checked};
use crate::{
    access::TraceVerdict,
    sealed::{Disclosed, RawJson, Sealed},
    visibility::is_precompile,
};
use alloy_eips::eip2930::AccessList;
use alloy_primitives::hex;
use gw_evm::{code, trace::Trace};
use gw_types::Address;
use std::fmt::Write as _;

/// The result of `eth_call`: the output of the evaluated execution. Return data is not redacted (spec/30 section 8).
///
/// # Errors
/// The failure of the execution, as a known text.
pub fn call_result(verdict: &TraceVerdict) -> Result<Disclosed, DisclosedError> {
    let trace = verdict.trace();
    match failure(trace) {
        None => Ok(Disclosed::text(format!(
            "\"{}\"",
            hex::encode_prefixed(&trace.top.output)
        ))),
        Some(error) => Err(error),
    }
}

/// The result of `eth_call` while its tracing is switched off (X9): the upstream result.
pub fn untraced_call_result(answer: Sealed<RawJson>) -> Disclosed {
    checked(answer, Shape::Bytes, Disclosed::NULL)
}

/// The gas that an evaluated execution of `eth_estimateGas` used, for the gateway's own search (HD3).
///
/// # Errors
/// The failure of the execution, as a known text.
pub fn gas_used(verdict: &TraceVerdict) -> Result<u64, DisclosedError> {
    let trace = verdict.trace();
    match failure(trace) {
        None => Ok(trace.top.gas_used),
        Some(error) => Err(error),
    }
}

/// The result of `eth_createAccessList`: the list that the last execution was given, the gas that this execution used,
/// and its failure, if any.
pub fn access_list(verdict: &TraceVerdict, list: &AccessList) -> Disclosed {
    let trace = verdict.trace();
    let mut items = String::new();
    for item in &list.0 {
        let comma = if items.is_empty() { "" } else { "," };
        let keys: Vec<String> = item.storage_keys.iter().map(|key| format!("\"{key:#x}\"")).collect();
        // Writing to a string cannot fail.
        let _ = write!(
            items,
            "{comma}{{\"address\":\"{:#x}\",\"storageKeys\":[{}]}}",
            item.address,
            keys.join(",")
        );
    }
    // Known texts contain no quotes.
    let error = failure(trace)
        .map(|error| format!("\"error\":\"{}\",", error.plain()))
        .unwrap_or_default();
    Disclosed::text(format!(
        "{{\"accessList\":[{items}],{error}\"gasUsed\":\"{:#x}\"}}",
        trace.top.gas_used
    ))
}

/// Whether code of this execution could read the base fee, so that its result must not be disclosed under
/// `HIDE_BASE_FEE`. Code that the trace does not show counts as reading it.
#[must_use]
pub fn reads_base_fee(verdict: &TraceVerdict) -> bool {
    let trace = verdict.trace();
    let creations = || trace.frames.iter().filter(|frame| frame.is_creation());
    let is_shown = |address: Address| {
        is_precompile(address)
            || trace.touched.contains_key(&address)
            || creations().any(|creation| creation.to == Some(address))
    };
    trace
        .touched
        .values()
        .any(|account| code::reads_base_fee(&account.code))
        || creations().any(|creation| code::reads_base_fee(&creation.input) || code::reads_base_fee(&creation.output))
        || trace
            .frames
            .iter()
            .filter_map(|frame| frame.to)
            .any(|address| !is_shown(address))
}

fn failure(trace: &Trace) -> Option<DisclosedError> {
    let error = DisclosedError::known(-32000, trace.top.error.as_deref()?);
    // The caller may see the outcome of the executed code, so also its revert bytes (W7).
    Some(if error.is_revert() {
        DisclosedError::reverted(&trace.top.output)
    } else {
        error
    })
}

//! Call objects: the execution-relevant members of `eth_call` and of sends (spec/20 J5, X2).

use super::{
    CallRequest,
    params::{Result, address, bytes, elements, members, number, quantity, word},
};
use crate::{error::ParamError, tx, visible_to::VisibleTo};
use alloy_eips::{
    eip2930::{AccessList, AccessListItem},
    eip7702::{Authorization, SignedAuthorization},
};
use alloy_primitives::Bytes;
use serde_json::value::RawValue;

/// Reads a call object; `visibleTo` and `privateFor` are returned separately.
pub(super) fn call_object(raw: &RawValue, chain_id: u64) -> Result<(CallRequest, VisibleTo)> {
    let [
        from,
        to,
        value,
        data,
        input,
        gas,
        gas_price,
        max_fee,
        max_priority,
        nonce,
        access_list,
        chain,
        authorizations,
        tx_type,
        blob_fee,
        blob_hashes,
        blobs,
        visible_to,
        private_for,
    ] = members(
        raw,
        "call object",
        &[
            "from",
            "to",
            "value",
            "data",
            "input",
            "gas",
            "gasPrice",
            "maxFeePerGas",
            "maxPriorityFeePerGas",
            "nonce",
            "accessList",
            "chainId",
            "authorizationList",
            "type",
            "maxFeePerBlobGas",
            "blobVersionedHashes",
            "blobs",
            "visibleTo",
            "privateFor",
        ],
    )?;
    if blob_fee.or(blob_hashes).or(blobs).is_some() {
        return Err(tx::unsupported_type());
    }
    if let Some(raw) = tx_type {
        tx::check_type(number(raw, "type")?)?;
    }
    let chain = chain.map(|raw| number(raw, "chainId")).transpose()?;
    if chain.is_some_and(|id| id != chain_id) {
        return Err(ParamError::invalid("chainId is not this chain's"));
    }
    let request = CallRequest {
        // Decision 38: clients send the zero address to name no sender.
        from: from
            .map(|raw| address(raw, "from"))
            .transpose()?
            .filter(|from| !from.is_zero()),
        to: to.map(|raw| address(raw, "to")).transpose()?,
        value: value.map(|raw| quantity(raw, "value")).transpose()?,
        input: calldata(data, input)?,
        gas: gas.map(|raw| number(raw, "gas")).transpose()?,
        gas_price: gas_price.map(|raw| number(raw, "gasPrice")).transpose()?,
        max_fee_per_gas: max_fee.map(|raw| number(raw, "maxFeePerGas")).transpose()?,
        max_priority_fee_per_gas: max_priority
            .map(|raw| number(raw, "maxPriorityFeePerGas"))
            .transpose()?,
        nonce: nonce.map(|raw| number(raw, "nonce")).transpose()?,
        access_list: access_list.map(read_access_list).transpose()?,
        chain_id: chain,
        authorization_list: authorizations.map(authorization_list).transpose()?.unwrap_or_default(),
    };
    if request.gas_price.is_some() && (max_fee.is_some() || max_priority.is_some()) {
        return Err(ParamError::invalid(
            "gasPrice excludes maxFeePerGas and maxPriorityFeePerGas",
        ));
    }
    let recipients = [visible_to, private_for].into_iter().flatten().map(VisibleTo::read);
    Ok((request, recipients.fold(VisibleTo::default(), VisibleTo::union)))
}

/// B2: nodes disagree on whether `data` or `input` takes precedence, so both must be equal.
fn calldata(data: Option<&RawValue>, input: Option<&RawValue>) -> Result<Bytes> {
    let data = data.map(|raw| bytes(raw, "data")).transpose()?;
    let input = input.map(|raw| bytes(raw, "input")).transpose()?;
    match (data, input) {
        (Some(data), Some(input)) if data != input => Err(ParamError::invalid("data and input differ")),
        (data, input) => Ok(input.or(data).unwrap_or_default()),
    }
}

fn read_access_list(raw: &RawValue) -> Result<AccessList> {
    let items = elements(raw, "accessList")?.into_iter().map(|item| {
        let [account, keys] = members(item, "accessList", &["address", "storageKeys"])?;
        let account = account.ok_or_else(|| ParamError::invalid("accessList entry has no address"))?;
        let keys = keys
            .map(|raw| elements(raw, "storageKeys"))
            .transpose()?
            .unwrap_or_default();
        Ok(AccessListItem {
            address: address(account, "accessList address")?,
            storage_keys: keys
                .into_iter()
                .map(|key| word(key, "storage key"))
                .collect::<Result<_>>()?,
        })
    });
    items.collect::<Result<_>>().map(AccessList)
}

fn authorization_list(raw: &RawValue) -> Result<Vec<SignedAuthorization>> {
    let read = |item| {
        let names = &["chainId", "address", "nonce", "yParity", "v", "r", "s"];
        let [chain, delegate, nonce, parity, v, r, s] = members(item, "authorization", names)?;
        let missing = || ParamError::invalid("authorization is incomplete");
        let inner = Authorization {
            chain_id: quantity(chain.ok_or_else(missing)?, "authorization chainId")?,
            address: address(delegate.ok_or_else(missing)?, "authorization address")?,
            nonce: number(nonce.ok_or_else(missing)?, "authorization nonce")?,
        };
        let parity: u8 = number(parity.or(v).ok_or_else(missing)?, "authorization yParity")?;
        let r = quantity(r.ok_or_else(missing)?, "authorization r")?;
        let s = quantity(s.ok_or_else(missing)?, "authorization s")?;
        Ok(SignedAuthorization::new_unchecked(inner, parity, r, s))
    };
    elements(raw, "authorizationList")?.into_iter().map(read).collect()
}

//! Signed transactions (spec/20 W1): decoded canonically, the sender recovered.
//!
//! Invariant: the bytes that are forwarded are the encoding of the fields that were judged.

use crate::call::{CallRequest, ChainRules, SignedTransaction};
use crate::error::ParamError;
use alloy_consensus::{Transaction as _, TxEnvelope, Typed2718 as _, transaction::SignerRecoverable as _};
use alloy_eips::{
    eip2718::{Decodable2718 as _, Encodable2718 as _},
    eip7702::{Authorization, SignedAuthorization},
};
use alloy_primitives::{Address, Bytes, U256, keccak256};

/// The largest raw transaction (W1).
pub const MAX_RAW: usize = 128 * 1024;

/// Decision 47.
pub(crate) fn unsupported_type() -> ParamError {
    ParamError::invalid("transaction type not supported")
}

/// Types 0 to 2, and 4 (decision 47).
pub(crate) fn check_type(tx_type: u8) -> Result<(), ParamError> {
    match tx_type {
        0..=2 | 4 => Ok(()),
        _ => Err(unsupported_type()),
    }
}

/// Decodes a raw transaction.
pub fn decode(raw: Bytes, chain: ChainRules) -> Result<SignedTransaction, ParamError> {
    let malformed = || ParamError::invalid("malformed raw transaction");
    if raw.len() > MAX_RAW {
        return Err(ParamError::invalid("raw transaction is larger than 128 KiB"));
    }
    match raw.first() {
        // A list: a legacy transaction, which carries no type byte.
        Some(0xc0..) => {}
        Some(0) | None => return Err(malformed()),
        Some(tx_type) => check_type(*tx_type)?,
    }
    let mut rest = raw.as_ref();
    let envelope = TxEnvelope::decode_2718(&mut rest).map_err(|_| malformed())?;
    // Canonical: nothing follows, and the fields encode to exactly these bytes.
    if !rest.is_empty() || envelope.encoded_2718() != raw {
        return Err(malformed());
    }
    match envelope.chain_id() {
        Some(id) if id == chain.chain_id => {}
        Some(_) => return Err(ParamError::invalid("transaction is for another chain")),
        None => return Err(ParamError::invalid("transaction has no chain id (EIP-155)")),
    }
    // Refuses a high s (EIP-2), which would be a second encoding of the same signature.
    let sender = envelope
        .recover_signer()
        .map_err(|_| ParamError::invalid("invalid signature"))?;
    let hash = keccak256(&raw);
    Ok(SignedTransaction {
        hash,
        tx_type: envelope.ty(),
        sender,
        nonce: envelope.nonce(),
        request: request(&envelope, sender),
        raw,
    })
}

fn request(envelope: &TxEnvelope, sender: Address) -> CallRequest {
    let dynamic = envelope.is_dynamic_fee();
    CallRequest {
        from: Some(sender),
        to: envelope.to(),
        value: Some(envelope.value()),
        input: envelope.input().clone(),
        gas: Some(envelope.gas_limit()),
        gas_price: envelope.gas_price(),
        max_fee_per_gas: dynamic.then(|| envelope.max_fee_per_gas()),
        max_priority_fee_per_gas: envelope.max_priority_fee_per_gas(),
        nonce: Some(envelope.nonce()),
        access_list: envelope.access_list().cloned(),
        chain_id: envelope.chain_id(),
        authorization_list: envelope.authorization_list().map(<[_]>::to_vec).unwrap_or_default(),
    }
}

/// Where a plain creation by `sender` at `nonce` puts its code (R1).
pub fn create_address(sender: Address, nonce: u64) -> Address {
    sender.create(nonce)
}

/// The wallet that an EIP-7702 authorization of a mined transaction delegates; `None` if nobody can be recovered.
pub fn delegating_wallet(chain: U256, delegate: Address, nonce: u64, parity: u8, [r, s]: [U256; 2]) -> Option<Address> {
    let inner = Authorization {
        chain_id: chain,
        address: delegate,
        nonce,
    };
    SignedAuthorization::new_unchecked(inner, parity, r, s)
        .recover_authority()
        .ok()
}

/// Who signed an EIP-7702 authorization; `None` if nobody can be recovered or the authorization is for another
/// chain than `chain` (zero means every chain).
pub fn authority(authorization: &SignedAuthorization, chain: ChainRules) -> Option<Address> {
    let named = *authorization.chain_id();
    if !named.is_zero() && named != U256::from(chain.chain_id) {
        return None;
    }
    authorization.recover_authority().ok()
}

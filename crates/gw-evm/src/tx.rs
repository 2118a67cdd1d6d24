//! Decodes signed transactions canonically and recovers their senders (spec/20 W1).
//!
//! Invariant: the forwarded bytes are the encoding of the fields that the policy evaluated.

use crate::call::{CallRequest, ChainRules, SignedTransaction};
use crate::error::ParamError;
use alloy_consensus::{Transaction as _, TxEnvelope, Typed2718 as _, transaction::SignerRecoverable as _};
use alloy_eips::{
    eip2718::{Decodable2718 as _, Encodable2718 as _},
    eip7702::{Authorization, SignedAuthorization},
};
use alloy_primitives::{Address, Bytes, U256, keccak256};

/// Maximum size of a raw transaction in bytes (W1).
pub const MAX_RAW: usize = 128 * 1024;

/// The error for an unsupported transaction type (decision 47).
pub(crate) fn unsupported_type() -> ParamError {
    ParamError::invalid("transaction type not supported")
}

/// Accepts the transaction types 0, 1, 2 and 4 (decision 47).
pub(crate) fn check_type(tx_type: u8) -> Result<(), ParamError> {
    match tx_type {
        0..=2 | 4 => Ok(()),
        _ => Err(unsupported_type()),
    }
}

/// Decodes a raw transaction.
///
/// # Errors
///
/// A [`ParamError`] if the transaction is too large, malformed, not canonical, of an unsupported type, for another
/// chain, without chain id, or without a valid signature.
pub fn decode(raw: Bytes, chain: ChainRules) -> Result<SignedTransaction, ParamError> {
    let malformed = || ParamError::invalid("malformed raw transaction");
    if raw.len() > MAX_RAW {
        return Err(ParamError::invalid("raw transaction is larger than 128 KiB"));
    }
    match raw.first() {
        // An RLP list is a legacy transaction, which has no type byte.
        Some(0xc0..) => {}
        Some(0) | None => return Err(malformed()),
        Some(tx_type) => check_type(*tx_type)?,
    }
    let mut rest = raw.as_ref();
    let envelope = TxEnvelope::decode_2718(&mut rest).map_err(|_| malformed())?;
    // Canonical: no bytes follow, and the fields encode to exactly these bytes.
    if !rest.is_empty() || envelope.encoded_2718() != raw {
        return Err(malformed());
    }
    match envelope.chain_id() {
        Some(id) if id == chain.chain_id => {}
        Some(_) => return Err(ParamError::invalid("transaction is for another chain")),
        None => return Err(ParamError::invalid("transaction has no chain id (EIP-155)")),
    }
    // Rejects a high `s` (EIP-2), which would be a second encoding of the same signature.
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

/// The address of the contract that `sender` creates with CREATE at `nonce` (R1).
pub fn create_address(sender: Address, nonce: u64) -> Address {
    sender.create(nonce)
}

/// Recovers the wallet that signed an EIP-7702 authorization of a mined transaction; `None` if the signature is
/// invalid.
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

/// Recovers the signer of an EIP-7702 authorization. `None` if the signature is invalid, or if the authorization is
/// for a chain other than `chain`; chain id zero means every chain.
pub fn authority(authorization: &SignedAuthorization, chain: ChainRules) -> Option<Address> {
    let chain_id = *authorization.chain_id();
    if !chain_id.is_zero() && chain_id != U256::from(chain.chain_id) {
        return None;
    }
    authorization.recover_authority().ok()
}

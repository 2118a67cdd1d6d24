//! An account that signs messages for linking and transactions for the node.

use alloy_consensus::{SignableTransaction as _, TxEip1559, TxEnvelope};
use alloy_eips::eip2718::Encodable2718 as _;
use alloy_primitives::{Address, Bytes, TxKind, U256};
use alloy_signer::SignerSync as _;
use alloy_signer_local::PrivateKeySigner;
use anyhow::Context as _;

/// A private key that signs messages and transactions.
#[derive(Debug)]
pub(super) struct Account(PrivateKeySigner);

/// The fields of a transaction; the caller chooses the fees.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) chain: u64,
    pub(super) nonce: u64,
    pub(super) gas: u64,
    pub(super) max_fee: u128,
    /// `None` creates a contract.
    pub(super) to: Option<Address>,
    pub(super) input: Bytes,
}

impl Account {
    /// The account of a private key in hex.
    pub(super) fn from_key(key: &str) -> anyhow::Result<Self> {
        key.parse().map(Self).context("a development key is malformed")
    }

    /// The address of the account.
    pub(super) fn address(&self) -> Address {
        self.0.address()
    }

    /// An EIP-191 signature over a text, in hex.
    pub(super) fn sign_text(&self, text: &str) -> anyhow::Result<String> {
        let signature = self
            .0
            .sign_message_sync(text.as_bytes())
            .context("the message could not be signed")?;
        Ok(format!("0x{}", hex::encode(signature.as_bytes())))
    }

    /// A signed EIP-1559 transaction, ready for `eth_sendRawTransaction`.
    pub(super) fn sign(&self, call: Call) -> anyhow::Result<String> {
        let transaction = TxEip1559 {
            chain_id: call.chain,
            nonce: call.nonce,
            gas_limit: call.gas,
            max_fee_per_gas: call.max_fee,
            max_priority_fee_per_gas: 1,
            to: call.to.map_or(TxKind::Create, TxKind::Call),
            value: U256::ZERO,
            access_list: Default::default(),
            input: call.input,
        };
        let signature = self
            .0
            .sign_hash_sync(&transaction.signature_hash())
            .context("the transaction could not be signed")?;
        let signed = TxEnvelope::from(transaction.into_signed(signature));
        Ok(format!("0x{}", hex::encode(signed.encoded_2718())))
    }
}

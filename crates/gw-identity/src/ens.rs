//! ENS names of addresses (LK-8, ENSIP-1, ENSIP-3), read from a third-party node of the chain that ENS lives on.
//!
//! Invariant: a name is shown only if it resolves back to its address and is in its normalized form (ENSIP-15), so that
//! it looks like no other name.

use crate::{
    external_node::{self, CallError, Reply},
    outbound::third_party_client,
};
use alloy_ens::namehash;
use alloy_sol_types::SolValue as _;
use gw_http::HttpClient;
use gw_types::{Address, B256, address};
use http::Uri;
use std::{io, time::Duration};
use tokio::sync::OnceCell;

/// The ENS registry. It has this address on every chain that has one.
const REGISTRY: Address = address!("00000000000C2E074eC69A0dFb2997BA6C7d2e1e");
/// `resolver(bytes32)`, `name(bytes32)`, `addr(bytes32)`.
const RESOLVER: [u8; 4] = [0x01, 0x78, 0xb8, 0xbf];
const NAME: [u8; 4] = [0x69, 0x1f, 0x34, 0x31];
const ADDR: [u8; 4] = [0x3b, 0x3b, 0x57, 0xde];
/// Deadline for all calls about one address together.
const DEADLINE: Duration = Duration::from_secs(30);
const MAX_NAME: usize = 255;

/// Why a name lookup failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EnsError {
    /// The node gave no answer.
    #[error("the node of the name service gave no answer")]
    Call(#[from] CallError),
    /// The node serves the gateway's own chain, where the ENS contracts are contracts of the gateway's users (HD26).
    #[error("the node of the name service serves the gateway's own chain")]
    OwnChain,
    /// The lookup exceeded its deadline.
    #[error("the name service took too long")]
    Timeout,
}

/// ENS lookups. Cheap to clone.
#[derive(Clone)]
pub struct Ens {
    outbound: HttpClient,
    node: Uri,
    /// The node's chain id, after its first answer.
    chain: OnceCell<u64>,
}

impl core::fmt::Debug for Ens {
    // Omits the URL: its path may contain an API key.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Ens(…)")
    }
}

impl Ens {
    /// Creates lookups at this node; fails on a machine without trusted certificates.
    ///
    /// # Errors
    /// An error of the TLS setup, for example on a machine without trusted certificates.
    pub fn new(node: Uri) -> Result<Self, io::Error> {
        Ok(Self {
            outbound: third_party_client()?,
            node,
            chain: OnceCell::new(),
        })
    }

    /// Returns the name of the address, if it has one that resolves back to it. Refuses a node whose chain is
    /// `own_chain`, or any node while `own_chain` is unknown: the owner of a name chooses the contract that resolves it
    /// (HD26).
    pub(crate) async fn name_of(&self, address: Address, own_chain: Option<u64>) -> Result<Option<String>, EnsError> {
        let look_up = async {
            let chain = self
                .chain
                .get_or_try_init(|| external_node::chain_id(&self.outbound, &self.node))
                .await?;
            if own_chain.is_none_or(|own| own == *chain) {
                return Err(EnsError::OwnChain);
            }
            self.look_up(address).await
        };
        tokio::time::timeout(DEADLINE, look_up)
            .await
            .map_err(|_| EnsError::Timeout)?
    }

    async fn look_up(&self, address: Address) -> Result<Option<String>, EnsError> {
        let reverse = namehash(&format!("{address:x}.addr.reverse"));
        let Some(resolver) = self.resolver_of(reverse).await? else {
            return Ok(None);
        };
        let Some(name) = self.ask(resolver, NAME, reverse).await? else {
            return Ok(None);
        };
        let Some(name) = String::abi_decode(&name).ok().filter(|name| is_plain(name)) else {
            return Ok(None);
        };
        let forward = namehash(&name);
        let Some(resolver) = self.resolver_of(forward).await? else {
            return Ok(None);
        };
        let Some(back) = self.ask(resolver, ADDR, forward).await? else {
            return Ok(None);
        };
        Ok((Address::abi_decode(&back) == Ok(address)).then_some(name))
    }

    async fn resolver_of(&self, node: B256) -> Result<Option<Address>, EnsError> {
        let returned = self.ask(REGISTRY, RESOLVER, node).await?;
        Ok(returned
            .and_then(|returned| Address::abi_decode(&returned).ok())
            .filter(|resolver| !resolver.is_zero()))
    }

    /// Calls a registry or resolver contract. `None` if it reverts.
    async fn ask(&self, contract: Address, selector: [u8; 4], node: B256) -> Result<Option<Vec<u8>>, EnsError> {
        let data = [selector.as_slice(), node.as_slice()].concat();
        Ok(
            match external_node::contract(&self.outbound, &self.node, contract, &data).await? {
                Reply::Returned(returned) => Some(returned),
                Reply::Reverted { .. } => None,
            },
        )
    }
}

/// Whether the name equals its normalized form: no control or bidirectional characters, no look-alikes, no second
/// spelling.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= MAX_NAME
        && !name.chars().any(|letter| letter.is_control())
        && ens_normalize::ens_normalize(name).is_ok_and(|normal| normal == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_testkit::anvil::{Anvil, anvil};
    use serde_json::{Value, json};

    /// A real node with a registry that is its own resolver, at the registry's usual address.
    struct Chain {
        _node: Anvil,
        outbound: HttpClient,
        uri: Uri,
    }

    impl Chain {
        async fn start() -> Self {
            let node = anvil();
            let uri: Uri = node.url().parse().unwrap();
            let chain = Self {
                _node: node,
                outbound: third_party_client().unwrap(),
                uri,
            };
            let artifact: Value =
                serde_json::from_str(include_str!("../../../contracts/artifacts/Names.json")).unwrap();
            let created = chain
                .send(json!({ "from": FUNDED, "data": artifact["bytecode"], "gas": "0x300000" }))
                .await;
            let code = chain
                .ask("eth_getCode", json!([created["contractAddress"], "latest"]))
                .await;
            chain.ask("anvil_setCode", json!([REGISTRY, code])).await;
            chain
        }

        async fn ask(&self, method: &str, params: Value) -> Value {
            external_node::ask(&self.outbound, &self.uri, method, params)
                .await
                .unwrap()
                .result
                .unwrap_or_default()
        }

        async fn send(&self, transaction: Value) -> Value {
            let hash = self.ask("eth_sendTransaction", json!([transaction])).await;
            loop {
                let receipt = self.ask("eth_getTransactionReceipt", json!([hash])).await;
                if !receipt.is_null() {
                    assert_eq!(receipt["status"], "0x1");
                    return receipt;
                }
            }
        }

        /// Sets the reverse record of `of` to `name`, and the forward record of `name` to `leads_to`.
        async fn name(&self, address: Address, name: &str, leads_to: Address) {
            let selector = alloy_primitives::keccak256("set(bytes32,string,bytes32,address)");
            let reverse = namehash(&format!("{address:x}.addr.reverse"));
            let mut data = selector[..4].to_vec();
            data.extend((reverse, name.to_owned(), namehash(name), leads_to).abi_encode_params());
            let data = alloy_primitives::hex::encode_prefixed(data);
            self.send(json!({ "from": FUNDED, "to": REGISTRY, "data": data, "gas": "0x100000" }))
                .await;
        }
    }

    const FUNDED: Address = address!("f39Fd6e51aad88F6F4ce6aB8827279cffFb92266");

    #[tokio::test]
    async fn lk8_a_name_counts_if_it_leads_back() {
        let chain = Chain::start().await;
        let ens = Ens::new(chain.uri.clone()).unwrap();
        let name_of = async |address| ens.name_of(address, Some(1)).await.unwrap();
        let [alice, mallory, odd, nobody] = [1, 2, 3, 4].map(Address::repeat_byte);
        assert_eq!(name_of(alice).await, None, "no record");
        chain.name(alice, "alice.eth", alice).await;
        chain.name(mallory, "bob.eth", nobody).await;
        chain.name(odd, "Odd.eth", odd).await;
        assert_eq!(name_of(alice).await.as_deref(), Some("alice.eth"));
        assert_eq!(name_of(mallory).await, None, "the name is somebody else's");
        assert_eq!(name_of(odd).await, None, "not in its normal form");
        assert_eq!(name_of(nobody).await, None);
        for own in [Some(31_337), None] {
            let refused = ens.name_of(alice, own).await;
            assert!(
                matches!(refused, Err(EnsError::OwnChain)),
                "HD26: not on a chain of ours: {refused:?}"
            );
        }
        // No service listens there; the port of a stopped node may be another test's by now.
        let away = Ens::new("http://127.0.0.1:1".parse().unwrap()).unwrap();
        let refused = away.name_of(alice, Some(1)).await;
        assert!(matches!(refused, Err(EnsError::Call(_))), "nobody to ask is no answer");
    }

    #[test]
    fn lk8_names_are_taken_in_their_normal_form_only() {
        for name in ["vitalik.eth", "a-b1.example.eth", "_dnslink.eth", "🦊.eth", "ñandú.eth"] {
            assert!(is_plain(name), "{name}");
        }
        for name in [
            "",
            "Vitalik.eth",
            "a..eth",
            "vitalik\u{200d}.eth",
            "\u{202e}hte.kilativ",
            "vita\u{0}lik.eth",
            "vіtalik.eth", // a Cyrillic letter
            "a b.eth",
            &format!("{}.eth", "a".repeat(252)),
        ] {
            assert!(!is_plain(name), "{name:?}");
        }
    }
}

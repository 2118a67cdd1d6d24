//! ABIs of the token standards, for contracts registered by token type (K1, R23).

use super::ContractAbi;
use std::sync::{Arc, LazyLock};

type Abi = LazyLock<Option<Arc<ContractAbi>>>;

static ERC20: Abi = LazyLock::new(|| read(include_str!("builtin/erc20.json")));
static ERC721: Abi = LazyLock::new(|| read(include_str!("builtin/erc721.json")));
static ERC1155: Abi = LazyLock::new(|| read(include_str!("builtin/erc1155.json")));

fn read(text: &str) -> Option<Arc<ContractAbi>> {
    ContractAbi::parse(text).ok().map(Arc::new)
}

/// The ABI of a token type, compared without ASCII case; `None` for an unknown type.
pub fn builtin(token_type: &str) -> Option<Arc<ContractAbi>> {
    let abi = match token_type.to_ascii_uppercase().as_str() {
        "ERC20" => &ERC20,
        "ERC721" => &ERC721,
        "ERC1155" => &ERC1155,
        _ => return None,
    };
    LazyLock::force(abi).clone()
}

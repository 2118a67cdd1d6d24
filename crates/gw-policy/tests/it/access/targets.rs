//! Tests of targets. This module holds the organizations that they share: a bank with an analyst, and a rival.

mod claims;
mod contracts;
mod functions;
mod payments;
mod senders;

use gw_policy::testing::{World, world};
use gw_types::{Address, B256};

const TOKEN_ABI: &str = r#"[
    {"type":"function","name":"balanceOf","stateMutability":"view",
     "inputs":[{"name":"owner","type":"address"}],"outputs":[{"type":"uint256"}]},
    {"type":"function","name":"transfer","stateMutability":"nonpayable",
     "inputs":[{"name":"to","type":"address"},{"name":"value","type":"uint256"}],"outputs":[{"type":"bool"}]}
]"#;

/// The analyst of the bank has access to `bond` and not to `ungranted`; `foreign` belongs to the rival.
fn bank() -> World {
    world()
        .org("bank")
        .group("analysts")
        .every_method()
        .group("others")
        .every_method()
        .user("analyst")
        .member("analysts")
        .link("wallet")
        .contract("bond")
        .grant("analysts")
        .contract("ungranted")
        .grant("others")
        .org("rival")
        .group("members")
        .every_method()
        .contract("foreign")
        .grant("members")
        .user("victim")
        .member("members")
        .link("victim-wallet")
        .org("bank")
}

fn word(address: Address) -> B256 {
    address.into_word()
}

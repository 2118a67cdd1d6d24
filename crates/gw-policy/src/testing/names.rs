//! Ids, addresses and calldata that are derived from names.

use crate::snapshot::{Constraint, FunctionRule, Group, Organization, ParamRule};
use alloy_primitives::keccak256;
use gw_types::{Address, B256, ContractId, ExternalId, GroupId, OrgId, UserId};
use uuid::Uuid;

pub(super) fn uuid(kind: &str, name: &str) -> Uuid {
    let digest = keccak256(format!("{kind}:{name}"));
    Uuid::from_bytes(digest.first_chunk().copied().unwrap_or_default())
}

/// The id of the organization with this name.
pub fn org_id(name: &str) -> OrgId {
    match name {
        "default" => Organization::DEFAULT,
        "anonymous" => Organization::ANONYMOUS,
        name => OrgId(uuid("org", name)),
    }
}

/// The id of a group, named `organization/group`.
pub fn group_id(path: &str) -> GroupId {
    match path {
        "default/default" => Group::DEFAULT,
        "anonymous/anonymous" => Group::ANONYMOUS,
        path => GroupId(uuid("group", path)),
    }
}

/// The id of the user with this name.
pub fn user_id(name: &str) -> UserId {
    UserId(uuid("user", name))
}

/// The DID of the user with this name: `did:test:<name>`.
///
/// # Panics
/// The name has characters that a DID may not contain.
pub fn did(name: &str) -> ExternalId {
    #[expect(clippy::expect_used, reason = "a test names its users in characters a DID may have")]
    ExternalId::new(&format!("did:test:{name}")).expect("the user name has only characters allowed in a DID")
}

/// The id of the contract with this name.
pub fn contract_id(name: &str) -> ContractId {
    ContractId(uuid("contract", name))
}

/// The address of the wallet or contract with this name.
pub fn address_of(name: &str) -> Address {
    Address::from_word(keccak256(format!("address:{name}")))
}

/// The hash of the transaction with this name.
pub fn hash_of(name: &str) -> B256 {
    keccak256(format!("transaction:{name}"))
}

/// A function rule: the selector of `signature`, with conditions on parameters.
pub fn function(signature: &str, params: impl IntoIterator<Item = (usize, Constraint)>) -> FunctionRule {
    FunctionRule {
        selector: selector(signature),
        params: params
            .into_iter()
            .map(|(index, must_be)| ParamRule { index, must_be })
            .collect(),
    }
}

/// The selector of `signature`.
pub fn selector(signature: &str) -> [u8; 4] {
    keccak256(signature).first_chunk().copied().unwrap_or_default()
}

/// Calldata: the selector of `signature` and one word per argument.
pub fn calldata(signature: &str, arguments: impl IntoIterator<Item = B256>) -> alloy_primitives::Bytes {
    let words = arguments.into_iter().flat_map(|word| word.0);
    selector(signature).into_iter().chain(words).collect::<Vec<u8>>().into()
}

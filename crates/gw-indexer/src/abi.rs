//! The ABIs by which calldata is decoded.

use gw_evm::abi::{ContractAbi, builtin};
use gw_types::Address;
use std::sync::Arc;

/// Knows the verified ABIs of contracts. Only a verified ABI may decide who is a party of a transaction.
pub trait AbiSource: core::fmt::Debug + Send + Sync {
    /// The verified ABI of a contract.
    fn abi(&self, contract: Address) -> Option<Arc<ContractAbi>>;
}

/// Knows no ABI: only functions of the token standards are decoded.
#[derive(Clone, Copy, Debug, Default)]
pub struct StandardFunctions;

impl AbiSource for StandardFunctions {
    fn abi(&self, _: Address) -> Option<Arc<ContractAbi>> {
        None
    }
}

/// The addresses in the arguments of a call, in order: by the ABI of the contract if it has the function, else by the
/// functions of the token standards. Calldata that no ABI accounts for has none.
pub(crate) fn calldata_addresses(source: &dyn AbiSource, contract: Address, input: &[u8]) -> Vec<Address> {
    let Some(selector) = input.first_chunk::<4>() else {
        return Vec::new();
    };
    let own = source.abi(contract);
    let standards = ["ERC20", "ERC721", "ERC1155"].into_iter().filter_map(builtin);
    let abi = own.into_iter().chain(standards).find(|abi| abi.has_function(*selector));
    let decoded = abi.and_then(|abi| abi.decode_call(input).ok()).unwrap_or_default();
    decoded.addresses.into_iter().map(|word| word.address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_types::{B256, U256};

    const TOKEN: Address = Address::repeat_byte(9);

    fn call(selector: [u8; 4], words: &[B256]) -> Vec<u8> {
        let words = words.iter().flat_map(|word| word.0);
        selector.into_iter().chain(words).collect()
    }

    #[test]
    fn functions_of_the_token_standards_are_known() {
        let (from, to) = (Address::repeat_byte(1), Address::repeat_byte(2));
        let amount = B256::from(U256::from(5));
        let transfer = call([0xa9, 0x05, 0x9c, 0xbb], &[to.into_word(), amount]);
        assert_eq!(calldata_addresses(&StandardFunctions, TOKEN, &transfer), [to]);
        let transfer_from = call([0x23, 0xb8, 0x72, 0xdd], &[from.into_word(), to.into_word(), amount]);
        assert_eq!(
            calldata_addresses(&StandardFunctions, TOKEN, &transfer_from),
            [from, to]
        );
        let approval_for_all = call([0xa2, 0x2c, 0xb4, 0x65], &[to.into_word(), B256::from(U256::ONE)]);
        assert_eq!(calldata_addresses(&StandardFunctions, TOKEN, &approval_for_all), [to]);
    }

    #[test]
    fn calldata_that_no_type_accounts_for_has_no_addresses() {
        let to = Address::repeat_byte(2).into_word();
        let selector = [0xa9, 0x05, 0x9c, 0xbb];
        let dirty = B256::repeat_byte(2);
        for input in [
            vec![],
            selector[..3].to_vec(),
            call([1, 2, 3, 4], &[to]),
            call(selector, &[to]),
            call(selector, &[dirty, B256::ZERO]),
            [call(selector, &[to, B256::ZERO]), vec![1]].concat(),
        ] {
            assert!(
                calldata_addresses(&StandardFunctions, TOKEN, &input).is_empty(),
                "{input:?}"
            );
        }
    }

    #[derive(Debug)]
    struct Registered(Arc<ContractAbi>);

    impl AbiSource for Registered {
        fn abi(&self, contract: Address) -> Option<Arc<ContractAbi>> {
            (contract == TOKEN).then(|| Arc::clone(&self.0))
        }
    }

    #[test]
    fn x13_the_abi_of_the_contract_decodes_nested_addresses() {
        let abi = r#"[{"type":"function","name":"pay","inputs":[{"name":"to","type":"address[]"}],"outputs":[]}]"#;
        let source = Registered(Arc::new(ContractAbi::parse(abi).unwrap()));
        let selector = *alloy_primitives::keccak256("pay(address[])")
            .first_chunk::<4>()
            .unwrap();
        let number = |number: u64| B256::from(U256::from(number));
        let (one, two) = (Address::repeat_byte(1), Address::repeat_byte(2));
        let input = call(selector, &[number(32), number(2), one.into_word(), two.into_word()]);
        assert_eq!(calldata_addresses(&source, TOKEN, &input), [one, two]);
        assert!(calldata_addresses(&source, one, &input).is_empty(), "another contract");
    }
}

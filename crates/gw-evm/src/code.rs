//! Facts that EVM bytecode and calldata reveal: EIP-7702 delegation, minimal proxies, opcodes that read accounts or
//! the block, and the selectors and storage slots of upgrades and multicalls.

use alloy_primitives::{Address, B256, U256, address, b256, keccak256};

const DELEGATION: [u8; 3] = [0xef, 0x01, 0x00];

/// The delegate in the code of an EIP-7702 wallet; an account with such code is a wallet (HD15).
pub fn delegation(code: &[u8]) -> Option<Address> {
    let delegate = code.strip_prefix(&DELEGATION)?;
    Address::try_from(delegate).ok()
}

/// The address that a minimal proxy (ERC-1167) delegates to; `None` for other code.
pub fn minimal_proxy(code: &[u8]) -> Option<Address> {
    const BEFORE: [u8; 10] = [0x36, 0x3d, 0x3d, 0x37, 0x3d, 0x3d, 0x3d, 0x36, 0x3d, 0x73];
    const AFTER: [u8; 15] = [
        0x5a, 0xf4, 0x3d, 0x82, 0x80, 0x3e, 0x90, 0x3d, 0x91, 0x60, 0x2b, 0x57, 0xfd, 0x5b, 0xf3,
    ];
    let address = code.strip_prefix(&BEFORE)?.strip_suffix(&AFTER)?;
    Address::try_from(address).ok()
}

/// Whether `init_code` is the creation code of a minimal proxy, as ERC-1167 defines it.
pub fn creates_minimal_proxy(init_code: &[u8]) -> bool {
    const COPY: [u8; 10] = [0x3d, 0x60, 0x2d, 0x80, 0x60, 0x0a, 0x3d, 0x39, 0x81, 0xf3];
    init_code.strip_prefix(&COPY).and_then(minimal_proxy).is_some()
}

const BALANCE: u8 = 0x31;
const EXTCODECOPY: u8 = 0x3c;
const EXTCODEHASH: u8 = 0x3f;
const COINBASE: u8 = 0x41;
const SELFBALANCE: u8 = 0x47;
const CALLCODE: u8 = 0xf2;
const DELEGATECALL: u8 = 0xf4;

/// Whether reachable code reads another account's balance, code or code hash (HD6, HD29): BALANCE, EXTCODECOPY or
/// EXTCODEHASH outside PUSH data and outside blocks without a jump target. EXTCODESIZE does not count, because
/// compilers emit it before every call.
pub fn probes_accounts(code: &[u8]) -> bool {
    executes(code, |opcode| matches!(opcode, BALANCE | EXTCODECOPY | EXTCODEHASH))
}

/// Whether reachable code can read the balance of the account that it runs as.
pub fn reads_own_balance(code: &[u8]) -> bool {
    executes(code, |opcode| matches!(opcode, BALANCE | SELFBALANCE))
}

/// Whether reachable code reads the beneficiary of its block.
pub fn asks_for_beneficiary(code: &[u8]) -> bool {
    executes(code, |opcode| opcode == COINBASE)
}

/// Whether reachable code reads the base fee or the blob base fee of its block. False positives are possible, as in
/// [`probes_accounts`].
pub fn reads_base_fee(code: &[u8]) -> bool {
    const BASEFEE: u8 = 0x48;
    const BLOBBASEFEE: u8 = 0x4a;
    executes(code, |opcode| matches!(opcode, BASEFEE | BLOBBASEFEE))
}

/// Whether reachable code reads a property of its block, or its gas price. On one state, such code may act
/// differently in a trace than in a block. False positives are possible, as in [`probes_accounts`].
pub fn reads_block(code: &[u8]) -> bool {
    const GASPRICE: u8 = 0x3a;
    const BLOCKHASH: u8 = 0x40;
    const GASLIMIT: u8 = 0x45;
    const BASEFEE: u8 = 0x48;
    const BLOBBASEFEE: u8 = 0x4a;
    executes(
        code,
        |opcode| matches!(opcode, GASPRICE | BLOCKHASH..=GASLIMIT | BASEFEE..=BLOBBASEFEE),
    )
}

/// Whether an opcode for which `is_wanted` holds can run.
///
/// False positives are possible: every JUMPDEST outside PUSH data counts as reachable, even one that appears by
/// chance in the metadata of a compiler, because a computed jump could reach it.
fn executes(code: &[u8], is_wanted: impl Fn(u8) -> bool) -> bool {
    const STOP: u8 = 0x00;
    const JUMP: u8 = 0x56;
    const JUMPDEST: u8 = 0x5b;
    const PUSH1: u8 = 0x60;
    const PUSH32: u8 = 0x7f;
    const RETURN: u8 = 0xf3;
    const REVERT: u8 = 0xfd;
    const INVALID: u8 = 0xfe;
    const SELFDESTRUCT: u8 = 0xff;

    let mut reachable = true;
    let mut bytes = code.iter().copied();
    while let Some(opcode) = bytes.next() {
        match opcode {
            opcode if reachable && is_wanted(opcode) => return true,
            STOP | JUMP | RETURN | REVERT | INVALID | SELFDESTRUCT => reachable = false,
            JUMPDEST => reachable = true,
            PUSH1..=PUSH32 => {
                // The data of a PUSH is never an instruction, reachable or not.
                bytes.nth(usize::from(opcode - PUSH1));
            }
            _ => {}
        }
    }
    false
}

/// A call that replaces an implementation (U1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upgrade {
    /// The new implementation; `None` if the argument is missing or not a clean address.
    pub implementation: Option<Address>,
}

/// Selectors that replace an implementation, each with the argument index of the new address (U1).
const UPGRADES: [([u8; 4], usize); 9] = [
    ([0x36, 0x59, 0xcf, 0xe6], 0), // upgradeTo(address)
    ([0x4f, 0x1e, 0xf2, 0x86], 0), // upgradeToAndCall(address,bytes)
    ([0xd7, 0x84, 0xd4, 0x26], 0), // setImplementation(address)
    ([0x5a, 0xab, 0xca, 0xd5], 0), // upgradeBeaconToAndCall(address,bytes,bool)
    ([0x32, 0x53, 0x55, 0xec], 0), // upgradeBeaconToAndCall(address,bytes)
    ([0x2f, 0x11, 0xfd, 0xc3], 0), // upgradeBeaconTo(address)
    ([0xd4, 0x2a, 0xfb, 0x56], 0), // setBeacon(address)
    ([0x99, 0xa8, 0x8e, 0xc4], 1), // upgrade(address,address)
    ([0x96, 0x23, 0x60, 0x9d], 1), // upgradeAndCall(address,address,bytes)
];

/// Whether calldata is a known upgrade call (U1).
pub fn upgrade(input: &[u8]) -> Option<Upgrade> {
    let (selector, arguments) = input.split_first_chunk::<4>()?;
    let (_, position) = UPGRADES.iter().find(|(known, _)| known == selector)?;
    let (words, _) = arguments.as_chunks::<32>();
    Some(Upgrade {
        implementation: words
            .get(*position)
            .and_then(|word| crate::abi::clean_address(&B256::from(*word))),
    })
}

/// Addresses at which multicall contracts are deployed on every chain (M1).
const MULTICALL_ADDRESSES: [Address; 3] = [
    address!("0xca11bde05977b3631167028862be2a173976ca11"),
    address!("0x5ba1e12693dc8f9c48aad8770482f4739beed696"),
    address!("0xeefba1e63905ef1d7acba5a8513c70307c1ce441"),
];

/// Multicall functions that run other calls (M1).
const MULTICALL_SELECTORS: [[u8; 4]; 6] = [
    [0x25, 0x2d, 0xba, 0x42], // aggregate
    [0x82, 0xad, 0x56, 0xcb], // aggregate3
    [0x17, 0x4d, 0xea, 0x71], // aggregate3Value
    [0xc3, 0x07, 0x7f, 0xa9], // blockAndAggregate
    [0xbc, 0xe3, 0x8b, 0xd7], // tryAggregate
    [0x39, 0x95, 0x42, 0xe9], // tryBlockAndAggregate
];

/// Whether a call is a known multicall (M1).
pub fn is_multicall(to: Option<Address>, input: &[u8]) -> bool {
    to.is_some_and(|to| MULTICALL_ADDRESSES.contains(&to))
        && input
            .first_chunk::<4>()
            .is_some_and(|selector| MULTICALL_SELECTORS.contains(selector))
}

/// keccak256("eip1967.proxy.implementation") - 1
pub const IMPLEMENTATION_SLOT: B256 = b256!("0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc");
/// keccak256("eip1967.proxy.admin") - 1
pub const ADMIN_SLOT: B256 = b256!("0xb53127684a568b3173ae13b9f8a6016e243e63b6e8ee1178d6a717850b5d6103");
/// keccak256("eip1967.proxy.beacon") - 1
pub const BEACON_SLOT: B256 = b256!("0xa3f0ad74e5423aebfd80d3ef4346578335a9a72aeaee59ff6cb3582b35133d50");
/// keccak256("PROXIABLE") (EIP-1822)
pub const LOGIC_SLOT: B256 = b256!("0xc5f16f0fcc639fa48a6947836d9850f504798523bf8c9a3a87d5876cf622bcf7");
/// keccak256("diamond.standard.diamond.storage") (EIP-2535)
pub const DIAMOND_SLOT: B256 = b256!("0xc8fcad8db84d3cc18b4c41d551ea0ee66dd599cde068d998e57d5e09332c131c");

/// Slots in which every write is an upgrade (U2).
pub const UPGRADE_SLOTS: [B256; 3] = [IMPLEMENTATION_SLOT, ADMIN_SLOT, BEACON_SLOT];

/// Selector of EIP-2535 `diamondCut`, which changes the selectors of a diamond (U2).
pub const DIAMOND_CUT: [u8; 4] = [0x1f, 0x93, 0x1c, 0x1c];

/// The facets in calldata of `diamondCut`, without the zero address of removals. `None` if the calldata does not call
/// `diamondCut` or its list is malformed.
pub fn diamond_facets(input: &[u8]) -> Option<Vec<Address>> {
    let words = input.strip_prefix(&DIAMOND_CUT)?.as_chunks::<32>().0;
    let number = |index: usize| -> Option<usize> { U256::from_be_bytes(*words.get(index)?).try_into().ok() };
    let offset = |index: usize| {
        number(index)
            .filter(|offset| offset.is_multiple_of(32))
            .map(|offset| offset / 32)
    };
    let list = offset(0)?;
    let length = number(list)?;
    let first = list.checked_add(1)?;
    if length > words.len() {
        return None;
    }
    let mut facets = Vec::new();
    for index in 0..length {
        let cut = first.checked_add(offset(first.checked_add(index)?)?)?;
        let facet = crate::abi::clean_address(&B256::from(*words.get(cut)?))?;
        if !facet.is_zero() {
            facets.push(facet);
        }
    }
    Some(facets)
}

/// Whether code contains the selector of `implementation()` and no delegating opcode: a beacon (ERC-1967) or an
/// administrator of proxies. No standard fixes the slot in which such a contract stores addresses, and an address
/// written there changes the code that other contracts run (U2).
pub fn is_beacon(code: &[u8]) -> bool {
    const IMPLEMENTATION: [u8; 5] = [0x63, 0x5c, 0x60, 0xda, 0x1b];
    code.array_windows::<5>().any(|window| *window == IMPLEMENTATION)
        && !executes(code, |opcode| matches!(opcode, DELEGATECALL | CALLCODE))
}

/// Whether code contains [`DIAMOND_SLOT`] as a constant, and so stores its selectors where the reference diamonds do.
pub fn keeps_diamond_selectors(code: &[u8]) -> bool {
    code.windows(32).any(|window| window == DIAMOND_SLOT)
}

/// The slots that a diamond with its selectors at [`DIAMOND_SLOT`] writes when they change (U2): the list of facets
/// or their count, and the mapping entry of each selector found in `texts`. A text is calldata or code.
pub fn diamond_cut_slots<'a>(texts: impl Iterator<Item = &'a [u8]>) -> impl Iterator<Item = B256> {
    const ENTRIES: u64 = 3;
    let fixed =
        (0..ENTRIES).map(|index| B256::from(U256::from_be_bytes(DIAMOND_SLOT.0).wrapping_add(U256::from(index))));
    let entries = texts.flat_map(selectors).map(|selector| {
        let mut key = [0; 64];
        let (padded_selector, slot) = key.split_at_mut(32);
        padded_selector
            .iter_mut()
            .zip(selector)
            .for_each(|(target, byte)| *target = byte);
        slot.copy_from_slice(DIAMOND_SLOT.as_slice());
        keccak256(key)
    });
    fixed.chain(entries)
}

/// Every four bytes that may be a selector: the start of a word that is zero after them, or the data of a PUSH4.
/// Words begin at the start of the text, or after the selector of calldata.
fn selectors(text: &[u8]) -> impl Iterator<Item = [u8; 4]> {
    const PUSH4: u8 = 0x63;
    let aligned = |start: usize| text.get(start..).unwrap_or_default().as_chunks::<32>().0.iter();
    let words = aligned(0).chain(aligned(4)).filter_map(|word| {
        let (selector, rest) = word.split_first_chunk::<4>()?;
        rest.iter().all(|byte| *byte == 0).then_some(*selector)
    });
    let pushed = text
        .array_windows::<5>()
        .filter(|[push, ..]| *push == PUSH4)
        .map(|[_, a, b, c, d]| [*a, *b, *c, *d]);
    words.chain(pushed)
}

/// Slots that every caller with access to a proxy may read (spec/20 section 9).
pub const PROXY_SLOTS: [B256; 4] = [IMPLEMENTATION_SLOT, ADMIN_SLOT, BEACON_SLOT, DIAMOND_SLOT];

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::hex;

    #[test]
    fn hd15_delegation_designators() {
        let delegate = Address::repeat_byte(7);
        let code = [&DELEGATION[..], delegate.as_slice()].concat();
        assert_eq!(delegation(&code), Some(delegate));
        assert_eq!(delegation(&[]), None);
        assert_eq!(delegation(&code[..22]), None);
        assert_eq!(delegation(&[&code[..], &[0]].concat()), None);
        assert_eq!(delegation(&[0xef, 0x01, 0x01]), None);
    }

    fn probes(code: &str) -> bool {
        probes_accounts(&hex::decode(code.replace(' ', "")).unwrap())
    }

    #[test]
    fn hd6_hd29_opcodes_that_read_accounts_in_reachable_code() {
        assert!(probes("31") && probes("3f"));
        assert!(
            probes("73 0000000000000000000000000000000000000001 31 00"),
            "PUSH20 BALANCE"
        );
        assert!(probes("5f 5b 3f"));
        assert!(!probes("47"), "SELFBALANCE reads its own account only");
        assert!(reads_own_balance(&[0x47]) && reads_own_balance(&[0x30, 0x31]) && !reads_own_balance(&[0x60, 0x47]));
        assert!(probes("3c"), "EXTCODECOPY shows the delegate of a wallet (RT15)");
        assert!(!probes("3b"), "compilers emit EXTCODESIZE before every call");
        assert!(asks_for_beneficiary(&[0x41]) && !asks_for_beneficiary(&[0x60, 0x41]));
        assert!(!probes(""));
    }

    #[test]
    fn rt14_base_fees_in_reachable_code() {
        let reads = |code: &str| reads_base_fee(&hex::decode(code).unwrap());
        assert!(reads("48") && reads("4a") && reads("60015048"));
        assert!(!reads("604850") && !reads("0048") && !reads("3a31") && !reads(""));
    }

    #[test]
    fn hd6_push_data_is_not_code() {
        assert!(!probes("60 31 50 00"));
        assert!(!probes("61 3f31 00"));
        assert!(!probes(&format!("7f {} 00", "31".repeat(32))));
        assert!(!probes("7f 3131"), "cut off within its data");
        assert!(probes("60 31 31"));
        // A JUMPDEST byte in PUSH data is not a jump target, even in unreachable code.
        assert!(!probes("00 60 5b 31"));
    }

    #[test]
    fn hd6_blocks_without_a_jump_target_are_unreachable() {
        for end in ["00", "56", "f3", "fd", "fe", "ff"] {
            assert!(!probes(&format!("{end} 31 3f")), "{end}");
            assert!(probes(&format!("{end} 5b 31")), "{end} JUMPDEST");
        }
        assert!(probes("57 31"), "JUMPI falls through");
        // Compilers append their metadata after INVALID.
        assert!(!probes("6001 5f f3 fe a264 69706673 5822 1220 31 3f 64736f6c63"));
    }

    #[test]
    fn u2_a_diamond_writes_its_selectors_to_the_slots_of_the_reference_diamond() {
        assert_eq!(
            keccak256("diamondCut((address,uint8,bytes4[])[],address,bytes)")[..4],
            DIAMOND_CUT
        );
        let selector = [0xa9, 0x05, 0x9c, 0xbb];
        let mut padded = [0; 32];
        padded[..4].copy_from_slice(&selector);
        let entry = keccak256([padded, DIAMOND_SLOT.0].concat());
        let calldata = [&DIAMOND_CUT[..], &[0x11; 32], &padded].concat();
        let code = [&[0x5f, 0x63][..], &selector, &[0x14]].concat();
        for text in [&padded[..], &calldata, &code] {
            assert!(diamond_cut_slots([text].into_iter()).any(|slot| slot == entry));
        }
        assert!(diamond_cut_slots([&[0x11; 64][..]].into_iter()).all(|slot| slot != entry));
        assert!(diamond_cut_slots(std::iter::empty()).any(|slot| slot == DIAMOND_SLOT));
        assert!(keeps_diamond_selectors(
            &[&[0x7f][..], DIAMOND_SLOT.as_slice()].concat()
        ));
        assert!(!keeps_diamond_selectors(&[0; 64]));
    }

    fn word(address: Address) -> Vec<u8> {
        address.into_word().to_vec()
    }

    #[test]
    fn u1_upgrade_calls_and_their_implementation() {
        let (first, second) = (Address::repeat_byte(1), Address::repeat_byte(2));
        for (signature, implementation) in [
            ("upgradeTo(address)", first),
            ("upgradeToAndCall(address,bytes)", first),
            ("setImplementation(address)", first),
            ("upgradeBeaconToAndCall(address,bytes,bool)", first),
            ("upgradeBeaconToAndCall(address,bytes)", first),
            ("upgradeBeaconTo(address)", first),
            ("setBeacon(address)", first),
            ("upgrade(address,address)", second),
            ("upgradeAndCall(address,address,bytes)", second),
        ] {
            let call = [&keccak256(signature)[..4], &word(first), &word(second)].concat();
            assert_eq!(
                upgrade(&call),
                Some(Upgrade {
                    implementation: Some(implementation)
                }),
                "{signature}"
            );
            assert_eq!(
                upgrade(&call[..4 + 31]),
                Some(Upgrade { implementation: None }),
                "{signature} cut off"
            );
            let dirty = [&call[..4], &[0xff; 64]].concat();
            assert_eq!(
                upgrade(&dirty),
                Some(Upgrade { implementation: None }),
                "{signature} dirty"
            );
        }
        assert_eq!(upgrade(&keccak256("transfer(address,uint256)")[..4]), None);
        assert_eq!(upgrade(&[0x36, 0x59, 0xcf]), None);
    }

    #[test]
    fn rt30_the_facets_of_a_cut() {
        let number = |n: u64| B256::from(U256::from(n));
        let facet = Address::repeat_byte(7);
        let cut = |count: u64, facet: B256| {
            let words = [
                number(0x60),
                B256::ZERO,
                B256::ZERO,
                number(count),
                number(0x20),
                facet,
                B256::ZERO,
            ];
            [&DIAMOND_CUT[..], words.concat().as_slice()].concat()
        };
        assert_eq!(diamond_facets(&cut(1, facet.into_word())), Some(vec![facet]));
        assert_eq!(diamond_facets(&cut(1, B256::ZERO)), Some(vec![]), "a removal");
        assert_eq!(diamond_facets(&cut(0, B256::ZERO)), Some(vec![]));
        assert_eq!(diamond_facets(&cut(1, B256::repeat_byte(0xff))), None, "dirty");
        assert_eq!(diamond_facets(&cut(u64::MAX, B256::ZERO)), None);
        assert_eq!(diamond_facets(&cut(2, facet.into_word())), None, "cut off");
        assert_eq!(diamond_facets(&DIAMOND_CUT), None);
        assert_eq!(diamond_facets(&[1, 2, 3, 4]), None);
    }

    #[test]
    fn rt30_code_with_the_implementation_selector_and_no_delegation_is_a_beacon() {
        assert_eq!(keccak256("implementation()")[..4], [0x5c, 0x60, 0xda, 0x1b]);
        assert!(is_beacon(&[0x63, 0x5c, 0x60, 0xda, 0x1b, 0x14]));
        assert!(!is_beacon(&[0x63, 0x5c, 0x60, 0xda, 0x1b, 0x14, 0xf4]));
        assert!(!is_beacon(&[0x5c, 0x60, 0xda, 0x1b]));
    }

    #[test]
    fn m1_multicalls() {
        let [multicall3, _, _] = MULTICALL_ADDRESSES;
        for signature in [
            "aggregate((address,bytes)[])",
            "aggregate3((address,bool,bytes)[])",
            "aggregate3Value((address,bool,uint256,bytes)[])",
            "blockAndAggregate((address,bytes)[])",
            "tryAggregate(bool,(address,bytes)[])",
            "tryBlockAndAggregate(bool,(address,bytes)[])",
        ] {
            let input = keccak256(signature);
            assert!(is_multicall(Some(multicall3), input.as_slice()), "{signature}");
            assert!(!is_multicall(Some(Address::ZERO), input.as_slice()));
            assert!(!is_multicall(None, input.as_slice()));
        }
        assert!(!is_multicall(
            Some(multicall3),
            keccak256("getBlockNumber()").as_slice()
        ));
        assert!(!is_multicall(Some(multicall3), &[0x25, 0x2d, 0xba]));
    }

    #[test]
    fn u2_slots_match_their_standards() {
        let minus_one = |name: &str| B256::from(U256::from_be_bytes(keccak256(name).0) - U256::ONE);
        assert_eq!(IMPLEMENTATION_SLOT, minus_one("eip1967.proxy.implementation"));
        assert_eq!(ADMIN_SLOT, minus_one("eip1967.proxy.admin"));
        assert_eq!(BEACON_SLOT, minus_one("eip1967.proxy.beacon"));
        assert_eq!(LOGIC_SLOT, keccak256("PROXIABLE"));
        assert_eq!(DIAMOND_SLOT, keccak256("diamond.standard.diamond.storage"));
    }
}

//! Addresses that are public because of their number.

use gw_types::Address;

/// Whether the address is the zero address or a precompile, which are public ([S], K2, spec/30 §2.2
/// bases 1 and 2).
pub(crate) fn is_public(address: Address) -> bool {
    address.is_zero() || is_precompile(address)
}

/// Whether the address is a precompile (basis 2): 0x01-0x09, and 0x0a-0x11 and 0x100 of later forks (spec/20 K2). On a
/// chain whose fork lacks one of them the address has no code and cannot be owned.
pub fn is_precompile(address: Address) -> bool {
    let [zeros @ .., high, low] = address.into_array();
    zeros == [0; 18] && matches!((high, low), (0, 0x01..=0x11) | (1, 0))
}

//! What can be transferred.

use gw_types::{Address, U256};
use std::{fmt, str::FromStr};

/// The native coin of the chain, or the tokens of a contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Token {
    /// The native coin, in wei.
    Native,
    /// The tokens of this contract, in their smallest unit.
    Contract(Address),
}

/// A text that is neither `native` nor an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a token: `native` or the address of a contract")]
pub struct TokenError;

/// The smallest thing of which an amount can be owed: a token, or one id of a contract with several.
///
/// Amounts of different ids never offset each other: receiving one collectible and giving another is a gain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Asset {
    /// The token.
    pub token: Token,
    /// The id in an ERC-721 or ERC-1155 contract.
    pub id: Option<U256>,
}

impl Token {
    /// The contract; `None` for the native coin.
    pub const fn contract(self) -> Option<Address> {
        match self {
            Self::Native => None,
            Self::Contract(address) => Some(address),
        }
    }
}

/// `native`, or the address in lower case (the key of a price row).
impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Native => f.write_str("native"),
            Self::Contract(address) => write!(f, "{address:#x}"),
        }
    }
}

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        if text == "native" {
            return Ok(Self::Native);
        }
        text.parse().map(Self::Contract).map_err(|_| TokenError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_native_or_an_address_in_lower_case() {
        let address = Address::repeat_byte(0xAB);
        assert_eq!(Token::Native.to_string(), "native");
        assert_eq!(
            Token::Contract(address).to_string(),
            "0xabababababababababababababababababababab"
        );
        for token in [Token::Native, Token::Contract(address)] {
            assert_eq!(token.to_string().parse(), Ok(token));
        }
        assert_eq!(address.to_checksum(None).parse(), Ok(Token::Contract(address)));
        assert_eq!("eth".parse::<Token>(), Err(TokenError));
    }
}

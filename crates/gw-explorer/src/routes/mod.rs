//! The routes, by family.

pub(crate) mod abi;
pub(crate) mod accounts;
mod address_feed;
pub(crate) mod addresses;
pub(crate) mod blocks;
pub(crate) mod chain;
pub(crate) mod grants;
pub(crate) mod indexing;
pub(crate) mod logs;
pub(crate) mod preview;
pub(crate) mod search;
pub(crate) mod sync;
pub(crate) mod tokens;
pub(crate) mod transactions;
pub(crate) mod transfers;
pub(crate) mod viewer;

use crate::{error::ExplorerError, state::ExplorerState};
use axum::extract::FromRequestParts;
use gw_http::CorrelationId;
use gw_store::Actor;
use gw_types::{Address, B256};
use http::request::Parts;
use std::{convert::Infallible, net::IpAddr};

/// Where a request comes from, for the audit entry of a change.
#[derive(Debug)]
pub(crate) struct RequestOrigin {
    pub(crate) ip: IpAddr,
    pub(crate) correlation_id: Option<String>,
}

impl RequestOrigin {
    /// The actor of audit entries.
    pub(crate) fn sign(self, actor: Actor) -> Actor {
        actor.from_request(Some(self.ip), self.correlation_id)
    }
}

impl FromRequestParts<ExplorerState> for RequestOrigin {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &ExplorerState) -> Result<Self, Infallible> {
        let correlation_id = parts.extensions.get::<CorrelationId>();
        Ok(Self {
            ip: state.http_context.client(&parts.extensions, &parts.headers).0,
            correlation_id: correlation_id.map(|id| id.as_str().to_owned()),
        })
    }
}

/// # Errors
/// 400 unless the text is `0x` and 40 hex digits.
pub(crate) fn parse_address(text: &str) -> Result<Address, ExplorerError> {
    let address = hex_digits(text, 40).and_then(|digits| digits.parse().ok());
    address.ok_or_else(|| ExplorerError::bad_request("invalid address"))
}

/// # Errors
/// 400 unless the text is `0x` and 64 hex digits.
pub(crate) fn parse_hash(text: &str) -> Result<B256, ExplorerError> {
    let hash = hex_digits(text, 64).and_then(|digits| digits.parse().ok());
    hash.ok_or_else(|| ExplorerError::bad_request("invalid hash"))
}

/// The hex digits after `0x`, if there are exactly this many.
fn hex_digits(text: &str, count: usize) -> Option<&str> {
    let digits = text.strip_prefix("0x")?;
    let is_hex = digits.len() == count && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then_some(digits)
}

/// # Errors
/// 400 unless the text is a decimal number.
pub(crate) fn parse_block_number(text: &str) -> Result<u64, ExplorerError> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| is_number);
    number.ok_or_else(|| ExplorerError::bad_request("invalid block number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_parsed_strictly() {
        let address = format!("0x{}", "aB".repeat(20));
        assert!(parse_address(&address).is_ok());
        for text in [
            "",
            "0x",
            &"aB".repeat(20),
            &format!("0x{}", "aB".repeat(19)),
            &format!("0x{address}"),
            &format!("{address}00"),
        ] {
            assert!(parse_address(text).is_err(), "{text}");
        }
        assert!(parse_hash(&format!("0x{}", "12".repeat(32))).is_ok());
        assert!(parse_hash(&address).is_err());
        assert_eq!(parse_block_number("007").unwrap(), 7);
        for text in ["", "-1", "+1", "0x1", "1.0", "99999999999999999999999"] {
            assert!(parse_block_number(text).is_err(), "{text}");
        }
    }
}

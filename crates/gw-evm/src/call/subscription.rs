//! Filters and subscriptions: their topics and ids (decision 51).

use super::{
    LogFilter, logs,
    params::{Result, must_be, text},
};
use crate::error::ParamError;
use serde_json::value::RawValue;
use std::fmt;

/// A call of [`crate::Class::Subscription`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubscriptionCall {
    /// `eth_newFilter`
    NewFilter(LogFilter),
    /// `eth_newBlockFilter`
    NewBlockFilter,
    /// `eth_getFilterChanges`; `None` if the text is not an id of the gateway's format, so that it matches no filter.
    Changes(Option<SubscriptionId>),
    /// `eth_getFilterLogs`
    Logs(Option<SubscriptionId>),
    /// `eth_uninstallFilter`
    Uninstall(Option<SubscriptionId>),
    /// `eth_subscribe`
    Subscribe(Topic),
    /// `eth_unsubscribe`
    Unsubscribe(Option<SubscriptionId>),
}

/// The events that a filter or a subscription delivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topic {
    /// New blocks.
    Heads,
    /// New logs that match.
    Logs(LogFilter),
}

/// The id of a filter or a subscription: 128 random bits, so that an id reveals nothing about other ids (HD18 WS-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SubscriptionId([u8; 16]);

impl SubscriptionId {
    /// Creates an id from random bits.
    pub const fn new(bits: [u8; 16]) -> Self {
        Self(bits)
    }

    /// Reads an id in the format of [`SubscriptionId`]'s `Display`; `None` for any other text.
    pub fn read(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("0x").filter(|digits| digits.len() == 32)?;
        let mut bits = [0; 16];
        alloy_primitives::hex::decode_to_slice(digits, &mut bits).ok()?;
        Some(Self(bits))
    }
}

impl fmt::Display for SubscriptionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&alloy_primitives::hex::encode_prefixed(self.0))
    }
}

pub(super) fn id(raw: &RawValue) -> Result<Option<SubscriptionId>> {
    Ok(SubscriptionId::read(
        text(raw).ok_or_else(|| must_be("id", "a string"))?,
    ))
}

pub(super) fn topic(kind: &RawValue, filter: Option<&RawValue>) -> Result<Topic> {
    match (text(kind), filter) {
        (Some("newHeads"), _) => Ok(Topic::Heads),
        (Some("logs"), Some(filter)) => logs::filter(filter).map(Topic::Logs),
        (Some("logs"), None) => Ok(Topic::Logs(logs::unrestricted())),
        _ => Err(ParamError::invalid("only newHeads and logs can be subscribed to")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ws2_only_the_canonical_text_of_an_id_is_read() {
        let id = SubscriptionId::new([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255]);
        assert_eq!(id.to_string(), "0x000102030405060708090a0b0c0d0eff");
        assert_eq!(SubscriptionId::read(&id.to_string()), Some(id));
        for invalid in [
            "",
            "0x",
            "0x1",
            "000102030405060708090a0b0c0d0eff",
            "0x000102030405060708090a0b0c0d0eff00",
        ] {
            assert_eq!(SubscriptionId::read(invalid), None, "{invalid}");
        }
    }
}

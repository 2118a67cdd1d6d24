//! Filters and subscriptions: what they are about, and the names they go by (decision 51).

use super::{
    LogFilter, logs,
    params::{Result, must_be, text},
};
use crate::error::ParamError;
use serde_json::value::RawValue;
use std::fmt;

/// One call of class LIVE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Live {
    /// `eth_newFilter`
    NewFilter(LogFilter),
    /// `eth_newBlockFilter`
    NewBlockFilter,
    /// `eth_getFilterChanges`; a text that is no id of ours names nothing.
    Changes(Option<LiveId>),
    /// `eth_getFilterLogs`
    Logs(Option<LiveId>),
    /// `eth_uninstallFilter`
    Uninstall(Option<LiveId>),
    /// `eth_subscribe`
    Subscribe(Topic),
    /// `eth_unsubscribe`
    Unsubscribe(Option<LiveId>),
}

/// What a filter or a subscription is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topic {
    /// New blocks.
    Heads,
    /// New logs that match.
    Logs(LogFilter),
}

/// The name of a filter or a subscription: 128 random bits, so that none tells of another (HD18 WS-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LiveId([u8; 16]);

impl LiveId {
    /// An id of these bits.
    pub const fn new(bits: [u8; 16]) -> Self {
        Self(bits)
    }

    /// Reads an id as [`LiveId`] writes it; any other text is no id.
    pub fn read(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("0x").filter(|digits| digits.len() == 32)?;
        let mut bits = [0; 16];
        alloy_primitives::hex::decode_to_slice(digits, &mut bits).ok()?;
        Some(Self(bits))
    }
}

impl fmt::Display for LiveId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&alloy_primitives::hex::encode_prefixed(self.0))
    }
}

pub(super) fn id(raw: &RawValue) -> Result<Option<LiveId>> {
    Ok(LiveId::read(text(raw).ok_or_else(|| must_be("id", "a string"))?))
}

pub(super) fn topic(kind: &RawValue, filter: Option<&RawValue>) -> Result<Topic> {
    match (text(kind), filter) {
        (Some("newHeads"), _) => Ok(Topic::Heads),
        (Some("logs"), Some(filter)) => logs::filter(filter).map(Topic::Logs),
        (Some("logs"), None) => Ok(Topic::Logs(logs::none())),
        _ => Err(ParamError::invalid("only newHeads and logs can be subscribed to")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ws2_an_id_reads_as_it_is_written_and_in_no_other_way() {
        let id = LiveId::new([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255]);
        assert_eq!(id.to_string(), "0x000102030405060708090a0b0c0d0eff");
        assert_eq!(LiveId::read(&id.to_string()), Some(id));
        for other in [
            "",
            "0x",
            "0x1",
            "000102030405060708090a0b0c0d0eff",
            "0x000102030405060708090a0b0c0d0eff00",
        ] {
            assert_eq!(LiveId::read(other), None, "{other}");
        }
    }
}

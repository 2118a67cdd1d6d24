//! Time and entropy, passed as arguments.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

/// A point in time: UTC microseconds since 1970. Its text form is RFC 3339.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

/// A whole number of seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seconds(pub u32);

/// Error for a text that is not an RFC 3339 time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an RFC 3339 time")]
pub struct TimestampError;

impl Timestamp {
    /// Creates a time from microseconds since 1970.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Creates a time from whole seconds since 1970.
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(1_000_000))
    }

    /// Returns the microseconds since 1970.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Returns the whole seconds since 1970, rounded down.
    pub const fn secs(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// Returns this time plus `span`, saturating.
    #[must_use]
    pub const fn plus(self, span: Seconds) -> Self {
        Self(self.0.saturating_add(span.0 as i64 * 1_000_000))
    }

    /// Returns this time minus `span`, saturating.
    #[must_use]
    pub const fn minus(self, span: Seconds) -> Self {
        Self(self.0.saturating_sub(span.0 as i64 * 1_000_000))
    }

    /// Parses an RFC 3339 text.
    ///
    /// # Errors
    /// [`TimestampError`] if the text is no such time, or out of range.
    pub fn parse(text: &str) -> Result<Self, TimestampError> {
        let at = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| TimestampError)?;
        i64::try_from(at.unix_timestamp_nanos() / 1000)
            .map(Self)
            .map_err(|_| TimestampError)
    }

    /// Returns the RFC 3339 text in UTC; `9999-12-31T23:59:59Z` for a time that cannot be formatted.
    pub fn to_rfc3339(self) -> String {
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1000)
            .ok()
            .and_then(|at| at.format(&Rfc3339).ok())
            .unwrap_or_else(|| "9999-12-31T23:59:59Z".to_owned())
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_rfc3339())
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// Source of the current time. `now` never decreases (HD23 E-5).
pub trait Clock: Send + Sync + core::fmt::Debug {
    /// Returns the current time.
    fn now(&self) -> Timestamp;
}

/// Source of entropy.
pub trait Entropy: Send + Sync + core::fmt::Debug {
    /// Fills the buffer with unpredictable bytes.
    fn fill(&self, bytes: &mut [u8]);

    /// Returns a new random UUID (version 4).
    fn uuid(&self) -> uuid::Uuid {
        let mut bytes = [0u8; 16];
        self.fill(&mut bytes);
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_micros_agree() {
        let at = Timestamp::from_micros(1_700_000_000_123_456);
        assert_eq!(at.to_rfc3339(), "2023-11-14T22:13:20.123456Z");
        assert_eq!(Timestamp::parse(&at.to_rfc3339()), Ok(at));
        assert_eq!(Timestamp::parse("2023-11-14T23:13:20.123456+01:00"), Ok(at));
        assert_eq!(Timestamp::parse("yesterday"), Err(TimestampError));
    }
}

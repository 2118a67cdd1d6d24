//! Lifetimes of requests and grants (spec/50 rules 12 and 13).

use gw_types::Timestamp;

/// The lifetime of a grant whose approval names none (rule 12).
const DEFAULT_GRANT_HOURS: i64 = 24;
/// The longest lifetime of a request (rule 13).
const MAX_REQUEST_HOURS: i64 = 8760;
const MICROS_PER_HOUR: i64 = 3_600_000_000;

/// Limits that the operator configures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantLimits {
    /// `DISCLOSURE_MAX_GRANT_HOURS`: the longest lifetime of a grant.
    pub max_grant_hours: u32,
}

impl Default for GrantLimits {
    fn default() -> Self {
        Self { max_grant_hours: 8760 }
    }
}

/// Why a lifetime is refused. Its text is the answer's text, with status 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Rule 12.
    #[error("grant_duration_hours must be between 0 and {max}")]
    Grant {
        /// The largest accepted value.
        max: u32,
    },
    /// Rule 13.
    #[error("expires_in_hours must be between 0 and 8760")]
    Request,
    /// The end is later than any time that can be represented.
    #[error("the expiry is out of range")]
    OutOfRange,
}

/// The end of a grant that is approved at `now` for `hours` (rule 12): absent or 0 gives 24 hours.
///
/// # Errors
/// [`DurationError`] if the number of hours is negative or above the limit, or the end cannot be represented.
pub fn grant_end(hours: Option<i64>, limits: GrantLimits, now: Timestamp) -> Result<Timestamp, DurationError> {
    let max = limits.max_grant_hours;
    let hours = match hours {
        // A limit below the default limits the default, too.
        None | Some(0) => DEFAULT_GRANT_HOURS.min(i64::from(max)),
        Some(hours) if (1..=i64::from(max)).contains(&hours) => hours,
        Some(_) => return Err(DurationError::Grant { max }),
    };
    end(hours, now)
}

/// The end of a request that is created at `now` for `hours` (rule 13): absent or 0 never ends.
///
/// # Errors
/// [`DurationError`] if the number of hours is negative or above 8760, or the end cannot be represented.
pub fn request_end(hours: Option<i64>, now: Timestamp) -> Result<Option<Timestamp>, DurationError> {
    match hours {
        None | Some(0) => Ok(None),
        Some(hours) if (1..=MAX_REQUEST_HOURS).contains(&hours) => end(hours, now).map(Some),
        Some(_) => Err(DurationError::Request),
    }
}

fn end(hours: i64, now: Timestamp) -> Result<Timestamp, DurationError> {
    hours
        .checked_mul(MICROS_PER_HOUR)
        .and_then(|span| now.micros().checked_add(span))
        .map(Timestamp::from_micros)
        .ok_or(DurationError::OutOfRange)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_000_000);

    fn after(hours: i64) -> Timestamp {
        Timestamp::from_secs(1_000_000 + hours * 3600)
    }

    #[test]
    fn ds12_a_grant_lasts_a_day_unless_the_approval_says_otherwise() {
        let limits = GrantLimits::default();
        for (hours, expected) in [(None, 24), (Some(0), 24), (Some(1), 1), (Some(8760), 8760)] {
            assert_eq!(grant_end(hours, limits, NOW), Ok(after(expected)), "{hours:?}");
        }
        for hours in [-1, 8761, i64::MIN, i64::MAX] {
            assert_eq!(
                grant_end(Some(hours), limits, NOW),
                Err(DurationError::Grant { max: 8760 }),
                "{hours}"
            );
        }
        let short = GrantLimits { max_grant_hours: 5 };
        assert_eq!(grant_end(None, short, NOW), Ok(after(5)));
        assert!(grant_end(Some(6), short, NOW).is_err());
    }

    #[test]
    fn ds12_no_end_wraps() {
        let limits = GrantLimits {
            max_grant_hours: u32::MAX,
        };
        for now in [Timestamp::from_micros(i64::MAX), Timestamp::from_micros(i64::MAX - 1)] {
            assert_eq!(grant_end(Some(1), limits, now), Err(DurationError::OutOfRange));
            assert_eq!(request_end(Some(1), now), Err(DurationError::OutOfRange));
        }
        assert_eq!(
            grant_end(Some(i64::from(u32::MAX)), limits, NOW),
            Err(DurationError::OutOfRange)
        );
    }

    #[test]
    fn ds13_a_request_without_hours_never_ends() {
        for (hours, expected) in [
            (None, None),
            (Some(0), None),
            (Some(1), Some(after(1))),
            (Some(8760), Some(after(8760))),
        ] {
            assert_eq!(request_end(hours, NOW), Ok(expected), "{hours:?}");
        }
        for hours in [-1, 8761, i64::MIN, i64::MAX] {
            assert_eq!(request_end(Some(hours), NOW), Err(DurationError::Request), "{hours}");
        }
    }
}

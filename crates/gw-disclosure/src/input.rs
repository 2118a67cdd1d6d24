//! Parsing of what callers send. Each error names the member and the form it must have.

use gw_http::{ApiError, Page};
use gw_policy::disclosure::{GrantStatus, RequestStatus};
use gw_store::read::{DisclosureFilter, Paging, RequesterFilter, Scope};
use gw_types::{ExternalId, Level, Timestamp};
use serde::Deserialize;
use std::str::FromStr;

/// A UUID in a query or a body.
///
/// # Errors
/// 400 that names the member.
pub(crate) fn id<T: FromStr>(text: &str, what: &'static str) -> Result<T, ApiError> {
    text.parse()
        .map_err(|_| ApiError::bad_request(format!("{what} must be a UUID")))
}

/// A DID.
///
/// # Errors
/// 400 that names the member.
pub(crate) fn did(text: &str, what: &'static str) -> Result<ExternalId, ApiError> {
    ExternalId::new(text).map_err(|error| ApiError::bad_request(format!("{what} is malformed: {error}")))
}

/// A member that may be absent or empty.
pub(crate) fn present(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

/// A text without control characters other than line breaks and tabs: PostgreSQL stores no NUL.
///
/// # Errors
/// 400 that names the member.
pub(crate) fn text(text: String, what: &'static str) -> Result<String, ApiError> {
    if text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        return Err(ApiError::bad_request(format!(
            "{what} must not contain control characters"
        )));
    }
    Ok(text)
}

/// The reason of a decision: at most 2000 characters. An empty one counts as absent.
///
/// # Errors
/// 400 if it is longer.
pub(crate) fn decision_reason(reason: Option<String>) -> Result<Option<String>, ApiError> {
    let Some(reason) = reason.filter(|text| !text.trim().is_empty()) else {
        return Ok(None);
    };
    if reason.chars().count() > gw_store::record::MAX_REASON {
        return Err(ApiError::bad_request("reason must have at most 2000 characters"));
    }
    text(reason, "reason").map(Some)
}

pub(crate) fn paging<const DEFAULT: u32>(page: Page<DEFAULT>) -> Paging {
    Paging {
        limit: u64::from(page.limit),
        offset: page.offset,
    }
}

/// The filter of a list of requests or grants. All of its members must match.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct FilterQuery {
    /// The organization; an administrator of exactly one may leave it out.
    #[param(required = false)]
    pub(crate) org_id: Option<String>,
    /// `pending`, `approved`, `rejected`, `expired` or `revoked`; of grants `approved`, `revoked` or `expired`.
    #[param(required = false)]
    status: Option<String>,
    /// The user whose data is disclosed.
    #[param(required = false)]
    target_user_id: Option<String>,
    /// A part of the grantee's DID.
    #[param(required = false)]
    requester_did: Option<String>,
    /// `full`, `pseudonymous` or `redacted`.
    #[param(required = false)]
    disclosure_level: Option<String>,
    /// Requested or granted at this time or later, RFC 3339.
    #[param(required = false)]
    date_from: Option<String>,
    /// Requested or granted at this time or earlier, RFC 3339.
    #[param(required = false)]
    date_to: Option<String>,
}

/// The longest part of a DID that is searched for.
const MAX_SEARCH: usize = 512;

impl FilterQuery {
    /// The filter of a list of requests.
    ///
    /// # Errors
    /// 400 for an invalid member (rule 16).
    pub(crate) fn of_requests(&self, scope: Scope) -> Result<DisclosureFilter, ApiError> {
        let status = present(self.status.as_deref()).map(|text| {
            RequestStatus::parse(text)
                .ok_or_else(|| ApiError::bad_request("status must be pending, approved, rejected, expired or revoked"))
        });
        Ok(DisclosureFilter {
            request_status: status.transpose()?,
            ..self.filter(scope)?
        })
    }

    /// The filter of a list of grants.
    ///
    /// # Errors
    /// 400 for an invalid member (rule 16).
    pub(crate) fn of_grants(&self, scope: Scope) -> Result<DisclosureFilter, ApiError> {
        let status = present(self.status.as_deref()).map(|text| {
            let status = GrantStatus::parse(text);
            status.ok_or_else(|| ApiError::bad_request("status must be approved, revoked or expired"))
        });
        Ok(DisclosureFilter {
            grant_status: status.transpose()?,
            ..self.filter(scope)?
        })
    }

    fn filter(&self, scope: Scope) -> Result<DisclosureFilter, ApiError> {
        let requester = present(self.requester_did.as_deref()).map(|text| {
            if text.len() > MAX_SEARCH {
                return Err(ApiError::bad_request("requester_did must have at most 512 characters"));
            }
            self::text(text.to_owned(), "requester_did").map(RequesterFilter::Contains)
        });
        let target = present(self.target_user_id.as_deref()).map(|text| id(text, "target_user_id"));
        Ok(DisclosureFilter {
            target: target.transpose()?,
            requester: requester.transpose()?,
            level: present(self.disclosure_level.as_deref()).map(level).transpose()?,
            from: time(self.date_from.as_deref(), "date_from")?,
            to: time(self.date_to.as_deref(), "date_to")?,
            ..DisclosureFilter::all(scope)
        })
    }
}

fn level(text: &str) -> Result<Level, ApiError> {
    match text {
        "full" => Ok(Level::Full),
        "pseudonymous" => Ok(Level::Pseudonymous),
        "redacted" => Ok(Level::Redacted),
        _ => Err(ApiError::bad_request(
            "disclosure_level must be full, pseudonymous or redacted",
        )),
    }
}

/// A time in a query (rule 16: an invalid one must not widen the result).
fn time(text: Option<&str>, what: &'static str) -> Result<Option<Timestamp>, ApiError> {
    let time = present(text).map(Timestamp::parse).transpose();
    time.map_err(|_| ApiError::bad_request(format!("invalid {what}; expected RFC3339")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(name: &str, value: &str) -> FilterQuery {
        let value = Some(value.to_owned());
        let mut query = FilterQuery::default();
        match name {
            "status" => query.status = value,
            "target_user_id" => query.target_user_id = value,
            "requester_did" => query.requester_did = value,
            "disclosure_level" => query.disclosure_level = value,
            "date_from" => query.date_from = value,
            _ => query.date_to = value,
        }
        query
    }

    #[test]
    fn ds16_an_invalid_filter_is_refused_and_an_empty_one_is_none() {
        let long = "a".repeat(513);
        for (name, value) in [
            ("status", "Pending"),
            ("target_user_id", "1"),
            ("requester_did", "a\0"),
            ("requester_did", &long),
            ("disclosure_level", "FULL"),
            ("date_from", "yesterday"),
            ("date_to", "2026-13-01T00:00:00Z"),
        ] {
            assert!(query(name, value).of_requests(Scope::All).is_err(), "{name}={value}");
            assert!(query(name, value).of_grants(Scope::All).is_err(), "{name}={value}");
            assert!(query(name, "").of_requests(Scope::All).is_ok(), "{name}");
        }
        assert!(query("status", "pending").of_requests(Scope::All).is_ok());
        assert!(query("status", "pending").of_grants(Scope::All).is_err());
        let filter = query("date_to", "2026-01-01T00:00:00Z").of_grants(Scope::All).unwrap();
        assert_eq!(filter.to, Timestamp::parse("2026-01-01T00:00:00Z").ok());
    }
}

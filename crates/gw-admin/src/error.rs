//! Maps errors to the responses that administrators read, for the whole API.

use crate::SessionsUnavailable;
use axum::response::{IntoResponse, Response};
use gw_http::{ApiError, ErrorCode, described_error};
use gw_store::{Conflict, Missing, StoreError};
use std::borrow::Cow;

/// The error of an admin handler.
#[derive(Debug)]
pub(crate) enum AdminError {
    /// Sent unchanged.
    Api(ApiError),
    /// An error of the store; [`store_error`] maps it to a response.
    Store(StoreError),
}

impl AdminError {
    pub(crate) fn bad_request(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Api(ApiError::bad_request(text))
    }

    pub(crate) fn forbidden(text: &'static str) -> Self {
        Self::Api(ApiError::forbidden(text))
    }

    pub(crate) fn not_found(text: &'static str) -> Self {
        Self::Api(ApiError::not_found(text))
    }
}

described_error!(
    AdminError,
    "APIError",
    [
        ErrorCode::BadRequest.answer(),
        ErrorCode::Unauthorized.answer(),
        ErrorCode::Forbidden.answer(),
        ErrorCode::NotFound.answer(),
        ErrorCode::Conflict.answer(),
        ErrorCode::PayloadTooLarge.answer(),
        ErrorCode::RateLimited.answer(),
        ErrorCode::Internal.answer(),
        ErrorCode::BadGateway.answer(),
        ErrorCode::Unavailable.answer(),
    ]
);

impl From<ApiError> for AdminError {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

impl From<SessionsUnavailable> for AdminError {
    fn from(_: SessionsUnavailable) -> Self {
        Self::Api(ApiError::unavailable("login sessions temporarily unavailable"))
    }
}

impl From<StoreError> for AdminError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl IntoResponse for AdminError {
    fn into_response(self) -> Response {
        match self {
            Self::Api(error) => error.into_response(),
            Self::Store(error) => store_error(&error).into_response(),
        }
    }
}

/// The response for a store error. The cause of an internal error goes to the log only.
fn store_error(error: &StoreError) -> ApiError {
    match error {
        StoreError::NotFound(missing) => ApiError::not_found(match missing {
            Missing::Organization => "organization not found",
            Missing::Group => "group not found",
            Missing::User => "user not found",
            Missing::Membership => "membership not found",
            Missing::Contract => "contract not found",
            Missing::Grant => "grant not found",
            Missing::Link => "address not found",
            Missing::Tenant => "tenant not found",
            Missing::Session => "session not found",
            Missing::SharedInfra => "shared contract not found",
            Missing::ApprovedCode => "this code is not approved",
            Missing::LegalHold => "legal hold not found",
            Missing::Webhook => "webhook not found",
            Missing::PersonalUrl => "rpc url not found",
            Missing::Suspension => "suspension not found",
            Missing::Quarantine => "quarantine not found",
            Missing::Conviction => "conviction not found",
            Missing::Reservation | Missing::Visibility | Missing::Chain => "not found",
        }),
        StoreError::Conflict(conflict) => ApiError::conflict(match conflict {
            Conflict::OrganizationSlug => "an organization with this slug exists",
            Conflict::GroupSlug => "a group with this slug exists in the organization",
            Conflict::GroupName => "a group with this name exists in the organization",
            Conflict::ExternalId => "a user with this external id exists",
            Conflict::Membership => "the user is already a member of the group",
            // K3: the text does not tell an own from a foreign registration.
            Conflict::ContractAddress => "contract registration failed: the address is taken",
            Conflict::Grant => "the group already holds a grant on the contract",
            Conflict::Tenant => "the tenant is on the list already",
            Conflict::SharedInfra => "the address is tagged already",
            Conflict::ApprovedCode => "the code is approved already",
            Conflict::Link | Conflict::Token | Conflict::DisclosureGrant | Conflict::Other => {
                "it clashes with an existing record"
            }
        }),
        StoreError::Immutable => ApiError::forbidden("system rows cannot be changed"),
        StoreError::Rule("default_org_unknown") => ApiError::bad_request("default_org_id names no organization"),
        StoreError::Rule("default_group_without_org") => {
            ApiError::bad_request("default_group_id needs a default_org_id")
        }
        StoreError::Rule("default_group_organization") => {
            ApiError::bad_request("default_group_id must name a group of default_org_id")
        }
        StoreError::Rule("default_group_admin") => {
            ApiError::bad_request("default_group_id must not name a group of administrators")
        }
        StoreError::Rule("grant_organization") => {
            ApiError::bad_request("the group and the contract belong to different organizations")
        }
        StoreError::Rule("address_is_contract") => ApiError::bad_request("the address is a contract"),
        StoreError::Rule("contract_first_block") => ApiError::new(ErrorCode::BadGateway, "the node did not answer"),
        StoreError::Rule("foreign_key") => ApiError::bad_request("the change names a record that does not exist"),
        StoreError::Rule("not_null") => ApiError::bad_request("the change leaves out a value that is needed"),
        StoreError::Rule("check") => ApiError::bad_request("the change breaks a rule of the record"),
        StoreError::Rule(rule) => {
            ApiError::bad_request(format!("the change breaks a rule: {}", rule.replace('_', " ")))
        }
        StoreError::LinkRevoked => ApiError::forbidden("the link was revoked by an administrator"),
        StoreError::Unconfirmed(_) => {
            tracing::error!(
                error = error as &dyn std::error::Error,
                "the commit of an administrative change is not confirmed: it may have been applied; check the audit \
                 log for its entry"
            );
            ApiError::unavailable("the change is not confirmed and may stand: read it back before repeating it")
        }
        unavailable if unavailable.is_unavailable() => {
            tracing::warn!(
                error = unavailable as &dyn std::error::Error,
                "the policy store is not reachable"
            );
            ApiError::unavailable("the policy store is temporarily unavailable")
        }
        internal => {
            tracing::error!(
                error = internal as &dyn std::error::Error,
                "an admin request failed with an internal error"
            );
            ApiError::internal()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use gw_http::DescribedError as _;
    use std::collections::BTreeSet;

    /// House rule 17. `StoreError::Database` holds a value that only the store can make; its two answers are those of
    /// other rows.
    #[test]
    fn every_error_has_its_status() {
        let store = [
            (StoreError::NotFound(Missing::Group), 404),
            (StoreError::Conflict(Conflict::ContractAddress), 409),
            (StoreError::Immutable, 403),
            (StoreError::Rule("groups.admin_flags"), 400),
            (StoreError::Rule("contract_first_block"), 502),
            (StoreError::LinkRevoked, 403),
            (
                StoreError::Row {
                    table: "users",
                    column: "id",
                    id: String::new(),
                },
                500,
            ),
            (StoreError::NotPrimary, 503),
            (StoreError::Schema("newer"), 500),
            (StoreError::OtherInstance(String::new()), 500),
            (StoreError::ChainMoved { stored: 1 }, 500),
            (StoreError::Fenced, 500),
            // RL1: never 200, and never 500.
            (StoreError::Unconfirmed("lost"), 503),
            (StoreError::EntryAltered, 503),
            (StoreError::NotKept("users"), 500),
            (StoreError::EntryRefused, 503),
            (StoreError::ChangeUnrecorded("users"), 503),
            (StoreError::SchemaChanged(String::new()), 500),
            (StoreError::EpochExhausted(1), 503),
            (StoreError::EpochMissing, 503),
            (StoreError::PolicyStoreRow, 503),
            (StoreError::Detached, 500),
        ];
        let api = [
            (ApiError::unauthorized("invalid or expired token"), 401),
            (ApiError::payload_too_large(), 413),
            (ApiError::rate_limited(gw_types::Seconds(1)), 429),
        ];
        let table = (store
            .into_iter()
            .map(|(error, status)| (AdminError::from(error), status)))
        .chain(api.into_iter().map(|(error, status)| (AdminError::from(error), status)));
        let mut answers = Vec::new();
        for (error, status) in table {
            // A new variant stops the build here: add it to the table.
            match &error {
                AdminError::Api(_) => {}
                AdminError::Store(error) => match error {
                    StoreError::NotFound(_)
                    | StoreError::Conflict(_)
                    | StoreError::Immutable
                    | StoreError::Rule(_)
                    | StoreError::LinkRevoked
                    | StoreError::Row { .. }
                    | StoreError::NotPrimary
                    | StoreError::Schema(_)
                    | StoreError::OtherInstance(_)
                    | StoreError::ChainMoved { .. }
                    | StoreError::Fenced
                    | StoreError::Unconfirmed(_)
                    | StoreError::EntryAltered
                    | StoreError::NotKept(_)
                    | StoreError::EntryRefused
                    | StoreError::ChangeUnrecorded(_)
                    | StoreError::SchemaChanged(_)
                    | StoreError::EpochExhausted(_)
                    | StoreError::EpochMissing
                    | StoreError::PolicyStoreRow
                    | StoreError::Detached
                    | StoreError::Database(_) => {}
                },
            }
            let (name, answer) = (format!("{error:?}"), error.into_response());
            let answer = answer.extensions().get::<ApiError>().map(ApiError::code).unwrap();
            assert_eq!(answer.status().as_u16(), status, "{name}");
            answers.push(answer.answer());
        }
        assert!(AdminError::lists_exactly(answers));
    }

    /// An operation describes no error that no handler can answer with.
    #[test]
    fn operations_describe_errors_of_the_list_only() {
        let listed: BTreeSet<&str> = AdminError::RESPONSES
            .iter()
            .map(|(status, _)| status.as_str())
            .collect();
        let described = serde_json::to_value(crate::api()).unwrap();
        let operations = described["paths"].as_object().unwrap().iter();
        for (path, operation) in operations.flat_map(|(path, item)| {
            let operations = item.as_object().unwrap().values();
            operations.map(move |operation| (path, operation))
        }) {
            for status in operation["responses"].as_object().unwrap().keys() {
                assert!(status.starts_with('2') || listed.contains(&**status), "{path} {status}");
            }
        }
    }
}

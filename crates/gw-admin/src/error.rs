//! From what went wrong to what the administrator reads: one mapping for the whole API.

use crate::SessionsAway;
use axum::response::{IntoResponse, Response};
use gw_http::{ApiError, ErrorCode};
use gw_store::{Conflict, Missing, StoreError};
use std::borrow::Cow;

/// A refusal or a fault.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Said as it is.
    Api(ApiError),
    /// The store's word, mapped below.
    Store(StoreError),
}

impl Failure {
    pub(crate) fn bad(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Api(ApiError::bad_request(text))
    }

    pub(crate) fn forbidden(text: &'static str) -> Self {
        Self::Api(ApiError::forbidden(text))
    }

    pub(crate) fn not_found(text: &'static str) -> Self {
        Self::Api(ApiError::not_found(text))
    }
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

impl From<SessionsAway> for Failure {
    fn from(_: SessionsAway) -> Self {
        Self::Api(ApiError::unavailable("login sessions temporarily unavailable"))
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        match self {
            Self::Api(error) => error.into_response(),
            Self::Store(error) => said(&error).into_response(),
        }
    }
}

/// What the caller is told of a store error; the cause of a fault goes to our log only.
fn said(error: &StoreError) -> ApiError {
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
            Conflict::Link | Conflict::Token | Conflict::Other => "it clashes with an existing record",
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
                "an administrative change is not confirmed: it may stand; its audit entry says so if it does"
            );
            ApiError::unavailable("the change is not confirmed and may stand: read it back before repeating it")
        }
        away if away.is_unavailable() => {
            tracing::warn!(
                error = away as &dyn std::error::Error,
                "the policy store cannot be reached"
            );
            ApiError::unavailable("the policy store is temporarily unavailable")
        }
        fault => {
            tracing::error!(error = fault as &dyn std::error::Error, "an administrative call failed");
            ApiError::internal()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_store_error_has_its_status() {
        let status = |e: StoreError| Failure::from(e).into_response().status().as_u16();
        assert_eq!(status(StoreError::NotFound(Missing::Group)), 404);
        assert_eq!(status(StoreError::Conflict(Conflict::ContractAddress)), 409);
        assert_eq!(status(StoreError::Immutable), 403);
        assert_eq!(status(StoreError::Rule("groups.admin_flags")), 400);
        assert_eq!(status(StoreError::NotPrimary), 503);
        assert_eq!(
            status(StoreError::Unconfirmed("lost")),
            503,
            "RL1: never 200, and never 500"
        );
        assert_eq!(status(StoreError::Detached), 500);
    }
}

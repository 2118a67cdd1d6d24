//! The callers of the routes: administrators, and users who are owners or grantees; and their bodies.

use crate::{
    DisclosureState,
    error::{ORG_DENIED, denied},
    record::{Caller, CallerSlot},
};
use axum::extract::{FromRequest, FromRequestParts, Request};
use gw_http::{
    AdminCaller, ApiError, AuthError, AuthenticatedUser, CorrelationId, KnownQueries, parse_json, read_body,
};
use gw_policy::{Snapshot, snapshot::Organization};
use gw_store::{Actor, StoreError, Tx, read::Scope};
use gw_types::{OrgId, Timestamp, UserId};
use http::request::Parts;
use serde::de::DeserializeOwned;
use std::net::IpAddr;

/// Where a request comes from.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) ip: IpAddr,
    pub(crate) correlation_id: Option<String>,
    slot: CallerSlot,
}

impl Origin {
    pub(crate) fn new(parts: &Parts, state: &DisclosureState) -> Self {
        Self {
            ip: state.http_context.client(&parts.extensions, &parts.headers).0,
            correlation_id: parts.extensions.get::<CorrelationId>().map(|id| id.as_str().to_owned()),
            slot: parts.extensions.get::<CallerSlot>().cloned().unwrap_or_default(),
        }
    }

    /// Files the access record of the request under this organization.
    pub(crate) fn set_org(&self, org: OrgId) {
        self.slot.set_org(org);
    }

    /// Files the access record of a grantee under the organization of the grant, if the grantee is an active member of
    /// it (HD12): administrators of other organizations do not learn when and from where the grantee reads.
    pub(crate) fn set_org_of_member(&self, org: OrgId, snapshot: &Snapshot, grantee: UserId, now: Timestamp) {
        if snapshot.is_member(grantee, org, now) {
            self.slot.set_org(org);
        }
    }

    /// Notes who makes the request.
    pub(crate) fn set_caller(&self, caller: Caller) {
        self.slot.set(caller);
    }

    fn sign(&self, actor: Actor) -> Actor {
        actor.from_request(Some(self.ip), self.correlation_id.clone())
    }
}

/// Rejects query parameters that the route does not have (HD33). This is checked after authentication, so that callers
/// without access learn no parameter names.
///
/// # Errors
/// 400 that names the parameter.
pub(crate) fn check_query(parts: &Parts) -> Result<(), ApiError> {
    parts
        .extensions
        .get::<KnownQueries>()
        .map_or(Ok(()), |known| known.check_request(parts))
}

/// Starts a mutation and authorizes the caller again by everything committed before it (HD20).
///
/// # Errors
/// 401 or 403 if the caller lost rights since the request began; any error of the store.
async fn begin<E>(state: &DisclosureState, caller: &Caller, actor: &Actor) -> Result<Tx, E>
where
    E: From<StoreError> + From<ApiError>,
{
    let tx = state.store.begin(actor).await?;
    if state.feed.epoch() < tx.head() {
        state.feed.catch_up_to(tx.head()).await;
    }
    caller.reauthorize(&state.http_context)?;
    Ok(tx)
}

/// An administrator.
#[derive(Debug)]
pub(crate) struct Admin {
    caller: AdminCaller,
    pub(crate) origin: Origin,
}

impl FromRequestParts<DisclosureState> for Admin {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &DisclosureState) -> Result<Self, ApiError> {
        let origin = Origin::new(parts, state);
        let client = state.http_context.client(&parts.extensions, &parts.headers);
        let caller = AdminCaller::authenticate(&state.http_context, client, &parts.headers)?;
        origin.set_caller(Caller::Admin(caller.clone()));
        check_query(parts)?;
        if matches!(caller, AdminCaller::Operator) {
            // The operator token reads no tenant's data.
            return Err(ApiError::forbidden("insufficient permissions"));
        }
        Ok(Self { caller, origin })
    }
}

impl Admin {
    pub(crate) fn is_super(&self) -> bool {
        self.caller.is_super()
    }

    /// The administrator as a user; `None` for the platform token.
    pub(crate) fn user(&self) -> Option<&gw_policy::snapshot::User> {
        match &self.caller {
            AdminCaller::User(admin) => Some(&admin.user),
            AdminCaller::Super | AdminCaller::Operator => None,
        }
    }

    pub(crate) fn may_read(&self, org: OrgId) -> bool {
        self.caller.may_read(org)
    }

    pub(crate) fn may_write(&self, org: OrgId) -> bool {
        self.caller.may_write(org)
    }

    /// The organizations whose requests and grants the administrator reads.
    pub(crate) fn scope(&self) -> Scope {
        match &self.caller {
            AdminCaller::Super => Scope::All,
            AdminCaller::Operator => Scope::Orgs(Vec::new()),
            AdminCaller::User(admin) => Scope::Orgs(admin.full.iter().chain(&admin.readonly).copied().collect()),
        }
    }

    /// The organization of a request (rule 4): the named one, else the only one of the administrator, else the default
    /// one for the platform token.
    ///
    /// # Errors
    /// 400 with `missing` if none is named and the administrator has another number than one; 403 for an organization
    /// that the administrator may not read.
    pub(crate) fn org(&self, named: Option<&str>, missing: &'static str) -> Result<OrgId, ApiError> {
        let org = match named.filter(|text| !text.is_empty()) {
            Some(text) => text
                .parse()
                .map_err(|_| ApiError::bad_request("org_id must be a UUID"))?,
            None => match &self.caller {
                AdminCaller::User(admin) => {
                    let mut orgs = admin.full.iter().chain(&admin.readonly);
                    match (orgs.next(), orgs.next()) {
                        (Some(only), None) => *only,
                        (None, _) | (Some(_), Some(_)) => return Err(ApiError::bad_request(missing)),
                    }
                }
                AdminCaller::Super | AdminCaller::Operator => Organization::DEFAULT,
            },
        };
        if self.may_read(org) {
            Ok(org)
        } else {
            Err(ApiError::forbidden(ORG_DENIED))
        }
    }

    /// Requires full rights in an organization that the administrator may read.
    ///
    /// # Errors
    /// 403 for an administrator who may only read.
    pub(crate) fn require_writer(&self, org: OrgId) -> Result<(), ApiError> {
        if self.may_write(org) {
            Ok(())
        } else {
            Err(ApiError::forbidden(
                "mutating actions are restricted for read-only admins",
            ))
        }
    }

    /// The answer for a request or grant that does not exist, or that is outside of the scope (rule 3). Only the
    /// platform token is told that something does not exist.
    pub(crate) fn unknown(&self, text: &'static str) -> ApiError {
        if self.is_super() {
            ApiError::not_found(text)
        } else {
            denied()
        }
    }

    /// Starts a mutation by this administrator.
    ///
    /// # Errors
    /// 401 or 403 if the administrator lost rights since the request began; any error of the store.
    pub(crate) async fn begin<E>(&self, state: &DisclosureState) -> Result<Tx, E>
    where
        E: From<StoreError> + From<ApiError>,
    {
        let actor = match &self.caller {
            AdminCaller::Super => Actor::named(Actor::SUPER_ADMIN),
            AdminCaller::Operator => Actor::named(Actor::OPERATOR),
            AdminCaller::User(admin) => Actor::user(admin.user.id, &admin.user.external_id),
        };
        begin(state, &Caller::Admin(self.caller.clone()), &self.origin.sign(actor)).await
    }
}

/// A user with a valid token: an owner on the routes below `/me`, a grantee on those below `/explorer/grant`.
#[derive(Debug)]
pub(crate) struct User {
    pub(crate) caller: AuthenticatedUser,
    pub(crate) origin: Origin,
}

impl FromRequestParts<DisclosureState> for User {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &DisclosureState) -> Result<Self, ApiError> {
        let origin = Origin::new(parts, state);
        let caller =
            AuthenticatedUser::authenticate(&state.http_context, &parts.headers).map_err(|error| match error {
                AuthError::Missing => ApiError::unauthorized("authentication required"),
                error => error.into(),
            })?;
        origin.set_caller(Caller::User(caller.clone()));
        check_query(parts)?;
        Ok(Self { caller, origin })
    }
}

impl User {
    pub(crate) fn id(&self) -> UserId {
        self.caller.user.id
    }

    /// Starts a mutation by this user.
    ///
    /// # Errors
    /// 401 or 403 if the user may not log in any more; any error of the store.
    pub(crate) async fn begin<E>(&self, state: &DisclosureState) -> Result<Tx, E>
    where
        E: From<StoreError> + From<ApiError>,
    {
        let actor = Actor::user(self.id(), &self.caller.user.external_id);
        begin(state, &Caller::User(self.caller.clone()), &self.origin.sign(actor)).await
    }
}

/// A JSON object of type `T`. The caller is authorized again after the body has arrived (HD20).
#[derive(Clone, Copy, Debug)]
pub(crate) struct JsonBody<T>(pub(crate) T);

/// A JSON object of type `T`; an empty body counts as an empty object (rule 11).
#[derive(Clone, Copy, Debug)]
pub(crate) struct OptionalBody<T>(pub(crate) T);

async fn body_of(request: Request, state: &DisclosureState) -> Result<Vec<u8>, ApiError> {
    let slot = request.extensions().get::<CallerSlot>().cloned().unwrap_or_default();
    let body = read_body(request.into_body()).await;
    slot.reauthorize(&state.http_context)?;
    Ok(body?.to_vec())
}

impl<T: DeserializeOwned> FromRequest<DisclosureState> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &DisclosureState) -> Result<Self, ApiError> {
        parse_json(&body_of(request, state).await?).map(Self)
    }
}

impl<T: DeserializeOwned + Default> FromRequest<DisclosureState> for OptionalBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &DisclosureState) -> Result<Self, ApiError> {
        parse_optional(&body_of(request, state).await?).map(Self)
    }
}

/// A JSON object of type `T`; nothing counts as an empty object (rule 11).
///
/// # Errors
/// 400 for anything else.
pub(crate) fn parse_optional<T: DeserializeOwned + Default>(body: &[u8]) -> Result<T, ApiError> {
    if body.trim_ascii().is_empty() {
        return Ok(T::default());
    }
    parse_json(body)
}

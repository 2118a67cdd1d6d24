use crate::{
    AdminState,
    body::JsonBody,
    error::AdminError,
    input,
    scope::Admin,
    wire::{GroupAccess, GroupAccessRequest},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_evm::{Class, Method, MethodLookup};
use gw_http::ApiError;
use gw_policy::snapshot;
use gw_store::{
    read::GroupWithAccess,
    record::{AccessInput, ApiKey},
};
use gw_types::Claim;
use std::sync::Arc;

/// Returns the access of a group's members: methods and claims; empty lists if it was never set.
#[utoipa::path(get, path = "/api/v1/admin/orgs/{org_id}/groups/{group_id}/access", tag = "groups",
    params(("org_id" = String, Path, format = Uuid), ("group_id" = String, Path, format = Uuid)),
    responses((status = 200, body = GroupAccess), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn get_access(
    admin: Admin,
    State(state): State<AdminState>,
    Path((org, group)): Path<(String, String)>,
) -> Result<Json<GroupAccess>, AdminError> {
    let org = admin.readable_org(&state, &org).await?;
    let group_access = admin.group_of(&state.store.read(), &org, &group).await?;
    Ok(Json(with_key_hint(&state, group_access.access)))
}

/// Replaces the access of a group's members.
///
/// Only super changes the access of a system group (A3). An administrator group needs a method and takes no claims
/// (A5). The admin claim makes administrators, so only super gives it, unless ADMIN_CLAIM_DELEGATION is on.
#[utoipa::path(put, path = "/api/v1/admin/orgs/{org_id}/groups/{group_id}/access", tag = "groups",
    params(("org_id" = String, Path, format = Uuid), ("group_id" = String, Path, format = Uuid)),
    request_body = GroupAccessRequest,
    responses((status = 200, body = GroupAccess), (status = 400), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn set_access(
    admin: Admin,
    State(state): State<AdminState>,
    Path((org, group)): Path<(String, String)>,
    JsonBody(body): JsonBody<GroupAccessRequest>,
) -> Result<Json<GroupAccess>, AdminError> {
    let org = admin.writable_or_system_org(&state, &org).await?;
    let mut tx = admin.begin(&state).await?;
    let group_access = admin.group_of(&tx.read(), &org, &group).await?;
    if group_access.group.is_system {
        admin.require_super()?;
    }
    admin.require_super_for_admin_group(&group_access)?;
    let claims = input::claims(&body.claims)?;
    if claims.has(Claim::Admin) && !state.settings.claim_delegation {
        admin.require_super()?;
    }
    let methods = input::methods(&body.allowed_methods, &state.custom_methods)?;
    if group_access.group.is_org_admin && !claims.is_empty() {
        return Err(AdminError::bad_request(
            "an administrator group takes no claims: it has them all",
        ));
    }
    if group_access.group.is_org_admin && methods.is_empty() {
        return Err(AdminError::bad_request(
            "an administrator group needs at least one method",
        ));
    }
    if group_access.group.id == snapshot::Group::ANONYMOUS {
        check_anonymous_access(&methods, &body)?;
    }
    let input = AccessInput {
        allowed_methods: methods,
        claims,
        rpc_api_key: key_change(&state, body.rpc_api_key, &group_access)?,
        verbose_errors: body.verbose_errors,
        denied_methods: input::methods(&body.denied_methods, &state.custom_methods)?,
        custom_methods: Arc::clone(&state.custom_methods),
        expires_at: input::expiry(body.expires_at.as_deref(), tx.now())?,
    };
    let stored = tx.set_access(group_access.group.id, input).await?;
    tx.commit().await?;
    Ok(Json(with_key_hint(&state, stored)))
}

/// A3: the anonymous group may list metadata, chain, block and transaction methods, and takes no claims.
fn check_anonymous_access(methods: &[String], body: &GroupAccessRequest) -> Result<(), AdminError> {
    let is_open = |name: &String| match Method::lookup(name) {
        MethodLookup::Registered(method) => {
            matches!(method.class(), Class::Meta | Class::Chain | Class::Block | Class::Tx)
        }
        MethodLookup::Custom(_) | MethodLookup::Blocked | MethodLookup::Unknown => false,
    };
    if let Some(denied_name) = methods.iter().find(|name| !is_open(name)) {
        return Err(AdminError::bad_request(format!(
            "method `{denied_name}` cannot be opened to anonymous callers"
        )));
    }
    if !body.claims.is_empty() {
        return Err(AdminError::bad_request("the anonymous group takes no claims"));
    }
    Ok(())
}

/// The change of the stored upstream key (spec/80 §6). An absent member or the mask keeps the key; `null` or an empty
/// text clears it. A kept key that is stored under the previous encryption key is encrypted again.
fn key_change(
    state: &AdminState,
    requested: Option<Option<String>>,
    group_access: &GroupWithAccess,
) -> Result<ApiKey, AdminError> {
    let internal_error = |_| AdminError::from(ApiError::internal());
    let keep = || match (&state.key_cipher, &group_access.access.rpc_api_key) {
        (Some(cipher), Some(stored)) => {
            let renewed = cipher
                .renewed(group_access.group.id, stored, &*state.entropy)
                .map_err(internal_error)?;
            Ok(renewed.map_or(ApiKey::Keep, ApiKey::Set))
        }
        (Some(_) | None, None) | (None, Some(_)) => Ok(ApiKey::Keep),
    };
    match requested {
        None => keep(),
        Some(Some(mask)) if mask == GroupAccess::MASK && group_access.access.rpc_api_key.is_some() => keep(),
        Some(None) => Ok(ApiKey::Clear),
        Some(Some(key)) if key.is_empty() => Ok(ApiKey::Clear),
        Some(Some(key)) => {
            let Some(cipher) = &state.key_cipher else {
                return Err(AdminError::bad_request(
                    "RPC_API_KEY_ENCRYPTION_KEY is not set: upstream keys cannot be stored",
                ));
            };
            cipher
                .seal(group_access.group.id, input::api_key(&key)?, &*state.entropy)
                .map(ApiKey::Set)
                .map_err(internal_error)
        }
    }
}

fn with_key_hint(state: &AdminState, access: gw_store::record::GroupAccess) -> GroupAccess {
    let hint = match (&state.key_cipher, &access.rpc_api_key) {
        (Some(cipher), Some(stored)) => cipher.hint(access.group, stored),
        (Some(_) | None, None) | (None, Some(_)) => None,
    };
    GroupAccess::new(access, hint)
}

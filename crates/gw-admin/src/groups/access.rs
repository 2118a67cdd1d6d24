use crate::{
    AdminState,
    body::JsonBody,
    error::Failure,
    input,
    scope::Admin,
    wire::{GroupAccess, GroupAccessRequest},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_evm::{Class, Lookup, Method};
use gw_http::ApiError;
use gw_policy::snapshot;
use gw_store::{
    read::GroupWithAccess,
    record::{AccessInput, ApiKey},
};
use gw_types::Claim;
use std::sync::Arc;

/// What the members of a group may do; empty lists if it was never set.
#[utoipa::path(get, path = "/api/v1/admin/orgs/{org_id}/groups/{group_id}/access", tag = "groups",
    params(("org_id" = String, Path, format = Uuid), ("group_id" = String, Path, format = Uuid)),
    responses((status = 200, body = GroupAccess), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn get_access(
    admin: Admin,
    State(state): State<AdminState>,
    Path((org, group)): Path<(String, String)>,
) -> Result<Json<GroupAccess>, Failure> {
    let org = admin.readable_org(&state, &org).await?;
    let found = admin.group_of(&state.store.read(), &org, &group).await?;
    Ok(Json(shown(&state, found.access)))
}

/// Replaces what the members of a group may do.
///
/// A system group's access is super only (A3). An administrator group needs a method and takes no claims (A5). The
/// admin claim makes administrators, so only super gives it unless ADMIN_CLAIM_DELEGATION is on.
#[utoipa::path(put, path = "/api/v1/admin/orgs/{org_id}/groups/{group_id}/access", tag = "groups",
    params(("org_id" = String, Path, format = Uuid), ("group_id" = String, Path, format = Uuid)),
    request_body = GroupAccessRequest,
    responses((status = 200, body = GroupAccess), (status = 400), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn set_access(
    admin: Admin,
    State(state): State<AdminState>,
    Path((org, group)): Path<(String, String)>,
    JsonBody(body): JsonBody<GroupAccessRequest>,
) -> Result<Json<GroupAccess>, Failure> {
    let org = admin.writable_or_system_org(&state, &org).await?;
    let mut tx = admin.begin(&state).await?;
    let found = admin.group_of(&tx.read(), &org, &group).await?;
    if found.group.is_system {
        admin.require_super()?;
    }
    admin.may_touch(&found)?;
    let claims = input::claims(&body.claims)?;
    if claims.has(Claim::Admin) && !state.settings.claim_delegation {
        admin.require_super()?;
    }
    let methods = input::methods(&body.allowed_methods, &state.extras)?;
    if found.group.is_org_admin && !claims.is_empty() {
        return Err(Failure::bad("an administrator group takes no claims: it has them all"));
    }
    if found.group.is_org_admin && methods.is_empty() {
        return Err(Failure::bad("an administrator group needs at least one method"));
    }
    if found.group.id == snapshot::Group::ANONYMOUS {
        anonymous(&methods, &body)?;
    }
    let input = AccessInput {
        allowed_methods: methods,
        claims,
        rpc_api_key: api_key(&state, body.rpc_api_key, &found)?,
        verbose_errors: body.verbose_errors,
        denied_methods: input::methods(&body.denied_methods, &state.extras)?,
        extras: Arc::clone(&state.extras),
        expires_at: input::expiry(body.expires_at.as_deref(), tx.now())?,
    };
    let changed = tx.set_access(found.group.id, input).await?;
    tx.commit().await?;
    Ok(Json(shown(&state, changed)))
}

/// A3: anonymous callers may be given metadata, chain, block and transaction methods, and no claim.
fn anonymous(methods: &[String], body: &GroupAccessRequest) -> Result<(), Failure> {
    let open = |name: &String| match Method::lookup(name) {
        Lookup::Known(method) => matches!(method.class(), Class::Meta | Class::Chain | Class::Block | Class::Tx),
        Lookup::Extra(_) | Lookup::Blocked | Lookup::Unknown => false,
    };
    if let Some(closed) = methods.iter().find(|name| !open(name)) {
        return Err(Failure::bad(format!(
            "method `{closed}` cannot be opened to anonymous callers"
        )));
    }
    if !body.claims.is_empty() {
        return Err(Failure::bad("the anonymous group takes no claims"));
    }
    Ok(())
}

/// Absent or the mask keeps the key, `null` or empty clears it (spec/80 §6). A kept key is stored anew if it rests under
/// the previous encryption key.
fn api_key(state: &AdminState, given: Option<Option<String>>, found: &GroupWithAccess) -> Result<ApiKey, Failure> {
    let failed = |_| Failure::from(ApiError::internal());
    let keep = || match (&state.key_cipher, &found.access.rpc_api_key) {
        (Some(cipher), Some(stored)) => {
            let renewed = cipher.renewed(stored, &*state.entropy).map_err(failed)?;
            Ok(renewed.map_or(ApiKey::Keep, ApiKey::Set))
        }
        (Some(_) | None, None) | (None, Some(_)) => Ok(ApiKey::Keep),
    };
    match given {
        None => keep(),
        Some(Some(mask)) if mask == GroupAccess::MASK && found.access.rpc_api_key.is_some() => keep(),
        Some(None) => Ok(ApiKey::Clear),
        Some(Some(key)) if key.is_empty() => Ok(ApiKey::Clear),
        Some(Some(key)) => {
            let Some(cipher) = &state.key_cipher else {
                return Err(Failure::bad(
                    "RPC_API_KEY_ENCRYPTION_KEY is not set: upstream keys cannot be stored",
                ));
            };
            cipher
                .seal(input::api_key(&key)?, &*state.entropy)
                .map(ApiKey::Set)
                .map_err(failed)
        }
    }
}

fn shown(state: &AdminState, access: gw_store::record::GroupAccess) -> GroupAccess {
    let hint = match (&state.key_cipher, &access.rpc_api_key) {
        (Some(cipher), Some(stored)) => cipher.hint(stored),
        (Some(_) | None, None) | (None, Some(_)) => None,
    };
    GroupAccess::new(access, hint)
}

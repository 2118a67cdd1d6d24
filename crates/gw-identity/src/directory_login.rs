//! Turns an identity that the directory confirmed into an account and tokens (DS-7, DS-8, DS-9).

use crate::{
    directory::{Directory, DirectoryError, Identity},
    error::spawn_tracked,
    request_info::RequestInfo,
    security,
    state::IdentityState,
    tokens::TokenPair,
};
use gw_audit::SecurityKind;
use gw_http::Amr;
use gw_policy::snapshot::Group;
use gw_store::{
    Actor, StoreError, Tx,
    read::Scope,
    record::{AllowedTenant, NewUser, User},
};
use gw_types::{Claim, ExternalId, GroupId, TenantId};

/// Logs an identity in. Runs to its end after the first effect, even if the client disconnects (HD21).
pub(crate) async fn log_in(
    state: &IdentityState,
    directory: &Directory,
    identity: Identity,
    amr: Amr,
    request_info: &RequestInfo,
) -> Result<TokenPair, DirectoryError> {
    let settings = directory.settings();
    let is_person = amr == Amr::Directory;
    let auto_kyc = if is_person {
        settings.auto_kyc_user
    } else {
        settings.auto_kyc_service_principal
    };
    let (tasks, state, request_info) = (&state.tasks, state.clone(), request_info.clone());
    spawn_tracked(tasks, async move {
        let mut reservation = state.journal.reserve(1)?;
        let actor = request_info.actor(Actor::named(identity.subject.as_str()));
        let mut tx = state.store.begin(&actor).await?;
        let user = account(&mut tx, &identity, auto_kyc).await?;
        // A login accepts the user's only invitation, as at a login by proof.
        tx.accept_only_offer(user.id).await?;
        let family = state.inner.issuer.new_family(amr, tx.now());
        let (pair, row) = state.inner.issuer.issue(&user, family, tx.now());
        tx.store_refresh_token(row).await?;
        tx.commit().await?;

        let mut event = security::event(SecurityKind::Login, &request_info);
        event.external_id = Some(user.external_id);
        event.user_id = Some(user.id);
        event.session_id = Some(family.id);
        event.provider = Some(amr.as_str().into());
        reservation.append(event)?;
        Ok(pair)
    })
    .await
}

/// Records a rejected login.
pub(crate) fn note_refusal(
    state: &IdentityState,
    who: Option<ExternalId>,
    amr: Amr,
    request_info: &RequestInfo,
    error: &DirectoryError,
) {
    let Some(reason) = error.reason() else { return };
    if let DirectoryError::Token(fault) = error {
        tracing::info!(fault = %fault, provider = amr.as_str(), "a directory token was refused");
    }
    let mut event = security::event(SecurityKind::LoginRefused, request_info);
    event.external_id = who;
    event.provider = Some(amr.as_str().into());
    event.reason = Some(reason.into());
    state.record_refusal(event);
}

/// Finds the account of an identity, or creates it if the tenant provisions accounts automatically. The tenant of the
/// first login becomes the account's tenant.
async fn account(tx: &mut Tx, identity: &Identity, auto_kyc: bool) -> Result<User, DirectoryError> {
    let tenant = TenantId(identity.tenant);
    let allowed = tx.read().find_tenant(tenant).await?.filter(|allowed| !allowed.disabled);
    let allowed = allowed.ok_or(DirectoryError::Tenant)?;
    let known = tx.read().find_user_by_external_id(&identity.subject).await?;
    let user = match known {
        Some(user) if user.banned => return Err(DirectoryError::Banned),
        Some(user) => match user.auth_tenant_id {
            Some(pinned) if pinned != tenant => return Err(DirectoryError::OtherTenant),
            Some(_) => user,
            None => {
                if !allowed.auto_provision && !is_placed(tx, &user, &allowed).await? {
                    return Err(DirectoryError::NotProvisioned);
                }
                let user = tx.pin_tenant(user.id, tenant).await?;
                if allowed.auto_provision {
                    let group = group_of(tx, &allowed).await?;
                    tx.place_newcomer(&user, group).await?;
                }
                user
            }
        },
        None if !allowed.auto_provision => return Err(DirectoryError::NotProvisioned),
        None => {
            let new = NewUser {
                external_id: identity.subject.clone(),
                kyc: auto_kyc,
                auth_tenant_id: Some(tenant),
                groups: vec![group_of(tx, &allowed).await?],
            };
            tx.create_user(new).await?
        }
    };
    // A ban outlives the deletion of the user's row, so a new row may be banned at once.
    if user.banned {
        Err(DirectoryError::Banned)
    } else {
        Ok(user)
    }
}

/// Whether the user is a member of the tenant's own organization; membership of another organization does not count.
/// Always true if the tenant has no organization.
async fn is_placed(tx: &Tx, user: &User, tenant: &AllowedTenant) -> Result<bool, StoreError> {
    let Some(org) = tenant.default_org else { return Ok(true) };
    let held = tx.read().list_memberships(user.id, &Scope::Orgs(vec![org])).await?;
    Ok(!held.is_empty())
}

/// The tenant's group, or the default group if the tenant's is deleted, belongs to another organization, or grants
/// administration.
async fn group_of(tx: &Tx, tenant: &AllowedTenant) -> Result<GroupId, StoreError> {
    let Some(group) = tenant.default_group else {
        return Ok(Group::DEFAULT);
    };
    let default_group = tx.read().find_access(group).await?;
    let fits = default_group.is_some_and(|default_group| {
        let is_admin = default_group.group.is_org_admin || default_group.group.is_org_readonly_admin;
        Some(default_group.group.org) == tenant.default_org
            && !is_admin
            && !default_group.access.claims.has(Claim::Admin)
    });
    if !fits {
        tracing::warn!(tenant.id = %tenant.id, "the tenant's group does not serve; its new users join the default one");
    }
    Ok(if fits { group } else { Group::DEFAULT })
}

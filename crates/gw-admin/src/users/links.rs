use crate::{
    AdminState,
    body::JsonBody,
    error::Failure,
    input,
    private::PRIVATE,
    scope::Admin,
    wire::{
        AddressLinkCollision, EthAddressCollisionsResponse, LinkedAddressEntry, RevokeLinkRequest,
        UserLinkedAddressesResponse,
    },
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::Message;
use gw_policy::snapshot::LinkKind;
use gw_store::{read::Scope, record::Link};
use gw_types::{LinkId, Timestamp, UserId};

const fn kind(kind: LinkKind) -> &'static str {
    match kind {
        LinkKind::User => "user",
        LinkKind::System => "system",
    }
}

/// A user's live links. Administrators of an organization see which wallets are linked only where the address is Full for
/// them (HD12, HD30); of others that the user proved one, and on which day. Links that the gateway made by itself, because a
/// wallet sent something, tell of activity wherever it was: of hidden wallets they are not listed (HD40).
#[utoipa::path(get, path = "/api/v1/admin/users/{user_id}/linked-addresses", tag = "links",
    params(("user_id" = String, Path, format = Uuid)),
    responses((status = 200, body = UserLinkedAddressesResponse), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn list_linked_addresses(
    admin: Admin,
    State(state): State<AdminState>,
    Path(user): Path<String>,
) -> Result<Json<UserLinkedAddressesResponse>, Failure> {
    let user = admin.readable_user(&state.store.read(), &user).await?;
    let (scope, snapshot) = (admin.scope()?, state.feed.pin().snapshot);
    let view = admin.address_view(&state, &snapshot, &scope);
    let entry = |link: Link| {
        let open = view.shows(link.address);
        let time = |at: Timestamp| if open { at } else { day_of(at) };
        let listed = match link.kind {
            LinkKind::User => true,
            LinkKind::System => open,
        };
        listed.then(|| LinkedAddressEntry {
            id: link.id,
            address: view.print(link.address),
            link_type: kind(link.kind),
            ens_name: link.ens_name.filter(|_| open),
            ens_resolved_at: link.ens_resolved_at.filter(|_| open),
            verified_at: time(link.verified_at),
            created_at: time(link.created_at),
            revoked_at: link.revoked_at,
        })
    };
    let links = state.store.read().list_links(user.id).await?;
    Ok(Json(UserLinkedAddressesResponse {
        addresses: links.into_iter().filter_map(entry).collect(),
    }))
}

/// The beginning of the day.
fn day_of(at: Timestamp) -> Timestamp {
    const DAY: i64 = 86_400_000_000;
    Timestamp::from_micros(at.micros().div_euclid(DAY).saturating_mul(DAY))
}

/// Ends a link judged a compromise: visibility derived from it ends at once, and proving it again is refused.
///
/// The link is named by its address or by its id. Super only: a refusal that depended on the person's other organizations
/// would tell of them (HD32).
#[utoipa::path(delete, path = "/api/v1/admin/users/{user_id}/linked-addresses/{address}", tag = "links",
    params(("user_id" = String, Path, format = Uuid), ("address" = String, Path)), request_body = RevokeLinkRequest,
    responses((status = 200, body = Message), (status = 400), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn revoke_linked_address(
    admin: Admin,
    State(state): State<AdminState>,
    Path((user, address)): Path<(String, String)>,
    JsonBody(body): JsonBody<RevokeLinkRequest>,
) -> Result<Message, Failure> {
    admin.require_writer()?;
    let mut tx = admin.begin(&state).await?;
    let user = admin.writable_user(&tx.read(), &user).await?;
    admin.require_platform_wide()?;
    let reason = body.reason.trim();
    if reason.is_empty() || reason.chars().count() > 500 {
        return Err(Failure::bad("reason must have 1 to 500 characters"));
    }
    let links = tx.read().list_links(user.id).await?;
    let link = match address.parse::<LinkId>() {
        Ok(id) => links.iter().find(|link| link.id == id),
        Err(_) => {
            let address = input::address(&address)?;
            links.iter().find(|link| link.address == address)
        }
    };
    let address = link.ok_or_else(|| Failure::not_found("address not found"))?.address;
    tx.revoke_link(user.id, address, reason).await?;
    tx.commit().await?;
    Ok(Message::new("link revoked"))
}

/// Addresses that several users hold. For an organization's administrator: only those touching the scope, with names
/// outside it hidden, and with the address only where it is Full for them (HD30).
#[utoipa::path(get, path = "/api/v1/admin/eth-addresses/collisions", tag = "links",
    responses((status = 200, body = EthAddressCollisionsResponse), (status = 401), (status = 403)))]
pub(crate) async fn list_collisions(
    admin: Admin,
    State(state): State<AdminState>,
) -> Result<Json<EthAddressCollisionsResponse>, Failure> {
    let scope = admin.scope()?;
    let found = state.store.read().list_collisions(&scope).await?;
    let (snapshot, now) = (state.feed.pin().snapshot, state.clock.now());
    let view = admin.address_view(&state, &snapshot, &scope);
    let shown = |user: UserId| match &scope {
        Scope::All => true,
        Scope::Orgs(orgs) => orgs.iter().any(|org| snapshot.has_accepted(user, *org, now)),
    };
    let mut collisions = Vec::with_capacity(found.len());
    for collision in found {
        let open = view.shows(collision.address);
        let mine = collision
            .holders
            .iter()
            .any(|(user, _, _)| admin.user_id() == Some(*user));
        // Who forwarded somebody's transaction would learn here whose the wallet is.
        if (mine && !open) || !collision.holders.iter().any(|(user, _, _)| shown(*user)) {
            continue;
        }
        let mut holders: Vec<(String, &'static str)> = Vec::with_capacity(collision.holders.len());
        for (user, name, how) in collision.holders {
            holders.push((
                if shown(user) {
                    name.to_string()
                } else {
                    PRIVATE.to_owned()
                },
                kind(how),
            ));
        }
        holders.sort();
        let (dids, link_types) = holders.into_iter().unzip();
        collisions.push(AddressLinkCollision {
            eth_address: view.print(collision.address),
            dids,
            link_types,
        });
    }
    if !admin.is_super() {
        // The order of the addresses would tell something of those that are hidden.
        collisions.sort_by(|a, b| (&a.dids, &a.eth_address).cmp(&(&b.dids, &b.eth_address)));
    }
    Ok(Json(EthAddressCollisionsResponse {
        count: collisions.len(),
        collisions,
    }))
}

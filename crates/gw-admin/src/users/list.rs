use crate::{
    AdminState,
    error::AdminError,
    input,
    scope::{Admin, paging},
    wire::{User, UserGroupMembership, UserListItem},
};
use axum::{
    Json,
    extract::{RawQuery, State},
};
use gw_http::{Page, PageQuery, Paged};
use gw_store::read::{Role, UserFilter, UserSearch};
use gw_types::Address;

/// The query parameters, for the API description.
#[derive(Debug, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "the handler reads the raw query, because `group_id` repeats")]
pub(crate) struct Filter {
    /// Members of this organization.
    #[param(required = false, format = Uuid)]
    org_id: Option<String>,
    /// A complete external id, or a complete linked address that is Full for the caller. Parts do not match.
    #[param(required = false)]
    search: Option<String>,
    /// Members of any of these groups; repeatable.
    #[param(required = false)]
    group_id: Option<Vec<String>>,
    /// `org_admin`, `admin` or `member`.
    #[param(required = false)]
    role: Option<String>,
}

/// Lists the users in the caller's scope by external id. `groups` contains only groups of that scope.
#[utoipa::path(get, path = "/api/v1/admin/users", tag = "users", params(Filter, PageQuery),
    responses((status = 200, body = Paged<UserListItem>), (status = 400), (status = 401), (status = 403)))]
pub(crate) async fn list_users(
    admin: Admin,
    State(state): State<AdminState>,
    RawQuery(query): RawQuery,
    page: Page,
) -> Result<Json<Paged<UserListItem>>, AdminError> {
    let scope = admin.scope()?;
    let pinned = state.feed.pin();
    let mut filter = UserFilter {
        scope: scope.clone(),
        org: None,
        search: None,
        groups: Vec::new(),
        role: None,
        now: state.clock.now(),
    };
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        if value.is_empty() {
            continue;
        }
        match &*name {
            "org_id" => filter.org = Some(admin.readable_org(&state, &value).await?.id),
            "search" => {
                let view = admin.address_view(&state, &pinned.snapshot, &scope);
                filter.search = Some(search(value.trim(), |address| pinned.fresh && view.shows(address)));
            }
            "group_id" => filter.groups.push(input::id(&value, "group_id")?),
            "role" => {
                filter.role = Some(match &*value {
                    "org_admin" => Role::OrgAdmin,
                    "admin" => Role::Admin,
                    "member" => Role::Member,
                    _ => return Err(AdminError::bad_request("role must be org_admin, admin or member")),
                });
            }
            _ => {}
        }
    }
    let users = state.store.read().list_users(&filter, paging(page)).await?;
    let rows = users.rows.into_iter().map(|row| UserListItem {
        user: if admin.is_super() {
            row.user.into()
        } else {
            User::in_orgs(row.user, &row.memberships, &row.records)
        },
        groups: row
            .groups
            .into_iter()
            .map(|g| UserGroupMembership {
                group_id: g.id,
                org_id: g.org,
                name: g.name,
                slug: g.slug,
                is_org_admin: g.is_org_admin,
            })
            .collect(),
    });
    Ok(Json(page.answer(rows.collect(), users.total)))
}

/// The search for an external id or an address (HD30). An address that the caller may not see matches no user.
fn search(text: &str, shows: impl Fn(Address) -> bool) -> UserSearch {
    match input::address(text) {
        Ok(address) if shows(address) => UserSearch::Holder(address),
        Ok(_) => UserSearch::Nobody,
        Err(_) => UserSearch::ExternalId(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RT3: by nibbles, a wallet was found in 399 requests.
    #[test]
    fn rt3_a_search_names_whole_values() {
        let known = Address::repeat_byte(0x11);
        let shows = |address| address == known;
        assert_eq!(search(&known.to_string(), shows), UserSearch::Holder(known));
        assert_eq!(
            search(&Address::repeat_byte(0x22).to_string(), shows),
            UserSearch::Nobody
        );
        for part in ["0x", "0x1", "11", "did:test", known.to_string().get(..41).unwrap()] {
            assert_eq!(search(part, shows), UserSearch::ExternalId(part.to_owned()));
        }
    }
}

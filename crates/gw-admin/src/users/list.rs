use crate::{
    AdminState,
    error::Failure,
    input,
    scope::{Admin, paging},
    wire::{UserGroupMembership, UserListItem},
};
use axum::{
    Json,
    extract::{RawQuery, State},
};
use gw_http::{Page, PageQuery, Paged};
use gw_store::read::{Role, UserFilter};

/// The query parameters, for the API description.
#[derive(Debug, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "the handler reads the raw query, because `group_id` repeats")]
pub(crate) struct Filter {
    /// Members of this organization.
    #[param(required = false, format = Uuid)]
    org_id: Option<String>,
    /// A part of the external id or of a linked address.
    #[param(required = false)]
    search: Option<String>,
    /// Members of any of these groups; repeatable.
    #[param(required = false)]
    group_id: Option<Vec<String>>,
    /// `org_admin`, `admin` or `member`.
    #[param(required = false)]
    role: Option<String>,
}

/// The users in the caller's scope, by external id; `groups` holds only groups of that scope.
#[utoipa::path(get, path = "/api/v1/admin/users", tag = "users", params(Filter, PageQuery),
    responses((status = 200, body = Paged<UserListItem>), (status = 400), (status = 401), (status = 403)))]
pub(crate) async fn list_users(
    admin: Admin,
    State(state): State<AdminState>,
    RawQuery(query): RawQuery,
    page: Page,
) -> Result<Json<Paged<UserListItem>>, Failure> {
    let mut filter = UserFilter {
        scope: admin.scope()?,
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
            "search" => filter.search = Some(value.into_owned()),
            "group_id" => filter.groups.push(input::id(&value, "group_id")?),
            "role" => {
                filter.role = Some(match &*value {
                    "org_admin" => Role::OrgAdmin,
                    "admin" => Role::Admin,
                    "member" => Role::Member,
                    _ => return Err(Failure::bad("role must be org_admin, admin or member")),
                });
            }
            _ => {}
        }
    }
    let found = state.store.read().list_users(&filter, paging(page)).await?;
    let rows = found.rows.into_iter().map(|row| UserListItem {
        user: row.user.into(),
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
    Ok(Json(page.of(rows.collect(), found.total)))
}

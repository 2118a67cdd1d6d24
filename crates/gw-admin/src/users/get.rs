use crate::{AdminState, error::Failure, scope::Admin, wire::User};
use axum::{
    Json,
    extract::{Path, State},
};

/// One user.
#[utoipa::path(get, path = "/api/v1/admin/users/{user_id}", tag = "users",
    params(("user_id" = String, Path, format = Uuid)),
    responses((status = 200, body = User), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn get_user(
    admin: Admin,
    State(state): State<AdminState>,
    Path(user): Path<String>,
) -> Result<Json<User>, Failure> {
    Ok(Json(admin.readable_user(&state.store.read(), &user).await?.into()))
}

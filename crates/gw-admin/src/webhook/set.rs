use super::UNKNOWN;
use crate::{
    AdminState,
    body::JsonBody,
    error::AdminError,
    scope::Admin,
    wire::{Webhook, WebhookInput},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_crypto::webhook_secret_text;
use gw_http::ApiError;
use gw_types::WebhookSecret;

/// Sets the address that events of an organization's disclosures are posted to. The answer contains the secret of the
/// signatures if this request made one: when it creates the webhook, or with `rotate_secret`. The former secret signs
/// nothing any more.
#[utoipa::path(put, path = "/api/v1/admin/orgs/{org_id}/webhook", tag = "organizations",
    params(("org_id" = String, Path, format = Uuid)), request_body = WebhookInput,
    responses((status = 200, body = Webhook), (status = 400), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn set_webhook(
    admin: Admin,
    State(state): State<AdminState>,
    Path(org): Path<String>,
    JsonBody(body): JsonBody<WebhookInput>,
) -> Result<Json<Webhook>, AdminError> {
    let org = admin.writable_org(&state, &org).await?.id;
    let url = state.delivery_networks.parse_url(&body.url);
    let url = url.map_err(|error| AdminError::bad_request(error.to_string()))?;
    let mut tx = admin.begin(&state).await?;
    let needs_secret = body.rotate_secret || tx.read().find_webhook(org).await?.is_none();
    let secret = if needs_secret {
        let Some(cipher) = &state.key_cipher else {
            return Err(AdminError::bad_request(
                "RPC_API_KEY_ENCRYPTION_KEY is not set: the secret of a webhook cannot be stored",
            ));
        };
        let mut bytes = [0; 32];
        state.entropy.fill(&mut bytes);
        let secret = WebhookSecret::new(bytes);
        let sealed = cipher.seal_webhook_secret(org, &secret, &*state.entropy);
        Some((secret, sealed.map_err(|_| AdminError::from(ApiError::internal()))?))
    } else {
        None
    };
    tx.set_webhook(org, url.as_str(), secret.as_ref().map(|(_, sealed)| *sealed))
        .await?;
    let status = tx.read().find_webhook(org).await?;
    let status = status.ok_or_else(|| AdminError::not_found(UNKNOWN))?;
    tx.commit().await?;
    let secret = secret.map(|(secret, _)| webhook_secret_text(&secret));
    Ok(Json(Webhook::new(status, secret)))
}

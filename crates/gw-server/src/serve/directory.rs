//! The enterprise directory of the configuration.

use crate::config::Config;
use anyhow::Context as _;
use gw_cache::Cache;
use gw_http::HttpContext;
use gw_identity::{Directory, DirectorySettings, directory::Rules};
use std::sync::Arc;

/// The directory by which users and service principals log in; `None` if none is configured.
///
/// # Errors
/// If the HTTP client of the directory cannot be created.
pub(super) fn directory(
    config: &Config,
    cache: Cache,
    http_context: &HttpContext,
) -> anyhow::Result<Option<Arc<Directory>>> {
    let identity = &config.identity;
    let auto_kyc = [
        (identity.auto_kyc, "AUTO_KYC_IDP"),
        (
            identity.directory.as_ref().is_some_and(|d| d.auto_kyc_user),
            "AUTO_KYC_DIRECTORY_USER",
        ),
        (
            identity
                .directory
                .as_ref()
                .is_some_and(|d| d.auto_kyc_service_principal),
            "AUTO_KYC_DIRECTORY_SERVICE_PRINCIPAL",
        ),
    ];
    for (_, setting) in auto_kyc.into_iter().filter(|(is_enabled, _)| *is_enabled) {
        tracing::warn!(
            setting,
            "new accounts pass the KYC gate without a review; unset this setting if they must be reviewed"
        );
    }
    let Some(configured) = &identity.directory else {
        return Ok(None);
    };
    let settings = DirectorySettings {
        rules: Rules {
            authority: configured.authority.clone(),
            client_id: configured.client_id.clone(),
            sp_audience: configured.sp_audience.clone(),
            sp_clients: configured.sp_clients.clone(),
            sp_role: configured.sp_role.clone(),
        },
        client_secret: configured.client_secret.clone(),
        tenant: configured.tenant.clone(),
        auto_kyc_user: configured.auto_kyc_user,
        auto_kyc_service_principal: configured.auto_kyc_service_principal,
    };
    let (clock, entropy) = (Arc::clone(&http_context.clock), Arc::clone(&http_context.entropy));
    let directory = Directory::new(settings, cache, clock, entropy)
        .context("the client of the enterprise directory cannot be created")?;
    Ok(Some(Arc::new(directory)))
}

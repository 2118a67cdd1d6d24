//! The enterprise directory, as configured.

use crate::config::Config;
use anyhow::Context as _;
use gw_cache::Cache;
use gw_http::Edge;
use gw_identity::{Directory, DirectorySettings, directory::Rules};
use std::sync::Arc;

/// The directory people and machines may log in with, where one is configured.
pub(super) fn directory(config: &Config, cache: Cache, edge: &Edge) -> anyhow::Result<Option<Arc<Directory>>> {
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
    for (_, setting) in auto_kyc.into_iter().filter(|(on, _)| *on) {
        tracing::warn!(
            setting,
            "new accounts pass the KYC gate without anybody having looked at them"
        );
    }
    let Some(from) = &identity.directory else {
        return Ok(None);
    };
    let settings = DirectorySettings {
        rules: Rules {
            authority: from.authority.clone(),
            client_id: from.client_id.clone(),
            sp_audience: from.sp_audience.clone(),
            sp_clients: from.sp_clients.clone(),
            sp_role: from.sp_role.clone(),
        },
        client_secret: from.client_secret.clone(),
        tenant: from.tenant.clone(),
        auto_kyc_user: from.auto_kyc_user,
        auto_kyc_service_principal: from.auto_kyc_service_principal,
    };
    let (clock, entropy) = (Arc::clone(&edge.clock), Arc::clone(&edge.entropy));
    let directory = Directory::new(settings, cache, clock, entropy).context("the directory cannot be asked")?;
    Ok(Some(Arc::new(directory)))
}

//! Disclosure for the other features: its state, and the grants as the explorer needs them.

use super::features::AppDeps;
use crate::config::kind::signing_key;
use anyhow::Context as _;
use gw_audit::DisclosureRead;
use gw_disclosure::{DisclosureSettings, DisclosureState, DocumentKey};
use gw_explorer::{ActivityCall, ActivityPage, Aliases, GrantFault, GrantFuture, GrantRefusal, Grants, PreviewFuture};
use gw_policy::{Snapshot, access::disclosed_addresses, disclosure::OpenGrant};
use gw_store::{Feed, read::Paging};
use gw_types::{Address, DisclosureGrantId, ExternalId, Timestamp, UserId};
use std::sync::Arc;

/// The state of the routes of disclosure.
///
/// # Errors
/// If the checkpoint key cannot be read.
pub(super) fn state(deps: &AppDeps<'_>) -> anyhow::Result<DisclosureState> {
    let config = &deps.config.disclosure;
    let key = signing_key(deps.secrets.checkpoint.expose()).context("the checkpoint key cannot be read")?;
    Ok(DisclosureState {
        http_context: Arc::clone(&deps.http_context),
        store: deps.store.clone(),
        feed: deps.feed.clone(),
        audit: deps.audit.clone(),
        journal: Arc::clone(&deps.journal),
        cache: deps.cache.clone(),
        key_cipher: Arc::clone(&deps.group_keys),
        document_key: Arc::new(DocumentKey::from_seed(&key.to_bytes())),
        policy_settings: Arc::new(deps.config.policy_settings.clone()),
        settings: DisclosureSettings {
            require_legal_basis_full: config.requires_legal_basis_for_full,
            limits: config.grant_limits,
        },
        base_url: deps.config.edge.base_url.as_str().into(),
        tasks: deps.tasks.clone(),
    })
}

/// The grants of disclosure, for the explorer.
#[derive(Clone, Debug)]
pub(super) struct ExplorerGrants {
    pub(super) disclosure: DisclosureState,
    pub(super) feed: Feed,
}

impl Grants for ExplorerGrants {
    fn find(
        &self,
        snapshot: &Snapshot,
        grantee: &ExternalId,
        grant: DisclosureGrantId,
        now: Timestamp,
    ) -> Result<OpenGrant, GrantRefusal> {
        let opened = self.disclosure.open_grant(snapshot, grantee, grant, now);
        opened.map_err(|refusal| match refusal {
            gw_disclosure::GrantRefusal::Unknown => GrantRefusal::Unknown,
            gw_disclosure::GrantRefusal::Revoked => GrantRefusal::Revoked,
            gw_disclosure::GrantRefusal::Expired => GrantRefusal::Expired,
            gw_disclosure::GrantRefusal::Secret(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    grant.id = %grant,
                    "a grant of disclosure cannot be used: its secret cannot be decrypted"
                );
                GrantRefusal::Unusable
            }
        })
    }

    fn list(&self, snapshot: &Snapshot, grantee: &ExternalId, now: Timestamp) -> Vec<OpenGrant> {
        self.disclosure.open_grants(snapshot, grantee, now)
    }

    fn activity<'a>(&'a self, grant: &'a OpenGrant, limit: u64, offset: u64) -> GrantFuture<'a, ActivityPage> {
        Box::pin(async move {
            let paging = Paging { limit, offset };
            let owner = &grant.owner.external_id;
            let page = self.disclosure.activity(&grant.grant, owner, paging).await;
            let page = page.map_err(|error| {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "the calls that a grant of disclosure covers cannot be read"
                );
                if error.is_unavailable() {
                    GrantFault::Unavailable
                } else {
                    GrantFault::Store
                }
            })?;
            let calls = page.calls.into_iter().map(|call| ActivityCall {
                method: call.method,
                status_code: call.status_code,
                time: call.time,
            });
            Ok(ActivityPage {
                calls: calls.collect(),
                total: page.total,
            })
        })
    }

    fn preview<'a>(
        &'a self,
        snapshot: &'a Snapshot,
        owner: UserId,
        request: &'a str,
        approval: &'a [u8],
    ) -> PreviewFuture<'a> {
        Box::pin(self.disclosure.preview(snapshot, owner, request, approval))
    }

    fn record(&self, reads: Vec<DisclosureRead>) -> GrantFuture<'_, ()> {
        Box::pin(async move {
            let recorded = self.disclosure.record_reads(reads).await;
            recorded.map_err(|error| {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "a read under a grant of disclosure cannot be recorded; nothing was shown"
                );
                GrantFault::Unrecorded
            })
        })
    }
}

impl Aliases for ExplorerGrants {
    fn alias(&self, grant: DisclosureGrantId, address: Address) -> Option<String> {
        let pinned = self.feed.pin();
        let snapshot = &pinned.snapshot;
        let grant = snapshot.find_disclosure(grant)?;
        let names = self.disclosure.names(grant).ok()?;
        let now = self.disclosure.http_context.now();
        let is_disclosed = disclosed_addresses(snapshot, grant, now).contains(&address);
        Some(if is_disclosed {
            names.pseudonym(address)
        } else {
            names.external(address)
        })
    }
}

//! The state shared by the routes.

use crate::{canonical::NotCanonical, signature::DocumentKey};
use axum::extract::FromRef;
use gw_cache::{Cache, Rate};
use gw_crypto::KeyCipher;
use gw_http::{ApiError, HttpContext};
use gw_journal::Journal;
use gw_policy::{PolicySettings, disclosure::GrantLimits};
use gw_store::{Feed, Store, audit::AuditStore};
use serde_json::Value;
use std::{num::NonZeroU32, sync::Arc};
use tokio_util::task::TaskTracker;

/// The state shared by the routes; cheap to clone.
#[derive(Clone, Debug)]
pub struct DisclosureState {
    /// Authentication and the source of policy snapshots.
    pub http_context: Arc<HttpContext>,
    /// The store with requests and grants.
    pub store: Store,
    /// The feed of the snapshots in `http_context`.
    pub feed: Feed,
    /// The sealed logs: events, and the owners' calls.
    pub audit: AuditStore,
    /// The journal that records every request and every read.
    pub journal: Arc<Journal>,
    /// Tokens, reports and counters.
    pub cache: Cache,
    /// Opens and seals the secrets of grants.
    pub key_cipher: Arc<KeyCipher>,
    /// Signs reports, receipts and exports.
    pub document_key: Arc<DocumentKey>,
    /// The policy settings that every decision uses.
    pub policy_settings: Arc<PolicySettings>,
    /// Configuration of disclosure.
    pub settings: DisclosureSettings,
    /// BASE_URL, without a slash at its end.
    pub base_url: Arc<str>,
    /// Tracks requests that outlive their client.
    pub tasks: TaskTracker,
}

/// Configuration of disclosure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DisclosureSettings {
    /// `DISCLOSURE_REQUIRE_LEGAL_BASIS_FULL`: a request for the level full needs a legal basis (rule 7).
    pub require_legal_basis_full: bool,
    /// `DISCLOSURE_MAX_GRANT_HOURS` (rule 12).
    pub limits: GrantLimits,
}

/// Requests of one administrator, and grants that one owner makes without a request, per minute (spec/50 section 8).
const PER_MINUTE: NonZeroU32 = NonZeroU32::new(60).unwrap();

impl DisclosureState {
    /// Counts a request or grant that this person creates.
    ///
    /// # Errors
    /// 429 for more than 60 within a minute.
    pub(crate) async fn check_creation_rate(&self, creator: &str) -> Result<(), ApiError> {
        let rate = const { Rate::per_minute("disclosure_requests", PER_MINUTE) };
        self.cache
            .check_rate(rate, creator)
            .await
            .map_err(ApiError::rate_limited)
    }

    /// The document with its signature in the member `signature` (rule 37).
    ///
    /// # Errors
    /// [`NotCanonical`] if the document has no canonical form.
    pub(crate) fn sign(&self, mut document: Value) -> Result<Value, NotCanonical> {
        let signature = self.document_key.sign(&document)?;
        if let Value::Object(members) = &mut document {
            // A signature consists of texts.
            members.insert(
                "signature".to_owned(),
                serde_json::to_value(signature).unwrap_or_default(),
            );
        }
        Ok(document)
    }
}

impl FromRef<DisclosureState> for Arc<HttpContext> {
    fn from_ref(state: &DisclosureState) -> Self {
        Self::clone(&state.http_context)
    }
}

//! Logins without a proof, for development (spec/10 section 8). Compiled only with the feature `mock-login`, which no
//! release has.

use super::{AuthorizationRequest, ProofError, ProofVerifier, VerifiedLogin};
use futures_util::future::BoxFuture;
use gw_http::Amr;
use gw_policy::snapshot::Organization;
use gw_store::{
    StoreError, Tx,
    record::{AccessInput, NewGroup},
};
use gw_types::{Claim, ExternalId, GroupId, Timestamp};
use std::sync::Arc;

/// The longer prefix first, because it begins with the shorter one.
const PREFIXES: [&str; 2] = ["mock.jwz.token.", "mock."];
/// The group that makes created mock users administrators (decision 24).
const GROUP: &str = "mock-admin";
/// Prefix of the names that get no admin claim (MK-3).
const PLAIN: &str = "did:test:";

/// Accepts `mock.<did>` and `mock.jwz.token.<did>` without a proof and passes every other token to another verifier.
#[derive(Clone, Debug)]
pub struct MockVerifier {
    otherwise: Arc<dyn ProofVerifier>,
}

impl MockVerifier {
    /// Creates a verifier that passes every token without a mock prefix to `otherwise`.
    pub fn before(otherwise: Arc<dyn ProofVerifier>) -> Self {
        Self { otherwise }
    }
}

impl ProofVerifier for MockVerifier {
    fn verify<'a>(
        &'a self,
        token: &'a str,
        request: &'a AuthorizationRequest,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<VerifiedLogin, ProofError>> {
        let Some(name) = PREFIXES.iter().find_map(|prefix| token.strip_prefix(prefix)) else {
            return self.otherwise.verify(token, request, now);
        };
        let proved = match ExternalId::new(name) {
            Ok(subject) if subject.is_did() => Ok(VerifiedLogin {
                subject,
                amr: Amr::Mock,
                nullifier: None,
            }),
            Ok(_) | Err(_) => Err(ProofError::Unreadable),
        };
        Box::pin(std::future::ready(proved))
    }
}

/// The group that a user created by this login joins in addition to the default one (decision 24). Created when first
/// needed.
pub(crate) async fn admin_group(tx: &mut Tx, proved: &VerifiedLogin) -> Result<Option<GroupId>, StoreError> {
    if proved.amr != Amr::Mock || proved.subject.as_str().starts_with(PLAIN) {
        return Ok(None);
    }
    if let Some(group) = tx.read().find_group_by_slug(Organization::DEFAULT, GROUP).await? {
        return Ok(Some(group.id));
    }
    let group = tx
        .create_group(NewGroup::plain(Organization::DEFAULT, GROUP, GROUP))
        .await?;
    let access = AccessInput {
        allowed_methods: vec!["*".to_owned()],
        claims: [Claim::Admin].into_iter().collect(),
        ..AccessInput::default()
    };
    tx.set_access(group.id, access).await?;
    Ok(Some(group.id))
}

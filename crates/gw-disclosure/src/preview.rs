//! The grant that an approval would make, for its owner to look at before deciding. Nothing is stored.

use crate::{
    DisclosureState,
    caller::parse_optional,
    error::{NO_REQUEST, OwnerError, denied},
    wire::ApproveDisclosureRequestBody,
};
use gw_http::ApiError;
use gw_policy::{
    Snapshot,
    access::disclosed_addresses,
    disclosure::{GrantAliases, OpenGrant},
    snapshot::DisclosureGrant,
};
use gw_store::GrantTerms;
use gw_types::{DisclosureGrantId, SealedGrantSecret, UserId};
use std::sync::Arc;

impl DisclosureState {
    /// The grant that the owner's approval of a request would make, by the same rules as the approval. Its secret is
    /// random and forgotten, so its names are not those of the grant; nor is its id.
    ///
    /// # Errors
    /// [`ApiError`] with the status and text of the approval: 400 for a body that cannot be parsed, for a request that
    /// is not pending and for a scope or duration that is refused; 403 for the request of another owner; 404 for an
    /// unknown one; 503 if the store cannot be reached.
    pub async fn preview(
        &self,
        snapshot: &Snapshot,
        owner: UserId,
        request: &str,
        body: &[u8],
    ) -> Result<OpenGrant, ApiError> {
        let previewed = self.preview_grant(snapshot, owner, request, body).await;
        previewed.map_err(ApiError::from)
    }

    async fn preview_grant(
        &self,
        snapshot: &Snapshot,
        owner: UserId,
        request: &str,
        body: &[u8],
    ) -> Result<OpenGrant, OwnerError> {
        let approval = parse_optional::<ApproveDisclosureRequestBody>(body)?.into_approval()?;
        let unknown = || ApiError::not_found(NO_REQUEST);
        let id = request.parse().map_err(|_| unknown())?;
        let details = self.store.read().find_disclosure_request(id).await?;
        let request = details.ok_or_else(unknown)?.request;
        if request.target != owner {
            return Err(denied().into());
        }
        let now = self.http_context.now();
        let GrantTerms { scope, expires_at } = request.terms(&approval, self.settings.limits, now)?;
        let no_requester = || ApiError::bad_request("the request names no requester, so nobody could use its grant");
        let grantee = request.requester_did.ok_or_else(no_requester)?;
        let owner = snapshot.user(owner).map(Arc::clone).ok_or_else(unknown)?;
        let mut secret = [0; 32];
        self.http_context.entropy.fill(&mut secret);
        // HMAC accepts keys of any length.
        let names = GrantAliases::new(&secret).ok_or_else(unknown)?;
        let grant = DisclosureGrant {
            id: DisclosureGrantId(self.http_context.entropy.uuid()),
            owner: owner.id,
            grantee,
            org: request.org,
            granted_at: now,
            expires_at,
            revoked_at: None,
            include_future_addresses: approval.include_future_addresses,
            scope,
            secret: SealedGrantSecret([0; 60]),
        };
        Ok(OpenGrant {
            addresses: disclosed_addresses(snapshot, &grant, now),
            grant: Arc::new(grant),
            owner,
            names,
        })
    }
}

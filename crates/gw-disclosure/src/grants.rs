//! Grants as their grantees use them: found by id, compared with the grantee, and with their names and addresses.

use crate::DisclosureState;
use gw_crypto::KeyCipherError;
use gw_policy::{
    Snapshot,
    access::disclosed_addresses,
    disclosure::{GrantAliases, OpenGrant},
    snapshot::DisclosureGrant,
};
use gw_types::{DisclosureGrantId, ExternalId, OrgId, Timestamp};
use std::{cmp::Reverse, collections::HashMap, sync::Arc};

/// The most grants of one viewer that are looked at (spec/50 section 8).
const MAX_GRANTS: usize = 500;

/// Why a grantee may not use a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrantRefusal {
    /// There is no such grant, or its grantee is another person: the same answer.
    #[error("no such grant")]
    Unknown,
    /// It was revoked.
    #[error("the grant was revoked")]
    Revoked,
    /// It has expired.
    #[error("the grant has expired")]
    Expired,
    /// Its secret cannot be decrypted.
    #[error("the secret of the grant cannot be decrypted")]
    Secret(#[source] KeyCipherError),
}

impl DisclosureState {
    /// A grant that this person may use at `now`, by this snapshot.
    ///
    /// # Errors
    /// [`GrantRefusal`] if the person has no such grant, or it has ended.
    pub fn open_grant(
        &self,
        snapshot: &Snapshot,
        grantee: &ExternalId,
        id: DisclosureGrantId,
        now: Timestamp,
    ) -> Result<OpenGrant, GrantRefusal> {
        let grant = snapshot.find_disclosure(id).filter(|grant| grant.grantee == *grantee);
        let grant = grant.ok_or(GrantRefusal::Unknown)?;
        if grant.revoked_at.is_some() {
            return Err(GrantRefusal::Revoked);
        }
        if !grant.is_active(now) {
            return Err(GrantRefusal::Expired);
        }
        self.opened(snapshot, grant, now)
    }

    /// The grants that this person may use at `now`, the newest first; at most 500: of more, the newest ones of each
    /// organization, so that none hides those of another. A grant whose secret cannot be decrypted is left out, and
    /// logged.
    pub fn open_grants(&self, snapshot: &Snapshot, grantee: &ExternalId, now: Timestamp) -> Vec<OpenGrant> {
        let mut active: Vec<_> = snapshot
            .disclosures_to(grantee)
            .iter()
            .filter(|grant| grant.is_active(now))
            .collect();
        active.sort_by_key(|grant| Reverse((grant.granted_at, grant.id)));
        let mut per_org = HashMap::<OrgId, usize>::new();
        let mut ranked: Vec<_> = active
            .into_iter()
            .map(|grant| {
                let newer = per_org.entry(grant.org).or_default();
                *newer += 1;
                (*newer, grant)
            })
            .collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        ranked.truncate(MAX_GRANTS);
        ranked.sort_by_key(|(_, grant)| Reverse((grant.granted_at, grant.id)));
        let opened = ranked.into_iter().filter_map(|(_, grant)| {
            let opened = self.opened(snapshot, grant, now);
            opened
                .inspect_err(|error| {
                    tracing::error!(
                        error = error as &dyn std::error::Error,
                        grant.id = %grant.id,
                        "a grant of disclosure cannot be used; check GROUP_KEY_ENCRYPTION_KEY and its previous value"
                    );
                })
                .ok()
        });
        opened.collect()
    }

    /// The names of addresses under a grant.
    ///
    /// # Errors
    /// [`GrantRefusal::Secret`] if the secret of the grant cannot be decrypted.
    pub fn names(&self, grant: &DisclosureGrant) -> Result<GrantAliases, GrantRefusal> {
        let secret = self.key_cipher.open_grant_secret(grant.id, &grant.secret);
        let secret = secret.map_err(GrantRefusal::Secret)?;
        // HMAC accepts keys of any length.
        GrantAliases::new(secret.expose()).ok_or(GrantRefusal::Unknown)
    }

    fn opened(
        &self,
        snapshot: &Snapshot,
        grant: &Arc<DisclosureGrant>,
        now: Timestamp,
    ) -> Result<OpenGrant, GrantRefusal> {
        let owner = snapshot.user(grant.owner).ok_or(GrantRefusal::Unknown)?;
        Ok(OpenGrant {
            grant: Arc::clone(grant),
            owner: Arc::clone(owner),
            names: self.names(grant)?,
            addresses: disclosed_addresses(snapshot, grant, now),
        })
    }
}

//! The key that authenticates outbox rows: rows changed or inserted by someone with access only to the database do not
//! carry a valid code (spec/70 rule 18).

use crate::entity::audit_outbox;
use gw_audit::StoreId;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::json;
use sha2::{Digest as _, Sha256};

/// Separates this use of the checkpoint key from all others.
const PURPOSE: &[u8] = b"ledger-gateway/outbox-row/1";

/// Authenticates outbox rows. Derived from a secret that no database holds.
#[derive(Clone)]
pub struct OutboxKey([u8; 32]);

impl core::fmt::Debug for OutboxKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("OutboxKey(…)")
    }
}

impl OutboxKey {
    /// Derives the key from the private key of the checkpoints: all instances of a deployment share it.
    pub fn derive(checkpoint_seed: &[u8; 32]) -> Self {
        let mut mac = keyed(checkpoint_seed);
        mac.update(PURPOSE);
        Self(mac.finalize().into_bytes().into())
    }

    /// Computes the row's code over the id of its store, its own id and every sealed column.
    pub(crate) fn code(&self, store: StoreId, row: &audit_outbox::Model) -> [u8; 32] {
        self.mac_over(store, row).finalize().into_bytes().into()
    }

    fn mac_over(&self, store: StoreId, row: &audit_outbox::Model) -> Hmac<Sha256> {
        let mut mac = keyed(&self.0);
        mac.update(text(store, row).as_bytes());
        mac
    }

    /// Whether the row's code is valid for the row.
    pub(crate) fn authenticates(&self, store: StoreId, row: &audit_outbox::Model) -> bool {
        row.mac
            .as_deref()
            .is_some_and(|mac| self.mac_over(store, row).verify_slice(mac).is_ok())
    }
}

/// HMAC fills a key that is shorter than its block with zeros.
fn keyed(key: &[u8; 32]) -> Hmac<Sha256> {
    let mut block = [0; 64];
    block.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    Hmac::new(&block.into())
}

/// Computes the digest of a row, including its code. It needs no key, so it stays valid after a key rotation.
pub(crate) fn digest(store: StoreId, row: &audit_outbox::Model) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update(text(store, row));
    digest.update(row.mac.as_deref().unwrap_or_default());
    digest.finalize().into()
}

/// The input of codes and digests.
fn text(store: StoreId, row: &audit_outbox::Model) -> String {
    let audit_outbox::Model {
        id,
        action,
        actor_id,
        actor_external_id,
        created_at,
        ip_address,
        org_id,
        resource_id,
        resource_name,
        resource_type,
        old_value,
        new_value,
        correlation_id,
        salt_seed,
        mac: _,
        sealed_at: _,
    } = row;
    let caller = (actor_id, actor_external_id, ip_address, correlation_id);
    let change = (
        action,
        org_id,
        resource_type,
        resource_id,
        resource_name,
        old_value,
        new_value,
    );
    // One JSON array of fixed shape: different rows never produce the same text.
    json!([store, id, created_at, caller, change, salt_seed]).to_string()
}

//! Audit entries: the image of each record, and who changed it (spec/70 section 2, rule 31).
//!
//! Invariant: an image names its members one by one, so a new column is not shown unless it is added; a secret is shown
//! only as set or not set, and as `{"changed":true}` where it changed.

use super::Tx;
use crate::{
    StoreError,
    audit::{
        outbox::{self, OutboxMark},
        outbox_key,
    },
    dialect::{self, Engine, Transaction},
    entity::audit_outbox,
    record::{
        AllowedTenant, Application, ApprovedCode, Contract, Conviction, Family, Grant, Group, GroupAccess,
        Impersonation, Link, Membership, OpenReservation, OrgUserRecord, Organization, PendingLogin, PersonalUrl,
        Quarantine, SharedInfra, Suspension, TenantRemoval, ToggleUpdate, User, WithheldChange,
    },
    row,
};
pub(crate) use gw_audit::Action;
use gw_audit::ResourceType;
use gw_policy::snapshot::UrlReach;
use gw_types::{Epoch, OrgId, UserId};
use sea_orm::{ActiveModelTrait, EntityTrait};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// A record that has audit entries.
pub(crate) trait Auditable {
    const RESOURCE: ResourceType;
    /// Returns the record's id; never an address or a DID, which are personal data.
    fn resource_id(&self) -> String;
    /// Returns the display name; empty if there is none.
    fn resource_name(&self) -> String;
    /// Returns its allowlisted members.
    fn image(&self) -> Value;
    /// Returns its members after a change, if the change itself must be visible.
    fn changed_image(&self, _before: &Self) -> Value {
        self.image()
    }
}

impl Tx {
    /// Adds an audit entry; written with the commit, in the same transaction (C6).
    pub(super) fn record_audit<T: Auditable>(
        &mut self,
        action: Action,
        org: Option<OrgId>,
        before: Option<&T>,
        after: Option<&T>,
    ) {
        let Some(subject) = after.or(before) else { return };
        let new_value = match (before, after) {
            (Some(before), Some(after)) => Some(after.changed_image(before)),
            (None, Some(after)) => Some(after.image()),
            (_, None) => None,
        };
        let name = subject.resource_name();
        self.entries.push(audit_outbox::Model {
            // Assigned when the entries are written.
            id: 0,
            action: action.as_str().to_owned(),
            actor_id: self.actor.user.map(|user| user.0),
            actor_external_id: self.actor.external_id.clone(),
            created_at: self.now.micros(),
            ip_address: self.actor.ip.map(|ip| ip.to_string()),
            org_id: org.map(|org| org.0),
            resource_id: Some(subject.resource_id()),
            resource_name: (!name.is_empty()).then_some(name),
            resource_type: T::RESOURCE.as_str().to_owned(),
            old_value: before.map(|before| bounded(before.image())),
            new_value: new_value.map(bounded),
            correlation_id: self.actor.correlation_id.clone(),
            salt_seed: None,
            mac: None,
            sealed_at: None,
        });
    }

    /// Adds the member `word: true` to the new value of the entries so far of one organization.
    pub fn annotate_audit_entries(&mut self, org: OrgId, word: &'static str) {
        for entry in self.entries.iter_mut().filter(|entry| entry.org_id == Some(org.0)) {
            let parsed = entry
                .new_value
                .as_ref()
                .and_then(|text| serde_json::from_str(text).ok());
            let mut members = if let Some(Value::Object(members)) = parsed {
                members
            } else {
                serde_json::Map::new()
            };
            members.insert(word.to_owned(), true.into());
            entry.new_value = Some(Value::Object(members).to_string());
        }
    }

    /// Records that an administrator requests that the explorer reads a block again. Changes no policy.
    pub fn note_block_reindex(&mut self, number: u64) {
        self.record_audit(Action::Update, None, None, Some(&BlockReindex { number }));
    }

    /// Assigns ids without gaps and a code to each entry; returns the rows to write, or `None` if there are none.
    pub(super) async fn number_entries(&mut self) -> Result<Option<OutboxBatch>, StoreError> {
        let mut entries = core::mem::take(&mut self.entries);
        let Ok(count @ 1..) = i64::try_from(entries.len()) else {
            return Ok(None);
        };
        let config = &self.store.config;
        let mark = outbox::take_ids(&self.db, count, &config.outbox, &self.store.outbox_alarms).await?;
        for (entry, id) in entries.iter_mut().zip(mark.last_id - count + 1..) {
            entry.id = id;
            let mut seed = vec![0; 32];
            config.entropy.fill(&mut seed);
            entry.salt_seed = Some(seed);
            entry.mac = config
                .outbox
                .key
                .as_ref()
                .map(|key| key.code(mark.store, entry).to_vec());
        }
        Ok(Some(OutboxBatch { mark, rows: entries }))
    }
}

/// The outbox rows that a mutation writes.
#[derive(Debug)]
pub(super) struct OutboxBatch {
    pub(super) mark: OutboxMark,
    pub(super) rows: Vec<audit_outbox::Model>,
}

impl OutboxBatch {
    /// Writes the rows and commits; returns the raised epoch.
    ///
    /// # Errors
    /// [`StoreError::Unconfirmed`]: the mutation may be committed. Any other error means that nothing was committed.
    pub(super) async fn write_and_commit(
        &self,
        db: Transaction,
    ) -> Result<Option<(Epoch, dialect::HistoryId)>, StoreError> {
        let mut remaining = self.rows.as_slice();
        while !remaining.is_empty() {
            let (batch, rest) = remaining.split_at(
                Engine::for_connection(&db)
                    .batch_size(remaining.len(), COLUMNS)
                    .min(remaining.len()),
            );
            let rows = batch
                .iter()
                .map(|entry| audit_outbox::ActiveModel::from(entry.clone()).reset_all());
            audit_outbox::Entity::insert_many(rows)
                .exec_without_returning(&db)
                .await?;
            remaining = rest;
        }
        let raised = dialect::raise_epoch(&db, crate::snapshot::recorded_tables()).await?;
        if !outbox::stand(&db, &self.rows, false).await? {
            db.rollback().await?;
            return Err(StoreError::EntryAltered);
        }
        db.commit_epoch(raised).await
    }

    /// Returns the id of the first row.
    pub(super) fn first(&self) -> i64 {
        self.rows.first().map_or(0, |row| row.id)
    }

    /// Returns the digests with their ids.
    pub(super) fn digests(&self) -> Vec<(i64, [u8; 32])> {
        self.rows
            .iter()
            .map(|row| (row.id, outbox_key::digest(self.mark.store, row)))
            .collect()
    }

    /// Returns the codes with their ids.
    pub(super) fn codes(&self) -> Vec<(i64, [u8; 32])> {
        self.rows
            .iter()
            .filter_map(|row| Some((row.id, row.mac.as_deref()?.try_into().ok()?)))
            .collect()
    }
}

/// Maximum bytes of an old or new value.
const MOST_IMAGE: usize = 16 * 1024;
/// Maximum bytes of one member of a longer value.
const MOST_MEMBER: usize = 512;

/// Returns an image as text. In a long image, long members are replaced by digest and size: they show the fact of a
/// change, and the short members stay readable.
fn bounded(image: Value) -> String {
    let text = image.to_string();
    if text.len() <= MOST_IMAGE {
        return text;
    }
    let digest = |text: &str| json!({ "sha256": hex::encode(Sha256::digest(text)), "bytes": text.len() });
    let Value::Object(mut members) = image else {
        return digest(&text).to_string();
    };
    for value in members.values_mut() {
        let text = value.to_string();
        if text.len() > MOST_MEMBER {
            *value = digest(&text);
        }
    }
    let shortened = Value::Object(members).to_string();
    if shortened.len() <= MOST_IMAGE {
        shortened
    } else {
        digest(&text).to_string()
    }
}

/// Number of columns in a row of `audit_outbox`.
const COLUMNS: usize = 16;

/// A record with a reason that is not part of it, for instance why a link was revoked.
#[derive(Debug)]
pub(crate) struct RecordWithReason<'a, T> {
    pub(crate) record: &'a T,
    pub(crate) reason: &'a str,
}

impl<T: Auditable> Auditable for RecordWithReason<'_, T> {
    const RESOURCE: ResourceType = T::RESOURCE;
    fn resource_id(&self) -> String {
        self.record.resource_id()
    }
    fn resource_name(&self) -> String {
        self.record.resource_name()
    }
    fn image(&self) -> Value {
        let mut image = self.record.image();
        if let Value::Object(members) = &mut image
            && !self.reason.is_empty()
        {
            members.insert("reason".to_owned(), self.reason.into());
        }
        image
    }
}

/// The items of an [`Auditable`] record that name it: its kind, the field with its id, and the field with its display
/// name or its address, if it has one.
macro_rules! identify {
    (@ $resource:ident, $id:ident, $self:ident, $name:expr) => {
        const RESOURCE: ResourceType = ResourceType::$resource;

        fn resource_id(&$self) -> String {
            $self.$id.to_string()
        }

        fn resource_name(&$self) -> String {
            $name
        }
    };
    ($resource:ident, $id:ident) => {
        identify!(@ $resource, $id, self, String::new());
    };
    ($resource:ident, $id:ident, $name:ident) => {
        identify!(@ $resource, $id, self, self.$name.to_string());
    };
    ($resource:ident, $id:ident, address $address:ident) => {
        identify!(@ $resource, $id, self, row::address_text(self.$address));
    };
}

impl Auditable for Organization {
    identify!(Organization, id, name);

    fn image(&self) -> Value {
        json!({ "slug": self.slug, "name": self.name, "settings": self.settings })
    }
}

impl Auditable for Group {
    identify!(Group, id, name);

    fn image(&self) -> Value {
        json!({
            "slug": self.slug,
            "name": self.name,
            "description": self.description,
            "is_org_admin": self.is_org_admin,
            "is_org_readonly_admin": self.is_org_readonly_admin,
            "auto_created": self.auto_created,
        })
    }
}

impl Auditable for GroupAccess {
    identify!(Access, group);

    fn image(&self) -> Value {
        json!({
            "allowed_methods": self.allowed_methods,
            "claims": row::claims_text(self.claims),
            "rpc_api_key": { "set": self.rpc_api_key.is_some() },
            "verbose_errors": self.verbose_errors,
            "denied_methods": self.denied_methods,
            "expires_at": self.expires_at,
        })
    }
    fn changed_image(&self, before: &Self) -> Value {
        let mut image = self.image();
        if self.rpc_api_key != before.rpc_api_key
            && let Some(key) = image.get_mut("rpc_api_key")
        {
            *key = json!({ "changed": true, "set": self.rpc_api_key.is_some() });
        }
        image
    }
}

/// An organization's record about a user.
#[derive(Debug)]
pub(crate) struct OrgUserChange<'a> {
    pub(crate) user: UserId,
    pub(crate) record: &'a OrgUserRecord,
}

impl Auditable for Impersonation {
    identify!(User, user, external_id);

    fn image(&self) -> Value {
        json!({ "impersonation": self.way, "what": self.what, "params_digest": self.params_digest })
    }
}

impl Auditable for User {
    identify!(User, id, external_id);

    fn image(&self) -> Value {
        json!({
            "external_id": self.external_id,
            "kyc": self.kyc,
            "banned": self.banned,
            "note": self.note,
            "metadata": self.metadata,
            "auth_tenant_id": self.auth_tenant_id,
        })
    }
}

impl Auditable for OrgUserChange<'_> {
    const RESOURCE: ResourceType = ResourceType::User;
    fn resource_id(&self) -> String {
        self.user.to_string()
    }
    fn resource_name(&self) -> String {
        self.record.external_id.as_str().to_owned()
    }
    fn image(&self) -> Value {
        json!({
            "external_id": self.record.external_id,
            "org_id": self.record.org,
            "kyc": self.record.kyc,
            "banned": self.record.banned,
            "note": self.record.note,
            "metadata": self.record.metadata,
        })
    }
}

impl Auditable for Membership {
    identify!(Membership, id);

    fn image(&self) -> Value {
        json!({
            "user_id": self.user,
            "group_id": self.group,
            "source": self.source.as_str(),
            // Not the exact state: administrators of the organization read this (HD40).
            "status": self.status(),
            "expires_at": self.expires_at,
        })
    }
}

impl Auditable for Contract {
    identify!(Contract, id, name);

    fn image(&self) -> Value {
        json!({
            "address": row::address_text(self.address),
            "name": self.name,
            // An ABI may be large: its digest shows that it changed.
            "abi_sha256": self.abi.as_deref().map(|abi| hex::encode(Sha256::digest(abi))),
            "abi_bytes": self.abi.as_deref().map(str::len),
            "metadata": self.metadata,
            "deployed_by_user_id": self.deployer,
            "allow_visibleto_unlock": self.allow_visibleto_unlock,
            "events_allow_dynamic_payload": self.events_allow_dynamic_payload,
            "trusted_router": self.trusted_router,
        })
    }
}

impl Auditable for Grant {
    identify!(Grant, id);

    fn image(&self) -> Value {
        json!({
            "contract_id": self.contract,
            "group_id": self.group,
            "claims": row::claims_text(self.claims),
            "functions": self.functions,
            "event_rules": self.event_rules,
        })
    }
}

impl Auditable for AllowedTenant {
    identify!(DirectoryTenant, id, label);

    fn image(&self) -> Value {
        json!({
            "tenant_id": self.tenant,
            "label": self.label,
            "auto_provision": self.auto_provision,
            "disabled": self.disabled,
            "default_org_id": self.default_org,
            "default_group_id": self.default_group,
        })
    }
}

impl Auditable for TenantRemoval {
    const RESOURCE: ResourceType = ResourceType::DirectoryTenant;
    fn resource_id(&self) -> String {
        self.tenant.resource_id()
    }
    fn resource_name(&self) -> String {
        self.tenant.resource_name()
    }
    fn image(&self) -> Value {
        let mut image = self.tenant.image();
        if let Value::Object(members) = &mut image {
            members.insert("banned_users".to_owned(), self.users.into());
            members.insert("ended_refresh_tokens".to_owned(), self.refresh_tokens.into());
        }
        image
    }
}

impl Auditable for ApprovedCode {
    identify!(ApprovedCode, id, name);

    fn image(&self) -> Value {
        json!({"hash": self.hash, "size": self.size, "name": self.name})
    }
}

impl Auditable for SharedInfra {
    identify!(SharedInfrastructure, id, name);

    fn image(&self) -> Value {
        json!({
            "address": row::address_text(self.address),
            "name": self.name,
            "description": self.description,
            "codehash": self.codehash,
            "implementation_codehash": self.implementation_codehash,
            "broken_codehash": self.broken_codehash,
        })
    }
    /// A reader must not overlook a changed pin.
    fn changed_image(&self, before: &Self) -> Value {
        let pin = |row: &Self| (row.codehash, row.implementation_codehash);
        let mut image = self.image();
        if let Value::Object(members) = &mut image {
            members.insert("codehash_changed".to_owned(), (pin(self) != pin(before)).into());
        }
        image
    }
}

/// A block of the chain that the explorer reads again.
#[derive(Debug)]
struct BlockReindex {
    number: u64,
}

impl Auditable for BlockReindex {
    const RESOURCE: ResourceType = ResourceType::Setting;
    fn resource_id(&self) -> String {
        format!("explorer_block_{}", self.number)
    }
    fn resource_name(&self) -> String {
        self.resource_id()
    }
    fn image(&self) -> Value {
        json!({ "reindex": self.number })
    }
}

impl Auditable for ToggleUpdate {
    const RESOURCE: ResourceType = ResourceType::Setting;
    fn resource_id(&self) -> String {
        self.toggle.as_str().to_owned()
    }
    fn resource_name(&self) -> String {
        self.toggle.as_str().to_owned()
    }
    fn image(&self) -> Value {
        json!({ "enabled": self.enabled, "reason": self.reason, "expires_at": self.expires_at })
    }
}

/// The image omits the secret and its hash.
impl Auditable for PersonalUrl {
    identify!(RpcUrl, id, name);

    fn image(&self) -> Value {
        let contracts = if let UrlReach::Contracts(contracts) = &self.reach {
            &**contracts
        } else {
            &[]
        };
        json!({
            "user_id": self.user,
            "org_id": self.org,
            "name": self.name,
            "scope": self.scope(),
            "contracts": contracts.iter().copied().map(row::address_text).collect::<Vec<_>>(),
            "expires_at": self.expires_at.to_rfc3339(),
        })
    }
}

/// A link is audited as part of its user.
impl Auditable for Link {
    identify!(User, user, address address);

    fn image(&self) -> Value {
        json!({
            "address": row::address_text(self.address),
            "link_type": row::link_kind_text(self.kind),
            "ens_name": self.ens_name,
            "revoked_at": self.revoked_at,
        })
    }
}

impl Auditable for OpenReservation {
    identify!(PreregisteredAddress, id, address address);

    fn image(&self) -> Value {
        json!({
            "address": row::address_text(self.address),
            "user_id": self.user,
            "via": self.kind.as_str(),
            "tx_hash": self.tx_hash,
            "state": self.state.as_str(),
            "expires_at": self.expires_at,
        })
    }
}

impl Auditable for Conviction {
    identify!(Conviction, id, tx_hash);

    fn image(&self) -> Value {
        json!({
            "tx_hash": self.tx_hash,
            "block_hash": self.block_hash,
            "found": self.reason,
            "wronged_org_ids": self.wronged,
            "cleared_at": self.cleared_at,
        })
    }
}

impl Auditable for Suspension {
    identify!(Suspension, id);

    fn image(&self) -> Value {
        // HD40: omits the reason, which would reveal to the sending organization what the transaction did.
        json!({ "external_id": self.external_id, "tx_hash": self.tx_hash, "block_hash": self.block_hash })
    }
}

impl Auditable for Quarantine {
    identify!(Quarantine, id, address address);

    fn image(&self) -> Value {
        json!({
            "address": row::address_text(self.address),
            "closed_to_side": self.side.is_some(),
            "tx_hash": self.tx_hash,
            "block_hash": self.block_hash,
            "found": self.reason,
        })
    }
}

impl Auditable for WithheldChange {
    identify!(Quarantine, id, address address);

    fn image(&self) -> Value {
        json!({ "address": row::address_text(self.address), "conviction": self.conviction })
    }
}

impl Auditable for PendingLogin {
    identify!(Session, id);

    fn image(&self) -> Value {
        json!({ "opened_at": self.opened_at, "completed": self.completed })
    }
}

/// A login that one of our applications got silently.
#[derive(Debug)]
pub(crate) struct SilentLogin<'a> {
    pub(crate) family: &'a Family,
    pub(crate) application: &'a Application<'a>,
}

impl Auditable for SilentLogin<'_> {
    const RESOURCE: ResourceType = Family::RESOURCE;
    fn resource_id(&self) -> String {
        self.family.resource_id()
    }
    fn resource_name(&self) -> String {
        self.application.client.to_owned()
    }
    fn image(&self) -> Value {
        let mut image = self.family.image();
        if let Value::Object(members) = &mut image {
            members.insert("silent".to_owned(), true.into());
            members.insert("client_id".to_owned(), self.application.client.into());
            members.insert(
                "redirect_uri_sha256".to_owned(),
                hex::encode(self.application.redirect).into(),
            );
        }
        image
    }
}

impl Auditable for Family {
    identify!(Session, id);

    fn image(&self) -> Value {
        json!({ "user_id": self.user, "amr": self.amr, "started": self.started, "expires_at": self.expires_at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry does not store long values of a record, and still shows what was changed.
    #[test]
    fn values_in_entries_are_bounded() {
        let short = json!({ "banned": true, "metadata": { "k": "v" } });
        assert_eq!(bounded(short.clone()), short.to_string());
        let long = bounded(json!({ "banned": true, "metadata": { "k": "x".repeat(MOST_IMAGE) } }));
        let read: Value = serde_json::from_str(&long).unwrap();
        assert_eq!(
            (&read["banned"], &read["metadata"]["bytes"]),
            (&json!(true), &json!(MOST_IMAGE + 8))
        );
        assert_eq!(read["metadata"]["sha256"].as_str().map(str::len), Some(64));
        let many: serde_json::Map<_, _> = (0..100).map(|n| (n.to_string(), "x".repeat(300).into())).collect();
        assert!(bounded(Value::Object(many)).len() < 200);
    }
}

//! A change of one row, and the snapshot after changes.

use super::{
    AddressLink, AllowedTenant, ApprovedCode, Contract, ContractGrant, Conviction, DisclosureGrant, Group, GroupAccess,
    Membership, OrgUserRecord, Organization, PastContract, PersonalUrl, Quarantine, Reservation, RetiredContract,
    Revocation, SharedInfra, Snapshot, Suspension, ToggleState, TxVisibility, User, WithheldState, index::EndedLink,
    map::Map, name_key,
};
use gw_types::{
    Address, AllowedTenantId, ApprovedCodeId, ContractId, ConvictionId, DisclosureGrantId, Epoch, GrantId, GroupId,
    LinkId, MembershipId, OrgId, OrgUserRecordId, PersonalUrlId, QuarantineId, ReservationId, SharedInfraId,
    SuspensionId, ToggleId, TokenId, UserId, VisibilityId, WithheldId,
};
use std::{hash::Hash, sync::Arc};

/// One changed row: its new content, or `None` if the row was deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A user.
    User(UserId, Option<User>),
    /// An organization.
    Organization(OrgId, Option<Organization>),
    /// A group.
    Group(GroupId, Option<Group>),
    /// A group's access.
    GroupAccess(GroupId, Option<GroupAccess>),
    /// A membership.
    Membership(MembershipId, Option<Membership>),
    /// The KYC and ban decisions of an organization about a person.
    OrgUserRecord(OrgUserRecordId, Option<OrgUserRecord>),
    /// A contract.
    Contract(ContractId, Option<Contract>),
    /// A contract whose registration was deleted.
    RetiredContract(ContractId, Option<RetiredContract>),
    /// A registration that ended.
    PastContract(ContractId, Option<PastContract>),
    /// A contract grant.
    Grant(GrantId, Option<ContractGrant>),
    /// A valid address link; `None` if the row was deleted.
    Link(LinkId, Option<AddressLink>),
    /// An address link that its owner or an administrator ended. It gives no rights, but the address counts as once
    /// linked (HD13).
    LinkEnded(LinkId, Address),
    /// A reservation.
    Reservation(ReservationId, Option<Reservation>),
    /// A `visibleTo` row.
    Visibility(VisibilityId, Option<TxVisibility>),
    /// A revoked token or family.
    Revocation(TokenId, Option<Revocation>),
    /// A suspension of the right to send.
    Suspension(SuspensionId, Option<Suspension>),
    /// A closed address.
    Quarantine(QuarantineId, Option<Quarantine>),
    /// A withheld transaction.
    Conviction(ConvictionId, Option<Conviction>),
    /// The changes of a withheld transaction to one account.
    Withheld(WithheldId, Option<WithheldState>),
    /// An allowed directory tenant.
    Tenant(AllowedTenantId, Option<AllowedTenant>),
    /// A personal RPC URL.
    PersonalUrl(PersonalUrlId, Option<PersonalUrl>),
    /// A shared contract.
    SharedInfra(SharedInfraId, Option<SharedInfra>),
    /// Approved creation code.
    ApprovedCode(ApprovedCodeId, Option<ApprovedCode>),
    /// The override of a system toggle.
    Toggle(ToggleId, Option<ToggleState>),
    /// A grant of disclosure.
    Disclosure(DisclosureGrantId, Option<DisclosureGrant>),
}

impl Snapshot {
    /// The snapshot after `changes`, at `epoch`. The last change of a row wins.
    #[must_use]
    pub fn apply(&self, epoch: Epoch, changes: impl IntoIterator<Item = Change>) -> Self {
        let mut next = self.clone();
        next.epoch = epoch;
        for change in changes {
            next.apply_one(change);
        }
        next
    }

    fn apply_one(&mut self, change: Change) {
        match change {
            Change::User(id, row) => {
                let row = row.map(Arc::new);
                if let Some(old) = self.users.get(&id) {
                    // An earlier change of this change set may have given the name to another user.
                    if self
                        .users_by_external
                        .get(&old.external_id)
                        .is_some_and(|user| user.id == id)
                    {
                        self.users_by_external.remove(&old.external_id);
                    }
                }
                if let Some(user) = &row {
                    self.users_by_external
                        .insert(user.external_id.clone(), Arc::clone(user));
                }
                put(&mut self.users, id, row);
            }
            Change::Organization(id, row) => put(&mut self.orgs, id, row.map(Arc::new)),
            Change::Group(id, row) => {
                let old = self.groups.get(&id).map(Arc::as_ref);
                self.inverse.put_group(id, old, row.as_ref());
                put(&mut self.groups, id, row.map(Arc::new));
            }
            Change::GroupAccess(id, row) => put(&mut self.access, id, row.map(Arc::new)),
            Change::Membership(id, row) => {
                self.inverse.put_membership(id, self.memberships.find(id), row.as_ref());
                self.memberships.put(id, row.map(|m| (m.user, m)));
            }
            Change::OrgUserRecord(id, row) => self.org_users.put(id, row.map(|r| (r.external_id.clone(), r))),
            Change::Contract(id, row) => {
                let row = row.map(Arc::new);
                let old = self.contracts.get(&id).map(Arc::as_ref);
                self.inverse.put_contract(id, old, row.as_deref());
                if let Some(old) = self.contracts.get(&id) {
                    // As for user names: another row may own the key by now.
                    if self
                        .contracts_by_address
                        .get(&old.address)
                        .is_some_and(|contract| contract.id == id)
                    {
                        self.contracts_by_address.remove(&old.address);
                    }
                }
                if let Some(contract) = &row {
                    self.contracts_by_address.insert(contract.address, Arc::clone(contract));
                }
                put(&mut self.contracts, id, row);
            }
            Change::RetiredContract(id, row) => self.retired.put(id, row.map(|r| (r.address, r))),
            Change::PastContract(id, row) => {
                let old = self.past.find(id).map(Arc::as_ref);
                self.inverse.put_past_contract(id, old, row.as_ref());
                self.past
                    .put(id, row.map(|past| (past.contract.address, Arc::new(past))));
            }
            Change::Grant(id, row) => {
                let old = self.grants.find(id).map(Arc::as_ref);
                self.inverse.put_grant(id, old, row.as_ref());
                self.grants.put(id, row.map(|g| (g.contract, Arc::new(g))));
            }
            Change::Link(id, row) => {
                self.links.put(id, row);
                self.ended_links.put(id, None);
            }
            Change::LinkEnded(id, address) => {
                self.links.put(id, None);
                self.ended_links.put(id, Some((address, EndedLink { id })));
            }
            Change::Disclosure(id, row) => {
                let row = row.map(Arc::new);
                self.disclosures_by_grantee
                    .put(id, row.clone().map(|row| (row.grantee.clone(), row)));
                self.disclosures.put(id, row.map(|row| (row.owner, row)));
            }
            Change::Reservation(id, row) => {
                self.inverse
                    .put_reservation(id, self.reservations.find(id), row.as_ref());
                self.reservations.put(id, row.map(|r| (r.address, r)));
            }
            Change::Visibility(id, row) => {
                let row = row.map(Arc::new);
                let old = self.visibility.find(id).map(Arc::as_ref);
                self.inverse.put_visibility(id, old, row.as_deref());
                self.visibility.put(id, row.map(|v| (v.tx_hash, v)));
            }
            Change::Revocation(id, row) => put(&mut self.revocations, id, row),
            Change::Suspension(id, row) => {
                self.suspensions
                    .put(id, row.map(|s| (name_key(&s.external_id), Arc::new(s))));
            }
            Change::Quarantine(id, row) => self.quarantines.put(id, row.map(|q| (q.address, Arc::new(q)))),
            Change::Conviction(id, row) => {
                let row = row.map(Arc::new);
                self.convictions_by_block
                    .put(id, row.clone().map(|row| (row.block_hash, row)));
                self.convictions.put(id, row.map(|row| (row.tx_hash, row)));
            }
            Change::Withheld(id, row) => self.withheld.put(id, row),
            Change::Tenant(id, row) => {
                if let Some(old) = self.tenants.get(&id).copied() {
                    // As for user names: another row may own the key by now.
                    if self
                        .tenants_by_name
                        .get(&old.tenant)
                        .is_some_and(|tenant| tenant.id == id)
                    {
                        self.tenants_by_name.remove(&old.tenant);
                    }
                }
                if let Some(tenant) = row {
                    self.tenants_by_name.insert(tenant.tenant, tenant);
                }
                put(&mut self.tenants, id, row);
            }
            Change::PersonalUrl(id, row) => {
                let row = row.map(Arc::new);
                if let Some(old) = self.personal_urls.get(&id) {
                    // As for user names: another row may own the key by now.
                    if self.urls_by_secret.get(&old.secret).is_some_and(|url| url.id == id) {
                        self.urls_by_secret.remove(&old.secret);
                    }
                }
                if let Some(url) = &row {
                    self.urls_by_secret.insert(url.secret, Arc::clone(url));
                }
                put(&mut self.personal_urls, id, row);
            }
            Change::SharedInfra(id, row) => {
                if let Some(old) = self.shared.get(&id).copied() {
                    // As for user names: another row may own the key by now.
                    if self
                        .shared_by_address
                        .get(&old.address)
                        .is_some_and(|shared| shared.id == id)
                    {
                        self.shared_by_address.remove(&old.address);
                    }
                }
                if let Some(shared) = row {
                    self.shared_by_address.insert(shared.address, shared);
                }
                put(&mut self.shared, id, row);
            }
            Change::ApprovedCode(id, row) => {
                let by_size = Arc::make_mut(&mut self.approved_by_size);
                if let Some(old) = self.approved_code.get(&id) {
                    // As for user names: another row may own the key by now.
                    let key = (old.size, old.hash);
                    if by_size.get(&key) == Some(&id) {
                        by_size.remove(&key);
                    }
                }
                if let Some(code) = &row {
                    by_size.insert((code.size, code.hash), id);
                }
                put(&mut self.approved_code, id, row);
            }
            Change::Toggle(id, row) => put(&mut self.toggles, id, row),
        }
    }
}

/// Sets or removes the value of a key.
fn put<K: Eq + Hash + Clone, V: Clone>(map: &mut Map<K, V>, key: K, value: Option<V>) {
    match value {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    }
}

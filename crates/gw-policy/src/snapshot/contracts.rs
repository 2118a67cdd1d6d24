//! Contracts of a snapshot: their registrations, also those that ended (HD27, HD41), their grants, reserved addresses,
//! shared contracts and approved creation code.

use super::{BlockRange, Contract, ContractGrant, Moment, Reservation, RetiredContract, SharedInfra, Snapshot};
use alloy_primitives::Keccak256;
use gw_evm::code::creates_minimal_proxy;
use gw_types::{Address, ContractId, GroupId, OrgId, UserId};
use std::sync::Arc;

impl Snapshot {
    /// The contract with this id.
    pub fn contract_by_id(&self, id: ContractId) -> Option<&Arc<Contract>> {
        self.contracts.get(&id)
    }

    /// The contract registered at an address.
    pub fn contract(&self, address: Address) -> Option<&Arc<Contract>> {
        self.contracts_by_address.get(&address)
    }

    /// Every registered contract, in no particular order.
    pub fn contracts(&self) -> impl Iterator<Item = &Arc<Contract>> {
        self.contracts.values()
    }

    /// The contract at an address whose registration was deleted, unless it is registered again.
    pub fn retired(&self, address: Address) -> Option<&RetiredContract> {
        self.retired
            .get(address)
            .last()
            .filter(|_| self.contract(address).is_none())
    }

    /// The contract at an address as it was registered at this moment, by the current registration or one that ended
    /// (HD41). At most one registration covers a moment.
    pub fn contract_at(&self, address: Address, moment: Moment) -> Option<&Arc<Contract>> {
        let past = || {
            self.past
                .get(address)
                .iter()
                .find(|past| past.owned_at(moment))
                .map(|past| &past.contract)
        };
        self.contract(address)
            .filter(|contract| contract.owned_at(moment))
            .or_else(past)
    }

    /// Every registration of an address that can make blocks visible: the current one, and those that ended (HD41).
    pub fn registrations(&self, address: Address) -> impl Iterator<Item = &Arc<Contract>> {
        let past = self
            .past
            .get(address)
            .iter()
            .filter(|past| past.owned_until.is_some())
            .map(|past| &past.contract);
        self.contract(address).into_iter().chain(past)
    }

    /// The blocks of the chain, divided so that in each range [`Self::contract_at`] is one registration, or none. The
    /// ranges are in order and cover all blocks.
    pub fn registration_ranges(&self, address: Address) -> Vec<BlockRange> {
        let past = self.past.get(address).iter();
        let ends = past.clone().filter_map(|past| past.owned_until?.checked_add(1));
        let starts = past
            .map(|past| &past.contract)
            .chain(self.contract(address))
            .filter_map(|contract| contract.owned_from);
        let mut borders: Vec<u64> = [0, u64::MAX].into_iter().chain(starts).chain(ends).collect();
        borders.sort_unstable();
        borders.dedup();
        let next = borders.iter().skip(1);
        borders
            .iter()
            .zip(next)
            .map(|(start, end)| BlockRange {
                start: *start,
                end: *end,
            })
            .collect()
    }

    /// Whether any registration of the address ended.
    pub fn was_registered(&self, address: Address) -> bool {
        !self.past.get(address).is_empty() || !self.retired.get(address).is_empty()
    }

    /// The organization that owns an address for decisions: the one that its contract is registered to, or was
    /// registered to until the registration was deleted (HD27).
    pub fn owner(&self, address: Address) -> Option<OrgId> {
        let retired = || self.retired(address).map(|retired| retired.org);
        self.contract(address).map(|contract| contract.org).or_else(retired)
    }

    /// The addresses of the contracts that are, or were (HD41), registered to the organization, in no particular order.
    pub fn contracts_of_org(&self, org: OrgId) -> impl Iterator<Item = Address> {
        let current = self.inverse.contracts_by_org.get(&org);
        self.addresses_of(current, self.inverse.past_by_org.get(&org))
    }

    /// The addresses of the contracts that the user deployed, by registrations that hold or ended (HD41), in no
    /// particular order.
    pub fn contracts_deployed_by(&self, user: UserId) -> impl Iterator<Item = Address> {
        let current = self.inverse.contracts_by_deployer.get(&user);
        self.addresses_of(current, self.inverse.past_by_deployer.get(&user))
    }

    /// The addresses of the contracts that the group has grants on, or had when their registrations ended (HD41), in no
    /// particular order.
    pub fn contracts_granted_to(&self, group: GroupId) -> impl Iterator<Item = Address> {
        let grants = self.inverse.grants_by_group.get(&group);
        let current = grants.filter_map(|id| Some(&self.grants.find(*id)?.contract));
        self.addresses_of(current, self.inverse.past_by_group.get(&group))
    }

    fn addresses_of<'s>(
        &'s self,
        current: impl Iterator<Item = &'s ContractId>,
        past: impl Iterator<Item = &'s ContractId>,
    ) -> impl Iterator<Item = Address> {
        let current = current.filter_map(|id| self.contracts.get(id));
        let past = past.filter_map(|id| Some(&self.past.find(*id)?.contract));
        current.chain(past).map(|contract| contract.address)
    }

    /// All grants on a contract; for a registration that ended, the grants at its end.
    pub fn grants(&self, contract: ContractId) -> &[Arc<ContractGrant>] {
        self.past
            .find(contract)
            .map_or_else(|| self.grants.get(contract), |past| &past.grants)
    }

    /// All reservations of an address.
    pub fn reservations(&self, address: Address) -> &[Reservation] {
        self.reservations.get(address)
    }

    /// The addresses that are reserved for the organization, expired reservations included, in no particular order.
    pub fn reserved_by(&self, org: OrgId) -> impl Iterator<Item = Address> {
        let rows = self.inverse.reservations_by_org.get(&org);
        rows.filter_map(|id| Some(self.reservations.find(*id)?.address))
    }

    /// The shared contract at an address, unless code other than its pin was seen there.
    pub fn shared(&self, address: Address) -> Option<&SharedInfra> {
        self.shared_by_address.get(&address).filter(|shared| !shared.broken)
    }

    /// Whether an address is tagged as shared, even if its pin is broken.
    pub fn is_tagged_shared(&self, address: Address) -> bool {
        self.shared_by_address.get(&address).is_some()
    }

    /// Whether a creation runs code that a super admin approved: `init_code` is approved creation code followed by
    /// constructor arguments, or creates a minimal proxy (ERC-1167), which only runs code that exists already.
    pub fn approves_creation(&self, init_code: &[u8]) -> bool {
        if creates_minimal_proxy(init_code) {
            return true;
        }
        let mut hasher = Keccak256::new();
        let mut hashed = 0;
        for (size, hash) in self.approved_by_size.keys() {
            let Some(chunk) = usize::try_from(*size).ok().and_then(|size| init_code.get(hashed..size)) else {
                return false;
            };
            hasher.update(chunk);
            hashed = hashed.saturating_add(chunk.len());
            if hasher.clone().finalize() == *hash {
                return true;
            }
        }
        false
    }
}

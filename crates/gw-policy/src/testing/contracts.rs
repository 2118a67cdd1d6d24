//! Contracts, grants, shared infrastructure and reservations of a test world.

use super::{FUTURE, NOW, PAST, World, address_of, contract_id, names::uuid, org_id, user_id};
use crate::snapshot::{
    ApprovedCode, CodePin, Contract, ContractGrant, EventRule, EventRules, FunctionRule, PastContract, Reservation,
    RetiredContract, SharedInfra,
};
use alloy_primitives::keccak256;
use gw_evm::abi::ContractAbi;
use gw_types::{Address, ApprovedCodeId, Claim, Claims, GrantId, ReservationId, SharedInfraId, Timestamp};
use std::sync::Arc;

impl World {
    /// Adds a contract of the organization, at the address of its name.
    #[must_use]
    pub fn contract(mut self, name: &str) -> Self {
        let id = contract_id(name);
        self.contract = Some(id);
        let new_row = Contract {
            id,
            org: org_id(&self.org),
            address: address_of(name),
            since: PAST,
            owned_from: None,
            name: name.into(),
            deployer: None,
            abi: None,
            allow_visibleto_unlock: false,
            events_allow_dynamic_payload: false,
            trusted_router: false,
        };
        self.contracts.entry(id).or_insert(new_row);
        self
    }

    fn with_contract(mut self, change: impl FnOnce(&mut Contract)) -> Self {
        let contract = self.contract.and_then(|id| self.contracts.get_mut(&id));
        assert!(
            contract.is_some(),
            "the test world has no current contract: call `contract` first"
        );
        if let Some(contract) = contract {
            change(contract);
        }
        self
    }

    /// Sets the address of the contract.
    #[must_use]
    pub fn at(self, address: Address) -> Self {
        self.with_contract(|contract| contract.address = address)
    }

    /// Sets since when the organization owns the contract. The default is [`PAST`].
    #[must_use]
    pub fn since(self, since: Timestamp) -> Self {
        self.with_contract(|contract| contract.since = since)
    }

    /// Deletes the registration of the contract.
    #[must_use]
    pub fn retired(mut self) -> Self {
        let contract = self.contract.and_then(|id| self.contracts.remove(&id));
        assert!(
            contract.is_some(),
            "the test world has no current contract: call `contract` first"
        );
        if let Some(Contract {
            id,
            org,
            address,
            since,
            ..
        }) = contract
        {
            self.grants.retain(|_, grant| grant.contract != id);
            self.retired.insert(
                id,
                RetiredContract {
                    id,
                    address,
                    org,
                    since,
                    retired_at: NOW,
                },
            );
        }
        self
    }

    /// Ends the registration of the contract and its grants after this block (HD41).
    #[must_use]
    pub fn owned_until(mut self, block: u64) -> Self {
        let contract = self.contract.and_then(|id| self.contracts.remove(&id));
        assert!(
            contract.is_some(),
            "the test world has no current contract: call `contract` first"
        );
        if let Some(contract) = contract {
            let id = contract.id;
            let grants = self
                .grants
                .values()
                .filter(|grant| grant.contract == id)
                .cloned()
                .map(Arc::new)
                .collect();
            self.grants.retain(|_, grant| grant.contract != id);
            let past = PastContract {
                contract: Arc::new(contract),
                grants,
                owned_until: Some(block),
            };
            self.past.insert(id, past);
        }
        self
    }

    /// Registers the contract with this name, whose registration in another organization ended, in the current
    /// organization from this block on (HD41).
    #[must_use]
    pub fn owned_from(mut self, name: &str, block: u64) -> Self {
        let id = contract_id(&format!("{}/{name}", self.org));
        self = self.contract(name);
        let contract = self
            .contract
            .replace(id)
            .and_then(|new_row| self.contracts.remove(&new_row));
        if let Some(contract) = contract {
            self.contracts.insert(
                id,
                Contract {
                    id,
                    owned_from: Some(block),
                    ..contract
                },
            );
        }
        self
    }

    /// Sets the deployer of the contract.
    #[must_use]
    pub fn deployed_by(self, user: &str) -> Self {
        self.with_contract(|contract| contract.deployer = Some(user_id(user)))
    }

    /// Sets the contract's ABI, as JSON text.
    #[must_use]
    pub fn abi(self, json: &str) -> Self {
        let abi = ContractAbi::parse(json);
        assert!(abi.is_ok(), "the ABI of the test contract is invalid: {:?}", abi.err());
        self.with_contract(|contract| contract.abi = abi.ok().map(Arc::new))
    }

    /// R29: makes shared transactions show all events of the contract.
    #[must_use]
    pub fn visibleto_unlock(self) -> Self {
        self.with_contract(|contract| contract.allow_visibleto_unlock = true)
    }

    /// K5: attests that the contract's dynamic event fields contain no addresses.
    #[must_use]
    pub fn dynamic_payload(self) -> Self {
        self.with_contract(|contract| contract.events_allow_dynamic_payload = true)
    }

    /// F5: exempts frames below the contract from function rules.
    #[must_use]
    pub fn trusted_router(self) -> Self {
        self.with_contract(|contract| contract.trusted_router = true)
    }

    /// Tags the address of this name as shared infrastructure without a code pin.
    #[must_use]
    pub fn shared(self, name: &str) -> Self {
        self.tagged(name, None, false)
    }

    /// Tags the address of this name as shared infrastructure with a pin of its code and, for a proxy, of the code of
    /// its implementation.
    #[must_use]
    pub fn shared_pinned(self, name: &str, code: &[u8], implementation: Option<&[u8]>) -> Self {
        let pin = CodePin {
            code: keccak256(code),
            implementation: implementation.map(keccak256),
        };
        self.tagged(name, Some(pin), false)
    }

    /// Tags the address of this name as shared infrastructure with a broken pin.
    #[must_use]
    pub fn shared_broken(self, name: &str) -> Self {
        self.tagged(name, None, true)
    }

    /// Tags this address as shared infrastructure.
    #[must_use]
    pub fn shared_at(mut self, address: Address, pin: Option<CodePin>) -> Self {
        let id = SharedInfraId(uuid("shared", &address.to_string()));
        self.shared.insert(
            id,
            SharedInfra {
                id,
                address,
                pin,
                broken: false,
            },
        );
        self
    }

    fn tagged(mut self, name: &str, pin: Option<CodePin>, broken: bool) -> Self {
        let id = SharedInfraId(uuid("shared", name));
        self.shared.insert(
            id,
            SharedInfra {
                id,
                address: address_of(name),
                pin,
                broken,
            },
        );
        self
    }

    /// Approves this creation code.
    #[must_use]
    pub fn approved_code(mut self, code: &[u8]) -> Self {
        let (hash, size) = (keccak256(code), u32::try_from(code.len()).unwrap_or(u32::MAX));
        let id = ApprovedCodeId(uuid("approved code", &hash.to_string()));
        self.approved_code.insert(id, ApprovedCode { id, hash, size });
        self
    }

    /// Adds an unrestricted grant of a group on the contract.
    #[must_use]
    pub fn grant(mut self, group: &str) -> Self {
        assert!(
            self.contract.is_some(),
            "the test world has no current contract: call `contract` first"
        );
        let group = self.existing_group(group);
        if let Some(contract) = self.contract {
            let id = GrantId(uuid("grant", &format!("{contract}{group}")));
            self.grant = Some(id);
            let new_row = ContractGrant {
                id,
                contract,
                group,
                claims: Claims::NONE,
                functions: None,
                events: EventRules::All,
            };
            self.grants.insert(id, new_row);
        }
        self
    }

    fn with_grant(mut self, change: impl FnOnce(&mut ContractGrant)) -> Self {
        let grant = self.grant.and_then(|id| self.grants.get_mut(&id));
        assert!(
            grant.is_some(),
            "the test world has no current grant: call `grant` first"
        );
        if let Some(grant) = grant {
            change(grant);
        }
        self
    }

    /// Restricts the grant to these functions.
    #[must_use]
    pub fn functions(self, functions: impl IntoIterator<Item = FunctionRule>) -> Self {
        self.with_grant(|grant| grant.functions = Some(functions.into_iter().collect()))
    }

    /// Restricts the grant to these events.
    #[must_use]
    pub fn events(self, events: impl IntoIterator<Item = EventRule>) -> Self {
        self.with_grant(|grant| grant.events = EventRules::Only(events.into_iter().collect()))
    }

    /// Adds a claim to the grant.
    #[must_use]
    pub fn grant_claim(self, claim: Claim) -> Self {
        self.with_grant(|grant| grant.claims = grant.claims.with(claim))
    }

    /// Adds a reservation by the user of the address of this name for the organization.
    #[must_use]
    pub fn reservation(self, name: &str, expires_at: Timestamp) -> Self {
        self.reserved(address_of(name), expires_at)
    }

    /// Adds a reservation by the user of this address for the organization, until [`FUTURE`].
    #[must_use]
    pub fn reservation_at(self, address: Address) -> Self {
        self.reserved(address, FUTURE)
    }

    fn reserved(mut self, address: Address, expires_at: Timestamp) -> Self {
        let (user, org) = (self.current_user(), org_id(&self.org));
        let id = ReservationId(uuid("reservation", &format!("{org}{address}")));
        self.reservations.insert(
            id,
            Reservation {
                id,
                address,
                org,
                user,
                expires_at,
            },
        );
        self
    }
}

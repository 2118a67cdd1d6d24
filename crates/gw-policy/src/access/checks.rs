//! The checks on one call whose method is granted: target, history, function, claims, sender (spec/20 §9, §10).

use super::{
    custom_methods::match_in,
    orgs::OrgScope,
    permit::{AccessRequest, CheckError, Plan, plan_without_target},
    resource::{Resource, Signed, StateAge, StorageSlot},
    send::{check_sender, invalid_sender, names_recipients},
};
use crate::{
    principal::{OrgRights, Principal, TargetStatus, is_public, reached_registrations, target_status},
    settings::{HiddenBalanceMode, TransactionLogs},
    snapshot::{Snapshot, SystemToggle},
};
use gw_evm::{
    BlockId, BlockTag, Call, CallRequest, Method, MethodLookup, Simulation, SimulationKind,
    code::{self, is_multicall},
};
use gw_types::{Address, B256, Claim, DenyReason, Level};

/// The checks of one call.
pub(super) struct CallChecks<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) request: &'a AccessRequest<'a>,
    pub(super) principal: &'a Principal,
    pub(super) scope: OrgScope<'a>,
}

impl CallChecks<'_> {
    /// The plan of the call, and the log emitters of which only own and shared transactions are shown.
    ///
    /// # Errors
    /// The first check that refuses.
    pub(super) fn call(&self, call: &Call, resource: &Resource<'_, '_>) -> Result<(Plan, Vec<Address>), CheckError> {
        self.open(resource)?;
        let plan = match resource {
            Resource::Nothing => plan_without_target(call),
            Resource::Quantity(address, block, status) => {
                self.history(*block)?;
                self.quantity(*address, status)
            }
            Resource::Code(block, status) => {
                self.history(*block)?;
                if status.is_full() {
                    Plan::Forward
                } else {
                    Plan::CodeCheck
                }
            }
            Resource::Storage(slot, block, status) => {
                self.history(*block)?;
                storage(status, *slot)?;
                Plan::Forward
            }
            Resource::Proof(slots, block, status) => {
                self.history(*block)?;
                proof(status, slots)?;
                Plan::Forward
            }
            Resource::SentBy(own) => {
                if !own {
                    return Err(DenyReason::SenderNotOwned.into());
                }
                Plan::Forward
            }
            Resource::Simulation(simulation, target) => {
                self.simulation(simulation, target.as_ref())?;
                if self.untraced(simulation, target.as_ref()) {
                    Plan::Untraced
                } else {
                    Plan::Simulate
                }
            }
            Resource::Send(signed, target) => {
                self.send(signed, target.as_ref())?;
                Plan::Send
            }
            Resource::Emitters(emitters) => return Ok((Plan::Forward, self.emitters(emitters)?)),
        };
        Ok((plan, Vec::new()))
    }

    /// Refuses addresses that a post-execution violation closed (HD28), before any basis of access and before the node
    /// is asked: neither their state nor what their balance can pay may show, not even by the node's error. Balance,
    /// nonce, code and logs answer like those of a hidden address (HD40).
    fn open(&self, resource: &Resource<'_, '_>) -> Result<(), DenyReason> {
        let runs_as = |sender: Option<Address>| {
            sender.is_some_and(|sender| !is_public(sender) && self.principal.is_closed(self.snapshot, sender))
        };
        let is_closed = |target: &TargetStatus<'_>| target.closed;
        let closed = match resource {
            Resource::Storage(_, _, status) | Resource::Proof(_, _, status) => status.closed,
            Resource::Simulation(simulation, target) => {
                runs_as(simulation.request.from) || target.as_ref().is_some_and(is_closed)
            }
            Resource::Send(signed, target) => runs_as(Some(signed.sender)) || target.as_ref().is_some_and(is_closed),
            Resource::Nothing
            | Resource::Quantity(..)
            | Resource::Code(..)
            | Resource::SentBy(_)
            | Resource::Emitters(_) => false,
        };
        if closed {
            Err(DenyReason::ContractNotPermitted)
        } else {
            Ok(())
        }
    }

    /// Historical blocks are for organization administrators (H1).
    fn history(&self, block: BlockId) -> Result<(), DenyReason> {
        if StateAge::for_block(block, self.request.head.number) == StateAge::Old && !self.scope.is_org_admin() {
            return Err(DenyReason::HistoryNotPermitted);
        }
        Ok(())
    }

    /// How old the state is that the call reads (H1). Its owner at that time is checked once number and time of the
    /// block are known.
    pub(super) fn state_age(&self, resource: &Resource<'_, '_>) -> StateAge {
        let block = match resource {
            Resource::Quantity(_, block, _)
            | Resource::Code(block, _)
            | Resource::Storage(_, block, _)
            | Resource::Proof(_, block, _) => *block,
            Resource::Simulation(simulation, _) => simulation.block,
            Resource::Nothing | Resource::Send(..) | Resource::Emitters(_) | Resource::SentBy(_) => BlockId::LATEST,
        };
        StateAge::for_block(block, self.request.head.number)
    }

    /// Whether the answer depends on the code pin of a shared address (X6), because no trace shows the code.
    pub(super) fn requires_code_pin(&self, resource: &Resource<'_, '_>) -> bool {
        let status = match resource {
            Resource::Quantity(_, _, status)
            | Resource::Code(_, status)
            | Resource::Storage(_, _, status)
            | Resource::Proof(_, _, status) => status,
            Resource::Nothing
            | Resource::Simulation(..)
            | Resource::Send(..)
            | Resource::Emitters(_)
            | Resource::SentBy(_) => return false,
        };
        let by_itself = status.closed || status.public || status.owned || status.access.is_some();
        !by_itself && status.shared.is_some_and(|shared| shared.pin.is_some())
    }

    /// Whether a grant of disclosure makes the address Full outside of rows (spec/20 section 10, spec/30 basis 9).
    fn is_disclosed(&self, address: Address) -> bool {
        self.principal.disclosed_level(self.snapshot, address) == Some(Level::Full)
    }

    /// The plan of a balance or a nonce: zero for an address that is not Full (K8).
    fn quantity(&self, address: Address, status: &TargetStatus<'_>) -> Plan {
        let shown = status.is_full()
            || (!status.closed && self.is_disclosed(address))
            || match self.request.policy_settings.address_query {
                _ if status.closed => false,
                HiddenBalanceMode::Strict => false,
                HiddenBalanceMode::Linked => !status.is_owned_by_org() && self.snapshot.links_at(address).is_empty(),
                HiddenBalanceMode::Off => !status.is_owned_by_org(),
            };
        if shown { Plan::Forward } else { Plan::ZeroQuantity }
    }

    fn simulation(&self, simulation: &Simulation, target: Option<&TargetStatus<'_>>) -> Result<(), CheckError> {
        let request = &simulation.request;
        if is_multicall(request.to, &request.input) {
            return Err(DenyReason::Multicall.into());
        }
        self.history(simulation.block)?;
        // All users may estimate the gas of a plain payment and trace it, but not call it with eth_call (§10).
        self.target(request, target, simulation.is_payment())?;
        match request.from {
            Some(from) if !self.principal.owns(self.snapshot, from) => Err(invalid_sender()),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether the call is answered without a trace because tracing of `eth_call` is switched off (X9). This holds only
    /// if the target can be decided without a trace: creations, reservations, pinned code and historical blocks need
    /// one.
    fn untraced(&self, simulation: &Simulation, target: Option<&TargetStatus<'_>>) -> bool {
        let request = &simulation.request;
        let is_tracing_off = || {
            !self
                .request
                .policy_settings
                .toggle(self.snapshot, SystemToggle::EthCallTracing, self.request.now)
        };
        // B14: impersonated calls are always traced.
        simulation.kind == SimulationKind::Call
            && !self.principal.is_impersonated()
            // HD28: withheld changes are undone in traces only.
            && !self.snapshot.withholds_state(u64::MAX)
            // Without a trace the call might read the base fee.
            && !self.request.policy_settings.hide_base_fee
            && matches!(simulation.block, BlockId::Tag(BlockTag::Latest | BlockTag::Pending))
            && request.access_list.is_none()
            && request.authorization_list.is_empty()
            && target.is_some_and(|target| target.access.is_some() && target.shared.is_none())
            && is_tracing_off()
    }

    fn send(&self, signed: &Signed<'_>, target: Option<&TargetStatus<'_>>) -> Result<(), CheckError> {
        let request = signed.request;
        if is_multicall(request.to, &request.input) {
            return Err(DenyReason::Multicall.into());
        }
        self.target(request, target, request.input.is_empty())?;
        self.upgrade(request, target)?;
        match signed.signed_nonce {
            Some(nonce) if request.to.is_none() => self.created_address(signed.sender.create(nonce))?,
            None if !self.principal.owns(self.snapshot, signed.sender) => return Err(invalid_sender()),
            Some(_) | None => {}
        }
        let has_recipients = !self.request.visible_to.is_empty();
        if has_recipients {
            // Decision 57: before the node is asked for a trace.
            names_recipients(self.request.visible_to, request)
                .map_err(|error| CheckError::Invalid(error, DenyReason::InvalidRequestShape))?;
        }
        // HD7: nothing is looked up about an assumed sender.
        if !self.principal.assumes(signed.sender) {
            let own_only = request.to.is_none() || has_recipients;
            let orgs: Vec<_> = self.scope.orgs().collect();
            check_sender(
                self.snapshot,
                self.principal.user,
                signed.sender,
                own_only,
                &orgs,
                self.request.policy_settings,
            )?;
        }
        Ok(())
    }

    /// Checks the target with its function and parameter rules, or the deploy claim of a creation.
    fn target(
        &self,
        request: &CallRequest,
        target: Option<&TargetStatus<'_>>,
        is_payment: bool,
    ) -> Result<(), DenyReason> {
        match target {
            None => self.creation(request)?,
            Some(status) => self.run(request, status, is_payment)?,
        }
        self.access_list(request)?;
        self.authorizations(request)
    }

    /// Checks a creation: the deploy claim, and init code (C2, W2).
    fn creation(&self, request: &CallRequest) -> Result<(), DenyReason> {
        if !self.scope.has_claim(Claim::Deploy) {
            return Err(DenyReason::DeployClaimRequired);
        }
        if request.input.is_empty() {
            Err(DenyReason::InvalidRequestShape)
        } else {
            Ok(())
        }
    }

    /// Checks the target of an execution by the table of §10. A payment to an address without access is decided by its
    /// trace: a refusal here would distinguish contracts of organizations from unregistered ones, by the checks that
    /// run in between (HD40).
    fn run(&self, request: &CallRequest, status: &TargetStatus<'_>, is_payment: bool) -> Result<(), DenyReason> {
        if status.shared.is_some() {
            return Ok(());
        }
        if let Some(access) = &status.access {
            return access
                .functions
                .permit(self.snapshot, self.principal, access.contract, &request.input);
        }
        if is_payment {
            return Ok(());
        }
        if status.contract.is_some() {
            return Err(DenyReason::ContractNotPermitted);
        }
        let reserved = self.scope.org().is_some_and(|org| status.reserved_in.contains(&org));
        if status.retired.is_some() && !reserved {
            return Err(DenyReason::ContractNotPermitted);
        }
        if status.public || status.owned || reserved {
            Ok(())
        } else {
            Err(DenyReason::Unregistered)
        }
    }

    /// Checks the addresses of an access list like touches in a trace (§9, HD29): an address without access is refused,
    /// registered or not, so that listing an address reveals nothing about it.
    fn access_list(&self, request: &CallRequest) -> Result<(), DenyReason> {
        for item in request.access_list.iter().flat_map(|list| list.0.iter()) {
            let status = target_status(
                self.snapshot,
                self.principal,
                item.address,
                self.request.policy_settings,
            );
            let is_permitted = match status.contract {
                _ if status.shared.is_some() => true,
                Some(_) => status.access.is_some(),
                None if status.is_owned_by_org() => false,
                None => status.public || status.owned,
            };
            if !is_permitted {
                return Err(DenyReason::Unregistered);
            }
        }
        Ok(())
    }

    /// Checks EIP-7702 authorizations (W1): the caller owns every authority and has access to every delegate. The zero
    /// address ends a delegation.
    fn authorizations(&self, request: &CallRequest) -> Result<(), DenyReason> {
        for authorization in &request.authorization_list {
            let authority = authorization
                .recover_authority()
                .map_err(|_| DenyReason::SenderNotOwned)?;
            if !self.principal.owns(self.snapshot, authority) {
                return Err(DenyReason::SenderNotOwned);
            }
            if authorization.address.is_zero() {
                continue;
            }
            let delegate = target_status(
                self.snapshot,
                self.principal,
                authorization.address,
                self.request.policy_settings,
            );
            if delegate.access.is_none() && delegate.shared.is_none_or(|shared| shared.pin.is_none()) {
                return Err(DenyReason::ContractNotPermitted);
            }
        }
        Ok(())
    }

    /// Checks a known upgrade function (U1): it needs the claim on its target, and an implementation of the same
    /// organization.
    fn upgrade(&self, request: &CallRequest, target: Option<&TargetStatus<'_>>) -> Result<(), DenyReason> {
        let (Some(status), Some(upgrade)) = (target, code::upgrade(&request.input)) else {
            return Ok(());
        };
        let access = status.access.as_ref().ok_or(DenyReason::UpgradeClaimRequired)?;
        let owned = upgrade
            .implementation
            .and_then(|address| self.snapshot.contract(address))
            .is_some_and(|contract| contract.org == access.contract.org);
        if access.claims.has(Claim::Upgrade) && owned {
            Ok(())
        } else {
            Err(DenyReason::UpgradeClaimRequired)
        }
    }

    /// Refuses a creation at the address of another organization's contract (R2).
    fn created_address(&self, created: Address) -> Result<(), DenyReason> {
        match self.snapshot.owner(created) {
            Some(org) if Some(org) != self.scope.org() => Err(DenyReason::CrossOrg),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether the organization that owns an emitter lists the method that was called.
    fn lists_logs(&self, owner: &OrgRights) -> bool {
        match &self.request.lookup {
            MethodLookup::Custom(custom) => match_in(self.snapshot, self.principal, owner.org, custom).is_some(),
            MethodLookup::Registered(_) | MethodLookup::Blocked | MethodLookup::Unknown => {
                owner.permissions.allows(Method::GetLogs)
            }
        }
    }

    /// The emitters of which only rows of own and shared transactions are shown (decision 20): those that the caller
    /// has no access to, whether foreign, unregistered or wallets (T2). Each emitter is checked in the organization
    /// that owns it (decision 40). An emitter that belonged to the caller's organization counts, too (HD41); the view
    /// shows the blocks of that time.
    fn emitters(&self, emitters: &[(Address, TargetStatus<'_>)]) -> Result<Vec<Address>, DenyReason> {
        if emitters.is_empty() {
            return Err(DenyReason::InvalidRequestShape);
        }
        let mut shared_only = Vec::new();
        for (address, status) in emitters {
            let reached = reached_registrations(self.snapshot, self.principal, *address, self.request.policy_settings);
            let mut owners = reached
                .map(|contract| self.principal.rights_in(contract.org))
                .peekable();
            let is_reached = owners.peek().is_some();
            let owner = status.contract.map(|contract| contract.org);
            if !is_reached && owner.is_some_and(|org| self.principal.is_elsewhere(org)) {
                return Err(DenyReason::OrgMismatch);
            }
            let allowed = is_reached && owners.all(|owner| owner.is_some_and(|owner| self.lists_logs(owner)));
            if !(status.public || allowed) {
                shared_only.push(*address);
            }
        }
        // If nothing is shown without a grant the node is not asked: its response time would reveal hidden logs.
        let granted_only = [
            self.request.policy_settings.participant_logs,
            self.request.policy_settings.shared_logs,
        ] == [TransactionLogs::Granted; 2];
        if granted_only && !shared_only.is_empty() {
            return Err(DenyReason::ContractNotPermitted);
        }
        Ok(shared_only)
    }
}

/// Checks a storage slot (§9): the claim `admin` on the contract reads any slot, others read the standard proxy slots.
/// A reservation gives no access: it ends with the first code at the address, and without code nothing is stored.
fn storage(status: &TargetStatus<'_>, slot: StorageSlot) -> Result<(), DenyReason> {
    if reads_every_slot(status)? || (slot.full && code::PROXY_SLOTS.contains(&slot.word)) {
        Ok(())
    } else {
        Err(DenyReason::ParamRule)
    }
}

/// Checks each key of a proof like a storage slot (§9, B11). A key that is not written in full is no standard slot.
fn proof(status: &TargetStatus<'_>, slots: &[B256]) -> Result<(), DenyReason> {
    if reads_every_slot(status)? || slots.iter().all(|slot| code::PROXY_SLOTS.contains(slot)) {
        Ok(())
    } else {
        Err(DenyReason::ParamRule)
    }
}

fn reads_every_slot(status: &TargetStatus<'_>) -> Result<bool, DenyReason> {
    match &status.access {
        Some(access) => Ok(access.claims.has(Claim::Admin)),
        None if status.shared.is_some() => Ok(false),
        None if status.is_owned_by_org() => Err(DenyReason::ContractNotPermitted),
        None if status.public || status.owned => Ok(false),
        None => Err(DenyReason::Unregistered),
    }
}

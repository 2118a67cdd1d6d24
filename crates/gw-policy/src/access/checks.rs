//! The checks on one call whose method is granted: target, history, function, claims, sender (spec/20 §9, §10).

use super::{
    decide::plain_plan,
    extras::listed_in,
    orgs::Scope,
    permissions::OrgRights,
    permit::{Plan, Question},
    send::{check_sender, invalid_sender, names_recipients},
    subject::{Signed, Slot, StateAge, Subject},
    target::{Member, Standing, is_public, reached_registrations},
};
use crate::{
    knobs::{AddressQuery, TransactionLogs},
    snapshot::{Snapshot, SystemToggle},
};
use gw_evm::{
    BlockId, BlockTag, Call, CallRequest, Lookup, Method, ParamError, Simulation, SimulationKind,
    code::{self, is_multicall},
};
use gw_types::{Address, B256, Claim, DenyReason};

/// How a check refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The opaque denial.
    Deny(DenyReason),
    /// 400, with a text for the caller.
    Invalid(ParamError, DenyReason),
}

impl From<DenyReason> for Refused {
    fn from(reason: DenyReason) -> Self {
        Self::Deny(reason)
    }
}

/// What one call is judged by.
pub(super) struct Checks<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) q: &'a Question<'a>,
    pub(super) member: &'a Member,
    pub(super) scope: Scope<'a>,
}

impl Checks<'_> {
    /// The plan, and the emitters of which only own and shared transactions show.
    pub(super) fn call(&self, call: &Call, subject: &Subject<'_, '_>) -> Result<(Plan, Vec<Address>), Refused> {
        self.open(subject)?;
        let plan = match subject {
            Subject::Nothing => plain_plan(call),
            Subject::Quantity(address, block, standing) => {
                self.history(*block)?;
                self.quantity(*address, standing)
            }
            Subject::Code(block, standing) => {
                self.history(*block)?;
                if standing.is_full() {
                    Plan::Forward
                } else {
                    Plan::CodeCheck
                }
            }
            Subject::Storage(slot, block, standing) => {
                self.history(*block)?;
                storage(standing, *slot)?;
                Plan::Forward
            }
            Subject::Proof(slots, block, standing) => {
                self.history(*block)?;
                proof(standing, slots)?;
                Plan::Forward
            }
            Subject::SentBy(own) => {
                if !own {
                    return Err(DenyReason::SenderNotOwned.into());
                }
                Plan::Forward
            }
            Subject::Simulation(simulation, target) => {
                self.simulation(simulation, target.as_ref())?;
                if self.untraced(simulation, target.as_ref()) {
                    Plan::Untraced
                } else {
                    Plan::Simulate
                }
            }
            Subject::Send(signed, target) => {
                self.send(signed, target.as_ref())?;
                Plan::Send
            }
            Subject::Emitters(emitters) => return Ok((Plan::Forward, self.emitters(emitters)?)),
        };
        Ok((plan, Vec::new()))
    }

    /// HD28: what a mined finding closed is asked before every ground, and before the node is: neither its state nor what
    /// its balance can pay may show, not even by the node's own error. Balance, nonce, code and logs answer as those of a
    /// hidden address do (HD40).
    fn open(&self, subject: &Subject<'_, '_>) -> Result<(), DenyReason> {
        let runs_as = |sender: Option<Address>| {
            sender.is_some_and(|sender| !is_public(sender) && self.member.is_closed(self.snapshot, sender))
        };
        let is_closed = |target: &Standing<'_>| target.closed;
        let closed = match subject {
            Subject::Storage(_, _, standing) | Subject::Proof(_, _, standing) => standing.closed,
            Subject::Simulation(simulation, target) => {
                runs_as(simulation.request.from) || target.as_ref().is_some_and(is_closed)
            }
            Subject::Send(signed, target) => runs_as(Some(signed.sender)) || target.as_ref().is_some_and(is_closed),
            Subject::Nothing
            | Subject::Quantity(..)
            | Subject::Code(..)
            | Subject::SentBy(_)
            | Subject::Emitters(_) => false,
        };
        if closed {
            Err(DenyReason::ContractNotPermitted)
        } else {
            Ok(())
        }
    }

    /// H1: blocks of the past are for org admins.
    fn history(&self, block: BlockId) -> Result<(), DenyReason> {
        if StateAge::of(block, self.q.head.number) == StateAge::Old && !self.scope.is_org_admin() {
            return Err(DenyReason::HistoryNotPermitted);
        }
        Ok(())
    }

    /// H1: how old the state is that the call reads. Whose it was then is judged with the block's number and time.
    pub(super) fn state_age(&self, subject: &Subject<'_, '_>) -> StateAge {
        let block = match subject {
            Subject::Quantity(_, block, _)
            | Subject::Code(block, _)
            | Subject::Storage(_, block, _)
            | Subject::Proof(_, block, _) => *block,
            Subject::Simulation(simulation, _) => simulation.block,
            Subject::Nothing | Subject::Send(..) | Subject::Emitters(_) | Subject::SentBy(_) => BlockId::LATEST,
        };
        StateAge::of(block, self.q.head.number)
    }

    /// X6: whether a shared address must hold its pinned code for the answer to be opened, as no trace shows it.
    pub(super) fn rests_on_pin(&self, subject: &Subject<'_, '_>) -> bool {
        let standing = match subject {
            Subject::Quantity(_, _, standing)
            | Subject::Code(_, standing)
            | Subject::Storage(_, _, standing)
            | Subject::Proof(_, _, standing) => standing,
            Subject::Nothing
            | Subject::Simulation(..)
            | Subject::Send(..)
            | Subject::Emitters(_)
            | Subject::SentBy(_) => return false,
        };
        let by_itself = standing.closed || standing.public || standing.owned || standing.reach.is_some();
        !by_itself && standing.shared.is_some_and(|shared| shared.pin.is_some())
    }

    /// K8: what is not Full reads zero, whatever it is.
    fn quantity(&self, address: Address, standing: &Standing<'_>) -> Plan {
        let shown = standing.is_full()
            || match self.q.knobs.address_query {
                _ if standing.closed => false,
                AddressQuery::Strict => false,
                AddressQuery::Linked => !standing.is_owned_by_org() && self.snapshot.links_at(address).is_empty(),
                AddressQuery::Off => !standing.is_owned_by_org(),
            };
        if shown { Plan::Forward } else { Plan::ZeroQuantity }
    }

    fn simulation(&self, simulation: &Simulation, target: Option<&Standing<'_>>) -> Result<(), Refused> {
        let request = &simulation.request;
        if is_multicall(request.to, &request.input) {
            return Err(DenyReason::Multicall.into());
        }
        self.history(simulation.block)?;
        // The gas of a plain payment is everybody's to estimate, and its trace to see; its outcome as eth_call is not (§10).
        self.target(request, target, simulation.is_payment())?;
        match request.from {
            Some(from) if !self.member.owns(self.snapshot, from) => Err(invalid_sender()),
            Some(_) | None => Ok(()),
        }
    }

    /// X9: whether the call goes without a trace while tracing of `eth_call` is off. Only a call whose target is
    /// settled without one: creations, reservations, pinned code and the past need what only a trace tells.
    fn untraced(&self, simulation: &Simulation, target: Option<&Standing<'_>>) -> bool {
        let request = &simulation.request;
        let off = || {
            !self
                .q
                .knobs
                .toggle(self.snapshot, SystemToggle::EthCallTracing, self.q.now)
        };
        // B14: nobody else's call goes unjudged.
        simulation.kind == SimulationKind::Call
            && !self.member.is_watched()
            // HD28: what is withheld is undone in traces only.
            && !self.snapshot.withholds_state(u64::MAX)
            // What no trace shows may read the base fee.
            && !self.q.knobs.hide_base_fee
            && matches!(simulation.block, BlockId::Tag(BlockTag::Latest | BlockTag::Pending))
            && request.access_list.is_none()
            && request.authorization_list.is_empty()
            && target.is_some_and(|target| target.reach.is_some() && target.shared.is_none())
            && off()
    }

    fn send(&self, signed: &Signed<'_>, target: Option<&Standing<'_>>) -> Result<(), Refused> {
        let request = signed.request;
        if is_multicall(request.to, &request.input) {
            return Err(DenyReason::Multicall.into());
        }
        self.target(request, target, request.input.is_empty())?;
        self.upgrade(request, target)?;
        match signed.signed_nonce {
            Some(nonce) if request.to.is_none() => self.created_address(signed.sender.create(nonce))?,
            None if !self.member.owns(self.snapshot, signed.sender) => return Err(invalid_sender()),
            Some(_) | None => {}
        }
        let attaches = !self.q.visible_to.is_empty();
        if attaches {
            // Decision 57: before any trace is asked for.
            names_recipients(self.q.visible_to, request)
                .map_err(|error| Refused::Invalid(error, DenyReason::InvalidRequestShape))?;
        }
        // HD7: of a sender that is taken to be the user's nothing is looked up.
        if !self.member.assumes(signed.sender) {
            let own_only = request.to.is_none() || attaches;
            let orgs: Vec<_> = self.scope.orgs().collect();
            check_sender(
                self.snapshot,
                self.member.user,
                signed.sender,
                own_only,
                &orgs,
                self.q.knobs,
            )?;
        }
        Ok(())
    }

    /// The target itself, with function and parameter rules; the deploy claim without one.
    fn target(&self, request: &CallRequest, target: Option<&Standing<'_>>, is_payment: bool) -> Result<(), DenyReason> {
        match target {
            None => self.creation(request)?,
            Some(standing) => self.run(request, standing, is_payment)?,
        }
        self.access_list(request)?;
        self.authorizations(request)
    }

    /// C2, W2.
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

    /// The target table of §10, columns code-touching and plain value. A payment to what is out of reach is left to its
    /// trace, whosever it is: refused here, it would tell a contract of an organization from nobody's by the mistakes that
    /// are looked at in between (HD40).
    fn run(&self, request: &CallRequest, standing: &Standing<'_>, is_payment: bool) -> Result<(), DenyReason> {
        if standing.shared.is_some() {
            return Ok(());
        }
        if let Some(reach) = &standing.reach {
            return reach
                .functions
                .permit(self.snapshot, self.member, reach.contract, &request.input);
        }
        if is_payment {
            return Ok(());
        }
        if standing.contract.is_some() {
            return Err(DenyReason::ContractNotPermitted);
        }
        let reserved = self.scope.org().is_some_and(|org| standing.reserved_in.contains(&org));
        if standing.retired.is_some() && !reserved {
            return Err(DenyReason::ContractNotPermitted);
        }
        if standing.public || standing.owned || reserved {
            Ok(())
        } else {
            Err(DenyReason::Unregistered)
        }
    }

    /// §9: addresses in an access list are address inputs too. Judged like touches in a trace (HD29), so that listing a
    /// candidate tells nothing: what is not within reach is refused, registered or not.
    fn access_list(&self, request: &CallRequest) -> Result<(), DenyReason> {
        for item in request.access_list.iter().flat_map(|list| list.0.iter()) {
            let standing = super::target::standing(self.snapshot, self.member, item.address, self.q.knobs);
            let known = match standing.contract {
                _ if standing.shared.is_some() => true,
                Some(_) => standing.reach.is_some(),
                None if standing.is_owned_by_org() => false,
                None => standing.public || standing.owned,
            };
            if !known {
                return Err(DenyReason::Unregistered);
            }
        }
        Ok(())
    }

    /// W1: every authority is the caller's, every delegate a contract within reach. The zero address ends a delegation.
    fn authorizations(&self, request: &CallRequest) -> Result<(), DenyReason> {
        for authorization in &request.authorization_list {
            let authority = authorization
                .recover_authority()
                .map_err(|_| DenyReason::SenderNotOwned)?;
            if !self.member.owns(self.snapshot, authority) {
                return Err(DenyReason::SenderNotOwned);
            }
            if authorization.address.is_zero() {
                continue;
            }
            let delegate = super::target::standing(self.snapshot, self.member, authorization.address, self.q.knobs);
            if delegate.reach.is_none() && delegate.shared.is_none_or(|shared| shared.pin.is_none()) {
                return Err(DenyReason::ContractNotPermitted);
            }
        }
        Ok(())
    }

    /// U1: a known upgrade function needs the claim on its target, and an implementation of the same organization.
    fn upgrade(&self, request: &CallRequest, target: Option<&Standing<'_>>) -> Result<(), DenyReason> {
        let (Some(standing), Some(upgrade)) = (target, code::upgrade(&request.input)) else {
            return Ok(());
        };
        let reach = standing.reach.as_ref().ok_or(DenyReason::UpgradeClaimRequired)?;
        let owned = upgrade
            .implementation
            .and_then(|address| self.snapshot.contract(address))
            .is_some_and(|contract| contract.org == reach.contract.org);
        if reach.claims.has(Claim::Upgrade) && owned {
            Ok(())
        } else {
            Err(DenyReason::UpgradeClaimRequired)
        }
    }

    /// R2: a creation whose address is already another organization's contract.
    fn created_address(&self, created: Address) -> Result<(), DenyReason> {
        match self.snapshot.owner(created) {
            Some(org) if Some(org) != self.scope.org() => Err(DenyReason::CrossOrg),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether the organization of an emitter grants the method that asks for its logs.
    fn lists_logs(&self, owner: &OrgRights) -> bool {
        match &self.q.lookup {
            Lookup::Extra(extra) => listed_in(self.snapshot, self.member, owner.org, extra).is_some(),
            Lookup::Known(_) | Lookup::Blocked | Lookup::Unknown => owner.permissions.allows(Method::GetLogs),
        }
    }

    /// LOG: every address in its owner (decision 40). What is out of reach shows only rows of own and shared
    /// transactions (decision 20), the same way whether it is foreign, unregistered or a wallet (T2). Within reach is also
    /// what was the caller's organization's once (HD41): the view shows each its own blocks.
    fn emitters(&self, emitters: &[(Address, Standing<'_>)]) -> Result<Vec<Address>, DenyReason> {
        if emitters.is_empty() {
            return Err(DenyReason::InvalidRequestShape);
        }
        let mut shared_only = Vec::new();
        for (address, standing) in emitters {
            let reached = reached_registrations(self.snapshot, self.member, *address, self.q.knobs);
            let mut owners = reached.map(|contract| self.member.rights_in(contract.org)).peekable();
            let is_reached = owners.peek().is_some();
            let owner = standing.contract.map(|contract| contract.org);
            if !is_reached && owner.is_some_and(|org| self.member.is_elsewhere(org)) {
                return Err(DenyReason::OrgMismatch);
            }
            let allowed = is_reached && owners.all(|owner| owner.is_some_and(|owner| self.lists_logs(owner)));
            if !(standing.public || allowed) {
                shared_only.push(*address);
            }
        }
        // Where nothing shows without a grant, the node need not be asked: its pace would tell of hidden logs.
        let granted_only = [self.q.knobs.participant_logs, self.q.knobs.shared_logs] == [TransactionLogs::Granted; 2];
        if granted_only && !shared_only.is_empty() {
            return Err(DenyReason::ContractNotPermitted);
        }
        Ok(shared_only)
    }
}

/// §9: who holds `admin` on the contract reads any slot, others the standard ones. A reservation gives no reach here:
/// it ends with the first code at the address, and without code there is nothing stored.
fn storage(standing: &Standing<'_>, slot: Slot) -> Result<(), DenyReason> {
    if reads_every_slot(standing)? || (slot.full && code::PROXY_SLOTS.contains(&slot.word)) {
        Ok(())
    } else {
        Err(DenyReason::ParamRule)
    }
}

/// §9, B11: the rule of storage for each key. A key that was not written in full is none of the standard ones.
fn proof(standing: &Standing<'_>, slots: &[B256]) -> Result<(), DenyReason> {
    if reads_every_slot(standing)? || slots.iter().all(|slot| code::PROXY_SLOTS.contains(slot)) {
        Ok(())
    } else {
        Err(DenyReason::ParamRule)
    }
}

fn reads_every_slot(standing: &Standing<'_>) -> Result<bool, DenyReason> {
    match &standing.reach {
        Some(reach) => Ok(reach.claims.has(Claim::Admin)),
        None if standing.shared.is_some() => Ok(false),
        None if standing.is_owned_by_org() => Err(DenyReason::ContractNotPermitted),
        None if standing.public || standing.owned => Ok(false),
        None => Err(DenyReason::Unregistered),
    }
}

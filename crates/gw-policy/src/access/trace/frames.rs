//! Checks the frames of an execution in order: what each may create, and which code each may run in whose context (X5
//! to X7, HD15).

use super::{AddressClass, TraceEvaluator, TraceState};
use crate::snapshot::CodePin;
use gw_evm::{
    code::delegation,
    trace::{Frame, FrameKind},
};
use gw_types::{Address, Claim, DenyReason, OrgId};

/// What the frames above a frame determine for its checks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FrameContext {
    /// Whether a frame above runs code that the caller created or can direct at will.
    pub(super) authored: bool,
    /// The organization whose trusted router forwarded the call, if only code that the caller did not author ran since
    /// (F5).
    pub(super) router: Option<OrgId>,
}

impl<'a> TraceEvaluator<'a> {
    /// Checks every frame, in order.
    pub(super) fn check_frames(&self, state: &mut TraceState<'a>) -> Result<(), DenyReason> {
        // For each frame, the context of its child frames.
        let mut contexts: Vec<FrameContext> = Vec::with_capacity(self.trace.frames.len());
        for (index, frame) in self.trace.frames.iter().enumerate() {
            self.current_check.set(Some((Some(index), frame.to)));
            let parent = frame.parent.and_then(|parent| self.trace.frames.get(parent));
            let context = frame
                .parent
                .and_then(|parent| contexts.get(parent))
                .copied()
                .unwrap_or_default();
            let child_context = match frame.kind {
                FrameKind::Create | FrameKind::Create2 => {
                    self.check_creation(state, frame, parent)?;
                    FrameContext {
                        authored: true,
                        router: None,
                    }
                }
                // The code of the beneficiary of a self-destruct does not run.
                FrameKind::SelfDestruct => {
                    self.check_touch(state, frame.to.ok_or(DenyReason::TraceMismatch)?)?;
                    FrameContext::default()
                }
                FrameKind::Call | FrameKind::StaticCall | FrameKind::DelegateCall | FrameKind::CallCode => {
                    self.check_execution(state, frame, parent, context)?
                }
            };
            contexts.push(child_context);
        }
        Ok(())
    }

    /// X7: a creation needs the deploy claim in the organization that will own the contract, and in the organizations
    /// that own the creating contracts (HD29). It must not be at an address of another organization.
    fn check_creation(
        &self,
        state: &mut TraceState<'a>,
        frame: &Frame,
        parent: Option<&Frame>,
    ) -> Result<(), DenyReason> {
        let may_deploy = |org: OrgId| {
            self.principal
                .rights_in(org)
                .is_some_and(|rights| rights.permissions.claims.has(Claim::Deploy))
        };
        let factories = [Some(frame.from), parent.and_then(|parent| parent.to)]
            .into_iter()
            .flatten();
        let mut owners = factories.filter_map(|factory| match self.classify(factory) {
            AddressClass::OwnOrg(contract) => Some(contract.org),
            AddressClass::Public
            | AddressClass::Own
            | AddressClass::Shared
            | AddressClass::Created
            | AddressClass::ForeignOrg
            | AddressClass::Wallet
            | AddressClass::UnregisteredCode
            | AddressClass::Quarantined => None,
        });
        if !self.org.is_some_and(may_deploy) || !owners.all(may_deploy) {
            return Err(DenyReason::DeployClaimRequired);
        }
        let Some(address) = frame.to else { return Ok(()) };
        if self
            .snapshot
            .owner(address)
            .is_some_and(|owner| Some(owner) != self.org)
        {
            return Err(DenyReason::CrossOrg);
        }
        self.check_touch(state, address)
    }

    /// Checks a frame that runs code: that of its target and, if the target is a delegated wallet, of its delegate
    /// (HD15). Returns the context of the child frames.
    fn check_execution(
        &self,
        state: &mut TraceState<'a>,
        frame: &Frame,
        parent: Option<&Frame>,
        context: FrameContext,
    ) -> Result<FrameContext, DenyReason> {
        let to = frame.to.ok_or(DenyReason::TraceMismatch)?;
        let mut child_context = context;
        for address in self.runs_at(to) {
            state.executed.insert(address);
            if self.runs_implementation(frame, parent, address) {
                state.implementations.insert(address);
                continue;
            }
            // Shared code may be called, but must not run in the context of another account (X6).
            let in_other_context = address != to || matches!(frame.kind, FrameKind::DelegateCall | FrameKind::CallCode);
            if in_other_context && self.shared(address) && !(address != to && self.delegates_own(to, address)) {
                return Err(DenyReason::DelegateSharedInfra);
            }
            let class = self.admit(state, address)?;
            // The code of another user's delegated wallet can return the wallet's balance and slots to its caller.
            if address == to
                && parent.is_some()
                && matches!(class, AddressClass::Wallet)
                && delegation(self.code(to)).is_some()
            {
                return Err(DenyReason::ContractNotPermitted);
            }
            let authored = match class {
                AddressClass::Created => true,
                AddressClass::OwnOrg(contract) => {
                    // Delegated code runs on its caller's state, so it is not a call of this contract.
                    if matches!(frame.kind, FrameKind::Call | FrameKind::StaticCall) && address == to {
                        self.check_url_contract(address)?;
                    }
                    self.check_grant_rules(state, contract, frame, parent, context)?;
                    // A router is trusted for its own checks, which read its own storage.
                    if contract.trusted_router && !in_other_context {
                        child_context.router = Some(contract.org);
                    }
                    contract.deployer == Some(self.principal.user)
                }
                AddressClass::Own => !self.code(address).is_empty(),
                // Shared infrastructure in the top frame executes the caller's input, so the caller chose its calls
                // (T1).
                AddressClass::Shared => parent.is_none(),
                AddressClass::Public
                | AddressClass::ForeignOrg
                | AddressClass::Wallet
                | AddressClass::UnregisteredCode
                | AddressClass::Quarantined => false,
            };
            if authored {
                child_context = FrameContext {
                    authored: true,
                    router: None,
                };
            }
        }
        Ok(child_context)
    }

    /// HD9: whether the frame is a shared proxy that runs its pinned implementation. The proxy must run in its own
    /// context, so that its own code and storage determine the implementation.
    fn runs_implementation(&self, frame: &Frame, parent: Option<&Frame>, address: Address) -> bool {
        let Some(proxy) = parent else { return false };
        let in_own_context = matches!(proxy.kind, FrameKind::Call | FrameKind::StaticCall);
        let pin: Option<CodePin> = proxy
            .to
            .and_then(|to| self.snapshot.shared(to))
            .and_then(|shared| shared.pin);
        frame.kind == FrameKind::DelegateCall
            && in_own_context
            && Some(frame.from) == proxy.to
            && pin.is_some_and(|pin| pin.is_code(self.code(frame.from)) && pin.is_implementation(self.code(address)))
    }

    /// Whether `delegate` may run in the context of `wallet`: callers may delegate their own wallets to shared
    /// infrastructure whose code is pinned (W1).
    fn delegates_own(&self, wallet: Address, delegate: Address) -> bool {
        let is_own = wallet == self.sender || self.principal.owns(self.snapshot, wallet);
        let pin = self.snapshot.shared(delegate).and_then(|shared| shared.pin);
        is_own && pin.is_some_and(|pin| pin.is_code(self.code(delegate)))
    }
}

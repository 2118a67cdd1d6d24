//! Checks the grants for frames that run a registered contract, and for code that a proxy delegates to (X6, X8, F5,
//! HD4).

use super::{TraceEvaluator, TraceState, frames::FrameContext};
use crate::{
    principal::{ContractAccess, contract_access},
    snapshot::Contract,
};
use gw_evm::trace::{Frame, FrameKind};
use gw_types::{Address, DenyReason};
use std::{collections::HashSet, sync::Arc};

/// Pairs of a proxy and the code that it delegated its own input to, which runs on the proxy's state.
pub(super) fn forwarding_proxies(frames: &[Frame]) -> HashSet<(Address, Address)> {
    let is_forwarded = |frame: &&Frame| {
        let parent = frame.parent.and_then(|parent| frames.get(parent));
        frame.kind == FrameKind::DelegateCall && parent.is_some_and(|parent| parent.input == frame.input)
    };
    frames
        .iter()
        .filter(is_forwarded)
        .filter_map(|frame| Some((frame.from, frame.to?)))
        .collect()
}

impl<'a> TraceEvaluator<'a> {
    /// Checks the grants for a frame. A grant is needed in the top frame, in another of the caller's organizations
    /// (X6), below code that the caller authored, and everywhere while `intra-org-grant-tracing` is on (X8). If grants
    /// restrict functions, the frame's own input must be permitted, unless a trusted router of the contract's
    /// organization forwarded the call (F5, HD4).
    pub(super) fn check_grant_rules(
        &self,
        state: &mut TraceState<'a>,
        contract: &'a Arc<Contract>,
        frame: &Frame,
        parent: Option<&Frame>,
        context: FrameContext,
    ) -> Result<(), DenyReason> {
        self.check_proxy_rules(contract, frame, parent, context)?;
        // A proxy that forwards its input unchanged: the check of the proxy's own frame covers this one.
        let is_forwarded = frame.kind == FrameKind::DelegateCall
            && !context.authored
            && parent.is_some_and(|parent| parent.input == frame.input);
        let Some(ContractAccess { functions, .. }) =
            contract_access(self.snapshot, &self.principal, contract, self.policy_settings)
        else {
            let is_toggled = self.grants_within_org && !is_forwarded;
            let needs_grant = parent.is_none() || context.authored || is_toggled || Some(contract.org) != self.org;
            state.entered_without_access = true;
            return if needs_grant {
                Err(DenyReason::ContractNotPermitted)
            } else {
                Ok(())
            };
        };
        if is_forwarded || context.router == Some(contract.org) {
            return Ok(());
        }
        functions.permit(self.snapshot, &self.principal, contract, &frame.input)
    }

    /// F5, HD4: code that a proxy forwards its input to, and that runs again on the proxy's state with other input, is
    /// a call of the proxy and needs its grants. Libraries, to which the proxy never forwarded its input, are exempt.
    fn check_proxy_rules(
        &self,
        code: &Contract,
        frame: &Frame,
        parent: Option<&Frame>,
        context: FrameContext,
    ) -> Result<(), DenyReason> {
        let in_other_context = matches!(frame.kind, FrameKind::DelegateCall | FrameKind::CallCode);
        let is_forwarded = parent.is_some_and(|parent| parent.input == frame.input);
        if !in_other_context || is_forwarded || !self.forwarding_proxies.contains(&(frame.from, code.address)) {
            return Ok(());
        }
        let Some(proxy) = self.snapshot.contract(frame.from) else {
            return Ok(());
        };
        let Some(ContractAccess { functions, .. }) =
            contract_access(self.snapshot, &self.principal, proxy, self.policy_settings)
        else {
            return Ok(());
        };
        if context.router == Some(proxy.org) {
            Ok(())
        } else {
            functions.permit(self.snapshot, &self.principal, proxy, &frame.input)
        }
    }
}

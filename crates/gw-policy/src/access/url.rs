//! What a personal URL reaches of all its owner may do (HD17 PU-1).
//!
//! Whoever is connected to the wallet that holds the URL acts by it: any web page, with the user's rights. So it starts
//! from nothing and adds what the scope names; it never gives what the owner has not.

use super::{
    checks::Refused,
    permit::Plan,
    send::invalid_sender,
    subject::{Signed, Subject},
};
use crate::snapshot::{LinkKind, PersonalUrl, Snapshot, UrlReach};
use gw_evm::{Call, CallRequest, Class, Method};
use gw_types::{Address, DenyReason};
use std::sync::Arc;

/// Whether this call may come by the URL at all.
pub(super) fn check_url_scope(url: &PersonalUrl, method: Method, call: &Call) -> Result<(), DenyReason> {
    let picked = match &url.reach {
        UrlReach::All if method.class() == Class::Trace => return Err(DenyReason::MethodNotAllowed),
        UrlReach::All => return Ok(()),
        UrlReach::Wallet | UrlReach::Contracts(_) => picked(url),
    };
    if let (Class::Sim, Call::Simulate(simulation)) = (method.class(), call) {
        return simulated(method, &simulation.request, picked);
    }
    if is_wallets(method) {
        return Ok(());
    }
    let (Method::GetLogs, Call::Logs(filter)) = (method, call) else {
        return Err(DenyReason::MethodNotAllowed);
    };
    let picks = !filter.addresses.is_empty() && filter.addresses.iter().all(|address| picked.contains(address));
    if picks {
        Ok(())
    } else {
        Err(DenyReason::ContractNotPermitted)
    }
}

/// By the URL only wallets send that its owner linked by their signature: a page that holds the URL could sign with any key
/// of its own, and what it sends would count as the owner's.
pub(super) fn check_url_sender(snapshot: &Snapshot, url: &PersonalUrl, call: &Call) -> Result<(), Refused> {
    let Some(signed) = Signed::of(call) else { return Ok(()) };
    let mut links = snapshot.links_at(signed.sender).iter();
    let proved = links.any(|link| link.user == url.user && link.kind == LinkKind::User && !link.contract_wallet);
    if proved { Ok(()) } else { Err(invalid_sender()) }
}

/// The contracts the owner picked.
fn picked(url: &PersonalUrl) -> &[Address] {
    match &url.reach {
        UrlReach::Contracts(contracts) => contracts,
        UrlReach::Wallet | UrlReach::All => &[],
    }
}

/// Calls of picked contracts, and what a payment costs. Nothing is created: init code answers whatever it likes.
fn simulated(method: Method, request: &CallRequest, picked: &[Address]) -> Result<(), DenyReason> {
    let to = request.to.ok_or(DenyReason::ContractNotPermitted)?;
    let estimates = method == Method::EstimateGas;
    if !estimates && method != Method::Call {
        return Err(DenyReason::MethodNotAllowed);
    }
    let plain = request.input.is_empty() && request.authorization_list.is_empty() && request.access_list.is_none();
    // Whether it enters somebody's contract, its trace tells.
    let pays = estimates && plain;
    if picked.contains(&to) || pays {
        Ok(())
    } else {
        Err(DenyReason::ContractNotPermitted)
    }
}

/// What a wallet needs to show an account, price a transaction, send it and see it mined. Not which addresses are the
/// user's own: a page need not know.
fn is_wallets(method: Method) -> bool {
    match method.class() {
        Class::Meta | Class::Write => true,
        Class::Chain => !matches!(method, Method::Accounts | Method::Coinbase),
        // Of code, that there is none: wallets ask it of every receiver.
        Class::State => matches!(
            method,
            Method::GetBalance | Method::GetTransactionCount | Method::GetCode
        ),
        Class::Tx => matches!(method, Method::GetTransactionByHash | Method::GetTransactionReceipt),
        // Wallets read base fee and time of the block their transaction is in.
        Class::Block => matches!(method, Method::GetBlockByNumber | Method::GetBlockByHash),
        Class::Sim | Class::Log | Class::Trace | Class::Live => false,
    }
}

/// What is left of an answer.
#[derive(Clone, Debug)]
pub(super) struct UrlScope {
    pub(super) plan: Plan,
    /// Of transactions only the owner's own show, of code only that there is none.
    pub(super) own_only: bool,
    /// What a run reverts with is not told.
    pub(super) no_revert_data: bool,
    /// The only contracts of organizations that a simulation calls.
    pub(super) picked: Option<Arc<[Address]>>,
}

/// Balances and nonces but the owner's own read zero, of transactions only the owner's own show, of code only that there
/// is none, of a payment that fails only that it does.
pub(super) fn apply_url_scope(url: &PersonalUrl, call: &Call, subject: &Subject<'_, '_>, plan: Plan) -> UrlScope {
    match url.reach {
        UrlReach::All => UrlScope {
            plan,
            own_only: false,
            no_revert_data: false,
            picked: None,
        },
        UrlReach::Wallet | UrlReach::Contracts(_) => {
            let picked = picked(url);
            let foreign = matches!(subject, Subject::Quantity(..)) && !subject.is_owned();
            // Logs and code of a picked contract are what the scope is about.
            let picks =
                matches!(call, Call::Logs(_)) || matches!(call, Call::Code(address, _) if picked.contains(address));
            let no_revert_data = if let Call::Simulate(simulation) = call {
                simulation.request.to.is_none_or(|to| !picked.contains(&to))
            } else {
                false
            };
            let plan = if foreign { Plan::ZeroQuantity } else { plan };
            let picked = (plan == Plan::Simulate).then(|| picked.into());
            UrlScope {
                plan,
                own_only: !picks,
                no_revert_data,
                picked,
            }
        }
    }
}

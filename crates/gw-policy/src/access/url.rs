//! The scope of a personal URL, which bounds what its owner may do through it (HD17 PU-1).
//!
//! Any web page that is connected to the wallet with the URL acts with the owner's rights. So the scope permits only
//! what it lists, and it never gives a right that the owner does not have.

use super::{
    permit::{CheckError, Plan, UrlRestrictions},
    resource::{Resource, Signed},
    send::invalid_sender,
};
use crate::snapshot::{LinkKind, PersonalUrl, Snapshot, UrlReach};
use gw_evm::{Call, CallRequest, Class, Method};
use gw_types::{Address, DenyReason};

/// Checks that the call is in the scope of the URL.
pub(super) fn check_url_scope(url: &PersonalUrl, method: Method, call: &Call) -> Result<(), DenyReason> {
    let contracts = match &url.reach {
        UrlReach::All if method.class() == Class::Trace => return Err(DenyReason::MethodNotAllowed),
        UrlReach::All => return Ok(()),
        UrlReach::Wallet | UrlReach::Contracts(_) => contracts_of(url),
    };
    if let (Class::Sim, Call::Simulate(simulation)) = (method.class(), call) {
        return check_simulation(method, &simulation.request, contracts);
    }
    if is_needed_by_wallets(method) {
        return Ok(());
    }
    let (Method::GetLogs, Call::Logs(filter)) = (method, call) else {
        return Err(DenyReason::MethodNotAllowed);
    };
    let is_in_scope =
        !filter.addresses.is_empty() && filter.addresses.iter().all(|address| contracts.contains(address));
    if is_in_scope {
        Ok(())
    } else {
        Err(DenyReason::ContractNotPermitted)
    }
}

/// Checks the sender of a send: only wallets that the owner linked by a signature may send through the URL. Otherwise a
/// page could sign with a key of its own, and its transactions would count as the owner's.
pub(super) fn check_url_sender(snapshot: &Snapshot, url: &PersonalUrl, call: &Call) -> Result<(), CheckError> {
    let Some(signed) = Signed::from_call(call) else {
        return Ok(());
    };
    let mut links = snapshot.links_at(signed.sender).iter();
    let is_proved = links.any(|link| link.user == url.user && link.kind == LinkKind::User && !link.contract_wallet);
    if is_proved { Ok(()) } else { Err(invalid_sender()) }
}

/// The contracts that the scope names.
fn contracts_of(url: &PersonalUrl) -> &[Address] {
    match &url.reach {
        UrlReach::Contracts(contracts) => contracts,
        UrlReach::Wallet | UrlReach::All => &[],
    }
}

/// Checks a simulation: it must call a listed contract, or estimate the gas of a plain payment. Creations are refused,
/// since init code may call any contract.
fn check_simulation(method: Method, request: &CallRequest, contracts: &[Address]) -> Result<(), DenyReason> {
    let to = request.to.ok_or(DenyReason::ContractNotPermitted)?;
    let is_estimate = method == Method::EstimateGas;
    if !is_estimate && method != Method::Call {
        return Err(DenyReason::MethodNotAllowed);
    }
    let is_plain = request.input.is_empty() && request.authorization_list.is_empty() && request.access_list.is_none();
    // The evaluation of the trace refuses a payment that enters an organization's contract.
    let is_payment_estimate = is_estimate && is_plain;
    if contracts.contains(&to) || is_payment_estimate {
        Ok(())
    } else {
        Err(DenyReason::ContractNotPermitted)
    }
}

/// Whether a wallet needs the method to show an account, price a transaction, send it and see it mined. Methods that
/// list the user's own addresses are excluded: a page need not know them.
fn is_needed_by_wallets(method: Method) -> bool {
    match method.class() {
        Class::Meta | Class::Write => true,
        Class::Chain => !matches!(method, Method::Accounts | Method::Coinbase),
        // Wallets read the code of every receiver, to see that there is none.
        Class::State => matches!(
            method,
            Method::GetBalance | Method::GetTransactionCount | Method::GetCode
        ),
        Class::Tx => matches!(method, Method::GetTransactionByHash | Method::GetTransactionReceipt),
        // Wallets read base fee and time of the block their transaction is in.
        Class::Block => matches!(method, Method::GetBlockByNumber | Method::GetBlockByHash),
        Class::Sim | Class::Log | Class::Trace | Class::Subscription => false,
    }
}

/// The plan and the restrictions within the scope of a URL: balances and nonces of others read zero, transactions of
/// others are not shown, code is shown only as absent, and a failing payment shows no revert data.
pub(super) fn apply_url_scope(
    url: &PersonalUrl,
    call: &Call,
    resource: &Resource<'_, '_>,
    plan: Plan,
) -> (Plan, UrlRestrictions) {
    match url.reach {
        UrlReach::All => (plan, UrlRestrictions::default()),
        UrlReach::Wallet | UrlReach::Contracts(_) => {
            let contracts = contracts_of(url);
            let is_foreign = matches!(resource, Resource::Quantity(..)) && !resource.is_owned();
            // Logs and code of the listed contracts are shown without these restrictions.
            let is_in_scope =
                matches!(call, Call::Logs(_)) || matches!(call, Call::Code(address, _) if contracts.contains(address));
            let no_revert_data = if let Call::Simulate(simulation) = call {
                simulation.request.to.is_none_or(|to| !contracts.contains(&to))
            } else {
                false
            };
            let plan = if is_foreign { Plan::ZeroQuantity } else { plan };
            let contracts = (plan == Plan::Simulate).then(|| contracts.into());
            (
                plan,
                UrlRestrictions {
                    own_transactions_only: !is_in_scope,
                    no_revert_data,
                    contracts,
                },
            )
        }
    }
}

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
use gw_evm::{Call, Class, Method};
use gw_types::{Address, DenyReason};

/// Whether this call may come by the URL at all.
pub(super) fn within(url: &PersonalUrl, method: Method, call: &Call) -> Result<(), DenyReason> {
    let picked: &[Address] = match &url.reach {
        UrlReach::All if method.class() == Class::Trace => return Err(DenyReason::MethodNotAllowed),
        UrlReach::All => return Ok(()),
        UrlReach::Wallet => &[],
        UrlReach::Contracts(contracts) => contracts,
    };
    if is_wallets(method) {
        return Ok(());
    }
    let picks = if let (Method::Call, Call::Simulate(simulation)) = (method, call) {
        simulation.request.to.is_some_and(|to| picked.contains(&to))
    } else if let (Method::GetLogs, Call::Logs(filter)) = (method, call) {
        !filter.addresses.is_empty() && filter.addresses.iter().all(|address| picked.contains(address))
    } else {
        return Err(DenyReason::MethodNotAllowed);
    };
    if picks { Ok(()) } else { Err(DenyReason::ContractNotPermitted) }
}

/// By the URL only wallets send that its owner linked by their signature: a page that holds the URL could sign with any key
/// of its own, and what it sends would count as the owner's.
pub(super) fn check_url_sender(snapshot: &Snapshot, url: &PersonalUrl, call: &Call) -> Result<(), Refused> {
    let Some(signed) = Signed::of(call) else { return Ok(()) };
    let mut links = snapshot.links_at(signed.sender).iter();
    let proved = links.any(|link| link.user == url.user && link.kind == LinkKind::User && !link.contract_wallet);
    if proved { Ok(()) } else { Err(invalid_sender()) }
}

/// What a wallet needs to show an account, price a transaction, send it and see it mined. Not which addresses are the
/// user's own: a page need not know.
fn is_wallets(method: Method) -> bool {
    match method.class() {
        Class::Meta | Class::Write => true,
        Class::Chain => !matches!(method, Method::Accounts | Method::Coinbase),
        Class::State => matches!(method, Method::GetBalance | Method::GetTransactionCount),
        Class::Sim => method == Method::EstimateGas,
        Class::Tx => matches!(method, Method::GetTransactionByHash | Method::GetTransactionReceipt),
        // Wallets read base fee and time of the block their transaction is in.
        Class::Block => matches!(method, Method::GetBlockByNumber | Method::GetBlockByHash),
        Class::Log | Class::Trace | Class::Live => false,
    }
}

/// Balances and nonces but the owner's own read zero, and of transactions only the owner's own show.
pub(super) fn narrowed(url: &PersonalUrl, subject: &Subject<'_, '_>, plan: Plan) -> (Plan, bool) {
    match url.reach {
        UrlReach::All => (plan, false),
        UrlReach::Wallet | UrlReach::Contracts(_) => {
            let foreign = matches!(subject, Subject::Quantity(..)) && !subject.is_owned();
            (if foreign { Plan::ZeroQuantity } else { plan }, true)
        }
    }
}

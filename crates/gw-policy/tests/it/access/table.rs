//! Two tables of the access rules: methods by role, and targets by role. A changed table is a change of access
//! rights.
//!
//! Upper case is the plan of an allowed call. Lower case is the deny reason in the access log; the caller only gets
//! the generic 404. `400` is a parameter error that the caller gets.

use super::support::{RequestBuilder, anonymous_request, payment, request_as, signed, verdict};
use gw_evm::Method;
use gw_policy::{
    Snapshot,
    access::Decision,
    testing::{FUTURE, address_of, function, world},
};
use gw_types::{Address, Claim};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// A bank with every kind of user, a rival, and one contract for each kind of access.
fn everybody() -> Snapshot {
    world()
        .org("bank")
        .group("analysts")
        .methods([Method::Call, Method::GetBalance, Method::GetTransactionCount])
        .methods([Method::GetTransactionReceipt, Method::GetLogs])
        .group("traders")
        .every_method()
        .group("ops")
        .every_method()
        .claim(Claim::Deploy)
        .group("chiefs")
        .every_method()
        .claim(Claim::Admin)
        .group("admins")
        .org_admin()
        .every_method()
        .group("auditors")
        .readonly_admin()
        .contract("granted")
        .grant("analysts")
        .grant("traders")
        .grant("ops")
        .contract("restricted")
        .grant("traders")
        .functions([function("balanceOf(address)", [])])
        .contract("ungranted")
        .contract("deployed")
        .deployed_by("ops")
        .user("default-member")
        .member("default/default")
        .link("default-member-wallet")
        .user("analyst")
        .member("analysts")
        .member("default/default")
        .link("analyst-wallet")
        .user("trader")
        .member("traders")
        .link("trader-wallet")
        .user("no-kyc")
        .no_kyc()
        .member("traders")
        .link("no-kyc-wallet")
        .user("ops")
        .member("ops")
        .link("ops-wallet")
        .reservation("reserved", FUTURE)
        .user("chief")
        .member("chiefs")
        .link("chief-wallet")
        .user("org-admin")
        .member("admins")
        .link("org-admin-wallet")
        .user("auditor")
        .member("auditors")
        .link("auditor-wallet")
        .org("rival")
        .group("members")
        .every_method()
        .contract("foreign")
        .grant("members")
        .user("rival")
        .member("members")
        .link("rival-wallet")
        .user("two-banks")
        .member("members")
        .member("bank/traders")
        .link("two-banks-wallet")
        .user("banned")
        .banned()
        .member("bank/admins")
        .link("banned-wallet")
        .snapshot()
}

const ROLES: [&str; 12] = [
    "anonymous",
    "default-member",
    "rival",
    "auditor",
    "no-kyc",
    "analyst",
    "trader",
    "two-banks",
    "ops",
    "chief",
    "org-admin",
    "banned",
];

fn as_role<'s>(snapshot: &'s Snapshot, role: &str) -> RequestBuilder<'s> {
    if role == "anonymous" {
        anonymous_request(snapshot)
    } else {
        request_as(snapshot, role)
    }
}

fn wallet(role: &str) -> Address {
    address_of(&format!("{role}-wallet"))
}

/// A typical call of each method on the contract `granted`.
fn typical_call(request: &RequestBuilder<'_>, method: Method, role: &str) -> Decision {
    let (contract, hash) = (
        address_of("granted"),
        "0x00000000000000000000000000000000000000000000000000000000000000aa",
    );
    let call = json!({"to": contract, "data": "0x70a08231"});
    let params: Value = match method {
        Method::SendRawTransaction => {
            return request.call(
                method,
                &signed(wallet(role), 0, Some(contract), [0x70, 0xa0, 0x82, 0x31]),
            );
        }
        Method::SendTransaction => json!([{"from": wallet(role), "to": contract, "data": "0x70a08231"}]),
        Method::Call | Method::EstimateGas | Method::CreateAccessList => json!([call]),
        Method::DebugTraceCall => json!([call, "latest", {"tracer": "callTracer"}]),
        Method::DebugTraceTransaction => json!([hash, {"tracer": "callTracer"}]),
        Method::FeeHistory => json!(["0x1", "latest", []]),
        Method::Sha3 => json!(["0x00"]),
        Method::GetBalance | Method::GetTransactionCount | Method::GetCode => json!([contract, "latest"]),
        Method::GetStorageAt => {
            json!([
                contract,
                "0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc",
                "latest"
            ])
        }
        Method::GetProof => json!([contract, [], "latest"]),
        Method::GetLogs | Method::NewFilter => json!([{"address": contract}]),
        Method::GetFilterChanges | Method::GetFilterLogs | Method::UninstallFilter | Method::Unsubscribe => {
            json!(["0x00000000000000000000000000000001"])
        }
        Method::Subscribe => json!(["newHeads"]),
        Method::GetTransactionByHash | Method::GetTransactionReceipt => json!([hash]),
        Method::GetTransactionByBlockHashAndIndex | Method::GetUncleByBlockHashAndIndex => json!([hash, "0x0"]),
        Method::GetTransactionByBlockNumberAndIndex | Method::GetUncleByBlockNumberAndIndex => json!(["latest", "0x0"]),
        Method::GetTransactionBySenderAndNonce => json!([wallet(role), "0x0"]),
        Method::GetBlockByHash => json!([hash, false]),
        Method::GetBlockByNumber => json!(["latest", false]),
        Method::GetBlockTransactionCountByHash | Method::GetUncleCountByBlockHash => json!([hash]),
        Method::GetBlockTransactionCountByNumber | Method::GetUncleCountByBlockNumber | Method::GetBlockReceipts => {
            json!(["latest"])
        }
        _ => json!([]),
    };
    request.rpc(method.as_str(), params)
}

/// Short forms of verdicts, so that a row fits on a screen.
fn abbreviate(verdict: &str) -> &str {
    match verdict {
        "auth_required" => "auth",
        "method_not_allowed" => "method",
        "foreign_org" => "foreign",
        "kyc_required" => "kyc",
        "contract_not_permitted" => "contract",
        "function_not_permitted" => "function",
        "unregistered" => "unreg",
        "org_ambiguous" => "ambig",
        "param_rule" => "param",
        "deploy_claim_required" => "deploy",
        other => other,
    }
}

fn table(first: &str, columns: &[&str], rows: impl IntoIterator<Item = (String, Vec<String>)>) -> String {
    let mut text = format!("{first:<42}");
    for column in columns {
        let _ = write!(text, " {column:>14}");
    }
    for (name, cells) in rows {
        let _ = write!(text, "\n{name:<42}");
        for cell in cells {
            let _ = write!(text, " {:>14}", abbreviate(&cell));
        }
    }
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// §9: every method on a contract of the bank on which analysts, traders and ops have a grant.
#[test]
fn methods_by_role() {
    let snapshot = everybody();
    let rows = Method::ALL.iter().map(|method| {
        let cells = ROLES
            .iter()
            .map(|role| verdict(&typical_call(&as_role(&snapshot, role), *method, role)));
        (method.as_str().to_owned(), cells.collect())
    });
    insta::with_settings!({snapshot_path => "../../../../../docs/tables", prepend_module_to_snapshot => false}, {
        insta::assert_snapshot!("role_by_method", table("on the contract `granted`", &ROLES, rows));
    });
}

const TARGETS: [&str; 13] = [
    "granted",
    "restricted",
    "ungranted",
    "deployed",
    "foreign",
    "reserved",
    "unregistered",
    "precompile",
    "zero-address",
    "own-wallet",
    "others-wallet",
    "unclaimed",
    "(creation)",
];

fn target(name: &str, role: &str) -> Option<Address> {
    Some(match name {
        "precompile" => Address::with_last_byte(2),
        "zero-address" => Address::ZERO,
        "own-wallet" => wallet(role),
        "others-wallet" => wallet("rival"),
        "(creation)" => return None,
        other => address_of(other),
    })
}

/// §10: the decisions for each target, for callers who may use every method.
#[test]
fn decisions_by_target() {
    let snapshot = everybody();
    let mut text = String::new();
    for role in ["trader", "ops", "org-admin"] {
        let request = request_as(&snapshot, role);
        let rows = TARGETS.iter().map(|name| {
            let to = target(name, role);
            let execute = |method: &str| match to {
                Some(to) => request.rpc(method, json!([{"to": to, "data": "0x01020304"}])),
                None => request.rpc(method, json!([{"data": "0x01020304"}])),
            };
            let account = |method: &str, second_param: Value| match to {
                Some(to) => verdict(&request.rpc(method, Value::Array(vec![json!(to), second_param]))),
                None => String::new(),
            };
            let pay = |to| request.call(Method::SendRawTransaction, &payment(wallet(role), to));
            let cells = vec![
                verdict(&execute("eth_call")),
                verdict(&execute("eth_estimateGas")),
                verdict(&request.send_raw(wallet(role), to, [1, 2, 3, 4])),
                to.map_or_else(String::new, |to| verdict(&pay(to))),
                account("eth_getBalance", json!("latest")),
                account("eth_getCode", json!("latest")),
                account("eth_getStorageAt", json!("0x0")),
                to.map_or_else(String::new, |to| {
                    verdict(&request.rpc("eth_getLogs", json!([{"address": to}])))
                }),
            ];
            ((*name).to_owned(), cells)
        });
        let columns = [
            "eth_call",
            "estimateGas",
            "send",
            "plain payment",
            "getBalance",
            "getCode",
            "storage 0x0",
            "getLogs",
        ];
        let _ = writeln!(text, "{}\n", table(&format!("as {role}"), &columns, rows));
    }
    insta::with_settings!({snapshot_path => "../../../../../docs/tables", prepend_module_to_snapshot => false}, {
        insta::assert_snapshot!("target_by_method", text);
    });
}

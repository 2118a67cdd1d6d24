//! The parity corpus: cases of (world, call, node, viewers, expected views). They run through the view functions
//! directly here and through `/rpc` in other tests, to check that both show equal results (house style, habit 6).
//!
//! A case is a JSON file. Its strings may contain the placeholders `{address:name}`, `{hash:name}`, `{word:name}` (an
//! address as a word), `{number:12}` (a number as a word), `{topic:Transfer(address,address,uint256)}` and `{zeros:20}`
//! (20 zero bytes). All but the first two expand to digits without `0x`, which the string itself must contain. An
//! object with a member `$like` gets its missing members from a template (function `template`).

use super::{World, address_of, hash_of, user_id, world};
use crate::{
    PolicySettings, RawJson, Sealed, Snapshot, Viewer,
    snapshot::{Constraint, EventRule, ParamRule},
    view::{self, BlockTransactions, LogsAnswer, PartiesNeeded, TxParties},
};
use alloy_primitives::{B256, keccak256};
use bytes::Bytes;
use gw_evm::{
    Call, ChainRules, Method, MethodLookup,
    abi::builtin,
    call,
    wire::{self, Pin},
};
use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};
use std::collections::BTreeMap;

/// The reason why a file is not a valid case.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CaseError(String);

fn case_error(reason: impl Into<String>) -> CaseError {
    CaseError(reason.into())
}

/// One case.
#[derive(Clone, Debug)]
pub struct Case {
    /// Description of the case.
    pub about: String,
    /// Ids of the rules that the case tests.
    pub rules: Vec<String>,
    /// The policy rows. Every group is granted every method, so that its members may make the call on `/rpc`.
    pub world: World,
    /// The policy settings.
    pub policy_settings: PolicySettings,
    /// The method of the call.
    pub method: String,
    /// The parameters of the call, a list.
    pub params: Value,
    /// The node's result for the upstream call.
    pub node: Value,
    /// Transactions that the node knows, for calls that need their parties.
    pub transactions: Vec<Value>,
    /// The expected view of each viewer, by user name; `nobody` is an anonymous caller.
    pub views: BTreeMap<String, Expected>,
}

/// The expected outcome for one viewer.
#[derive(Clone, Debug, PartialEq)]
pub enum Expected {
    /// A result.
    Result(Value),
    /// The opaque denial.
    Denied,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseFile {
    about: String,
    rules: Vec<String>,
    world: WorldFile,
    #[serde(default)]
    strict: bool,
    method: String,
    params: Value,
    node: Value,
    #[serde(default)]
    transactions: Vec<Value>,
    views: BTreeMap<String, ViewFile>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum ViewFile {
    Result(Value),
    Denied(bool),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WorldFile {
    orgs: BTreeMap<String, OrgFile>,
    users: BTreeMap<String, UserFile>,
    #[serde(default)]
    shares: BTreeMap<String, ShareFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OrgFile {
    groups: BTreeMap<String, GroupFile>,
    #[serde(default)]
    contracts: BTreeMap<String, ContractFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct GroupFile {
    org_admin: bool,
    claims: Vec<gw_types::Claim>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct ContractFile {
    /// A token type, or an ABI as JSON.
    abi: Value,
    deployer: Option<String>,
    unlock: bool,
    attested: bool,
    /// Event rules by group; `null` is every event.
    grants: BTreeMap<String, Option<Vec<RuleFile>>>,
}

#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    event: String,
    /// Pairs of a parameter index and its condition: `self` or a word.
    #[serde(default)]
    params: Vec<(usize, String)>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct UserFile {
    groups: Vec<String>,
    wallets: Vec<String>,
    inferred: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShareFile {
    by: String,
    with: Vec<String>,
}

impl Case {
    /// Parses a case file.
    ///
    /// # Errors
    /// The text is not valid JSON, or not a case.
    pub fn read(text: &str) -> Result<Self, CaseError> {
        let value = fill(&serde_json::from_str(text).map_err(|error| case_error(error.to_string()))?)?;
        let file: CaseFile = serde_json::from_value(value).map_err(|error| case_error(error.to_string()))?;
        let views = file.views.into_iter().map(|(viewer, view)| match view {
            ViewFile::Result(value) => Ok((viewer, Expected::Result(value))),
            ViewFile::Denied(true) => Ok((viewer, Expected::Denied)),
            ViewFile::Denied(false) => Err(case_error(format!(
                "the view of `{viewer}` is neither a result nor a denial"
            ))),
        });
        Ok(Self {
            about: file.about,
            rules: file.rules,
            world: build(file.world)?,
            policy_settings: if file.strict {
                PolicySettings::STRICT
            } else {
                PolicySettings::SPEC
            },
            method: file.method,
            params: file.params,
            node: file.node,
            transactions: file.transactions,
            views: views.collect::<Result<_, _>>()?,
        })
    }

    /// The outcome of the view functions for one viewer.
    ///
    /// # Errors
    /// The case has an invalid call, or a call without a view.
    pub fn open(&self, snapshot: &Snapshot, viewer: &str) -> Result<Expected, CaseError> {
        let user = (viewer != "nobody").then(|| user_id(viewer));
        let viewer = Viewer::new(snapshot, user, super::NOW, &self.policy_settings);
        let call = self.call()?;
        let answer = || sealed(&self.node);
        let disclosed = match &call {
            Call::Transaction(_) => view::transaction(&viewer, answer()),
            Call::Receipt(_) => view::receipt(&viewer, answer()),
            Call::BlockReceipts(_) => view::block_receipts(&viewer, answer()),
            Call::BlockTransactionCount(_) => view::block_transaction_count(&viewer, answer()),
            Call::Block { full, .. } => {
                let transactions = if *full {
                    BlockTransactions::Full
                } else {
                    BlockTransactions::Hashes
                };
                view::block(&viewer, transactions, None, answer())
            }
            Call::Balance(address, _) => view::balance(&viewer, *address, u64::MAX, answer()),
            Call::Nonce(address, _) => view::nonce(&viewer, *address, u64::MAX, answer()),
            Call::Code(address, _) => match view::code(&viewer, *address, u64::MAX, answer()) {
                Some(code) => code,
                None => return Ok(Expected::Denied),
            },
            Call::Logs(filter) => {
                let mut parties = TxParties::default();
                for PartiesNeeded { tx_hash, .. } in view::parties_needed(&viewer, filter, &answer()) {
                    let hash = json!(tx_hash);
                    let matching = self
                        .transactions
                        .iter()
                        .filter(|transaction| transaction.get("hash") == Some(&hash));
                    let known = matching.filter_map(|tx| view::transaction_parties(tx_hash, &sealed(tx)));
                    parties.extend(known.map(|known| (tx_hash, known)));
                }
                match view::logs(&viewer, filter, &[], &parties, answer()) {
                    LogsAnswer::Rows(rows, _) => rows,
                    LogsAnswer::NotPermitted => return Ok(Expected::Denied),
                }
            }
            Call::Plain(_)
            | Call::FeeHistory { .. }
            | Call::Sha3(_)
            | Call::Storage { .. }
            | Call::Proof { .. }
            | Call::Simulate(_)
            | Call::UncleCount
            | Call::Uncle
            | Call::SendRaw(_)
            | Call::Send(_)
            | Call::TraceTransaction(_)
            | Call::Subscription(_)
            | Call::Passthrough(_) => return Err(case_error(format!("the corpus has no view for `{}`", self.method))),
        };
        let result = serde_json::from_str(disclosed.as_str()).map_err(|error| case_error(error.to_string()))?;
        Ok(Expected::Result(result))
    }

    /// The method of the upstream request.
    ///
    /// # Errors
    /// The case has an invalid call, or the call is answered without the node.
    pub fn upstream_method(&self) -> Result<String, CaseError> {
        let pin = Pin {
            number: 100,
            hash: B256::ZERO,
        };
        wire::body(&self.call()?, pin)
            .map(|body| body.method.into_owned())
            .ok_or_else(|| case_error("the gateway answers this call without the node"))
    }

    fn call(&self) -> Result<Call, CaseError> {
        let MethodLookup::Registered(method) = Method::lookup(&self.method) else {
            return Err(case_error(format!("unknown method `{}`", self.method)));
        };
        let params = RawValue::from_string(self.params.to_string()).map_err(|error| case_error(error.to_string()))?;
        let chain = ChainRules { chain_id: 31337 };
        let parsed = call::parse(method, Some(&params), chain).map_err(|error| case_error(error.to_string()))?;
        Ok(parsed.call)
    }
}

fn sealed(value: &Value) -> Sealed<RawJson> {
    Sealed::new(RawJson::new(Bytes::from(value.to_string())))
}

fn build(file: WorldFile) -> Result<World, CaseError> {
    let mut builder = world();
    for (org, OrgFile { groups, contracts }) in file.orgs {
        builder = builder.org(&org);
        for (name, group) in groups {
            builder = builder.group(&name).every_method();
            builder = group.claims.into_iter().fold(builder, World::claim);
            builder = if group.org_admin { builder.org_admin() } else { builder };
        }
        for (name, contract) in contracts {
            builder = builder.contract(&name);
            builder = match contract.abi {
                Value::Null => builder,
                Value::String(token_type) => {
                    let abi = builtin(&token_type).ok_or_else(|| case_error("unknown token type"))?;
                    builder.abi(&serde_json::to_string(abi.json()).map_err(|error| case_error(error.to_string()))?)
                }
                abi @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                    builder.abi(&abi.to_string())
                }
            };
            builder = if contract.unlock {
                builder.visibleto_unlock()
            } else {
                builder
            };
            builder = if contract.attested {
                builder.dynamic_payload()
            } else {
                builder
            };
            builder = contract
                .deployer
                .iter()
                .fold(builder, |builder, user| builder.deployed_by(user));
            for (group, rules) in contract.grants {
                builder = builder.grant(&group);
                if let Some(rules) = rules {
                    builder = builder.events(rules.into_iter().map(rule).collect::<Result<Vec<_>, _>>()?);
                }
            }
        }
    }
    for (name, user) in file.users {
        builder = builder.user(&name);
        builder = user.groups.iter().fold(builder, |builder, group| builder.member(group));
        builder = user
            .wallets
            .iter()
            .fold(builder, |builder, wallet| builder.link(wallet));
        builder = user
            .inferred
            .iter()
            .fold(builder, |builder, wallet| builder.system_link(wallet));
    }
    for (transaction, ShareFile { by, with }) in file.shares {
        let with: Vec<&str> = with.iter().map(String::as_str).collect();
        builder = builder.user(&by).share(&transaction, &with);
    }
    Ok(builder)
}

fn rule(file: RuleFile) -> Result<EventRule, CaseError> {
    let params = file.params.into_iter().map(|(index, condition)| {
        let must_be = match condition.as_str() {
            "self" => Constraint::Own,
            word => Constraint::Word(
                word.parse()
                    .map_err(|_| case_error(format!("`{word}` is neither `self` nor a 32-byte word")))?,
            ),
        };
        Ok(ParamRule { index, must_be })
    });
    Ok(EventRule {
        topic0: keccak256(&file.event),
        params: params.collect::<Result<_, CaseError>>()?,
    })
}

/// Expands placeholders and templates.
fn fill(value: &Value) -> Result<Value, CaseError> {
    Ok(match value {
        Value::String(text) => Value::String(fill_text(text)?),
        Value::Array(items) => Value::Array(items.iter().map(fill).collect::<Result<_, _>>()?),
        Value::Object(members) => {
            let mut filled = match members.get("$like").and_then(Value::as_str) {
                Some(name) => template(name)?,
                None => Map::new(),
            };
            for (key, value) in members.iter().filter(|(key, _)| *key != "$like") {
                filled.insert(key.clone(), fill(value)?);
            }
            Value::Object(filled)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    })
}

fn fill_text(text: &str) -> Result<String, CaseError> {
    let Some((before, rest)) = text.split_once('{') else {
        return Ok(text.to_owned());
    };
    let (placeholder, after) = rest
        .split_once('}')
        .ok_or_else(|| case_error(format!("`{text}` has an unclosed brace")))?;
    let (kind, name) = placeholder
        .split_once(':')
        .ok_or_else(|| case_error(format!("the placeholder `{placeholder}` has no `:`")))?;
    let number = || {
        name.parse::<u64>()
            .map_err(|_| case_error(format!("`{name}` is not a number")))
    };
    let expanded = match kind {
        "address" => format!("{:#x}", address_of(name)),
        "hash" => format!("{:#x}", hash_of(name)),
        "word" => format!("{:0>64}", format!("{:x}", address_of(name))),
        "number" => format!("{:064x}", number()?),
        "topic" => format!("{:x}", keccak256(name)),
        "zeros" => "00".repeat(usize::try_from(number()?).map_err(|error| case_error(error.to_string()))?),
        _ => return Err(case_error(format!("unknown placeholder `{kind}`"))),
    };
    Ok(format!("{before}{expanded}{}", fill_text(after)?))
}

/// The members of a template: `transaction`, `receipt`, `log` and `block` are objects as a node sends them,
/// `masked transaction`, `shown receipt` and `shown block` as a view writes them.
fn template(name: &str) -> Result<Map<String, Value>, CaseError> {
    let zero_word = format!("0x{}", "00".repeat(32));
    let block_hash = hash_of("block");
    let transaction = json!({
        "blockHash": block_hash, "blockNumber": "0x64", "from": null, "gas": "0x5208", "gasPrice": "0x3b9aca07",
        "maxFeePerGas": "0x77359400", "maxPriorityFeePerGas": "0x1", "hash": null, "input": "0xa9059cbb",
        "nonce": "0x7", "to": null, "transactionIndex": "0x3", "value": "0x5", "type": "0x2", "chainId": "0x7a69",
        "accessList": [{ "address": address_of("listed"), "storageKeys": [zero_word] }],
        "v": "0x1", "r": "0x1234", "s": "0x5678", "yParity": "0x1",
    });
    let template = match name {
        "transaction" => transaction,
        "masked transaction" => merged(
            transaction,
            json!({
                "from": format!("0x{}", "00".repeat(20)), "value": "0x0", "nonce": "0x0", "input": "0x", "v": "0x0",
                "r": "0x0", "s": "0x0", "yParity": "0x0", "accessList": [],
            }),
        ),
        "receipt" => json!({
            "blockHash": block_hash, "blockNumber": "0x64", "contractAddress": null, "cumulativeGasUsed": "0xffff",
            "effectiveGasPrice": "0x3b9aca07", "from": null, "gasUsed": "0x5208", "logs": [],
            "logsBloom": format!("0x{}", "a5".repeat(256)), "status": "0x1", "to": null, "transactionHash": null,
            "transactionIndex": "0x3", "type": "0x2",
        }),
        "shown receipt" => merged(
            template_value("receipt")?,
            json!({ "cumulativeGasUsed": "0x5208", "logsBloom": format!("0x{}", "00".repeat(256)) }),
        ),
        "log" => json!({
            "address": null, "topics": [], "data": "0x", "blockNumber": "0x64", "transactionHash": null,
            "transactionIndex": "0x3", "blockHash": block_hash, "logIndex": "0x9", "removed": false,
        }),
        "block" => json!({
            "number": "0x64", "hash": block_hash, "parentHash": hash_of("parent"), "nonce": "0x0000000000000000",
            "mixHash": hash_of("mix"), "sha3Uncles": hash_of("uncles"), "logsBloom": format!("0x{}", "a5".repeat(256)),
            "stateRoot": hash_of("state"), "miner": address_of("miner"), "difficulty": "0x0", "extraData": "0x00ff",
            "size": "0x2a0", "gasLimit": "0x1c9c380", "gasUsed": "0xa410", "timestamp": "0x6553f100",
            "transactionsRoot": hash_of("transactions"), "receiptsRoot": hash_of("receipts"), "uncles": [],
            "transactions": [], "baseFeePerGas": "0x7", "withdrawalsRoot": hash_of("withdrawals"),
            "withdrawals": [{ "index": "0x1", "validatorIndex": "0x2", "address": address_of("staker"),
            "amount": "0x3" }],
            "blobGasUsed": "0x20000", "excessBlobGas": "0x40000", "parentBeaconBlockRoot": hash_of("beacon"),
            "requestsHash": hash_of("requests"),
        }),
        "shown block" => merged(
            template_value("block")?,
            json!({
                "logsBloom": format!("0x{}", "00".repeat(256)), "stateRoot": zero_word, "size": "0x0",
                "gasUsed": "0x0", "transactionsRoot": zero_word, "receiptsRoot": zero_word,
                "withdrawalsRoot": zero_word, "withdrawals": [], "blobGasUsed": "0x0", "excessBlobGas": "0x0",
                "requestsHash": zero_word,
            }),
        ),
        _ => return Err(case_error(format!("unknown template `{name}`"))),
    };
    match template {
        Value::Object(members) => Ok(members),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Ok(Map::new()),
    }
}

fn template_value(name: &str) -> Result<Value, CaseError> {
    template(name).map(Value::Object)
}

fn merged(mut base: Value, changes: Value) -> Value {
    if let (Value::Object(base), Value::Object(changes)) = (&mut base, changes) {
        base.extend(changes);
    }
    base
}

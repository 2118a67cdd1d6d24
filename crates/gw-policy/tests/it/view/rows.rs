//! Typed rows and JSON results show the same, in random worlds: both are written from one evaluation.

use super::{
    properties::{logs_json, receipt_json, transaction_json},
    support::{filter, get_logs, restricted_viewer, rows, sealed, viewer},
};
use alloy_primitives::{Address, B256, Bytes, U256, hex, keccak256};
use gw_policy::{
    PolicySettings, Snapshot, Viewer,
    snapshot::Moment,
    testing::{address_of, hash_of},
    view::{self, LogsAnswer, TransactionParties, TxParties},
    visibility::{
        GasPricing, LogData, LogQuery, LogRow, LogViewer, LogVisibility, SeesAnyLog, SimulatedLog, TokenAmount,
        TransactionAccess, TransactionRoles, TransactionRow, TransferRow, TransferStandard,
    },
};
use gw_testkit::scenario::{CONTRACTS, Scenario, ScenarioTx, USERS, WALLETS, scenario, transfer, word};
use proptest::{prelude::*, sample::select};
use serde_json::{Value, json};

const ZERO_ADDRESS: &str = "0x0000000000000000000000000000000000000000";

/// The settings of a case: a profile, with or without hidden base fee.
fn settings() -> impl Strategy<Value = PolicySettings> {
    (
        select(vec![PolicySettings::SPEC, PolicySettings::STRICT]),
        any::<bool>(),
    )
        .prop_map(|(profile, hide_base_fee)| PolicySettings {
            hide_base_fee,
            ..profile
        })
}

/// A viewer of a case: a user or nobody, maybe impersonated.
#[derive(Clone, Copy, Debug)]
struct Case {
    user: &'static str,
    impersonator: Option<&'static str>,
}

fn case() -> impl Strategy<Value = Case> {
    let user = select([&USERS[..], &["nobody"]].concat());
    let impersonator = prop::option::of(select(USERS.to_vec()));
    (user, impersonator).prop_map(|(user, impersonator)| Case { user, impersonator })
}

impl Case {
    fn viewer<'s>(self, snapshot: &'s Snapshot, settings: &'s PolicySettings) -> Viewer<'s> {
        match self.impersonator {
            None => viewer(snapshot, self.user, settings),
            Some(impersonator) => restricted_viewer(snapshot, self.user, impersonator, settings),
        }
    }
}

/// A log as a list of logs stores it.
#[derive(Clone, Debug)]
struct Log {
    emitter: Address,
    tx_hash: B256,
    topics: Vec<B256>,
    data: Vec<u8>,
}

impl Log {
    fn of_json(log: &Value) -> Self {
        let data: Bytes = serde_json::from_value(log["data"].clone()).unwrap();
        Self {
            emitter: serde_json::from_value(log["address"].clone()).unwrap(),
            tx_hash: serde_json::from_value(log["transactionHash"].clone()).unwrap(),
            topics: serde_json::from_value(log["topics"].clone()).unwrap(),
            data: data.to_vec(),
        }
    }

    fn row<'a>(&'a self, data: LogData<'a>) -> LogRow<'a> {
        LogRow {
            emitter: self.emitter,
            tx_hash: self.tx_hash,
            topics: &self.topics,
            data,
            moment: Moment::Block(100),
        }
    }

    fn bytes_row(&self) -> LogRow<'_> {
        self.row(LogData::Bytes(&self.data))
    }
}

/// The JSON of a log as far as its row is visible.
fn rendered(log: &Value, visibility: &LogVisibility) -> Option<Value> {
    let mut shown = log.clone();
    match visibility {
        LogVisibility::Dropped => return None,
        LogVisibility::Whole => {}
        LogVisibility::Masked { topics, data } => {
            for position in 0..8 {
                if topics & (1 << position) != 0 {
                    shown["topics"][position] = json!(B256::ZERO);
                }
            }
            if let Some(data) = data {
                shown["data"] = json!(hex::encode_prefixed(data));
            }
        }
    }
    Some(shown)
}

fn row(tx: &ScenarioTx) -> TransactionRow {
    TransactionRow {
        hash: hash_of(&tx.name),
        from: address_of(tx.from),
        to: tx.to.map(address_of),
        moment: Moment::Block(100),
        time: None,
    }
}

fn value(text: &gw_policy::Disclosed) -> Value {
    serde_json::from_str(text.as_str()).unwrap()
}

/// The JSON of a transaction as far as its row is visible.
fn shown_transaction(viewer: &Viewer<'_>, tx: &ScenarioTx) -> Value {
    let visibility = viewer.transaction(&row(tx));
    if visibility.access == TransactionAccess::None {
        return Value::Null;
    }
    let mut shown = transaction_json(tx);
    // HD11
    shown.as_object_mut().unwrap().remove("publicKey");
    let mut hide = |is_shown: bool, names: &[&str], placeholder: Value| {
        for name in names.iter().filter(|_| !is_shown) {
            shown[*name] = placeholder.clone();
        }
    };
    hide(visibility.from, &["from"], json!(ZERO_ADDRESS));
    hide(visibility.to, &["to"], json!(ZERO_ADDRESS));
    hide(visibility.details, &["value", "nonce", "v", "r", "s"], json!("0x0"));
    hide(visibility.details, &["input"], json!("0x"));
    hide(visibility.details, &["accessList"], json!([]));
    assert!(
        viewer.shows_gas_price(GasPricing::Fixed),
        "the transaction is of type 0"
    );
    shown
}

/// Whether a viewer without impersonation sees a log of the transaction.
fn sees_any_log(viewer: &Viewer<'_>, tx: &ScenarioTx) -> bool {
    let row = row(tx);
    let roles = TransactionRoles::new(viewer, row.hash, Some((row.from, row.to)));
    let mut log_viewer = LogViewer::new(viewer);
    logs_json(tx)
        .iter()
        .any(|log| log_viewer.log(&Log::of_json(log).bytes_row(), roles).unwrap() != LogVisibility::Dropped)
}

/// The JSON of a receipt as far as its row and the rows of its logs are visible.
fn shown_receipt(snapshot: &Snapshot, settings: &PolicySettings, case: Case, tx: &ScenarioTx) -> Value {
    let (viewer, row) = (&case.viewer(snapshot, settings), row(tx));
    let roles = TransactionRoles::new(viewer, row.hash, Some((row.from, row.to)));
    let (mut log_viewer, mut sees_any) = (LogViewer::new(viewer), SeesAnyLog::default());
    let mut logs = Vec::new();
    for log in logs_json(tx) {
        let typed = Log::of_json(&log);
        let shown = log_viewer
            .receipt_log(&typed.bytes_row(), roles, &mut sees_any)
            .unwrap();
        assert_eq!(shown, log_viewer.log(&typed.bytes_row(), roles).unwrap());
        logs.extend(rendered(&log, &shown));
    }
    let sees_any_of = |name| sees_any_log(&super::support::viewer(snapshot, name, settings), tx);
    assert_eq!(sees_any.impersonator, case.impersonator.is_some_and(sees_any_of));
    // Under impersonation a role of the user counts only if the administrator knows it (HD7), so the user may see less.
    let user_sees_any = sees_any_of(case.user);
    assert!(user_sees_any || !sees_any.user);
    assert!(case.impersonator.is_some() || sees_any.user == user_sees_any);
    if !viewer.shows_receipt(&row, sees_any) {
        return Value::Null;
    }
    let visibility = viewer.transaction(&row);
    let mut shown = receipt_json(tx);
    // HD11
    shown.as_object_mut().unwrap().remove("feePayer");
    shown["logs"] = json!(logs);
    shown["logsBloom"] = json!(format!("0x{}", "00".repeat(256)));
    shown["cumulativeGasUsed"] = shown["gasUsed"].clone();
    if !visibility.from {
        shown["from"] = json!(ZERO_ADDRESS);
    }
    if !visibility.to {
        shown["to"] = json!(ZERO_ADDRESS);
    }
    if !viewer.shows_gas_price(GasPricing::BaseFee) {
        shown["effectiveGasPrice"] = json!("0x0");
    }
    shown
}

/// A word that events carry: an address, a number, or any bytes.
fn any_word() -> impl Strategy<Value = B256> {
    let names = [&WALLETS[..], &CONTRACTS[..], &["unknown"]].concat();
    prop_oneof![
        4 => select(names).prop_map(word),
        2 => any::<u64>().prop_map(|number| B256::from(U256::from(number))),
        1 => any::<[u8; 32]>().prop_map(B256::from),
        1 => select(vec![32_u64, 64, 96, 128]).prop_map(|offset| B256::from(U256::from(offset))),
    ]
}

fn any_log() -> impl Strategy<Value = Log> {
    let signatures = [
        "Transfer(address,address,uint256)",
        "Paid(address,address[2])",
        "TransferSingle(address,address,address,uint256,uint256)",
        "TransferBatch(address,address,address,uint256[],uint256[])",
        "ApprovalForAll(address,address,bool)",
        "X()",
    ];
    let topic0 = prop::option::weighted(0.9, select(signatures.to_vec()));
    (
        select([&CONTRACTS[..], &["unknown"]].concat()),
        0..4_usize,
        topic0,
        prop::collection::vec(any_word(), 0..4),
        prop::collection::vec(any_word(), 0..7),
        prop::collection::vec(any::<u8>(), 0..3),
    )
        .prop_map(|(emitter, tx, topic0, indexed, words, rest)| Log {
            emitter: address_of(emitter),
            tx_hash: hash_of(&format!("t{tx}")),
            topics: topic0.map(keccak256).into_iter().chain(indexed).take(4).collect(),
            data: words.into_iter().flat_map(|word| word.0).chain(rest).collect(),
        })
}

fn any_transfer() -> impl Strategy<Value = TransferRow> {
    let address = || select([&WALLETS[..], &CONTRACTS[..]].concat()).prop_map(address_of);
    let number = || {
        prop_oneof![
            any::<u64>().prop_map(U256::from),
            any::<[u8; 32]>().prop_map(U256::from_be_bytes)
        ]
    };
    let amount = || (number(), number()).prop_map(|(id, value)| TokenAmount { id, value });
    let standard = prop_oneof![
        number().prop_map(|value| TransferStandard::Erc20 { value }),
        number().prop_map(|id| TransferStandard::Erc721 { id }),
        (address(), amount()).prop_map(|(operator, amount)| TransferStandard::Erc1155Single { operator, amount }),
        (address(), prop::collection::vec(amount(), 0..4))
            .prop_map(|(operator, amounts)| TransferStandard::Erc1155Batch { operator, amounts }),
    ];
    let to = prop::option::of(address());
    (
        select(CONTRACTS.to_vec()),
        0..4_usize,
        (address(), to),
        address(),
        address(),
        standard,
    )
        .prop_map(|(token, tx, parties, from, to, standard)| TransferRow {
            token: address_of(token),
            tx_hash: hash_of(&format!("t{tx}")),
            parties: Some(parties),
            moment: Moment::Block(100),
            from,
            to,
            standard,
        })
}

/// The log of a transfer, encoded as Solidity does it.
fn log_of(row: &TransferRow) -> Log {
    use alloy_dyn_abi::DynSolValue;
    let (from, to) = (row.from.into_word(), row.to.into_word());
    let uint = |number: &U256| DynSolValue::Uint(*number, 256);
    let (topics, data) = match &row.standard {
        TransferStandard::Erc20 { value } => (vec![transfer(), from, to], vec![uint(value)]),
        TransferStandard::Erc721 { id } => (vec![transfer(), from, to, B256::from(*id)], vec![]),
        TransferStandard::Erc1155Single { operator, amount } => {
            let topic0 = keccak256("TransferSingle(address,address,address,uint256,uint256)");
            let data = vec![uint(&amount.id), uint(&amount.value)];
            (vec![topic0, operator.into_word(), from, to], data)
        }
        TransferStandard::Erc1155Batch { operator, amounts } => {
            let topic0 = keccak256("TransferBatch(address,address,address,uint256[],uint256[])");
            let ids = amounts.iter().map(|amount| uint(&amount.id)).collect();
            let values = amounts.iter().map(|amount| uint(&amount.value)).collect();
            let data = vec![DynSolValue::Array(ids), DynSolValue::Array(values)];
            (vec![topic0, operator.into_word(), from, to], data)
        }
    };
    Log {
        emitter: row.token,
        tx_hash: row.tx_hash,
        topics,
        data: DynSolValue::Tuple(data).abi_encode_params(),
    }
}

/// The parties of the transaction with this hash.
fn parties_of(scenario: &Scenario, tx_hash: B256) -> Option<(Address, Option<Address>)> {
    let rows = scenario.transactions.iter().map(row);
    rows.into_iter()
        .find(|row| row.hash == tx_hash)
        .map(|row| (row.from, row.to))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A log is shown the same from hex digits and from bytes, and masking only zeroes bytes.
    #[test]
    fn a_log_shows_the_same_from_hex_and_from_bytes(
        scenario in scenario(0..6),
        case in case(),
        settings in settings(),
        logs in prop::collection::vec(any_log(), 1..20),
    ) {
        let snapshot = scenario.world().snapshot();
        let viewer = case.viewer(&snapshot, &settings);
        let (mut by_hex, mut by_bytes) = (LogViewer::new(&viewer), LogViewer::new(&viewer));
        for log in &logs {
            let roles = TransactionRoles::new(&viewer, log.tx_hash, parties_of(&scenario, log.tx_hash));
            let digits = hex::encode(&log.data);
            let shown = by_hex.log(&log.row(LogData::Hex(&digits)), roles).unwrap();
            prop_assert_eq!(&shown, &by_bytes.log(&log.bytes_row(), roles).unwrap(), "{:?}", log);
            if let LogVisibility::Masked { data: Some(data), .. } = shown {
                prop_assert_eq!(data.len(), log.data.len());
                prop_assert!(data.iter().zip(&log.data).all(|(shown, own)| shown == own || *shown == 0));
            }
        }
    }

    /// HD40: a log of a simulation is shown if both viewers see it. One that only the administrator sees has a
    /// placeholder, if the administrator administers its emitter.
    #[test]
    fn hd40_a_log_of_a_simulation_that_only_the_administrator_sees_has_a_placeholder(
        scenario in scenario(0..6),
        case in case(),
        settings in settings(),
        sender in select(WALLETS.to_vec()),
        logs in prop::collection::vec(any_log(), 1..20),
    ) {
        let snapshot = scenario.world().snapshot();
        let (viewer, sender) = (case.viewer(&snapshot, &settings), address_of(sender));
        let roles = TransactionRoles::for_run(&viewer, Some(sender));
        let mut run = LogViewer::new(&viewer);
        let shown_alone = |name: &str, is_participant: bool, log: &Log| {
            let alone = super::support::viewer(&snapshot, name, &settings);
            let mut roles = TransactionRoles::default();
            roles.user.is_participant = is_participant;
            LogViewer::new(&alone).log(&log.bytes_row(), roles).unwrap() != LogVisibility::Dropped
        };
        for log in &logs {
            let is_shown_to_user = shown_alone(case.user, true, log);
            let (is_shown_to_admin, is_administered) = case.impersonator.map_or((true, false), |name| {
                let admin = super::support::viewer(&snapshot, name, &settings);
                let contract = snapshot.contract(log.emitter);
                let is_administered = contract.is_some_and(|contract| admin.administers(contract.org));
                (shown_alone(name, admin.sees(sender), log), is_administered)
            });
            let expected = match (is_shown_to_user, is_shown_to_admin) {
                (true, true) => SimulatedLog::Shown(run.log(&log.bytes_row(), roles).unwrap()),
                (false, true) if is_administered => SimulatedLog::HiddenFromUser,
                (true | false, true | false) => SimulatedLog::Dropped,
            };
            prop_assert_eq!(run.simulated_log(&log.bytes_row(), roles).unwrap(), expected, "{:?}", log);
        }
    }

    /// A transfer shows what its log shows, and a log is a transfer only in the encoding of its standard.
    #[test]
    fn i8_a_transfer_shows_what_its_log_shows(
        scenario in scenario(0..6),
        case in case(),
        settings in settings(),
        transfers in prop::collection::vec(any_transfer(), 1..20),
    ) {
        let snapshot = scenario.world().snapshot();
        let viewer = case.viewer(&snapshot, &settings);
        let mut log_viewer = LogViewer::new(&viewer);
        for transfer in &transfers {
            let log = log_of(transfer);
            prop_assert_eq!(TransferRow::of_log(&log.bytes_row(), transfer.parties), Ok(Some(transfer.clone())));
            let roles = TransactionRoles::new(&viewer, log.tx_hash, transfer.parties);
            let by_log = log_viewer.log(&log.bytes_row(), roles).unwrap();
            let shown = log_viewer.transfer(transfer).unwrap();
            let is_batch_or_single = log.topics[0] != super::support::transfer();
            let sides = if is_batch_or_single { (2, 3) } else { (1, 2) };
            let is_masked = |position: usize| match by_log {
                LogVisibility::Masked { topics, .. } => topics & (1 << position) != 0,
                LogVisibility::Whole | LogVisibility::Dropped => false,
            };
            prop_assert_eq!(shown.is_none(), by_log == LogVisibility::Dropped);
            if let Some(shown) = shown {
                prop_assert_eq!((shown.from, shown.to), (!is_masked(sides.0), !is_masked(sides.1)));
                prop_assert_eq!(shown.operator, !(is_batch_or_single && is_masked(1)));
                let is_data_masked = matches!(by_log, LogVisibility::Masked { data: Some(_), .. });
                let is_id_masked = log.topics.len() == 4 && !is_batch_or_single && is_masked(3);
                prop_assert_eq!(shown.amounts, !(is_data_masked || is_id_masked));
            }
            let mut longer = log.clone();
            longer.data.extend([0; 32]);
            prop_assert_eq!(TransferRow::of_log(&longer.bytes_row(), transfer.parties), Ok(None));
            let mut dirty = log;
            dirty.topics[1].0[0] ^= 1;
            prop_assert_eq!(TransferRow::of_log(&dirty.bytes_row(), transfer.parties), Ok(None));
        }
    }

    /// The JSON of transactions and receipts shows what their rows show.
    #[test]
    fn transactions_and_receipts_show_what_their_rows_show(
        scenario in scenario(0..6),
        case in case(),
        settings in settings(),
    ) {
        let snapshot = scenario.world().snapshot();
        let viewer = case.viewer(&snapshot, &settings);
        for tx in &scenario.transactions {
            let shown = value(&view::transaction(&viewer, sealed(&transaction_json(tx))));
            prop_assert_eq!(shown, shown_transaction(&viewer, tx));
            let shown = value(&view::receipt(&viewer, sealed(&receipt_json(tx))));
            prop_assert_eq!(shown, shown_receipt(&snapshot, &settings, case, tx));
        }
    }

    /// `eth_getLogs` shows what its rows show, if the parties of all transactions are known.
    #[test]
    fn log_queries_show_what_their_rows_show(
        scenario in scenario(0..6),
        case in case(),
        settings in settings(),
        emitters in prop::sample::subsequence(CONTRACTS.to_vec(), 0..4),
    ) {
        let snapshot = scenario.world().snapshot();
        let viewer = case.viewer(&snapshot, &settings);
        let logs: Vec<Value> = scenario.transactions.iter().flat_map(logs_json).collect();
        let transactions: Vec<Value> = scenario.transactions.iter().map(transaction_json).collect();
        let filter = filter(&emitters, vec![]);
        let answer = get_logs(&viewer, &filter, &logs, &transactions);

        let mut parties = TxParties::default();
        let known = scenario.transactions.iter().map(row);
        parties.extend(known.map(|row| (row.hash, TransactionParties::new(row.from, row.to))));
        let mut query = LogQuery::new(&viewer, &filter, &[], &parties);
        let mut expected = Vec::new();
        for json in &logs {
            let log = Log::of_json(json);
            if query.is_candidate(log.emitter, log.tx_hash, &log.topics) {
                expected.extend(rendered(json, &query.log(&log.bytes_row()).unwrap()));
            }
        }
        prop_assert_eq!(query.is_permitted(), answer != LogsAnswer::NotPermitted);
        if query.is_permitted() {
            prop_assert_eq!(rows(&answer), expected);
        }
    }
}

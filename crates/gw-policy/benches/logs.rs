//! Benchmark of a large response: 10,000 logs filtered for one viewer, compared with copying the bytes.

#![expect(clippy::expect_used, reason = "a benchmark stops when its world is wrong")]

use bytes::Bytes;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use gw_evm::{BlockId, LogFilter, LogRange};
use gw_policy::{
    PolicySettings, RawJson, Sealed, Viewer,
    testing::{NOW, address_of, hash_of, user_id, world},
    view::{LogsAnswer, TxParties, logs},
};
use std::fmt::Write as _;

const LOGS: usize = 10_000;
const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const TOKEN_ABI: &str = r#"[{"type":"event","name":"Transfer","anonymous":false,"inputs":[
    {"name":"from","type":"address","indexed":true},{"name":"to","type":"address","indexed":true},
    {"name":"value","type":"uint256","indexed":false}]}]"#;

fn answer(parties: usize) -> Bytes {
    let mut text = String::from("[");
    let (token, block) = (address_of("token"), hash_of("block"));
    for index in 0..LOGS {
        let comma = if index == 0 { "" } else { "," };
        let from = address_of(&format!("wallet-{}", index % parties)).into_word();
        let to = address_of(&format!("wallet-{}", (index + 1) % parties)).into_word();
        let tx = hash_of(&format!("transaction-{index}"));
        write!(
            text,
            r#"{comma}{{"address":"{token:#x}","topics":["{TRANSFER}","{from}","{to}"],"data":"0x{index:064x}","blockNumber":"0x{index:x}","transactionHash":"{tx}","transactionIndex":"0x1","blockHash":"{block}","logIndex":"0x2","removed":false}}"#
        )
        .expect("text");
    }
    text.push(']');
    Bytes::from(text)
}

fn filter_logs(criterion: &mut Criterion) {
    let world = world()
        .org("org")
        .group("staff")
        .contract("token")
        .abi(TOKEN_ABI)
        .grant("staff")
        .user("reader")
        .member("staff")
        .user("insider")
        .member("staff");
    let snapshot = (0..500)
        .fold(world, |world, wallet| world.link(&format!("wallet-{wallet}")))
        .snapshot();
    let filter = LogFilter {
        addresses: vec![address_of("token")],
        topics: Vec::new(),
        range: LogRange::Range {
            from: BlockId::LATEST,
            to: BlockId::LATEST,
        },
    };
    let text = answer(500);

    let mut group = criterion.benchmark_group("logs");
    group.throughput(Throughput::Bytes(text.len() as u64)).sample_size(30);
    group.bench_function("copied", |b| b.iter(|| text.to_vec()));
    let cases = [("every log masked", "reader"), ("no log masked", "insider")];
    for (name, user) in cases {
        let viewer = Viewer::new(&snapshot, Some(user_id(user)), NOW, &PolicySettings::SPEC);
        let none = TxParties::default();
        let rows = |raw| logs(&viewer, &filter, &[], &none, Sealed::new(RawJson::new(raw)));
        assert!(matches!(rows(text.clone()), LogsAnswer::Rows(rows, _) if rows.as_str().len() == text.len()));
        group.bench_function(name, |b| b.iter_batched(|| text.clone(), rows, BatchSize::LargeInput));
    }
    group.finish();
}

criterion_group!(benches, filter_logs);
criterion_main!(benches);

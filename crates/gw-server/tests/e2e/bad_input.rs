//! Invalid input gets the status and code of spec/20 §14, never 500, and nothing is forwarded to the node.

use crate::{
    harness::{Engine, on_both_engines},
    world::World,
};
use serde_json::{Value, json};

on_both_engines!(envelopes, batches);

async fn envelopes(engine: Engine) {
    let w = World::start(engine).await;
    let before = w.gw.node("eth_blockNumber", json!([])).await;
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"eth_call","params":{}1{}}}"#,
        "[".repeat(65),
        "]".repeat(65)
    );
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"{}","params":[]}}"#,
        "x".repeat(129)
    );
    let cases: &[(&str, &str, u16, i64)] = &[
        ("J3 empty", "", 400, -32700),
        ("J3 not JSON", "{", 400, -32700),
        ("J3 XML", "<methodCall/>", 400, -32700),
        ("J3 two values", "{}{}", 400, -32700),
        ("J3 depth", &deep, 400, -32600),
        (
            "J3 duplicate",
            r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId","method":"eth_call"}"#,
            400,
            -32600,
        ),
        (
            "J3 duplicate, folded",
            r#"{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{"to":"0x","TO":"0x"}]}"#,
            400,
            -32600,
        ),
        (
            "J3 duplicate, escaped",
            r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId","\u006dethod":"x"}"#,
            400,
            -32600,
        ),
        (
            "J4 version",
            r#"{"jsonrpc":"1.0","id":1,"method":"eth_chainId"}"#,
            400,
            -32600,
        ),
        ("J4 no version", r#"{"id":1,"method":"eth_chainId"}"#, 400, -32600),
        (
            "J4 id object",
            r#"{"jsonrpc":"2.0","id":{},"method":"eth_chainId"}"#,
            400,
            -32600,
        ),
        (
            "J4 method number",
            r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
            400,
            -32600,
        ),
        (
            "J4 params object",
            r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":{}}"#,
            400,
            -32602,
        ),
        ("J4 long method", &long, 400, -32600),
        ("J4 a number", "7", 400, -32600),
    ];
    for (name, body, status, code) in cases {
        let response = w.gw.rpc_text(&w.ops.token, body).await;
        assert_eq!(
            (response.status, response.json()["error"]["code"].as_i64()),
            (*status, Some(*code)),
            "{name}: {}",
            response.body
        );
    }
    let params: &[(&str, Value)] = &[
        ("eth_getBalance", json!([])),
        ("eth_getBalance", json!(["0x12", "latest"])),
        ("eth_getBalance", json!([w.ops.address(), "newest"])),
        ("eth_getBalance", json!([w.ops.address(), {"blockHash": "0x1"}])),
        ("eth_call", json!(["x"])),
        ("eth_call", json!([{"to": w.erc20, "data": "0x1"}])),
        ("eth_call", json!([{"to": w.erc20, "data": "0x01", "input": "0x02"}])),
        ("eth_call", json!([{"To": w.erc20}])),
        ("eth_getTransactionByHash", json!(["0x1234"])),
        ("eth_getLogs", json!([{"address": w.erc20, "topics": ["0x1"]}])),
        (
            "eth_getLogs",
            json!([{"address": w.erc20, "blockHash": format!("0x{}", "1".repeat(64)), "fromBlock": "0x1"}]),
        ),
        ("eth_feeHistory", json!(["x", "latest", []])),
        ("eth_sendRawTransaction", json!([5])),
    ];
    for (method, params) in params {
        let response = w.gw.rpc(&w.ops.token, method, params.clone()).await;
        assert_eq!(
            (response.status, response.json()["error"]["code"].as_i64()),
            (400, Some(-32602)),
            "{method} {params}: {}",
            response.body
        );
        // §17: a caller who may not use the method gets a denial for the same input.
        assert_eq!(
            w.gw.rpc(&w.outsider.token, method, params.clone()).await.status,
            404,
            "{method}"
        );
    }
    let huge = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"eth_call","params":["{}"]}}"#,
        "a".repeat(1_048_576)
    );
    assert_eq!(w.gw.rpc_text(&w.ops.token, &huge).await.status, 413, "J2");
    let headers = [("content-encoding", "gzip")];
    let zipped = w.gw.raw("POST", "/rpc", &headers, Some("{}")).await;
    assert!(matches!(zipped.status, 400 | 415), "J2: {}", zipped.status);
    for path in ["/rpc/not-a-uuid", "/ws", "/rpc/ws"] {
        assert!(
            matches!(w.gw.raw("POST", path, &[], Some("{}")).await.status, 400 | 404 | 405),
            "{path}"
        );
    }
    assert_eq!(w.gw.node("eth_blockNumber", json!([])).await, before);
    // J4: the response repeats the id unchanged.
    for id in [
        json!("a\"b\\"),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(9007199254740993u64),
        Value::Null,
    ] {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "eth_chainId"});
        assert_eq!(w.gw.rpc_body("", &body).await.expect(200)["id"], id);
    }
}

/// J7, decision 8, HD20: each call of a batch is authorized and answered like a single call.
async fn batches(engine: Engine) {
    let w = World::start(engine).await;
    let call =
        |id: u32, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let batch = json!([
        call(1, "eth_chainId", json!([])),
        call(2, "eth_getBalance", json!([w.analyst.address(), "latest"])),
        call(3, "eth_sendRawTransaction", json!(["0x00"])),
        {"jsonrpc": "2.0"},
        call(5, "eth_call", json!([{"from": w.analyst.address(), "to": w.erc20,
            "data": crate::world::balance_of(w.ops.address())}, "latest"])),
    ]);
    let responses = w.gw.rpc_body(&w.analyst.token, &batch).await.expect(200);
    let responses = responses.as_array().unwrap();
    assert_eq!(responses.len(), 5);
    assert_eq!(responses[0]["result"], json!("0x7a69"));
    assert_ne!(responses[1]["result"], json!("0x0"));
    for (index, id) in [(2, 3), (4, 5)] {
        assert_eq!(
            responses[index],
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "method not found"}})
        );
    }
    assert_eq!(responses[3]["error"]["code"], json!(-32600));
    let too_many: Vec<Value> = (0..101).map(|id| call(id, "eth_chainId", json!([]))).collect();
    let responses = w.gw.rpc_body("", &json!(too_many)).await.expect(400);
    assert!(responses["error"]["message"].as_str().unwrap().contains("batch"));
    assert_eq!(w.gw.rpc_text("", "[]").await.status, 400);
}

//! A server that responds like a node, immediately and with constants. `make bench` puts it behind the gateway and
//! behind nginx, so that neither waits for a real node. Usage: `constant-upstream <port> [<logs>]`, by default with
//! 10,000 logs.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use std::{convert::Infallible, fmt::Write, sync::OnceLock};

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    method: &'a str,
}

fn block() -> Value {
    let word = |n: u8| format!("0x{}", format!("{n:02x}").repeat(32));
    json!({
        "number": "0x10", "hash": word(0x11), "parentHash": word(0x22), "timestamp": "0x65000000",
        "baseFeePerGas": "0x3b9aca00", "gasLimit": "0x1c9c380", "gasUsed": "0x0",
        "miner": format!("0x{}", "00".repeat(20)),
        "transactions": [], "uncles": [], "logsBloom": format!("0x{}", "00".repeat(256)), "size": "0x200",
        "difficulty": "0x0", "extraData": "0x", "mixHash": word(0), "nonce": "0x0000000000000000",
        "receiptsRoot": word(0), "sha3Uncles": word(0), "stateRoot": word(0), "transactionsRoot": word(0),
    })
}

/// Token transfers of one contract.
fn logs() -> &'static str {
    static LOGS: OnceLock<String> = OnceLock::new();
    LOGS.get_or_init(|| {
        let count: u32 = std::env::args().nth(2).and_then(|count| count.parse().ok()).unwrap_or(10_000);
        let mut text = String::from("[");
        for n in 0..count {
            let comma = if n == 0 { "" } else { "," };
            let _ = write!(
                text,
                r#"{comma}{{"address":"0x5fbdb2315678afecb367f032d93f642f64180aa3","topics":["0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef","0x{from:064x}","0x{to:064x}"],"data":"0x{value:064x}","blockHash":"0x1111111111111111111111111111111111111111111111111111111111111111","blockNumber":"0x10","transactionHash":"0x{n:064x}","transactionIndex":"0x{n:x}","logIndex":"0x{n:x}","removed":false}}"#,
                from = 0x1000_0000u64 + u64::from(n % 500),
                to = 0x2000_0000u64 + u64::from(n % 700),
                value = n,
            );
        }
        text.push(']');
        text
    })
}

fn result(method: &str) -> String {
    match method {
        "eth_chainId" => r#""0x7a69""#.into(),
        "net_version" => r#""31337""#.into(),
        "eth_blockNumber" => r#""0x10""#.into(),
        "eth_gasPrice" => r#""0x3b9aca07""#.into(),
        "eth_getBlockByNumber" | "eth_getBlockByHash" => block().to_string(),
        "eth_getLogs" => logs().into(),
        "eth_getCode" => r#""0x""#.into(),
        _ => r#""0x56bc75e2d63100000""#.into(),
    }
}

fn answer(body: &[u8]) -> String {
    let response = |call: &Call<'_>| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{}}}"#,
            call.id,
            result(call.method)
        )
    };
    if body.first() == Some(&b'[') {
        let calls: Vec<Call<'_>> = serde_json::from_slice(body).unwrap_or_default();
        let answers: Vec<String> = calls.iter().map(response).collect();
        return format!("[{}]", answers.join(","));
    }
    match serde_json::from_slice(body) {
        Ok(call) => response(&call),
        Err(_) => r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}"#.into(),
    }
}

async fn serve(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request
        .into_body()
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes)
        .unwrap_or_default();
    let mut response = Response::new(Full::from(answer(&body)));
    response.headers_mut().insert(
        "content-type",
        hyper::header::HeaderValue::from_static("application/json"),
    );
    Ok(response)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let port: u16 = std::env::args().nth(1).and_then(|p| p.parse().ok()).unwrap_or(18545);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let _ = stream.set_nodelay(true);
        tokio::spawn(async move {
            let _ = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service_fn(serve))
                .await;
        });
    }
}

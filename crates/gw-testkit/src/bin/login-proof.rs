//! `make bench`: compares the check of one login proof with snarkjs, which wallets and other verifiers use: the same
//! proof and key, by turns in one run. Also compares the whole check of a login with the pairing check alone.

use gw_testkit::wallet::{Kit, Wallet};
use gw_types::Timestamp;
use gw_zk::{
    groth16::Key,
    response::{self, Keys, Request},
};
use serde_json::{Value, json};
use std::{
    io::Write as _,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

const ROUNDS: usize = 7;
const TURNS: u32 = 10;
/// How long logins are checked on all cores.
const SPAN: Duration = Duration::from_secs(5);
const VERIFIER: &str = "did:iden3:privado:main:2ScrbEuw9jLXMapW3DELXBbDco5EURzJZRN1tYj7L7";
const THREAD: &str = "f8aee09d-f592-4fcc-8d2a-8938aa26676c";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let json = std::fs::read(Kit::prepare().verification_key())?;
    let key = Key::from_json(&json)?;
    let json: Value = serde_json::from_slice(&json)?;
    let mut wallet = Wallet::start();
    let did = take(wallet.ask("identity", json!({"seed": 1})), "did")?;
    let auth_request = json!({
        "id": THREAD, "thid": THREAD, "from": VERIFIER,
        "typ": "application/iden3comm-plain-json",
        "type": "https://iden3-communication.io/authorization/1.0/request",
        "body": {"callbackUrl": "http://127.0.0.1:1/", "reason": "bench", "message": "", "scope": []},
    });
    let answer = wallet.ask("answer", json!({"did": did, "request": auth_request}));
    let now = answer
        .pointer("/response/created_time")
        .and_then(Value::as_i64)
        .ok_or("no time in the answer")?;
    let token = take(answer, "token")?;
    let request = Request {
        thread: THREAD.to_owned(),
        from: VERIFIER.to_owned(),
        message: String::new(),
        expires: None,
        accept: Vec::new(),
        scope: Vec::new(),
    };
    let read = gw_zk::jwz::Token::read(&token)?;

    let (mut snarkjs_times, mut pairing_times, mut check_times) = (Vec::new(), Vec::new(), Vec::new());
    // The first round warms up.
    for round in 0..=ROUNDS {
        let snarkjs_time = wallet.ask("time", json!({"token": token, "key": json, "turns": TURNS}));
        let snarkjs_time = snarkjs_time
            .get("ms")
            .and_then(Value::as_f64)
            .ok_or("no time of snarkjs")?;
        let pairing = time(|| read.verify_under(&key).map_err(Into::into))?;
        let check = time(|| {
            response::check(&token, &request, Keys::Own(&key), Timestamp::from_secs(now))?;
            Ok(())
        })?;
        if round > 0 {
            snarkjs_times.push(snarkjs_time);
            pairing_times.push(pairing);
            check_times.push(check);
        }
    }
    let (snarkjs_ms, pairing_ms, check_ms) = (median(snarkjs_times), median(pairing_times), median(check_times));
    let (cores, logins) =
        on_all_cores(&|| response::check(&token, &request, Keys::Own(&key), Timestamp::from_secs(now)).map(drop));
    writeln!(
        std::io::stdout(),
        "Login proof, median of {ROUNDS} rounds of {TURNS}\n\
         | what | ms | ratio | goal |\n|---|---|---|---|\n\
         | snarkjs groth16.verify | {snarkjs_ms:.2} | 1 | |\n\
         | pairing check | {pairing_ms:.2} | {:.1} times faster | 10 |\n\
         | whole check: token, hash, proof, message | {check_ms:.2} | {:.2} of the pairing check | at most 1.3 |\n\n\
         {logins:.0} logins a second are checked on {cores} cores",
        snarkjs_ms / pairing_ms,
        check_ms / pairing_ms,
    )?;
    Ok(())
}

/// The number of checks per second, with one thread per core.
fn on_all_cores<E>(check: &(impl Fn() -> Result<(), E> + Sync)) -> (usize, f64) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let checks = AtomicU32::new(0);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while start.elapsed() < SPAN {
                    if check().is_ok() {
                        checks.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    (cores, f64::from(checks.into_inner()) / start.elapsed().as_secs_f64())
}

/// Milliseconds of one turn.
fn time(mut work: impl FnMut() -> Result<(), Box<dyn std::error::Error>>) -> Result<f64, Box<dyn std::error::Error>> {
    let start = Instant::now();
    for _ in 0..TURNS {
        work()?;
    }
    Ok(start.elapsed().as_secs_f64() * 1000.0 / f64::from(TURNS))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn take(response: Value, member: &str) -> Result<String, String> {
    response
        .get(member)
        .and_then(Value::as_str)
        .map(str::to_owned)
        .ok_or_else(|| format!("no `{member}` in {response}"))
}

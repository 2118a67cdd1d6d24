#!/usr/bin/env bash
# The tables of `make bench`: release builds, the gateway beside nginx, calls beside the node alone, the explorer's index
# beside SQL, a login proof beside snarkjs, then decisions by criterion.
# BENCH_SECONDS and BENCH_ROUNDS make a run longer.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --release --locked -p gw-server --features mock-login --bin ledger-gateway-dev
cargo build --release --locked -p gw-testkit --bin constant-upstream
python3 bench/bench.py
python3 bench/frames.py
python3 bench/explorer.py
cargo run --release --locked -p gw-testkit --features wallet --bin login-proof
cargo bench --locked -p gw-policy -p gw-http -p gw-journal

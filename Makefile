# `make` prints the targets.
.PHONY: help demo check test bench soak fmt doc setup
.DEFAULT_GOAL := help

help: ## prints this
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## a real node, a gateway and three viewers who ask the same question; Ctrl-C stops it
	@scripts/setup.sh demo
	@test -x target/debug/ledger-gateway-dev || echo "demo: the first build takes about five minutes on two cores"
	cargo run --locked -p gw-server --features mock-login --bin ledger-gateway-dev -- demo

check: ## formatting, layers, lints and the unit tests of what changed: under a minute once everything is built
	cargo xtask check

test: setup ## everything CI runs, cheapest first
	cargo xtask ci

bench: setup ## throughput and latency beside nginx, calls beside the node, logins beside snarkjs, then criterion
	scripts/bench.sh

MINUTES ?= 60
soak: setup ## a steady mixed load for MINUTES=60: memory, descriptors, threads and disk, and `audit verify` at its end
	cargo build --release --locked -p gw-server --features mock-login --bin ledger-gateway-dev
	cargo build --release --locked -p gw-testkit --bin constant-upstream
	python3 bench/soak.py --minutes $(MINUTES)

fmt: ## format the code
	cargo fmt --all

doc: ## the documentation of all crates, and the configuration reference
	cargo doc --workspace --no-deps
	cargo run --locked -p gw-server --bin ledger-gateway -- config doc > docs/configuration.md

setup: ## install or name everything that the tests need and this machine lacks
	@scripts/setup.sh

# Two commands to know: `make demo` shows it, `make test` runs everything CI runs.
.PHONY: demo test bench fmt doc setup
.DEFAULT_GOAL := demo

demo: setup ## a real node, a gateway and three viewers who ask the same question; Ctrl-C stops it
	cargo run --locked -p gw-server --features mock-login --bin ledger-gateway-dev -- demo

test: setup ## everything CI runs, cheapest first
	cargo xtask ci

bench: setup ## throughput and latency beside nginx, calls beside the node, logins beside snarkjs, then decisions, tokens and the journal by criterion
	scripts/bench.sh

fmt: ## format the code
	cargo fmt --all

doc: ## the documentation of all crates, and the configuration reference
	cargo doc --workspace --no-deps
	cargo run --locked -p gw-server --bin ledger-gateway -- config doc > docs/configuration.md

setup: ## install or name what is missing
	@scripts/setup.sh

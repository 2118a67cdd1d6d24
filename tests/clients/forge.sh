#!/usr/bin/env bash
# Foundry's forge against a running gateway. `forge create` takes the token as a header; `forge script` reads the chain by
# a URL alone, so it uses a personal one (GW_PERSONAL_URL, scope `all`). Other settings as in shared.mjs.
set -u
: "${GW_RPC_URL:?}" "${GW_TOKEN:?}" "${GW_PRIVATE_KEY:?}" "${GW_RECIPIENT:?}" "${GW_PERSONAL_URL:?}"
here=$(cd "$(dirname "$0")" && pwd)
bin=$here/node_modules/.bin
places=$(mktemp -d)
trap 'rm -rf "$places"' EXIT
export FOUNDRY_DISABLE_NIGHTLY_WARNING=1 FOUNDRY_OUT=$places/out FOUNDRY_CACHE_PATH=$places/cache FOUNDRY_BROADCAST=$places/broadcast
passed=0
failed=0
cd "$here/../../contracts" || exit 2

# check NAME EXPECTED-PATTERN COMMAND...
check() {
  local name=$1 pattern=$2 said
  shift 2
  said=$("$@" 2>&1)
  if grep -Eq "$pattern" <<<"$said"; then
    passed=$((passed + 1))
    echo "ok $name: $(grep -Eo "$pattern" <<<"$said" | head -1)"
  else
    failed=$((failed + 1))
    echo "not ok $name: expected /$pattern/, got: $said"
  fi
}
gw() {
  local command=$1
  shift
  "$bin/cast" "$command" --rpc-url "$GW_RPC_URL" --rpc-headers "Authorization: Bearer $GW_TOKEN" "$@"
}

check "a script without the URL's secret" "method not found" "$bin/forge" script script/Deploy.s.sol --broadcast --rpc-url "$GW_RPC_URL"
check "a script deploys and calls" "ONCHAIN EXECUTION COMPLETE & SUCCESSFUL" \
  "$bin/forge" script script/Deploy.s.sol --broadcast --rpc-url "$GW_PERSONAL_URL"
run=$places/broadcast/Deploy.s.sol/31337/run-latest.json
address=$(node -p "JSON.parse(require('fs').readFileSync('$run')).transactions[0].contractAddress" 2>/dev/null)
check "both transactions are mined" '^0x1,0x1$' node -p "JSON.parse(require('fs').readFileSync('$run')).receipts.map((r) => r.status).join()"
check "the script's token paid out" '^7' gw call "$address" 'balanceOf(address)(uint256)' "$GW_RECIPIENT"
check "create with a header" 'Deployed to: 0x[0-9a-fA-F]{40}' \
  "$bin/forge" create --rpc-url "$GW_RPC_URL" --rpc-headers "Authorization: Bearer $GW_TOKEN" --private-key "$GW_PRIVATE_KEY" --broadcast \
  src/DemoERC20.sol:DemoERC20 --constructor-args "Created Dollar" CRD 5
check "create without one" 'method not found' \
  "$bin/forge" create --rpc-url "$GW_RPC_URL" --private-key "$GW_PRIVATE_KEY" --broadcast \
  src/DemoERC20.sol:DemoERC20 --constructor-args "Created Dollar" CRD 5

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]

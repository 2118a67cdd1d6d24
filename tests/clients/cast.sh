#!/usr/bin/env bash
# Foundry's cast against a running gateway; the same settings as the JavaScript scripts (see shared.mjs).
set -u
: "${GW_RPC_URL:?}" "${GW_TOKEN:?}" "${GW_PRIVATE_KEY:?}" "${GW_RECIPIENT:?}"
here=$(cd "$(dirname "$0")" && pwd)
cast=${GW_CAST:-$here/node_modules/.bin/cast}
export FOUNDRY_DISABLE_NIGHTLY_WARNING=1
passed=0
failed=0

gw() {
  local command=$1
  shift
  "$cast" "$command" --rpc-url "$GW_RPC_URL" --rpc-headers "Authorization: Bearer $GW_TOKEN" "$@"
}
# Whatever the exit code: the npm launcher of cast does not pass it on.
gw_said() { gw "$@" || true; }

# check NAME EXPECTED-PATTERN COMMAND...
check() {
  local name=$1 pattern=$2 said
  shift 2
  if said=$("$@" 2>&1) && grep -Eq "$pattern" <<<"$said"; then
    passed=$((passed + 1))
    echo "ok $name: $(head -c 100 <<<"$said" | tr '\n' ' ')"
  else
    failed=$((failed + 1))
    echo "not ok $name: expected /$pattern/, got: $said"
  fi
}

me=$("$cast" wallet address --private-key "$GW_PRIVATE_KEY")
bytecode=$(node -p "JSON.parse(require('fs').readFileSync('$here/../../contracts/artifacts/DemoERC20.json')).bytecode")
arguments=$("$cast" abi-encode "constructor(string,string,uint256)" "Cast Dollar" CUD 1000000)

check "chain id" '^[0-9]+$' gw chain-id
check "block number" '^[0-9]+$' gw block-number
check "own balance" '^[1-9][0-9]*$' gw balance "$me"
check "nonce" '^[0-9]+$' gw nonce "$me"
check "gas price" '^[0-9]+$' gw gas-price
check "base fee" '^[0-9]+$' gw base-fee

deployed=$(gw send --private-key "$GW_PRIVATE_KEY" --json --create "$bytecode${arguments#0x}")
address=$(node -p "JSON.parse(process.argv[1]).contractAddress" "$deployed" 2>/dev/null)
check "deploy" '^0x[0-9a-fA-F]{40}$' echo "$address"
check "call" '^1000000' gw call "$address" 'balanceOf(address)(uint256)' "$me"
check "estimate" '^[0-9]+$' gw estimate --from "$me" "$address" 'transfer(address,uint256)' "$GW_RECIPIENT" 9
sent=$(gw send --private-key "$GW_PRIVATE_KEY" --json "$address" 'transfer(address,uint256)' "$GW_RECIPIENT" 9)
check "send" '"status":"0x1"' echo "$sent"
hash=$(node -p "JSON.parse(process.argv[1]).transactionHash" "$sent" 2>/dev/null)
check "receipt" 'status +1' gw receipt "$hash"
check "transaction" "$hash" gw tx "$hash"
check "logs" "$hash" gw logs --from-block 0 --address "$address" 'Transfer(address indexed,address indexed,uint256)' "$me"
check "revert reason" "execution reverted: balance exceeded" gw_said call "$address" 'transfer(address,uint256)' "$GW_RECIPIENT" 99999999 --from "$me"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]

#!/usr/bin/env bash
# One of two tasks by Foundry: `methods.sh <cast|forge create|forge script> <read|write>`; see methods.mjs.
set -eu -o pipefail
: "${GW_RPC_URL:?}" "${GW_TOKEN:?}" "${GW_PRIVATE_KEY:?}" "${GW_RECIPIENT:?}" "${GW_CONTRACT:?}" "${GW_TRANSACTION:?}"
here=$(cd "$(dirname "$0")" && pwd)
bin=$here/node_modules/.bin
places=$(mktemp -d)
trap 'rm -rf "$places"' EXIT
export ETH_RPC_URL=$GW_RPC_URL ETH_RPC_HEADERS="Authorization: Bearer $GW_TOKEN" FOUNDRY_DISABLE_NIGHTLY_WARNING=1
export FOUNDRY_OUT=$places/out FOUNDRY_CACHE_PATH=$places/cache
cd "$here/../../contracts"

# The launchers of npm do not pass exit codes on: what is printed is compared.
case "$1 $2" in
"cast read")
  me=$("$bin/cast" wallet address --private-key "$GW_PRIVATE_KEY")
  "$bin/cast" balance "$me" | grep -q '^[1-9]'
  "$bin/cast" call "$GW_CONTRACT" 'balanceOf(address)(uint256)' "$me" | grep -qx 100
  "$bin/cast" receipt "$GW_TRANSACTION" status | grep -q '^true'
  "$bin/cast" logs --from-block 0 --address "$GW_CONTRACT" 'Transfer(address indexed,address indexed,uint256)' '' "$me" | grep -q "$GW_TRANSACTION"
  ;;
"cast write")
  "$bin/cast" send --private-key "$GW_PRIVATE_KEY" --json "$GW_CONTRACT" 'transfer(address,uint256)' "$GW_RECIPIENT" 1 | grep -q '"status":"0x1"'
  code=$(node -p "JSON.parse(require('fs').readFileSync('artifacts/DemoERC20.json')).bytecode")
  arguments=$("$bin/cast" abi-encode 'constructor(string,string,uint256)' Name NAM 1)
  "$bin/cast" send --private-key "$GW_PRIVATE_KEY" --json --create "$code${arguments#0x}" | grep -q '"status":"0x1"'
  ;;
"forge create write")
  "$bin/forge" create --private-key "$GW_PRIVATE_KEY" --rpc-url "$GW_RPC_URL" --rpc-headers "$ETH_RPC_HEADERS" --broadcast \
    src/DemoERC20.sol:DemoERC20 --constructor-args Name NAM 1 | grep -q 'Deployed to: 0x'
  ;;
"forge script write")
  unset ETH_RPC_HEADERS
  FOUNDRY_BROADCAST=$places/broadcast "$bin/forge" script script/Deploy.s.sol --broadcast --rpc-url "$GW_PERSONAL_URL" |
    grep -q 'ONCHAIN EXECUTION COMPLETE & SUCCESSFUL'
  ;;
*) exit 2 ;;
esac

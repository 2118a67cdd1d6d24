"""web3.py against a running gateway; the same settings as the JavaScript scripts (see shared.mjs)."""

import json
import os
import pathlib
import sys

from web3 import HTTPProvider, Web3
from web3.exceptions import ContractLogicError


def need(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        sys.exit(f"{name} is not set")
    return value


url, token, key, recipient = (need(n) for n in ("GW_RPC_URL", "GW_TOKEN", "GW_PRIVATE_KEY", "GW_RECIPIENT"))
root = pathlib.Path(__file__).resolve().parents[2]
artifact = json.loads((root / "contracts/artifacts/DemoERC20.json").read_text())

passed = failed = 0


def check(name, run):
    global passed, failed
    try:
        said = run()
        passed += 1
        print(f"ok {name}" + ("" if said is None else f": {said}"))
        return said
    except Exception as error:  # noqa: BLE001 - every failure is a finding
        failed += 1
        print(f"not ok {name}: {error!r}")
        return None


def equal(actual, expected):
    assert actual == expected, f"{actual!r} is not {expected!r}"


w3 = Web3(HTTPProvider(url, request_kwargs={"headers": {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}}))
account = w3.eth.account.from_key(key)
recipient = Web3.to_checksum_address(recipient)


def send(tx: dict):
    tx = {
        "from": account.address,
        "nonce": w3.eth.get_transaction_count(account.address),
        "chainId": w3.eth.chain_id,
        "maxFeePerGas": w3.eth.gas_price * 2,
        "maxPriorityFeePerGas": w3.eth.max_priority_fee,
        **tx,
    }
    tx.setdefault("gas", w3.eth.estimate_gas(tx))
    signed = account.sign_transaction(tx)
    return w3.eth.wait_for_transaction_receipt(w3.eth.send_raw_transaction(signed.raw_transaction), poll_latency=0.1)


check("connected", lambda: equal(w3.is_connected(), True))
check("chain id", lambda: w3.eth.chain_id)
check("own balance", lambda: equal(w3.eth.get_balance(account.address) > 0, True))
check("nonce", lambda: w3.eth.get_transaction_count(account.address))
check("fee history", lambda: w3.eth.fee_history(4, "latest", [10, 50])["reward"][0])

factory = w3.eth.contract(abi=artifact["abi"], bytecode=artifact["bytecode"])
deployed = {}


def deploy():
    data = factory.constructor("Web3 Dollar", "WUD", 10**21).data_in_transaction
    receipt = send({"data": data, "value": 0})
    equal(receipt["status"], 1)
    deployed["address"] = receipt["contractAddress"]
    return receipt["contractAddress"]


check("deploy", deploy)
erc20 = w3.eth.contract(address=deployed["address"], abi=artifact["abi"])
check("call", lambda: equal(erc20.functions.balanceOf(account.address).call({"from": account.address}), 10**21))


def transfer():
    data = erc20.encode_abi("transfer", args=[recipient, 5])
    receipt = send({"to": erc20.address, "data": data, "value": 0})
    equal(receipt["status"], 1)
    equal(len(receipt["logs"]), 1)
    events = erc20.events.Transfer.get_logs(from_block=receipt["blockNumber"])
    equal([e["args"]["value"] for e in events], [5])
    return receipt["transactionHash"].hex()


check("send, receipt, logs", transfer)


def reverts():
    try:
        erc20.functions.transfer(recipient, 10**30).call({"from": account.address})
    except ContractLogicError as error:
        assert "balance exceeded" in str(error), error
        return
    raise AssertionError("did not revert")


check("revert reason", reverts)
print(f"{passed} passed, {failed} failed")
sys.exit(0 if failed == 0 and passed > 0 else 1)

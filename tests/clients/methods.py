"""One of two tasks by web3.py: `methods.py <read|write>`; see methods.mjs."""

import json
import os
import pathlib
import sys

from web3 import HTTPProvider, Web3
from web3.middleware import SignAndSendRawMiddlewareBuilder

task = sys.argv[-1]
root = pathlib.Path(__file__).resolve().parents[2]
artifact = json.loads((root / "contracts/artifacts/DemoERC20.json").read_text())
headers = {"Authorization": f"Bearer {os.environ['GW_TOKEN']}", "Content-Type": "application/json"}
w3 = Web3(HTTPProvider(os.environ["GW_RPC_URL"], request_kwargs={"headers": headers}))
account = w3.eth.account.from_key(os.environ["GW_PRIVATE_KEY"])
w3.middleware_onion.inject(SignAndSendRawMiddlewareBuilder.build(account), layer=0)
w3.eth.default_account = account.address
erc20 = w3.eth.contract(address=Web3.to_checksum_address(os.environ["GW_CONTRACT"]), abi=artifact["abi"])


def mined(sent):
    assert w3.eth.wait_for_transaction_receipt(sent, poll_latency=0.1)["status"] == 1


if task == "read":
    assert w3.eth.get_balance(account.address) > 0
    assert erc20.functions.balanceOf(account.address).call() == 100
    assert w3.eth.get_transaction_receipt(os.environ["GW_TRANSACTION"])["status"] == 1
    assert len(erc20.events.Transfer.get_logs(from_block=0, argument_filters={"to": account.address})) == 1
elif task == "write":
    mined(erc20.functions.transfer(Web3.to_checksum_address(os.environ["GW_RECIPIENT"]), 1).transact())
    mined(w3.eth.contract(abi=artifact["abi"], bytecode=artifact["bytecode"]).constructor("Name", "NAM", 1).transact())
else:
    sys.exit(2)

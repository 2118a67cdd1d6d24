#!/usr/bin/env python3
"""`eth_call` of 1, 20 and 200 frames through the gateway, beside the node alone: a part of `make bench`.

The gateway answers a call from the trace it judges, so two figures are told: the whole call beside the node's plain
`eth_call`, and what the gateway adds to the node's time for the very bytes the gateway sends it (caught once on their
way), which is the gateway's own part. What nginx adds to those bytes is told too: a second hop has a price of its own.
"""

import http.client
import http.server
import json
import os
import pathlib
import statistics
import tempfile
import threading
import time
import urllib.request

from bench import ROOT, free_port, gateway, member, proxy, request, start, stop_all, table

TIMES = int(os.environ.get("BENCH_CALLS", "200"))
FROM = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
# calls(uint256)
CALLS = "0xd183ce14"


class Line:
    """One kept connection and how long an exchange over it takes."""

    def __init__(self, port, path="/", token=None):
        self.connection, self.path = http.client.HTTPConnection("127.0.0.1", port, timeout=60), path
        self.headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})

    def take(self, body):
        began = time.perf_counter()
        self.connection.request("POST", self.path, body, self.headers)
        answer = self.connection.getresponse()
        said = answer.read()
        taken = time.perf_counter() - began
        assert answer.status == 200, said
        return taken, said


class Tap(http.server.BaseHTTPRequestHandler):
    """Passes on what it is sent and keeps it."""

    protocol_version = "HTTP/1.1"
    node, bodies = None, []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.bodies.append(body)
        made = urllib.request.Request(self.node, data=body, headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(made, timeout=60) as answer:
                said = answer.read()
        except OSError:  # The node is stopped first.
            self.close_connection = True
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_):
        pass


def main():
    work = pathlib.Path(tempfile.mkdtemp(prefix="gw-bench-"))
    node_port, tap_port = free_port(), free_port()
    start(ROOT / "tests/clients/node_modules/.bin/anvil", "--silent", "--port", str(node_port))
    node = f"http://127.0.0.1:{node_port}"

    def ask(method, params):
        said = request(node, "POST", "/", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        assert "error" not in said, said
        return said["result"]

    def wait_for(said):
        for _ in range(100):
            try:
                if (answer := said()) is not None:
                    return answer
            except OSError:
                pass
            time.sleep(0.1)
        raise SystemExit("the node did not answer within 10 s")

    wait_for(lambda: ask("eth_chainId", []))
    code = json.loads((ROOT / "contracts/artifacts/Frames.json").read_text())["bytecode"]
    sent = ask("eth_sendTransaction", [{"from": FROM, "input": code, "gas": "0x200000"}])
    contract = wait_for(lambda: ask("eth_getTransactionReceipt", [sent]))["contractAddress"]

    Tap.node = node
    server = http.server.ThreadingHTTPServer(("127.0.0.1", tap_port), Tap)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port, tapped_port = free_port(), free_port()
    token = member(gateway(port, node, work / "measured"), ["eth_call"], contract)
    tapped_token = member(gateway(tapped_port, f"http://127.0.0.1:{tap_port}", work / "tapped"), ["eth_call"], contract)
    tapped = Line(tapped_port, "/rpc", tapped_token)

    plain, traced, hopped = Line(node_port), Line(node_port), Line(proxy(work, node_port))
    through = Line(port, "/rpc", token)
    rows = []
    for frames in (1, 20, 200):
        data = CALLS + f"{frames - 1:064x}"
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "eth_call", "params": [{"to": contract, "data": data}, "latest"]})
        Tap.bodies.clear()
        tapped.take(body)
        asked = [b for b in Tap.bodies if b"debug_traceCall" in b]
        assert len(asked) == 1, "one round trip"
        figures = []
        for turn in range(TIMES + 10):
            whole, said = through.take(body)
            assert json.loads(said)["result"] == f"0x{frames - 1:064x}", said
            if turn >= 10:
                figures.append((plain.take(body)[0], traced.take(asked[0])[0], whole, hopped.take(asked[0])[0]))
        call, trace, whole = (statistics.median(f[i] for f in figures) for i in range(3))
        own, hop = (statistics.median(f[i] - f[1] for f in figures) for i in (2, 3))
        rows.append((f"eth_call of {frames} frames", "one round trip; own part under a tenth of the node's",
                     f"1; {own / trace:.2f}", f"{whole * 1e6:.0f} us, the node's trace {trace * 1e6:.0f} us, its plain call {call * 1e6:.0f} us ({whole / call:.1f} times); nginx adds {hop / trace:.2f} to the trace"))
    table(rows)


if __name__ == "__main__":
    try:
        main()
    finally:
        stop_all()

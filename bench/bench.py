#!/usr/bin/env python3
"""`make bench`: the gateway beside nginx, same machine, same run, same upstream. Ratios first; the absolute figures
say more about the machine than about the program.

Needs nginx and wrk (scripts/setup.sh installs them) and the release builds of ledger-gateway-dev and
constant-upstream, which `make bench` makes.
"""

import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
RELEASE = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
SECONDS = int(os.environ.get("BENCH_SECONDS", "5"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
ADMIN = "bench-admin-token-0123456789abcdef0123456789"
DID = "did:test:bench"

children = []


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(*command, **kwargs):
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, **kwargs)
    children.append(process)
    return process


def stop_all():
    for process in reversed(children):
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
    for process in children:
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()


def wait_for(url, seconds=30):
    for _ in range(seconds * 10):
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                if answer.status == 200:
                    return
        except OSError:
            pass
        time.sleep(0.1)
    raise SystemExit(f"{url} did not answer within {seconds} s")


def request(base, method, path, body=None, headers=None):
    data = None if body is None else json.dumps(body).encode()
    made = urllib.request.Request(base + path, data=data, method=method, headers={"Content-Type": "application/json", **(headers or {})})
    with urllib.request.urlopen(made, timeout=30) as answer:
        return json.loads(answer.read() or b"null")


def rpc(method, params):
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


def settings(port, node, data, **more):
    """The environment of a gateway in front of `node`."""
    return {
        "PATH": os.environ["PATH"], "ENVIRONMENT": "development", "ALLOW_MOCK_LOGIN": "true", "PORT": str(port),
        "BASE_URL": f"http://127.0.0.1:{port}", "NODE_URL": node, "ADMIN_API_TOKEN": ADMIN, "LOG_LEVEL": "warn",
        "DATA_DIR": str(data), "ACCESS_TOKEN_TTL": "8h", **more,
    }


def gateway(port, node, data, **more):
    """A gateway in front of `node`; its address."""
    env = settings(port, node, data, **more)
    start(RELEASE / "ledger-gateway-dev", "serve", env=env)
    # Not `/ready`: not every upstream here answers traces.
    wait_for(f"{env['BASE_URL']}/api/v1/auth/providers")
    return env["BASE_URL"]


def proxy(work, upstream_port):
    """nginx in front of the same upstream; its port."""
    if not shutil.which("nginx"):
        raise SystemExit("nginx is missing: run scripts/setup.sh")
    port, conf = free_port(), work / "nginx.conf"
    conf.write_text(
        f"worker_processes 1; daemon off; pid {work}/nginx.pid; error_log {work}/error.log;\n"
        "events { worker_connections 1024; }\n"
        f"http {{ access_log {work}/access.log; client_body_temp_path {work}/b; proxy_temp_path {work}/p;\n"
        f"fastcgi_temp_path {work}/f; uwsgi_temp_path {work}/u; scgi_temp_path {work}/s; proxy_buffers 16 256k;\n"
        "proxy_buffer_size 256k; proxy_busy_buffers_size 512k;\n"
        f"upstream node {{ server 127.0.0.1:{upstream_port}; keepalive 64; }}\n"
        f"server {{ listen 127.0.0.1:{port}; keepalive_requests 10000000;\n"
        'location / { proxy_pass http://node; proxy_http_version 1.1; proxy_set_header Connection ""; } } }\n'
    )
    start("nginx", "-c", str(conf), "-p", str(work), stderr=subprocess.DEVNULL)
    return port


def member(base, methods, contract, metadata=None):
    """Somebody who may use these methods on the contract, or on each of several; their token."""
    admin = {"X-Admin-Token": ADMIN}
    org = request(base, "POST", "/api/v1/admin/orgs", {"name": "Bench", "slug": "bench"}, admin)["id"]
    groups = f"/api/v1/admin/orgs/{org}/groups"
    group = request(base, "POST", groups, {"name": "g", "slug": "g"}, admin)["id"]
    request(base, "PUT", f"{groups}/{group}/access", {"allowed_methods": methods, "claims": []}, admin)
    user = request(base, "POST", f"/api/v1/admin/orgs/{org}/memberships/by-did", {"did": DID, "group_id": group}, admin)["user_id"]
    request(base, "PUT", f"/api/v1/admin/users/{user}", {"kyc": True}, admin)
    contracts = f"/api/v1/admin/orgs/{org}/contracts"
    for address in [contract] if isinstance(contract, str) else contract:
        request(base, "POST", contracts, {"address": address, "name": "C", "metadata": metadata or {}}, admin)
        request(base, "POST", f"{contracts}/{address}/grants", {"group_id": group}, admin)
    opened = request(base, "POST", "/auth/request", {})
    return request(base, "POST", "/auth/verify", {"jwz_token": f"mock.{DID}", "session_id": opened["session_id"]})["access_token"]


def table(rows):
    print("\n| figure | goal | measured | detail |\n|---|---|---|---|")
    for row in rows:
        print("| " + " | ".join(row) + " |")


def wrk(url, body, token, connections, seconds=SECONDS):
    script = tempfile.NamedTemporaryFile("w", suffix=".lua", delete=False)
    script.write(f"wrk.method='POST'\nwrk.body={json.dumps(body)}\nwrk.headers['Content-Type']='application/json'\n")
    script.write(f"wrk.headers['Authorization']='Bearer {token}'\n")
    script.close()
    threads = 1 if connections == 1 else 2
    said = subprocess.run(
        ["wrk", f"-t{threads}", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", script.name, url],
        capture_output=True, text=True, check=True,
    ).stdout
    os.unlink(script.name)
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", said)
    if bad:
        raise SystemExit(f"{url}: {bad.group(1)} answers were not 2xx\n{said}")
    unit = {"us": 1e-6, "ms": 1e-3, "s": 1.0}

    def percentile(p):
        value, suffix = re.search(rf"{p}%\s+([\d.]+)(us|ms|s)", said).groups()
        return float(value) * unit[suffix]

    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", said).group(1))
    return {"rate": rate, "p50": percentile(50), "p99": percentile(99)}


def pairs(ours, nginx, body, token, connections):
    """Gateway and nginx in turn, so that a drift of the machine hits both."""
    runs = [(wrk(ours, body, token, connections), wrk(nginx, body, token, connections)) for _ in range(ROUNDS)]
    return {k: statistics.median(g[k] / n[k] for g, n in runs) for k in ("rate", "p50", "p99")}, runs


def timed(url, body, token, times=15):
    """Median wall time of one large answer over one kept connection."""
    host, port = url.split("//")[1].split("/")[0].split(":")
    path = "/" + url.split("//")[1].split("/", 1)[1]
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    taken, size = [], 0
    for _ in range(times):
        began = time.perf_counter()
        connection.request("POST", path, body, {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
        answer = connection.getresponse()
        size = len(answer.read())
        taken.append(time.perf_counter() - began)
        assert answer.status == 200, answer.status
    return statistics.median(taken), size


class Node:
    """anvil, which mines when it is told to."""

    def __init__(self):
        self.url = f"http://127.0.0.1:{(port := free_port())}"
        start(ROOT / "tests/clients/node_modules/.bin/anvil", "--silent", "--no-mining", "--port", str(port))
        for _ in range(100):
            try:
                self.ask("eth_chainId", [])
                return
            except OSError:
                time.sleep(0.1)
        raise SystemExit("the node did not answer within 10 s")

    def ask(self, method, params):
        answer = request(self.url, "POST", "/", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        assert "error" not in answer, answer
        return answer["result"]

    def send(self, transactions):
        """Sends the transactions and mines them in one block; their hashes."""
        calls = [{"jsonrpc": "2.0", "id": n, "method": "eth_sendTransaction", "params": [t]} for n, t in enumerate(transactions)]
        hashes = [answer["result"] for answer in request(self.url, "POST", "/", calls)]
        self.ask("evm_mine", [])
        return hashes

    def token(self, sender, blocks, per_block):
        """A token with one transfer in each of `per_block` transactions in each of `blocks` blocks: its address, and
        the number of the first of these blocks."""
        code = json.loads((ROOT / "contracts/artifacts/DemoERC20.json").read_text())["bytecode"]
        word = "{:064x}".format
        arguments = word(0x60) + word(0xA0) + word(10**9) + (word(1) + "54".ljust(64, "0")) * 2
        made = self.send([{"from": sender, "input": code + arguments, "gas": "0x300000"}])[0]
        made = self.ask("eth_getTransactionReceipt", [made])
        token = made["contractAddress"]
        for block in range(blocks):
            data = ["0xa9059cbb" + word(0x10000 + block * per_block + n) + word(1) for n in range(per_block)]
            self.send([{"from": sender, "to": token, "input": d, "gas": "0x20000"} for d in data])
        return token, hex(int(made["blockNumber"], 16) + 1)


def link(base, token, node, address):
    """Links an account of the node to the caller."""
    bearer = {"Authorization": f"Bearer {token}"}
    challenge = request(base, "POST", "/api/v1/eth/link/challenge", {}, bearer)
    signature = node.ask("personal_sign", ["0x" + challenge["message"].encode().hex(), address])
    proof = {"address": address, "nonce": challenge["nonce"], "signature": signature}
    request(base, "POST", "/api/v1/eth/link/verify", proof, bearer)


def parties(work, row):
    """1,000 logs of 1,000 transactions, for a caller who might have sent each of them, beside the node alone. Cold: no
    call has read these transactions. Each round has its own token, so that it begins cold."""
    node, shapes = Node(), ((40, 25), (1000, 1))
    sender, caller = node.ask("eth_accounts", [])[:2]
    tokens = {shape: [node.token(sender, *shape) for _ in range(ROUNDS)] for shape in shapes}
    base = gateway(free_port(), node.url, work / "parties")
    token = member(base, ["eth_getLogs"], [address for made in tokens.values() for address, _ in made], {"token_type": "ERC20"})
    link(base, token, node, caller)
    for blocks, per_block in shapes:
        cold, warm, figures = [], [], []
        for address, first_block in tokens[blocks, per_block]:
            body = rpc("eth_getLogs", [{"address": address, "fromBlock": first_block}])
            timed(node.url + "/", body, token, 3)
            first = timed(f"{base}/rpc", body, token, 1)[0]
            alone, size = timed(node.url + "/", body, token)
            cold.append(first / alone)
            # In turn, so that a drift of the machine hits both.
            for _ in range(5):
                through, alone = timed(f"{base}/rpc", body, token, 5)[0], timed(node.url + "/", body, token, 5)[0]
                warm.append(through / alone)
                figures.append((through, alone, first))
        through, alone, first = (statistics.median(f[i] for f in figures) * 1e3 for i in range(3))
        name = f"1,000 logs of 1,000 transactions in {blocks} blocks, wall time"
        row(f"{name}, warm", "1.5 of the node alone", f"{statistics.median(warm):.2f}",
            f"{through:.1f} ms beside {alone:.1f} ms for {size} bytes; {min(warm):.2f} to {max(warm):.2f} in {len(warm)} pairs")
        row(f"{name}, cold", "-", f"{statistics.median(cold):.1f}", f"{first:.1f} ms; {min(cold):.1f} to {max(cold):.1f} in {len(cold)} pairs")


def main():
    if not shutil.which("wrk"):
        raise SystemExit("wrk is missing: run scripts/setup.sh")
    work = pathlib.Path(tempfile.mkdtemp(prefix="gw-bench-"))
    upstream_port, gateway_port = free_port(), free_port()
    start(RELEASE / "constant-upstream", str(upstream_port))
    nginx_port = proxy(work, upstream_port)
    base = gateway(gateway_port, f"http://127.0.0.1:{upstream_port}", work / "data", MAX_CONCURRENT_REQUESTS="1000")
    token_contract = "0x5fbdb2315678afecb367f032d93f642f64180aa3"
    token = member(base, ["*"], token_contract, {"token_type": "ERC20"})

    ours, nginx = f"{base}/rpc", f"http://127.0.0.1:{nginx_port}/rpc"
    code = rpc("eth_getCode", ["0x00000000000000000000000000000000deadbeef", "latest"])
    chain = rpc("eth_blockNumber", [])
    logs = rpc("eth_getLogs", [{"address": token_contract, "fromBlock": "0x0"}])
    rows = []

    def row(figure, goal, value, detail):
        rows.append((figure, goal, value, detail))
        print(f"{figure}: {value}  (goal {goal}; {detail})", flush=True)

    wrk(ours, code, token, 32, 2)
    ratio, runs = pairs(ours, nginx, code, token, 32)
    row("throughput, cheap read through policy and record, 32 connections", "0.6 of nginx, next 0.9", f"{ratio['rate']:.2f}",
        f"{runs[0][0]['rate']:.0f}/s beside {runs[0][1]['rate']:.0f}/s")
    ratio, runs = pairs(ours, nginx, chain, token, 32)
    row("throughput, metadata, 32 connections", "above nginx", f"{ratio['rate']:.2f}",
        f"{runs[0][0]['rate']:.0f}/s beside {runs[0][1]['rate']:.0f}/s")
    ratio, runs = pairs(ours, nginx, code, token, 1)
    row("latency of one connection, p50", "1.5 of nginx", f"{ratio['p50']:.2f}", f"{runs[0][0]['p50'] * 1e6:.0f} us beside {runs[0][1]['p50'] * 1e6:.0f} us")
    row("latency of one connection, p99", "1.5 of nginx", f"{ratio['p99']:.2f}", f"{runs[0][0]['p99'] * 1e6:.0f} us beside {runs[0][1]['p99'] * 1e6:.0f} us")
    timed(ours, logs, token, 3)
    through, size = timed(ours, logs, token)
    plain, plain_size = timed(nginx, logs, token)
    row("10,000 logs filtered and masked, wall time", "1.5 of nginx", f"{through / plain:.2f}",
        f"{through * 1e3:.1f} ms for {size} bytes beside {plain * 1e3:.1f} ms for {plain_size} bytes")
    parties(work, row)

    table(rows)


if __name__ == "__main__":
    try:
        main()
    finally:
        stop_all()
        if "-v" in sys.argv:
            print("stopped", len(children), "processes")

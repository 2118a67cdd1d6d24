#!/usr/bin/env python3
"""`make soak MINUTES=60`: a steady mixed load on a release gateway, and what it costs over time.

Starts `ledger-gateway-dev` (the mock login makes logins cheap) with SQLite stores and a journal in front of
`constant-upstream`, and sends `--rate` calls a second: cheap reads, log answers, denials, logins, refreshes and admin
changes. Every `--every` seconds it samples resident memory, open descriptors, threads, and the bytes of the databases
and of the journal, whose files are allocated in advance, 64 MiB at a time. At its end it prints the samples, the slope of each figure per hour (least squares, without the
first fifth), and the bytes per recorded call. Then it stops the gateway and runs `audit verify`.

Exits with 1 if descriptors or threads grow steadily, if `audit verify` finds anything, if an admin change that was
acknowledged is not there, or if more than one in a hundred calls got an unexpected answer; else with 0.

    make soak MINUTES=60
    python3 bench/soak.py --minutes 2 --every 5 --binary target/debug/ledger-gateway-dev \\
        --upstream target/debug/constant-upstream
"""

import argparse
import collections
import http.client
import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import tempfile
import threading
import time

import bench

CONTRACT = "0x5fbdb2315678afecb367f032d93f642f64180aa3"
WORKERS = 8
# Of 100 calls: the kind, and how many.
MIX = {"read": 58, "metadata": 20, "denied": 14, "logs": 4, "login": 1, "refresh": 1, "admin": 2}
SETTINGS = {"RATE_LIMIT_AUTH": "off", "MAX_CONCURRENT_REQUESTS": "1000", "SHUTDOWN_DELAY": "0s"}
FIGURES = ("rss_kib", "descriptors", "threads", "journal_bytes", "database_bytes")


class Load:
    """What all workers share: the counts of answers, and the names that each group can have now."""

    def __init__(self, base, token, org):
        self.base, self.token, self.org = base, token, org
        self.lock = threading.Lock()
        self.answers = collections.Counter()
        self.unexpected = collections.Counter()
        self.late = 0.0
        self.end = threading.Event()
        self.names = {}

    def record(self, kind, problem):
        with self.lock:
            self.answers[kind] += 1
            if problem:
                self.unexpected[f"{kind}: {problem}"] += 1


class Worker(threading.Thread):
    """Sends its share of the load over one kept connection; the pace is that of a clock, not that of the answers."""

    def __init__(self, load, number, rate):
        super().__init__(daemon=True)
        self.load, self.number, self.rate = load, number, rate
        self.random = random.Random(number)
        self.kinds = [kind for kind, share in MIX.items() for _ in range(share)]
        self.refresh_token = None
        self.group = None
        self.changes = 0
        self.connect()

    def connect(self):
        self.connection = http.client.HTTPConnection(*self.load.base.split("//")[1].split(":"), timeout=60)

    def request(self, method, path, body=None, headers=None):
        """Status and parsed body; a status of 0 if the connection failed."""
        data = None if body is None else json.dumps(body)
        try:
            self.connection.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
            answer = self.connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text else None
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.connection.close()
            self.connect()
            return 0, str(error)

    def rpc(self, method, params):
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.request("POST", "/rpc", body, {"Authorization": f"Bearer {self.load.token}"})

    def run(self):
        start, sent = time.monotonic(), 0
        while not self.load.end.is_set():
            due = start + sent / self.rate
            wait = due - time.monotonic()
            if wait > 0:
                time.sleep(min(wait, 1))
                continue
            self.load.late = max(self.load.late, -wait)
            kind = self.random.choice(self.kinds)
            self.load.record(kind, getattr(self, kind)())
            sent += 1

    def result(self, method, params):
        status, body = self.rpc(method, params)
        return None if status == 200 and "result" in body else f"{status} {str(body)[:100]}"

    def read(self):
        address = "0x" + self.random.randbytes(20).hex()
        return self.result("eth_getCode", [address, "latest"])

    def metadata(self):
        return self.result("eth_blockNumber", [])

    def logs(self):
        return self.result("eth_getLogs", [{"address": CONTRACT, "fromBlock": "0x0"}])

    def denied(self):
        status, body = self.rpc("eth_getStorageAt", [CONTRACT, "0x0", "latest"])
        return None if status in (200, 403, 404) and "error" in body else f"{status} {str(body)[:100]}"

    def login(self):
        did = f"did:test:soak-{self.number}"
        status, opened = self.request("POST", "/auth/request", {})
        if status != 200:
            return f"{status} {str(opened)[:100]}"
        proof = {"jwz_token": f"mock.{did}", "session_id": opened["session_id"]}
        status, tokens = self.request("POST", "/auth/verify", proof)
        if status != 200:
            return f"{status} {str(tokens)[:100]}"
        self.refresh_token = tokens["refresh_token"]
        return None

    def refresh(self):
        if self.refresh_token is None:
            return self.login()
        status, tokens = self.request("POST", "/api/v1/refresh", {"refresh_token": self.refresh_token})
        self.refresh_token = tokens["refresh_token"] if status == 200 else None
        return None if status == 200 else f"{status} {str(tokens)[:100]}"

    def admin(self):
        """Creates a group of this worker, then renames it again and again."""
        groups, token = f"/api/v1/admin/orgs/{self.load.org}/groups", {"X-Admin-Token": bench.ADMIN}
        self.changes += 1
        name = f"Soak {self.number} {self.changes}"
        if self.group is None:
            status, group = self.request("POST", groups, {"name": name, "slug": f"soak-{self.number}"}, token)
            self.group = group["id"] if status == 201 else None
        else:
            status, group = self.request("PUT", f"{groups}/{self.group}", {"name": name}, token)
        if status in (200, 201):
            self.load.names[self.group] = {name}
            return None
        # A change that was not acknowledged may have happened.
        self.load.names.get(self.group, set()).add(name)
        return f"{status} {str(group)[:100]}"


def size(path, names):
    total = 0
    for pattern in names:
        for file in path.glob(pattern):
            try:
                total += file.stat().st_blocks * 512 if file.is_file() else 0
            except FileNotFoundError:
                pass
    return total


def sample(pid, data):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    field = lambda name: int(next(line for line in status.splitlines() if line.startswith(name)).split()[1])
    return {
        "rss_kib": field("VmRSS:"),
        "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
        "threads": field("Threads:"),
        "journal_bytes": size(data, ["audit/**/*"]),
        "database_bytes": size(data, ["*.db*"]),
    }


def slope(times, values):
    """Per hour, by least squares."""
    return statistics.linear_regression(times, values).slope * 3600 if len(times) > 1 else 0.0


def grows(values):
    """Whether a figure grows steadily: each third is above the one before, by more than noise in all."""
    third = len(values) // 3
    if third < 2:
        return False
    means = [statistics.mean(values[n * third:(n + 1) * third]) for n in range(3)]
    return means[0] < means[1] < means[2] and means[2] - means[0] > max(4, 0.05 * means[0])


def report(samples, records):
    """Prints the samples and slopes; returns the names of the figures that must not grow and do."""
    settled = samples[len(samples) // 5:]
    times = [at for at, _ in settled]
    print("\n| seconds | " + " | ".join(FIGURES) + " |\n|" + "---|" * (len(FIGURES) + 1))
    for at, figures in samples:
        print(f"| {at:.0f} | " + " | ".join(str(figures[name]) for name in FIGURES) + " |")
    print("\n| figure | slope per hour |\n|---|---|")
    for name in FIGURES:
        print(f"| {name} | {slope(times, [figures[name] for _, figures in settled]):+.0f} |")
    last = samples[-1][1]
    for name in ("journal_bytes", "database_bytes"):
        print(f"| {name} per record | {last[name] / max(records, 1):.0f} |")
    return [name for name in ("descriptors", "threads") if grows([figures[name] for _, figures in settled])]


def verify(binary, env):
    """Runs `audit verify`; its exit code, its output, and the number of records in all chains."""
    done = subprocess.run([binary, "audit", "verify", "--timeout", "1h", "--format", "json"], env=env, capture_output=True, text=True)
    chains = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, done.stdout + done.stderr, sum(chain["scanned"] for chain in chains)


def lost(base, load):
    """The acknowledged admin changes that the gateway does not show."""
    groups = bench.request(base, "GET", f"/api/v1/admin/orgs/{load.org}/groups?limit=1000", None, {"X-Admin-Token": bench.ADMIN})
    groups = groups["data"] if isinstance(groups, dict) else groups
    groups = [row.get("group", row) for row in groups]
    stored = {group["id"]: group["name"] for group in groups}
    return {group: names for group, names in load.names.items() if stored.get(group) not in names}


def main():
    parser = argparse.ArgumentParser(description="steady load on a gateway, and what it costs over time")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--every", type=float, default=30, help="seconds between samples")
    parser.add_argument("--rate", type=float, default=200, help="calls per second")
    parser.add_argument("--binary", default=bench.RELEASE / "ledger-gateway-dev", type=pathlib.Path)
    parser.add_argument("--upstream", default=bench.RELEASE / "constant-upstream", type=pathlib.Path)
    parser.add_argument("--dir", type=pathlib.Path, help="where the data is kept (default: a new temporary directory)")
    options = parser.parse_args()

    data = (options.dir or pathlib.Path(tempfile.mkdtemp(prefix="gw-soak-"))) / "data"
    data.mkdir(parents=True)
    upstream = bench.free_port()
    bench.start(options.upstream, str(upstream), "100")
    env = bench.settings(bench.free_port(), f"http://127.0.0.1:{upstream}", data, **SETTINGS)
    process = bench.start(options.binary, "serve", env=env)
    base = env["BASE_URL"]
    bench.wait_for(f"{base}/api/v1/auth/providers")
    methods = ["eth_blockNumber", "eth_chainId", "eth_getCode", "eth_getLogs"]
    token = bench.member(base, methods, CONTRACT, {"token_type": "ERC20"})
    org = bench.request(base, "POST", "/api/v1/admin/orgs", {"name": "Soak", "slug": "soak"}, {"X-Admin-Token": bench.ADMIN})["id"]

    load = Load(base, token, org)
    workers = [Worker(load, number, options.rate / WORKERS) for number in range(WORKERS)]
    began = time.monotonic()
    for worker in workers:
        worker.start()
    samples = []
    while (passed := time.monotonic() - began) < options.minutes * 60:
        samples.append((passed, sample(process.pid, data)))
        print(f"{passed:6.0f} s  {sum(load.answers.values())} calls  {samples[-1][1]}", flush=True)
        time.sleep(max(0.0, min(options.every, options.minutes * 60 - passed)))
    load.end.set()
    for worker in workers:
        worker.join(90)
    passed = time.monotonic() - began
    samples.append((passed, sample(process.pid, data)))
    missing = lost(base, load)
    process.send_signal(signal.SIGTERM)
    process.wait(120)
    code, output, records = verify(options.binary, env)

    growing = report(samples, records)
    calls, unexpected = sum(load.answers.values()), sum(load.unexpected.values())
    print(f"\n{calls} calls in {passed:.0f} s ({calls / passed:.0f}/s; the latest was {load.late:.2f} s behind): {dict(load.answers)}")
    print(f"{records} records; unexpected answers: {unexpected} {dict(load.unexpected.most_common(10))}")
    print(f"audit verify: exit code {code}\n{output}")
    faults = [f"{name} grow steadily" for name in growing]
    faults += [f"audit verify exits with {code}"] if code else []
    faults += [f"acknowledged changes are missing: {missing}"] if missing else []
    faults += [f"{unexpected} of {calls} answers are unexpected"] if unexpected > calls / 100 else []
    print("\n".join(faults) or "no fault")
    return 1 if faults else 0


if __name__ == "__main__":
    try:
        code = main()
    finally:
        bench.stop_all()
    raise SystemExit(code)

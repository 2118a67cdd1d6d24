#!/usr/bin/env python3
"""The explorer's index beside a plain SQL filter over the same rows: a part of `make bench`.

Builds the index of a synthetic chain (10 million transactions unless BENCH_TRANSACTIONS says otherwise, 200,000 wallets,
5,000 contracts, some much more active than others), in which nine of ten transactions name only addresses that no viewer
sees, and the index of the same chain without them. Tells, for viewers of different size, what selecting their rows
costs (cold), and a total, a page from the middle, a chart of 31 buckets and a page of one address after it; how much
more the ten times larger chain costs; and what SQLite needs for a page and a total with indexes on both sides.
"""

import array
import json
import os
import pathlib
import sqlite3
import statistics
import subprocess
import tempfile
import time

from bench import ROOT

TURNS = 3


def measure(directory):
    """The figures of the index; writes the rows of the large chain and the viewers' addresses to the directory."""
    command = ["cargo", "bench", "--locked", "--quiet", "-p", "gw-postings", "--bench", "selection"]
    environment = os.environ | {"BENCH_ROWS": str(directory)}
    output = subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return next(line for line in lines if "bytes" in line), [line for line in lines if "cold" in line]


def database(directory):
    """The rows of the large chain in SQLite, with an index on each side."""
    numbers = array.array("I")
    path = directory / "transactions"
    with open(path, "rb") as file:
        numbers.fromfile(file, path.stat().st_size // 4)
    connection = sqlite3.connect(directory / "rows.sqlite")
    connection.executescript(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
        "CREATE TABLE transactions (id INTEGER PRIMARY KEY, sender INTEGER, recipient INTEGER)"
    )
    rows = zip(range(len(numbers) // 2), numbers[0::2], numbers[1::2])
    connection.executemany("INSERT INTO transactions VALUES (?, ?, ?)", rows)
    connection.executescript(
        "CREATE INDEX by_sender ON transactions (sender); CREATE INDEX by_recipient ON transactions (recipient); ANALYZE"
    )
    return connection


def filter_ms(connection, addresses):
    """Milliseconds of a page and of a total by SQL, and the total."""
    names = ",".join(map(str, addresses))
    where = f"FROM transactions WHERE sender IN ({names}) OR recipient IN ({names})"

    def median(sql):
        times = []
        for _ in range(TURNS):
            began = time.perf_counter()
            rows = connection.execute(sql).fetchall()
            times.append(time.perf_counter() - began)
        return statistics.median(times) * 1000, rows

    page, _ = median(f"SELECT id {where} ORDER BY id DESC LIMIT 25 OFFSET 25")
    total, rows = median(f"SELECT count(*) {where}")
    return page, total, rows[0][0]


def main():
    with tempfile.TemporaryDirectory(dir=ROOT / "target") as name:
        directory = pathlib.Path(name)
        index, viewers = measure(directory)
        connection = database(directory)
        largest = max(line["chain"] for line in viewers)
        key = lambda line: (line["wallets"], line["contracts"])
        small = {key(line): line for line in viewers if line["chain"] < largest}
        rows = []
        for line in viewers:
            if line["chain"] != largest:
                continue
            wallets, contracts = key(line)
            addresses = (directory / f"viewer-{wallets}-{contracts}").read_text().split()
            page, total, count = filter_ms(connection, addresses)
            assert count == line["rows"], (count, line["rows"])
            assert small[key(line)]["rows"] == line["rows"]
            warm = line["page"] + line["total"]
            rows.append([
                f"{wallets} wallets, {contracts} contracts",
                f"{line['rows']:,}",
                *(f"{line[figure] / 1000:.4f}" for figure in ("cold", "total", "page", "chart", "address")),
                f"{line['cold'] / small[key(line)]['cold']:.2f}",
                f"{page:.1f}",
                f"{total:.1f}",
                f"{(page + total) * 1000 / warm:,.0f}",
            ])
        connection.close()
    print(f"Index of {index['transactions']:,} transactions: {index['bytes_per_transaction']} bytes per transaction")
    head = ["viewer", "visible rows", "cold ms", "total ms", "page ms", "chart ms", "address page ms",
            "cold, to the chain without hidden rows", "SQL page ms", "SQL total ms", "SQL, to page and total warm"]
    print(f"\nExplorer: {largest:,} transactions, nine of ten hidden\n\n| " + " | ".join(head) + " |")
    for row in [["---"] * len(head), *rows]:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()

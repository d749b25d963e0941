"""B18: a history of ten million records: a month's report, a story, and what writing costs a simulation.

Run: python benchmarks/b18_history.py [records]. Beside it the `sqlite3` module alone writes the same rows.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from common import print_table
from results import Results, rounded
from tenure.history import open_history
from tenure.history.months import month_of, month_start, next_month
from tenure.history.reading.statement import statement_of
from tenure.history.record import Draft, Origin, encode
from tenure.history.writing.meter import capacity_records

RECORDS = 10_000_000
MINUTE = 60_000_000
DAY = 1440 * MINUTE
BEGIN = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z
MONTHS = 13
QUEUES = 20
HERE = Origin("bench")
COMPILED = str(Path(tempfile.gettempdir()) / f"tenure-b18-compiled-{os.getuid()}")


def records(days: int, each: int) -> Iterator[list[Draft]]:
    """Give a batch of records for each day: usage by minute and queue, and workloads that come and go."""
    queues = [f"team-{q}" for q in range(QUEUES)]
    number = 0
    usage = encode({"held": {"nvidia.com/gpu": 8_000 * MINUTE}, "within": {}, "level": {"nvidia.com/gpu": [8_000, 0]}})
    lost = encode({"task": "t-0", "node": "n", "lost": {"nvidia.com/gpu": 10**9}, "saved": {}, "forQueue": "team-1"})
    ask = encode({"tasks": 1, "ask": {"nvidia.com/gpu": 1000}})
    for day in range(days):
        begin = BEGIN + day * DAY
        drafts = []
        for minute in range(1440):
            at = begin + minute * MINUTE
            drafts += [Draft(at, "usage", queue=name, value=MINUTE, payload=usage) for name in queues[: each // 2880]]
        drafts += capacity_records({"nvidia.com/gpu": 1_000_000}, begin, begin + DAY)
        while len(drafts) < each:
            at = begin + (len(drafts) * 7919) % DAY
            name, queue = f"team/job-{number % 200_000}", queues[number % QUEUES]
            drafts.append(Draft(at, "submitted", name, queue, payload=ask))
            drafts.append(Draft(at + 1, "started", name, queue, value=5 * MINUTE, payload='{"entitled":true}'))
            if number % 10 == 0:
                drafts.append(Draft(at + 2, "evicted", name, queue, "reclaim", f"team/job-{number % 999}", 5, lost))
            drafts.append(Draft(at + 3, "ended", name, queue, value=MINUTE, payload='{"state":"finished"}'))
            number += 1
        drafts.sort(key=lambda draft: draft.at)
        mark = day.to_bytes(8, "big")
        yield [d._replace(sequence=i, key=mark + i.to_bytes(8, "big")) for i, d in enumerate(drafts)]


def repeat_month(path: Path) -> None:
    """Copy the first thirty days again and again, each time thirty days later, until there are thirteen months.

    A month of ten million records is made as Tenure makes it, and the others by SQLite alone, within minutes.
    """
    connection = sqlite3.connect(path, isolation_level=None)
    first = f"tenure_records_{month_of(BEGIN)}"
    texts = [
        sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE tbl_name = ? AND sql != ''", (first,))
    ]
    there = {month_of(BEGIN)}
    columns = "source, plan, sequence, version, kind, workload, queue, cause, beneficiary, value, payload"
    for turn in range(1, MONTHS):
        shift = turn * 30 * DAY
        connection.execute("BEGIN")
        for month in sorted({month_of(BEGIN + shift + day * DAY) for day in range(30)}):
            table = f"tenure_records_{month}"
            if month not in there:
                there.add(month)
                for text in texts:
                    connection.execute(text.replace(first, table))
                connection.execute("INSERT INTO tenure_months VALUES (?)", (month,))
            connection.execute(
                f"INSERT INTO {table} (key, at, {columns}) "
                "SELECT CAST(printf('%04d', ?) || hex(substr(key, 8, 1) || substr(key, 12)) AS BLOB), "
                f"at + ?, {columns} "
                f"FROM {first} WHERE at < ? AND at + ? >= ? AND at + ? < ? ORDER BY id",
                (turn, shift, BEGIN + 30 * DAY, shift, month_start(month), shift, month_start(next_month(month))),
            )
        connection.execute(
            "INSERT INTO tenure_usage SELECT source, since + ?, queue, until + ?, payload FROM tenure_usage "
            "WHERE since < ?", (shift, shift, BEGIN + 30 * DAY),
        )  # fmt: skip
        connection.execute("COMMIT")
    connection.close()


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Give the best of three times in seconds, and what came of it."""
    best, found = float("inf"), None
    for _ in range(3):
        began = time.perf_counter()
        found = work()
        best = min(best, time.perf_counter() - began)
    return best, found


def simulated(folder: Path, jobs: int, words: Sequence[str], rounds: int) -> list[list[str]]:
    """Simulate without and with a history in turns, each a process of its own; gives rows of the table."""
    tenure = str(Path(sys.executable).with_name("tenure"))
    trace, cluster, store = folder / "jobs.csv", folder / "cluster.yaml", folder / "simulated.db"
    made = [
        "generate",
        "--jobs",
        str(jobs),
        "--load",
        "0.9",
        "--seed",
        "1",
        "--out",
        str(trace),
        "--cluster",
        str(cluster),
    ]
    subprocess.run([tenure, *made], check=True, stderr=subprocess.DEVNULL)
    command = [tenure, "simulate", str(trace), "--cluster", str(cluster), "--format", "json", *words]
    store.unlink(missing_ok=True)
    processor_and_wall([*command, "--history", str(store)])  # compiles
    alone: list[tuple[float, float]] = []
    beside: list[tuple[float, float]] = []
    for _ in range(rounds):
        store.unlink(missing_ok=True)
        alone.append(processor_and_wall(command))
        beside.append(processor_and_wall([*command, "--history", str(store)]))
    what = f"simulation of {jobs:,} jobs{', ' if words else ''}{' '.join(words[1:])}"
    sums = [(sum(one[i] for one in alone), sum(one[i] for one in beside)) for i in (0, 1)]
    return [
        [
            f"{what}, {kind}",
            f"{with_it / rounds:.2f} s",
            f"{without / rounds:.2f} s without",
            f"{with_it / without:.3f} x",
        ]
        for kind, (without, with_it) in zip(("processor", "wall"), sums, strict=True)
    ]


def processor_and_wall(command: Sequence[str]) -> tuple[float, float]:
    """Run a command; gives the seconds of the processor that it took, with its children, and those of the clock.

    Its modules are compiled once, as where it is installed: else each run would compile them.
    """
    around = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**around, "PYTHONPYCACHEPREFIX": COMPILED})
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)}: {status}")
    return used.ru_utime + used.ru_stime, time.perf_counter() - began


def command_times(address: str) -> list[list[str]]:
    """Give rows of what commands take, start-up included."""
    tenure = str(Path(sys.executable).with_name("tenure"))
    rows = []
    for words in (["report", "--since", "30d"], ["story", "team/job-123"]):
        takes = [processor_and_wall([tenure, *words, "--history", address]) for _ in range(3)]
        rows.append([f"tenure {words[0]}, start-up included", f"{min(t[1] for t in takes):.2f} s",
                     f"{min(t[0] for t in takes):.2f} s of processor", ""])  # fmt: skip
    return rows


def main() -> None:
    """Write, then ask."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS
    folder = Path(tempfile.mkdtemp(prefix="tenure-b18-"))
    try:
        path = folder / "history.db"
        written, ours, alone = 0, 0.0, 0.0
        bare = sqlite3.connect(folder / "alone.db")
        bare.execute("PRAGMA journal_mode=WAL")
        bare.execute("CREATE TABLE r (key BLOB, at, plan, kind, workload, queue, cause, beneficiary, value, payload)")
        with open_history(str(path), write=True) as store:
            for drafts in records(30, -(-count // (30 * MONTHS))):
                began = time.process_time()
                written += store.append(HERE, drafts)
                ours += time.process_time() - began
                copies = [(d.key, d.at, d.plan, *d[1:8][:5], d.value, d.payload) for d in drafts]
                began = time.process_time()
                with bare:
                    bare.executemany("INSERT INTO r VALUES (?,?,?,?,?,?,?,?,?,?)", copies)
                alone += time.process_time() - began
        scan, _ = timed(
            lambda: bare.execute("SELECT kind, sum(value), sum(length(payload)) FROM r GROUP BY kind").fetchall()
        )
        bare.close()
        repeat_month(path)
        with open_history(str(path)) as store:
            end = BEGIN + MONTHS * 30 * DAY
            total = store.info().records
            month, _ = timed(lambda: statement_of(store, end - 30 * DAY, end, "cause"))
            queue, _ = timed(lambda: statement_of(store, end - 30 * DAY - 17 * MINUTE, end - 5 * MINUTE, "queue"))
            story, found = timed(lambda: store.story("team/job-123"))
            page, _ = timed(lambda: store.records(limit=100, newest=True))
        speed, _ = timed(lambda: sum(range(10**7)))
        size = path.stat().st_size / 1e9
        rows = [
            ["write, µs a record", f"{ours / written * 1e6:.1f}", f"{alone / written * 1e6:.1f} (sqlite3, no index)",
             f"{ours / alone:.1f} x"],
            ["report of a month by cause", f"{month:.2f} s", "2 s", f"{month / 2:.2f}"],
            ["report of a month by queue, cut edges", f"{queue:.2f} s", "2 s", f"{queue / 2:.2f}"],
            ["sqlite3 alone scans that month", f"{scan:.2f} s", "", ""],
            [f"story of {len(found)} records", f"{story * 1000:.1f} ms", "50 ms", f"{story / 0.05:.2f}"],
            ["the newest 100 records", f"{page * 1000:.1f} ms", "", ""],
            *command_times(str(path)),
            *simulated(folder, 20_000, ("--set", "scheduler.actions=[allocate]"), 3),
            *simulated(folder, 300, (), 2),
        ]  # fmt: skip
        results, many = Results("B18"), f"{total:,} records"
        results.add(f"{many}: write, each", 1e6 * ours / written, "µs", anchor=rounded(1e6 * alone / written),
                    against="sqlite3 without an index")  # fmt: skip
        results.add(f"{many}: report of a month by cause", month, "s by the clock", anchor=rounded(scan),
                    against="sqlite3 alone scans that month", at_most=2)  # fmt: skip
        results.add(f"{many}: report of a month by queue, cut edges", queue, "s by the clock", at_most=2)
        results.add(f"{many}: story of {len(found)} records", 1000 * story, "ms by the clock", at_most=50)
        for row in rows:
            if row[0].endswith(", processor"):
                takes, without = (float(cell.split()[0]) for cell in row[1:3])
                results.add(row[0].removesuffix(", processor"), takes, "s", anchor=without, against="without a history",
                            at_most=rounded(1.1 * without))  # fmt: skip
        results.write()
        title = f"{total:,} records of {MONTHS} months, {size:.1f} GB; sum(range(10**7)): {speed:.2f} s"
        print_table(title, ["B18", "takes", "allowed", "ratio"], rows)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()

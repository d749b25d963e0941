"""B19: the console over 10,000 nodes and 100,000 pods, and with 200 viewers at once.

A server process of its own shows a cluster in which one workload in a hundred changes every two seconds. Wanted: the
first page in at most 1 s, an update (the cluster's picture renewed, and the page made anew) in at most 100 ms, at most
500 MiB together with the process in which is played (fair shares, reasons, the next cycle). Anchor for the viewers: a
bare page of the same bytes from the same server in the same run.

    python benchmarks/b19_console.py [--nodes 10000] [--pods 100000] [--viewers 200]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import replace
from typing import Any

from common import print_table
from results import Results
from tenure.model.cluster import Cluster
from tenure.model.documents.collector import collector_paused
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.workload import Phase, Task, TaskSpec, Workload
from tenure.web.access.connections import NEW_PER_SECOND

NOW = 1_795_255_200_000_000
VIEWS = ("/", "/queues", "/workloads", "/workloads/team-1/job-1", "/nodes", "/node?name=node-1", "/evictions",
         "/timeline", "/api/v1/overview", "/api/v1/workloads?limit=1000", "/api/v1/nodes?limit=1000")  # fmt: skip
EVERY = 2.0
STATIC = "/static-anchor"
BARE = "a bare page of as many bytes"


def main() -> None:
    """Run and print; or be the server, where so asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--viewers", type=int, default=200)
    parser.add_argument("--serve", action="store_true")
    asked = parser.parse_args()
    if asked.serve:
        serve(asked.nodes, asked.pods)
    else:
        measure_all(asked.nodes, asked.pods, asked.viewers)


# -- the server ------------------------------------------------------------------------------------------------------


def cluster_of(nodes: int, pods: int) -> Cluster:
    """Six pods in ten run on 64 GPUs' worth of nodes; the others wait. Every fifth workload is a gang of eight."""
    there = tuple(
        Node(name=f"node-{n}", allocatable={"cpu": 96_000, "memory": 768 << 30, "nvidia.com/gpu": 8})
        for n in range(nodes)
    )
    spec = TaskSpec(requests=(("cpu", 4000), ("memory", 16 << 30), ("nvidia.com/gpu", 1)))
    running, made = pods * 6 // 10, 0
    workloads: list[Workload] = []
    while made < pods:
        number = len(workloads)
        size = min(8 if number % 5 == 0 else 1, pods - made)
        on = [f"node-{(made + index) % nodes}" if made + size <= running else None for index in range(size)]
        workloads.append(workload(number, spec, on))
        made += size
    queues = (Queue(name="root"), *(Queue(name=f"team-{n}", parent="root") for n in range(20)))
    return Cluster(now=NOW, nodes=there, queues=queues, workloads=tuple(workloads))


def workload(number: int, spec: TaskSpec, on: list[str | None]) -> Workload:
    """Make a workload."""
    tasks = tuple(
        Task(name=f"job-{number}-{index}", spec=spec, node=node, phase=Phase.PENDING if node is None else Phase.RUNNING)
        for index, node in enumerate(on)
    )
    team = f"team-{number % 20}"
    started = None if on[0] is None else NOW - number * 1_000_000
    return Workload(name=f"job-{number}", namespace=team, queue=team, tasks=tasks,
                    created_at=NOW - number * 1_000_000 - 60_000_000, started_at=started)  # fmt: skip


def changed(cluster: Cluster, rng: random.Random) -> Cluster:
    """One workload in a hundred has another priority, and time goes on."""
    workloads = list(cluster.workloads)
    for index in rng.sample(range(len(workloads)), len(workloads) // 100):
        workloads[index] = replace(workloads[index], priority=rng.randint(0, 99))
    return replace(cluster, now=cluster.now + 2_000_000, workloads=tuple(workloads))


def serve(nodes: int, pods: int) -> None:
    """Serve until standard input ends; what the changes took is printed at the end."""
    from starlette.responses import Response  # noqa: PLC0415  only the server needs it
    from starlette.routing import Route  # noqa: PLC0415

    from tenure.web.access.server import listen  # noqa: PLC0415
    from tenure.web.access.server import serve as run  # noqa: PLC0415
    from tenure.web.app import application  # noqa: PLC0415
    from tenure.web.console import Console  # noqa: PLC0415
    from tenure.web.sources.still import StillSource  # noqa: PLC0415

    class Moving(StillSource):
        """A cluster that changes."""

        is_live = True
        number = 1

        @property
        def version(self) -> int:
            return self.number

    with collector_paused():
        source = Moving(cluster_of(nodes, pods), "a large cluster")
    ended, renewed, moments = threading.Event(), [], []
    rng = random.Random(1)

    def move() -> None:
        while not ended.wait(EVERY):
            later = changed(source._picture.cluster, rng)  # noqa: SLF001  its own source
            began = time.thread_time()
            source._picture = source._picture.after(later)  # noqa: SLF001
            renewed.append(time.thread_time() - began)
            source.number += 1
            moments.append(time.monotonic())

    console = Console(source)
    page = {"body": b""}

    def static(_: Any) -> Response:
        return Response(page["body"], media_type="text/html")

    app = application(console, more=lambda _: [Route(STATIC, static)])
    made = app.state.console

    def control() -> None:
        for line in sys.stdin:
            word = line.strip()
            if word == "move":
                threading.Thread(target=move, daemon=True).start()
            elif word == "page":
                page["body"] = next(found.body for key, found in made.pages.kept.kept() if key[0] == "/")
            elif word == "told":
                players = [one._process for one in (console.player, console.shares_player)]  # noqa: SLF001
                pids = [process.pid for process in players if process is not None]
                print(json.dumps({"renewed": renewed, "changed": moments, "players": pids}), flush=True)
        ended.set()
        os._exit(0)

    threading.Thread(target=control, daemon=True).start()
    made.pages.warm()
    taken = listen("127.0.0.1", 0)
    run(app, taken, lambda: print(taken.getsockname()[1], flush=True))


# -- the viewers -----------------------------------------------------------------------------------------------------


async def fetch(port: int, path: str, headers: str = "") -> tuple[float, bytes]:
    """Ask for a page on a connection of its own; gives the seconds and the answer."""
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n{headers}\r\n".encode())
    await writer.drain()
    found = await reader.read()
    while more := await reader.read():
        found += more
    writer.close()
    if not found.startswith((b"HTTP/1.1 200", b"HTTP/1.1 304")):
        raise ConnectionError(found[:200])
    return time.perf_counter() - began, found


async def asked(stream: tuple[asyncio.StreamReader, asyncio.StreamWriter], port: int, path: str) -> None:
    """Ask for a page on a connection that stays, as browsers do."""
    reader, writer = stream
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise ConnectionError(head[:200])
    await reader.readexactly(int(head.partition(b"content-length: ")[2].partition(b"\r")[0]))


async def all_at_once(port: int, path: str, viewers: int, headers: str = "") -> list[float]:
    """Let so many ask for a page at the same moment, once the console takes as many more from one address."""
    await asyncio.sleep(viewers / NEW_PER_SECOND)
    return [seconds for seconds, _ in await asyncio.gather(*(fetch(port, path, headers) for _ in range(viewers)))]


async def followed(port: int, viewers: int, seconds: float, path: str = "/") -> list[list[tuple[float, float]]]:
    """Let so many be told of changes, and ask for a page anew whenever they are: when each was told, and had it."""
    found: list[list[tuple[float, float]]] = [[] for _ in range(viewers)]
    until = time.monotonic() + seconds

    async def one(mine: list[tuple[float, float]]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET /changes HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        pages = await asyncio.open_connection("127.0.0.1", port)
        while time.monotonic() < until:
            while not (await reader.readline()).startswith(b"event: change"):
                pass
            told = time.monotonic()
            await asked(pages, port, path)
            mine.append((told, time.monotonic()))
        writer.close()
        pages[1].close()

    await asyncio.gather(*map(one, found))
    return found


def after(changed: list[float], found: list[list[tuple[float, float]]]) -> tuple[list[float], list[float]]:
    """Give how long after each change (ms) each viewer was told of it, and had the new page.

    They are also told once shares were played of what has changed: of several times the first counts.
    """
    told, had = [], []
    for begin, end in zip(changed, [*changed[1:], changed[-1] + EVERY], strict=True):
        for mine in found:
            first = next(((at, then) for at, then in mine if begin <= at < end), None)
            if first is not None:
                told.append(1000 * (first[0] - begin))
                had.append(1000 * (first[1] - begin))
    return told, had


def used(pid: int) -> float:
    """Give the processor seconds that a process has used."""
    with open(f"/proc/{pid}/stat") as stat:  # noqa: PTH123  one line
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> float:
    """Give the most memory that a process has held, in MiB."""
    with open(f"/proc/{pid}/status") as status:  # noqa: PTH123  one line
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def wait_until_idle(pid: int) -> None:
    """Wait until nothing is being worked out any more."""
    before = -1.0
    while used(pid) - before > 0.05:
        before = used(pid)
        time.sleep(5)


def measure_all(nodes: int, pods: int, viewers: int) -> None:
    """Start the server, ask it, and print."""
    command = [sys.executable, __file__, "--serve", f"--nodes={nodes}", f"--pods={pods}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        port = int(server.stdout.readline())

        def say(word: str) -> None:
            print(word, file=server.stdin, flush=True)

        rows = []
        for path in VIEWS:
            first = asyncio.run(fetch(port, path))
            again = asyncio.run(fetch(port, path))
            rows.append([path, f"{first[0] * 1000:,.0f}", f"{again[0] * 1000:,.1f}", f"{len(first[1]):,}"])
        print_table("the first time that a page is asked for, and again", ["page", "ms", "again ms", "bytes"], rows)
        wait_until_idle(server.pid)
        say("page")
        _, page = asyncio.run(fetch(port, "/"))
        tag = page.partition(b"etag: ")[2].partition(b"\r")[0].decode()
        kinds = {
            "the overview": ("/", ""), "the same, packed": ("/", "Accept-Encoding: gzip\r\n"),
            "the same, of which they have the newest (304)": ("/", f"If-None-Match: {tag}\r\n"),
            BARE: (STATIC, ""),
        }  # fmt: skip
        together: dict[str, list[tuple[float, float, float]]] = {}
        for name, (path, headers) in [*kinds.items()] * 5:
            before = used(server.pid)
            times = asyncio.run(all_at_once(port, path, viewers, headers))
            row = max(times), statistics.median(times), used(server.pid) - before
            together.setdefault(name, []).append(row)
        print_table(
            f"{viewers} viewers at once, best of five", ["page", "the last ms", "the median ms", "processor ms"],
            [[name, *(f"{min(column) * 1000:,.0f}" for column in zip(*times, strict=True))]
             for name, times in together.items()],
        )  # fmt: skip
        say("move")
        alone = asyncio.run(followed(port, 1, 5 * EVERY))
        before, mine = used(server.pid), time.process_time()
        found = asyncio.run(followed(port, viewers, 5 * EVERY))
        costs = used(server.pid) - before, time.process_time() - mine
        bare = asyncio.run(followed(port, viewers, 5 * EVERY, STATIC))
        say("told")
        told = json.loads(server.stdout.readline())
        made = [asyncio.run(fetch(port, f"/workloads?offset={offset}"))[0] for offset in (100, 200, 300)]
        one_told, one_has = after(told["changed"], alone)
        reached, there = after(told["changed"], found)
        _, anchor = after(told["changed"], bare)
        print_table("an update", ["what", "ms"], [
            ["the picture renewed (1% of the workloads), of the processor",
             f"{statistics.median(told['renewed']) * 1000:,.1f}"],
            ["a page made anew", f"{statistics.median(made) * 1000:,.1f}"],
            ["until a single viewer is told, median", f"{statistics.median(one_told):,.0f}"],
            ["until it has the new page, median", f"{statistics.median(one_has):,.0f}"],
            ["until it has the new page, longest", f"{max(one_has):,.0f}"],
            [f"until a viewer of {viewers} is told, median", f"{statistics.median(reached):,.0f}"],
            ["until they have the new page, median", f"{statistics.median(there):,.0f}"],
            ["until the last of them has", f"{max(there):,.0f}"],
            ["a bare page of as many bytes instead, median", f"{statistics.median(anchor):,.0f}"],
            ["... the last of them", f"{max(anchor):,.0f}"],
            ["of the processor for each update: the console", f"{costs[0] / 5 * 1000:,.0f}"],
            ["... the process with the viewers", f"{costs[1] / 5 * 1000:,.0f}"],
        ])  # fmt: skip
        memory = {"the console": resident(server.pid)}
        memory |= {f"process {n} that plays": resident(pid) for n, pid in enumerate(told["players"], 1)}
        memory["together"] = sum(memory.values())
        print_table("memory at most", ["process", "MiB"], [[name, f"{most:,.0f}"] for name, most in memory.items()])
        server.stdin.close()
        last, bare_last = (1000 * min(row[0] for row in together[name]) for name in ("the overview", BARE))
        report(viewers, {
            "first": max(float(row[1]) for row in rows) / 1000,
            "renewed": 1000 * statistics.median(told["renewed"]),
            "made": 1000 * statistics.median(made),
            "one": statistics.median(one_has), "median": statistics.median(there), "most": max(there),
            "bare median": statistics.median(anchor), "bare most": max(anchor),
            "at once": last, "bare at once": bare_last, "memory": memory["together"],
        })  # fmt: skip


def report(viewers: int, found: dict[str, float]) -> None:
    """Report what was found by the names that it has there, in seconds, milliseconds and MiB."""
    results, ms = Results("B19"), "ms by the clock"

    def beside_bare(case: str, name: str, goal: float | None = None) -> None:
        bare = round(found[f"bare {name}"])
        results.add(f"{viewers} viewers {case}", found[name], ms, anchor=bare, against=BARE, at_most=goal)

    results.add("the first page, longest", found["first"], "s by the clock", at_most=1)
    results.add("the picture renewed, of the processor", found["renewed"], "ms", at_most=100)
    results.add("a page made anew", found["made"], ms, at_most=100)
    results.add("a single viewer has the new page, median", found["one"], ms)
    beside_bare("have the new page, median", "median", 100)
    beside_bare("have the new page, the last", "most")
    beside_bare("ask for a page at once: the last has it", "at once")
    results.add("memory of the console and the process that plays", found["memory"], "MiB", at_most=500)
    results.write()


if __name__ == "__main__":
    main()

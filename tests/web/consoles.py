"""Consoles for tests: over a cluster with evictions and hostile names, over a simulation, and served on a real port."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import replace
from json import dumps, loads
from urllib.parse import urlencode

import urllib3
import uvicorn
from tests.builders import NOW, SECOND, cluster, node, queue, spec, task, workload

from tenure.model.cluster import Eviction
from tenure.model.workload import Notice
from tenure.web.access.server import configured, listen
from tenure.web.app import application
from tenure.web.console import Console
from tenure.web.sources.still import StillSource

MARKUP = '<img/**/src=x&onerror="alert`1`">'.replace("/", "")
"""Something that would run where it is not escaped; a name has no blanks and no slash."""

BASE = "http://127.0.0.1"


def small():
    """Two teams, of which one waits, and a log of who was evicted for whom."""
    gpus = [node(f"gpu-{number}", cpu=32, gpu=4) for number in range(3)]
    eight = spec(cpu=2, gpu=4)
    made = cluster(
        nodes=[*gpus, node("cpu-0", cpu=16, unschedulable=True)],
        queues=[queue("research"), queue("a", "research", guaranteed={"gpu": 4}), queue("b", "research")],
        workloads=[
            workload("first", of=eight, on=["gpu-0"], queue="a", age=3600, running=3000, namespace="team-a"),
            workload("late", of=eight, on=["gpu-1"], queue="b", age=600, running=500, namespace="team-b"),
            workload("longest", tasks=3, of=eight, queue="b", age=7200, namespace="team-b"),
            workload(
                "small",
                tasks=[task("small-0", spec(cpu=1, fraction=500), on="gpu-2", devices=(0,))],
                queue="a",
                age=60,
                running=50,
                namespace="team-a",
            ),
        ],
    )
    return replace(made, evictions=(
            Eviction(at=NOW - 600 * SECOND, workload="team-b/longest", task="longest-0", cause="reclaim",
                     beneficiary="team-a/first", from_node="gpu-0", queue="b", beneficiary_queue="a",
                     lost={"nvidia.com/gpu": 14_400 * SECOND}),
            Eviction(at=NOW - 300 * SECOND, workload="team-a/first", task="first-0", cause="preempt",
                     beneficiary="team-b/late", from_node="gpu-1", queue="a", beneficiary_queue="b"),
    ))  # fmt: skip


def hostile():
    """A cluster in which every name is markup."""
    names = [f"{MARKUP}{number}" for number in range(3)]
    told = Notice(deadline=NOW + SECOND, cause=MARKUP, beneficiary=f"{names[0]}/{names[1]}", at=NOW)
    held = task(names[0], spec(cpu=1, gpu=1), on=names[0], notice=told)
    made = cluster(
        nodes=[node(names[0], cpu=8, gpu=2, labels={MARKUP: MARKUP})],
        queues=[queue(names[0]), queue(names[1], names[0])],
        workloads=[
            workload(names[0], tasks=[held], queue=names[1], namespace=names[0], age=100),
            workload(names[1], tasks=2, of=spec(cpu=1, gpu=2), queue=names[1], namespace=names[0], age=200),
        ],
    )
    return replace(made, evictions=(
            Eviction(at=NOW - SECOND, workload=f"{names[0]}/{names[1]}", task=names[2], cause=MARKUP,
                     beneficiary=f"{names[0]}/{names[0]}", from_node=names[0], to_node=names[0], queue=names[1]),
    ))  # fmt: skip


def always(viewer):
    """Give what says of each request that a viewer sends it."""

    async def whose(_):
        return viewer

    return whose


class Asking:
    """Sends requests to a served console, and follows nothing."""

    def __init__(self, address):
        self.address = address
        self.pool = urllib3.PoolManager(retries=False)

    def request(self, method, path, *, params=None, headers=None, content=None, json=None):
        """Send one request, and give the answer."""
        if params:
            path += f"?{urlencode(params)}"
        headers = dict(headers or {})
        if json is not None:
            content = dumps(json)
            headers.setdefault("content-type", "application/json")
        answer = self.pool.request(
            method, self.address + path, body=content, headers=headers, redirect=False, timeout=90
        )
        return Answered(answer)

    def get(self, path, **more):
        """Read."""
        return self.request("GET", path, **more)

    def post(self, path, **more):
        """Post."""
        return self.request("POST", path, **more)


class Answered:
    """An answer."""

    def __init__(self, answer):
        self.status_code, self.headers, self.text = answer.status, answer.headers, answer.data.decode()

    def json(self):
        """Read it."""
        return loads(self.text)


@contextmanager
def shown(what, **options):
    """Give a client of a console over a cluster, or over another source."""
    with served(what, **options) as address:
        yield Asking(address)


@contextmanager
def served(what, **options):
    """Serve a console over a cluster, or over another source, on a free port; gives its address."""
    source = what if hasattr(what, "picture") else StillSource(what, "a file")
    console = Console(source)
    taken = listen("127.0.0.1", 0)
    taken.listen(64)
    server = uvicorn.Server(configured(application(console, **options)))
    thread = threading.Thread(target=lambda: server.run(sockets=[taken]), daemon=True)
    thread.start()
    try:
        yield f"{BASE}:{taken.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        console.close()
        taken.close()

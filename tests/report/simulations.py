"""A small simulation with evictions, as its event log tells it, and the page about it."""

from __future__ import annotations

from html.parser import HTMLParser

from tests.simulator.helpers import SECOND, gang, node, script, spec

from tenure.model.cluster import Cluster
from tenure.model.queue import Queue
from tenure.report.simulation_page import simulation_page
from tenure.simulator.checker import check
from tenure.simulator.metrics import summarize
from tenure.simulator.outcomes import outcomes_of
from tenure.simulator.traces.records import Trace, TraceJob

VOID = {"meta", "link", "br", "img", "input", "hr"}


def example(broken=False):
    """Two queues on two nodes: `low` is evicted for `high` and runs again; `late` waits in the end."""
    low = gang("low", 2, spec(cpu=4, gpus=2), queue="a")
    high = gang("high", 1, spec(cpu=4, gpus=2), queue="<b> & c")
    share = gang("share", 1, spec(milli=500), queue="a")
    late = gang("late", 1, spec(cpu=2, gpus=4), queue="a")
    refused = gang("refused", 1, spec(gpus=9), queue="a")
    log = script(
        [low, high, share, late, refused],
        ("submit", 0, 0),
        ("bind", 0, 0, 0, 0, (0, 1)),
        ("bind", 0, 0, 1, 1, (0, 1)),
        ("submit", 10, 2),
        ("bind", 10, 2, 0, 0, (2,)),
        ("submit", 30, 4),
        ("drop", 30, 4, "does not fit"),
        ("submit", 60, 1),
        ("evict", 60, 0, 0, "reclaim", 1),
        ("evict", 60, 0, 1, "reclaim", 1),
        ("bind", 60, 1, 0, 0, (0, 1)),
        ("submit", 90, 3),
        ("end", 100, 2, 0),
        ("end", 160, 1, 0),
        ("bind", 160, 0, 0, 0, (0, 1)),
        ("bind", 160, 0, 1, 1, (2, 3)),
        *([("bind", 170, 3, 0, 0, (0, 1, 2, 3))] if broken else []),
        ("end", 260, 0, 0),
        ("end", 260, 0, 1),
    )
    nodes = (node("n0", gpus=4), node("n1", gpus=4))
    runtimes = (100, 100, 90, 10, 10)
    jobs = tuple(TraceJob(w, r * SECOND, w.name) for w, r in zip(log.workloads, runtimes, strict=True))
    trace = Trace(format="tenure", jobs=jobs, records=len(jobs))
    cluster = Cluster(now=0, nodes=nodes, queues=(Queue(name="a"), Queue(name="<b> & c")))
    outcomes = outcomes_of(log, trace)
    violations = check(log, nodes, queues=cluster.queues, complete=False)
    summary = summarize(outcomes, trace, nodes, violations=violations.total, wall_s=0.1)
    summary |= {"running": 0, "waiting": 1, "complete": True, "trace": "some/<trace>.csv", "traceFormat": "tenure"}
    summary |= {"nodes": 2, "scheduler": {"backfill": "easy"}}
    return outcomes, cluster, summary, violations


def page(broken=False, **changes):
    outcomes, cluster, summary, violations = example(broken)
    return simulation_page(outcomes, cluster, {**summary, **changes}, violations)


class Reader(HTMLParser):
    """Reads a page strictly: each element closed in order; collects ids, texts and what would be fetched."""

    def __init__(self):
        super().__init__()
        self.open = []
        self.ids = []
        self.text = []
        self.fetched = []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        assert len(given) == len(attributes), f"<{tag}> has an attribute twice"
        self.ids += [given["id"]] if "id" in given else []
        self.fetched += [given[key] for key in ("src", "href") if key in given]
        assert tag != "script"
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):  # noqa: ARG002  the base class's signature
        assert tag in {"rect", "path"} | VOID, f"<{tag}/> closes nothing in HTML"

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.text.append(data)


def read(html):
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert not reader.open
    assert len(reader.ids) == len(set(reader.ids))
    assert all(target.startswith("data:") for target in reader.fetched)
    return reader

"""Where several clusters or node pools write one history, each can be read as if it were alone."""

import itertools
import json
from collections import Counter
from contextlib import closing

import pytest
from hypothesis import given, settings
from tests.effort import tries
from tests.history.test_sums_kept import CLUSTER, statements
from tests.history.worlds import MINUTE, records_of, worlds
from tests.history.writer import NOVEMBER

from tenure.history import open_history
from tenure.history.reading.accounts import closed_accounts
from tenure.history.reading.budget_use import budget_uses
from tenure.history.reading.finished_runs import finished_runs
from tenure.history.reading.replaying import recorded_days
from tenure.history.reading.statement import BY, statement_of
from tenure.history.reading.views import cluster_then, queues_over_time
from tenure.history.record import Draft, Origin, key_of, payload_of
from tenure.history.retention import Retention, prune
from tenure.history.rollup import HOUR
from tenure.history.scope import Scope
from tenure.history.writing.simulation import numbered
from tenure.model.values.duration import DAY
from tenure.model.values.problems import InvalidInputError
from tenure.web.sources.past import PastSource

EAST, WEST = Origin("east", "gpu"), Origin("west", "gpu")
NAMES = itertools.count()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("histories")


def drafts_of(world, name):
    return numbered(records_of(*world), name.encode().ljust(8))


def everything(store):
    """Give what commands and pages read off a store, between the begin and the end of what it has."""
    span = store.span()
    if span is None:
        return None
    first, last = span
    workloads = {r.workload for r in store.records(limit=100_000).records if r.workload}
    with store.reading() as connection:
        uses = budget_uses(connection, first, last + 1)
    return {
        "span": span,
        "count": store.count(),
        "origins": store.origins(),
        "records": [r.key for r in store.records(limit=100_000).records],
        "statements": statements(store),
        "clusters": [cluster_then(store, at) for at in (first, (first + last) // 2, last)],
        "series": queues_over_time(store, first, last + 1),
        "stories": {name: store.story(name) for name in workloads},
        "accounts": closed_accounts(store, first, last + 1),
        "runs": finished_runs(store, first, last + 1),
        "uses": [(use.origin, use.rule, use.evictions) for use in uses],
        "days": recorded_days(store, first, last + 1)[1].jobs,
    }


@settings(max_examples=tries(4, 100), deadline=None)
@given(east=worlds(), west=worlds())
def test_each_cluster_is_read_as_if_it_were_alone_also_after_pruning(folder, east, west):
    """Names of workloads and queues of both are the same."""
    both, alone = (str(folder / f"{next(NAMES)}.db") for _ in range(2))
    with open_history(both, write=True) as store, open_history(alone, write=True) as other:
        other.append(EAST, drafts_of(east, "east"))
        store.append(WEST, drafts_of(west, "west"))
        store.append(EAST, drafts_of(east, "east"))
        store.see(Scope("east"))
        assert everything(store) == everything(other)
        limit = sum(other.span()) // 2
        prune(store, limit, Retention(0))
        prune(other, limit, Retention(0))
        assert [r.key for r in store.records(limit=100_000).records] == [
            r.key for r in other.records(limit=100_000).records
        ]
        assert statements(store, limit + -limit % HOUR) == statements(other, limit + -limit % HOUR)
        assert cluster_then(store, other.span()[1]) == cluster_then(other, other.span()[1])


def two(address, queues="ab"):
    """Write of two clusters what each runs and what it looks like, under the same names."""
    with open_history(address, write=True) as store:
        for number, (origin, queue) in enumerate(zip((EAST, WEST), queues, strict=True)):
            at = NOVEMBER + number
            looks = {**CLUSTER, "queues": [{"name": queue}]}
            life = (
                ("submitted", at, payload_of(specs=[[1, {"cpu": 1000}]], tasks=1)),
                ("started", at + 1, payload_of(tasks=[["t-0", "n0", []]])),
            )
            drafts = [Draft(at, "origin", payload=payload_of(cluster=looks), key=key_of(origin, "origin"))]
            drafts += [
                Draft(when, kind, "team/job", queue, payload=payload, key=key_of(origin, kind))
                for kind, when, payload in life
            ]
            store.append(origin, drafts)
    return address


def eviction(parent):
    """Give the records of a workload that is evicted once; its queue stands below ``parent``. What it costs is paid."""
    queues = [{"name": "ml"}, {"name": "a", **({"parent": parent} if parent else {})}]
    held = payload_of(until=NOVEMBER + 4 * MINUTE, held={"cpu": 4000 * MINUTE}, within={}, level={"cpu": [1000, 0]})
    return [
        Draft(NOVEMBER, "origin", payload=payload_of(cluster={**CLUSTER, "queues": queues})),
        Draft(NOVEMBER, "usage", queue="a", value=4 * MINUTE, payload=held),
        Draft(NOVEMBER, "started", "default/w", "a", value=MINUTE, payload='{"tasks":[]}'),
        Draft(NOVEMBER + MINUTE, "evicted", "default/w", "a", "reclaim", "default/o", 50,
              payload_of(task="w-0", lost={"cpu": 1000 * MINUTE})),
        Draft(NOVEMBER + 2 * MINUTE, "outcome", "default/o", "a", "reclaim", value=60,
              payload=payload_of(evictedAt=NOVEMBER + MINUTE, start=NOVEMBER + 2 * MINUTE)),
    ]  # fmt: skip


def counts(store, by):
    """Give what a statement says of each key: evictions, those that paid, who was evicted again, what was used."""
    return {
        row.key: Counter(evictions=row.evictions, paid=row.paid, repeated=row.repeated, used=row.used.get("cpu", 0))
        for row in statement_of(store, by=by).rows
    }


@pytest.mark.parametrize("by", BY)
def test_a_statement_of_all_adds_up_those_of_each(address, by):
    """Workloads and queues of one name are different ones, also where those of one cluster stand below others."""
    with open_history(address, write=True) as store:
        store.append(EAST, numbered(eviction("ml"), b"easteast"))
        store.append(WEST, numbered(eviction(None), b"westwest"))
        both, added = counts(store, by), {}
        for name in ("east", "west"):
            store.see(Scope(name))
            for key, found in counts(store, by).items():
                added.setdefault(key, Counter()).update(found)
        assert both == added
        assert sum(row["evictions"] for row in both.values()) == sum(row["paid"] for row in both.values()) == 2


def test_of_several_one_is_named_and_an_unknown_one_is_refused(address, run_command):
    two(address)
    code, out, err = run_command("story", "team/job", "--history", address)
    assert (code, out) == (1, "")
    assert (
        "several clusters had a workload team/job: east (pool gpu), west (pool gpu); name one with --cluster-name"
        in err
    )
    code, out, err = run_command(
        "story", "team/job", "--history", address, "--cluster-name", "west", "--format", "json"
    )
    assert code == 0, err
    assert next(record["message"] for record in json.loads(out)["records"]).startswith("submitted to b ")
    code, _, err = run_command("replay", "--from", address)
    assert code == 1
    assert (
        "has records of several: east (pool gpu), west (pool gpu); name one with --cluster-name, and its --pool" in err
    )
    code, _, err = run_command("report", "--history", address, "--cluster-name", "north")
    assert code == 1
    assert "has no records of the cluster north; there are those of east (pool gpu), west (pool gpu)" in err
    assert run_command("report", "--history", address)[0] == 0


def test_a_workload_that_only_one_cluster_had_needs_no_name(address, run_command):
    two(address)
    with open_history(address, write=True) as store:
        store.append(
            WEST, [Draft(NOVEMBER + 5, "submitted", "team/other", "b", payload=payload_of(tasks=1), key=b"o" * 16)]
        )
    assert run_command("story", "team/other", "--history", address)[0] == 0


def test_an_export_has_the_records_of_the_cluster_that_is_named(address, run_command, tmp_path):
    two(address)
    target = str(tmp_path / "e.jsonl")
    assert (
        run_command("history", "export", target, "--history", address, "--pool", "gpu", "--cluster-name", "east")[0]
        == 0
    )
    assert {json.loads(line)["cluster"] for line in (tmp_path / "e.jsonl").read_text().splitlines()} == {"east"}


def test_the_console_shows_one_cluster_and_stays_with_it(address):
    """A tenant of a namespace sees nothing of the namespace of that name of another cluster."""
    two(address)
    with pytest.raises(InvalidInputError, match="has records of several"):
        PastSource(address)
    with closing(PastSource(address, Scope("west"))) as past:
        assert [w.queue for w in past.picture().cluster.workloads] == ["b"]
    with open_history(address, write=True) as store:
        prune(store, NOVEMBER + 400 * DAY, Retention())


def test_a_console_that_begins_before_its_scheduler_takes_the_first_that_writes(address):
    open_history(address, write=True).close()
    with closing(PastSource(address, Scope(pool="gpu"), may_begin=True)) as past:
        assert not past.picture().cluster.workloads
        with open_history(address, write=True) as store:
            store.append(EAST, [Draft(NOVEMBER, "leader", payload="{}", key=b"e" * 16)])
        past._look_again()
        two(address)
        past._look_again()
        assert [w.queue for w in past.picture().cluster.workloads] == ["a"]


def test_a_console_for_which_two_clusters_begin_at_once_shows_neither(address):
    """Which of them it is for is not known: it says so, and a viewer of the one sees nothing of the other."""
    open_history(address, write=True).close()
    with closing(PastSource(address, Scope(pool="gpu"), may_begin=True)) as past:
        two(address)
        assert not past.picture(NOVEMBER + 10).cluster.workloads, "before it has looked again"
        with pytest.raises(InvalidInputError, match="has records of several"):
            past._look_again()
        assert not past.picture(NOVEMBER + 10).cluster.workloads


def test_what_two_clusters_were_stays_when_their_histories_are_pruned(address):
    """The last description of each, and not only of that which was described last."""
    two(address)
    now = NOVEMBER + 400 * DAY
    with open_history(address, write=True) as store:
        for origin in (EAST, WEST):
            store.append(origin, [Draft(now, "leader", payload="{}", key=key_of(origin, "leader"))])
        prune(store, now, Retention())
        for origin, queue in ((EAST, "a"), (WEST, "b")):
            store.see(Scope(origin.cluster))
            assert [w.queue for w in cluster_then(store, now).workloads] == [queue]
            assert queue in {q.name for q in cluster_then(store, now).queues}

"""No question reads everything: what is large is streamed, summed in the store, or read for a window alone."""

import tracemalloc
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import event
from tests.effort import tries
from tests.history.test_store import HERE, NOVEMBER
from tests.history.test_waits import life, long_history  # noqa: F401  the fixture
from tests.history.worlds import MINUTE, recorded, worlds

from tenure.history import open_history
from tenure.history import store as stores
from tenure.history.exchange import export, import_file
from tenure.history.query import Query
from tenure.history.reading import views
from tenure.history.reading.replaying import RecordedRun, recorded_days
from tenure.history.reading.statement import statement_of, usage_between
from tenure.history.reading.views import queues_over_time
from tenure.history.record import Draft, key_of, payload_of
from tenure.history.rollup import HOUR
from tenure.history.writing.simulation import numbered
from tenure.model.values.duration import DAY
from tenure.web.sources import passed
from tenure.web.sources.past import PastSource

MIB = 1 << 20


@pytest.fixture
def counted(monkeypatch):
    """Give a list that grows with every record that is read."""
    read = []
    made = stores._record
    monkeypatch.setattr(stores, "_record", lambda *given: read.append(1) or made(*given))
    return read


def most_memory(work):
    """Run something; gives the most memory that Python's objects took meanwhile, in bytes."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def large_records(tmp_path_factory):
    """Give a store with 60 MiB of records, each as large as that of a cluster of a thousand nodes."""
    text, address = "x" * (MIB // 4), str(tmp_path_factory.mktemp("large") / "a.db")
    with open_history(address, write=True) as store:
        for number in range(240):
            store.append(HERE, [Draft(NOVEMBER + number, "origin", payload=payload_of(by=text), key=key_of(number))])
    return address


@pytest.mark.parametrize("name", ["out.parquet", "out.jsonl", "out.jsonl.gz", "out.otlp.json"])
def test_an_export_and_its_way_back_hold_few_large_records_at_a_time(tmp_path, large_records, name):
    with open_history(large_records) as store:
        path = str(tmp_path / name)
        form = name.split(".")[1]
        assert most_memory(lambda: export(store, path, form)) < 45 * MIB
    if form != "otlp":
        with open_history(str(tmp_path / "b.db"), write=True) as other:
            assert most_memory(lambda: import_file(other, path)) < 45 * MIB
            assert other.count() == 240


def test_what_a_store_holds_is_counted_by_its_indexes(long_history):  # noqa: F811
    """Neither the number of records nor the first and last time needs the records themselves."""
    asked = []
    with open_history(long_history) as store:
        event.listen(store.engine, "before_cursor_execute", lambda *given: asked.append(given[2:4]))
        info = store.info()
        assert store.count(Query(kinds=("ended",), since=NOVEMBER + DAY)) == 20_000 - 1440 - 1
        with store.reading() as connection:
            plans = [
                row.detail for words, values in list(asked) if words.startswith("SELECT")
                for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {words}", values)
            ]  # fmt: skip
    assert (info.records, info.since) == (59_998, NOVEMBER)
    assert [p for p in plans if p.startswith("SCAN tenure_records") and "COVERING INDEX" not in p] == []
    assert any("COVERING INDEX" in p for p in plans)


def total(series, name, resource):
    """Give what series say over all their steps."""
    return sum(sum(getattr(one, name).get(resource, ())) * (one.at[1] - one.at[0]) for one in series)


@settings(max_examples=tries(10, 100), deadline=None)
@given(world=worlds(), points=st.integers(2, 40))
def test_series_of_hours_say_what_series_of_minutes_say(tmp_path_factory, world, points):
    """Over the same steps, except for where in a long record's first minute it changed; together they are the sums."""
    with open_history(str(tmp_path_factory.mktemp("series") / "history.db"), write=True) as store:
        recorded(store, *world)
        first, last = store.span()
        first -= first % HOUR
        span = -(-(last + 1 - first) // (points * HOUR)) * points * HOUR
        fine = queues_over_time(store, first, first + span, points)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(views, "FINE", 0)
            coarse = queues_over_time(store, first, first + span, points)
        assert [one.queue for one in coarse] == [one.queue for one in fine]
        for own, other in zip(coarse, fine, strict=True):
            assert own.at == other.at
            for name in ("held", "within", "capacity"):
                for resource, values in getattr(other, name).items():
                    most = max(values) * MINUTE / (own.at[1] - own.at[0]) * 60 + 1
                    assert getattr(own, name).get(resource, [0.0] * points) == pytest.approx(values, abs=most)
        with store.reading() as connection:
            held, _ = usage_between(connection, first, first + span)
        for resource in ("cpu", "nvidia.com/gpu"):
            whole = sum(sums.get(resource, 0) for sums, _ in held.values())
            assert total(coarse, "held", resource) == pytest.approx(whole, rel=1e-9, abs=1)


def test_a_series_of_a_long_time_reads_sums_by_the_hour(tmp_path, monkeypatch):
    """Forty days by the minute are nearly sixty thousand records; a series of them reads a thousand rows."""
    drafts = [
        Draft(NOVEMBER + number * MINUTE, "usage", queue="a", value=MINUTE,
              payload=payload_of(held={"cpu": 1000 * MINUTE}, within={}, level={"cpu": [1000, 0]}))
        for number in range(40 * 1440)
    ]  # fmt: skip
    read = []
    real = views.clipped
    monkeypatch.setattr(views, "clipped", lambda *given: read.append(1) or real(*given))
    with open_history(str(tmp_path / "history.db"), write=True) as store:
        store.append(HERE, numbered(drafts, b"together"))
        (series,) = queues_over_time(store, NOVEMBER, NOVEMBER + 40 * DAY, 500)
    assert read == []
    assert len(series.at) == 480
    assert series.held["cpu"] == pytest.approx([1000.0] * 480)


def test_a_long_history_is_shown_with_what_ran_before_it_is_gone_through(tmp_path, monkeypatch, counted):
    """Of more records than are gone through, the last ones; what came long before them and still runs is there."""
    drafts = [d for n in range(3000) for d in life(n, NOVEMBER + n * 10 * MINUTE, ends=n != 7)]
    path = str(tmp_path / "history.db")
    with open_history(path, write=True) as store:
        store.append(HERE, numbered(sorted(drafts), b"together"))
    monkeypatch.setattr(passed, "LARGE", 2000)
    source = PastSource(path)
    try:
        assert len(counted) < 2100
        assert "from 2026-11-18" in source.note
        begin = source._passed.begin
        assert datetime.fromtimestamp(begin / 1e6, UTC).month == 11
        for at in (None, begin + DAY):
            there = {workload.key: workload for workload in source.picture(at).cluster.workloads}
            assert there["team/job-7"].tasks[0].node == "n"
        key = f"team/job-{(begin + DAY - NOVEMBER) // (10 * MINUTE)}"
        assert "team/job-7" in {taker.workload for taker in source.takers(key, 20)}
    finally:
        source.close()


def days_by_hand(store, since, until):
    """Let all records be read, from the first on; what was done before the days is not done again."""
    runs, came = {}, set()
    with store.reading() as connection:
        for record, _ in store.scan(connection, Query(kinds=("submitted", "started", "evicted", "ended"))):
            if record.kind == "submitted":
                runs[record.workload] = RecordedRun(record.payload)
                came |= {record.workload} if since <= record.at < until else set()
            elif record.at >= since:
                runs[record.workload].take(record)
    return runs, came


@settings(max_examples=tries(12, 125), deadline=None)
@given(world=worlds(), begin=st.integers(0, 90), length=st.integers(1, 60))
def test_days_are_read_as_if_all_had_been_read(tmp_path_factory, world, begin, length):
    with open_history(str(tmp_path_factory.mktemp("days") / "history.db"), write=True) as store:
        recorded(store, *world)
        first, last = store.span()
        since, until = (first + (last - first) * part // 100 for part in (begin, begin + length))
        runs, came = days_by_hand(store, since, until)
        cluster, trace = recorded_days(store, since, until)
    assert {job.workload.key for job in trace.jobs} == came
    for job in trace.jobs:
        run = runs[job.workload.key]
        assert run.ran is None or job.runtime == run.needs
    there = {workload.key for workload in cluster.workloads}
    assert trace.present == {key: runs[key].needs for key in there if runs[key].ran is not None}


def test_replaying_a_day_reads_that_day_and_what_follows(long_history, counted):  # noqa: F811
    """Two days before the end of two weeks, a seventh of the records is read, and of the time before only what runs."""
    with open_history(long_history) as store:
        last = store.span()[1]
        cluster, trace = recorded_days(store, last - 2 * DAY, last)
    assert {"team/job-5", "team/job-10000"} < {workload.key for workload in cluster.workloads}
    assert len(trace.jobs) == 2880
    assert len(counted) < 9000


def test_a_statement_holds_no_evictions_of_its_window(tmp_path):
    """40 MiB of records of evictions; a statement of all of them by queue needs next to nothing of that."""
    reason = "x" * 4096
    lost = {"cpu": 1000}
    with open_history(str(tmp_path / "a.db"), write=True) as store:
        for begin in range(0, 10_000, 1000):
            store.append(HERE, [
                Draft(NOVEMBER + n, "evicted", f"team/job-{n % 50}", "a", "reclaim", f"team/other-{n % 70}", 5,
                      payload_of(task="t", lost=lost, reason=reason), key=key_of(n))
                for n in range(begin, begin + 1000)
            ])  # fmt: skip
        found = []
        assert most_memory(lambda: found.append(statement_of(store, by="queue"))) < 16 * MIB
    assert sum(row.lost.get("cpu", 0) for row in found[0].rows) == 10_000_000
    assert {row.key: row.evictions for row in found[0].rows if row.evictions} == {"a": 10_000}

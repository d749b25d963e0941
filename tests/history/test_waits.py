"""When workloads waited, who was there meanwhile and who took the room: found without reading the whole history."""

import json
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import tries
from tests.history.test_store import HERE, NOVEMBER
from tests.history.worlds import MINUTE, SECOND, recorded, worlds

from tenure.history import open_history
from tenure.history import store as stores
from tenure.history.query import Query
from tenure.history.reading.lives import lives_around
from tenure.history.reading.takers import LifeLine, causes_of, takers_among
from tenure.history.reading.views import LIFE, live_on, stays_at
from tenure.history.reading.waits import StoryWait, waits_of
from tenure.history.record import Draft, payload_of
from tenure.history.writing.simulation import numbered
from tenure.web.sources.past import PastSource


def opened(tmp_path_factory):
    return open_history(str(tmp_path_factory.mktemp("waits") / "history.db"), write=True)


def stays_by_hand(store, connection, at):
    """Let all records happen, from the first on."""
    found = {}
    for record, _ in store.scan(connection, Query(kinds=LIFE, until=at + 1)):
        live_on(found, record)
    return found


@settings(max_examples=tries(6, 125), deadline=None)
@given(world=worlds(), parts=st.lists(st.integers(0, 100), min_size=3, max_size=3))
def test_who_was_there_is_what_all_records_together_say(tmp_path_factory, world, parts):
    with opened(tmp_path_factory) as store:
        recorded(store, *world)
        first, last = store.span()
        moments = [first + (last - first) * part // 100 for part in parts]
        with store.reading() as connection:
            moments += [record.at for record, _ in store.scan(connection, Query(kinds=("ended", "evicted")), limit=3)]
            for at in moments:
                assert stays_at(store, connection, at) == stays_by_hand(store, connection, at)


@settings(max_examples=tries(6, 125), deadline=None)
@given(world=worlds())
def test_takers_of_the_lives_around_a_wait_are_those_of_all_lives(tmp_path_factory, world):
    """The console has all lives in memory, a story reads those around its wait: both name the same takers."""
    with opened(tmp_path_factory) as store:
        recorded(store, *world)
        both_name_the_same_takers(store)


def both_name_the_same_takers(store):
    """Hold the takers that a story finds against those of the console, for each workload."""
    source = PastSource(store.place)
    last = store.span()[1]
    for key, life in source._passed.lives.newest.items():
        causes = causes_of(store.story(key), key, life.submitted)
        with store.reading() as connection:
            lives = lives_around(store, connection, life.submitted, life.waited_until(last) + 1, causes)
        own = lives.newest[key]
        told = [t for t in takers_among(lives.of_all(), key, own, causes, last, 100) if t.how != "holds"]
        known = [t for t in source.takers(key, 100) if t.how != "holds"]
        assert own == life
        assert told == known
    source.close()


@settings(max_examples=tries(12, 125), deadline=None)
@given(turns=st.lists(st.sampled_from("abc"), min_size=6, max_size=30))
def test_workloads_that_come_again_under_their_names_have_several_lives(tmp_path_factory, turns):
    """Each turn brings a workload one step on: it comes, starts, ends, and comes again under the same name."""
    steps, drafts = dict.fromkeys("abc", 0), []
    for number, name in enumerate(turns):
        at, step = NOVEMBER + number * MINUTE, steps[name] % 3
        steps[name] += 1
        payload = payload_of(tasks=1, ask={"cpu": 1000}) if step == 0 else payload_of(tasks=[])
        drafts.append(Draft(at, ("submitted", "started", "ended")[step], f"team/{name}", "q", payload=payload))
    with opened(tmp_path_factory) as store:
        store.append(HERE, numbered(drafts, b"again"))
        both_name_the_same_takers(store)


def test_who_started_in_an_earlier_life_took_no_room_in_the_newest(tmp_path, run_command):
    """A job that is applied again every day waits for those of today, and of one that ran twice the first run ended."""
    drafts = [
        *life(1, NOVEMBER),  # its first life, in which it did not wait
        Draft(NOVEMBER + 2 * MINUTE, "submitted", "team/job-2", "a", payload=payload_of(tasks=1, ask={"cpu": 1000})),
        Draft(NOVEMBER + 3 * MINUTE, "submitted", "team/job-1", "a", payload=payload_of(tasks=1, ask={"cpu": 1000})),
        Draft(NOVEMBER + 4 * MINUTE, "started", "team/job-2", "a", value=2 * MINUTE, payload=payload_of(tasks=[])),
    ]
    with open_history(str(tmp_path / "history.db"), write=True) as store:
        store.append(HERE, numbered(drafts, b"again"))
    _, printed, _ = run_command("story", "team/job-1", "--history", str(tmp_path / "history.db"), "--format", "json")
    (taker,) = json.loads(printed)["takers"]
    assert taker["workload"] == "team/job-2"


def life(number, at, *, ends=True):
    """The records of a workload that waits, runs for a minute and ends."""
    key = f"team/job-{number}"
    tasks = payload_of(tasks=[["t", "n", []]])
    yield Draft(at, "submitted", key, "a", payload=payload_of(tasks=1, ask={"cpu": 1000}))
    yield Draft(at + SECOND, "started", key, "a", value=SECOND, payload=tasks)
    if ends:
        yield Draft(at + MINUTE, "ended", key, "a", value=MINUTE)


@pytest.fixture(scope="module")
def long_history(tmp_path_factory):
    """A history of 60,000 records over two weeks, of which three workloads still run."""
    plain = {"apiVersion": "tenure.dev/v1alpha1", "kind": "Cluster", "now": "2026-11-01T00:00:00Z",
             "nodes": [{"name": "n", "allocatable": {"cpu": 8}}], "queues": [{"name": "a"}]}  # fmt: skip
    begin = Draft(NOVEMBER, "origin", payload=payload_of(by="scheduler", cluster=plain))
    drafts = [d for n in range(20_000) for d in life(n, NOVEMBER + n * MINUTE, ends=n not in {5, 10_000, 19_999})]
    path = str(tmp_path_factory.mktemp("long") / "history.db")
    with open_history(path, write=True) as store:
        store.append(HERE, numbered([begin, *sorted(drafts)], b"together"))
    return path


def test_who_is_there_is_found_without_reading_who_has_gone(long_history, monkeypatch):
    """Of 60,000 records only those of the three workloads that are there are read, and no memory is held for others."""
    read = []
    made = stores._record
    monkeypatch.setattr(stores, "_record", lambda *given: read.append(1) or made(*given))
    with open_history(long_history) as store, store.reading() as connection:
        tracemalloc.start()
        found = stays_at(store, connection, NOVEMBER + 30_000 * MINUTE)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert set(found) == {"team/job-5", "team/job-10000", "team/job-19999"}
    assert len(read) == 6
    assert most < 4 << 20


def records(*told):
    """Make records of kinds and minutes, of one workload with one task."""
    payloads = {"started": {"tasks": [["t", "n", []]]}, "evicted": {"task": "t"}}
    return [Draft(minute * MINUTE, kind, "ns/w", "a", payload=payload_of(**payloads.get(kind, {})))
              for minute, kind in told]  # fmt: skip


@pytest.mark.parametrize(
    ("told", "waits"),
    [
        ([(0, "submitted"), (0, "started"), (9, "ended")], []),
        ([(0, "submitted"), (5, "started"), (9, "ended")], [(0, 5)]),
        ([(0, "submitted"), (5, "started"), (7, "evicted"), (9, "started")], [(0, 5), (7, 9)]),
        ([(0, "submitted"), (5, "started"), (7, "evicted")], [(0, 5), (7, None)]),
        ([(0, "submitted"), (5, "ended")], [(0, 5)]),
        ([(0, "submitted"), (3, "held")], [(0, None)]),
    ],
)
def test_waits_are_before_a_start_and_after_an_eviction(tmp_path, told, waits):
    with open_history(str(tmp_path / "history.db"), write=True) as store:
        store.append(HERE, numbered(records(*told), b"waits"))
        found = waits_of(store.story("ns/w"), "ns/w")
    minutes = [(w.since // MINUTE, None if w.until is None else w.until // MINUTE) for w in found]
    assert minutes == waits
    assert StoryWait(MINUTE, None).length(5 * MINUTE) == 4 * MINUTE


def test_no_workload_took_the_room_of_one_that_started_at_once():
    lives = {
        "n/before": LifeLine("q", 0, started=0, asked={"cpu": 1}),
        "n/at-once": LifeLine("q", SECOND, started=SECOND, asked={"cpu": 1}),
        "n/waited": LifeLine("q", SECOND, started=2 * SECOND, asked={"cpu": 1}),
    }

    def takers(name, causes):
        return takers_among(lives.items(), name, lives[name], causes, 9 * SECOND, 5)

    assert takers("n/at-once", {}) == []
    assert [t.workload for t in takers("n/waited", {})] == ["n/at-once", "n/before"]
    (by,) = takers("n/at-once", {"n/waited": "reclaim"})
    assert (by.workload, by.how) == ("n/waited", "evicted")

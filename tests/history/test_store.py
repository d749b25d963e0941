"""A store keeps what it is given, once, for as long as it is to be kept: on SQLite and on PostgreSQL alike."""

import json
import threading

import pytest
from sqlalchemy import text
from tests.builders import cluster, node, workload
from tests.history.worlds import MINUTE, SECOND
from tests.simulator.helpers import script

from tenure.history import open_history
from tenure.history.errors import HistoryError
from tenure.history.exchange import export, import_file
from tenure.history.migrations import STEPS
from tenure.history.months import month_of, next_month
from tenure.history.query import Query
from tenure.history.reading.statement import statement_of
from tenure.history.record import SCHEMA, Draft, Origin, key_of, payload_of
from tenure.history.retention import FORGOTTEN, Retention, forget_user, prune
from tenure.history.writing.simulation import PlanListener, write_simulation
from tenure.model.values.duration import DAY
from tenure.model.values.problems import InvalidInputError
from tenure.simulator.outcomes import outcomes_of

HERE = Origin("here", "gpu")
NOVEMBER = 1_793_491_200_000_000  # 2026-11-01T00:00:00Z


def life(number, at, **fields):
    """The records of one workload that waits, starts and is evicted."""
    key = f"team/job-{number}"
    lost = {"cpu": 1000 * MINUTE}
    return [
        Draft(at, "submitted", key, "a", payload=payload_of(tasks=1, **fields), key=key_of(number, "s", at)),
        Draft(at + SECOND, "started", key, "a", value=SECOND, payload='{"tasks":[]}', key=key_of(number, "t", at)),
        Draft(at + MINUTE, "evicted", key, "a", "reclaim", "team/other", 50, payload_of(task="t", lost=lost, **fields),
              key=key_of(number, "e", at)),
    ]  # fmt: skip


def usage(queue, at, level, span=MINUTE):
    held = {"cpu": level * span}
    payload = payload_of(until=at + span, held=held, within={}, level={"cpu": [level, 0]})
    return Draft(at, "usage", queue=queue, value=span, payload=payload, key=key_of(queue, at))


def test_what_is_given_comes_back_in_order(address):
    drafts = [draft for number in range(50) for draft in life(number, NOVEMBER + number * DAY)]
    with open_history(address, write=True) as store:
        assert store.append(HERE, drafts) == 150
        assert store.append(HERE, drafts[10:90]) == 0
        found, after = [], None
        while True:
            page = store.records(limit=7, after=after)
            found += page.records
            after = page.next
            if after is None:
                break
        assert [(r.at, r.kind, r.workload) for r in found] == sorted(
            ((d.at, d.kind, d.workload) for d in drafts), key=lambda row: row[0]
        )
        assert [json.dumps(r.payload) for r in found] == [json.dumps(json.loads(d.payload)) for d in drafts]
        backwards = store.records(limit=1000, newest=True).records
        assert backwards == found[::-1]
        info = store.info()
        assert (info.schema, info.records, info.origins) == (SCHEMA, 150, (HERE,))
        assert len({month_of(r.at) for r in found}) == 2


def test_a_story_has_what_was_done_for_it_too(address):
    with open_history(address, write=True) as store:
        store.append(HERE, life(1, NOVEMBER) + life(2, NOVEMBER + 40 * DAY))
        assert [r.kind for r in store.story("team/job-2")] == ["submitted", "started", "evicted"]
        assert [r.workload for r in store.story("team/other")] == ["team/job-1", "team/job-2"]
        assert store.story("team/nobody") == []


def test_two_writers_at_once_write_each_record_once(address):
    """Two leaders for a moment: the same records from both, and sums that count them once."""
    drafts = [draft for number in range(200) for draft in life(number, NOVEMBER + number * MINUTE)]
    drafts += [usage("a", NOVEMBER + number * MINUTE, 1000) for number in range(200)]
    open_history(address, write=True).close()
    failed = []

    def write():
        try:
            with open_history(address, write=True) as store:
                for begin in range(0, len(drafts), 50):
                    store.append(HERE, drafts[begin : begin + 50])
        except Exception as error:  # noqa: BLE001  told by the assertion below
            failed.append(error)

    threads = [threading.Thread(target=write) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    with open_history(address) as store:
        assert store.info().records == 800
        found = statement_of(store, by="queue")
        assert found.used["cpu"] + found.lost["cpu"] == 200 * 1000 * MINUTE


@pytest.mark.parametrize("other", ["same", "different"])
def test_of_two_simulations_at_once_one_is_written_whole_and_once(address, other, monkeypatch):
    """The second writes all that it has to write just before the first begins to."""
    with open_history(address, write=True) as store, open_history(address, write=True) as second:
        mine, writing = one_job("mine"), store.writing

        def late():
            monkeypatch.setattr(store, "writing", writing)
            write_simulation(second, "t.csv", *(mine if other == "same" else one_job("other")))
            return writing()

        monkeypatch.setattr(store, "writing", late)
        if other == "same":
            assert write_simulation(store, "t.csv", *mine) == 0
        else:
            with pytest.raises(HistoryError, match="holds another history already"):
                write_simulation(store, "t.csv", *mine)
        found = statement_of(store, by="workload")
        assert found.used["cpu"] == sum(row.used["cpu"] for row in found.rows) == 1000 * MINUTE
        assert len(found.rows) == 1


def one_job(name):
    """Give a simulation of one job that runs for a minute, as `write_simulation` takes it."""
    model, here = workload(name, tasks=1), cluster(nodes=[node("n", cpu=4)], workloads=[])
    log = script([model], ("submit", 0, 0), ("bind", 0, 0, 0, 0), ("end", 60, 0, 0))
    return here, log, outcomes_of(log), PlanListener(here.now)


def test_what_is_too_old_goes_kind_by_kind(address):
    drafts = [draft for number in range(100) for draft in life(number, NOVEMBER + number * DAY)]
    for number in range(100):
        at, key = NOVEMBER + number * DAY + 2 * MINUTE, f"team/job-{number}"
        drafts.append(Draft(at, "ended", key, "a", value=1, key=key_of(number, "d", at)))
    drafts += [usage("a", NOVEMBER + number * DAY, 1000) for number in range(100)]
    with open_history(address, write=True) as store:
        store.append(HERE, drafts)
        now = NOVEMBER + 100 * DAY
        gone = prune(store, now, Retention(50 * DAY, {"usage": 10 * DAY}))
        left = store.records(limit=1000).records
        assert gone + len(left) == 500
        assert {r.kind: min(now - x.at for x in left if x.kind == r.kind) <= 50 * DAY for r in left}
        assert min(r.at for r in left if r.kind == "evicted") >= now - 50 * DAY
        assert len([r for r in left if r.kind == "usage"]) == 10
        assert store.records(Query(kinds=("submitted",)), limit=1).records[0].at == NOVEMBER + 50 * DAY
        assert prune(store, now, Retention(50 * DAY, {"usage": 10 * DAY})) == 0
        assert store.append(HERE, drafts[-1:]) == 0


def test_a_user_is_forgotten_and_what_happened_stays(address):
    nasty = 'o"neil %_\\'
    with open_history(address, write=True) as store:
        store.append(HERE, life(1, NOVEMBER, user=nasty) + life(2, NOVEMBER, user="ben"))
        assert forget_user(store, nasty) == 2
        assert forget_user(store, nasty) == 0
        users = [r.payload.get("user") for r in store.records(limit=100).records]
        assert sorted(filter(None, users)) == [FORGOTTEN, FORGOTTEN, "ben", "ben"]


@pytest.mark.parametrize("name", ["out.parquet", "out.jsonl", "out.jsonl.gz"])
def test_an_export_comes_back_as_it_was(address, tmp_path, name):
    drafts = [draft for number in range(40) for draft in life(number, NOVEMBER + number * DAY, user="ä\n=1+1")]
    drafts.append(usage("a", NOVEMBER, 1 << 50))
    path = str(tmp_path / name)
    with open_history(address, write=True) as store:
        store.append(HERE, drafts)
        before = store.records(limit=1000).records
        assert export(store, path, name.split(".")[1]) == 121
        assert import_file(store, path) == (121, 0)
    with open_history(str(tmp_path / "other.db"), write=True) as other:
        assert import_file(other, path) == (121, 121)
        assert other.records(limit=1000).records == before


@pytest.mark.parametrize(
    "line",
    ["[]", "{", '{"at": 1}', "null", "[" * 100_000, '{"at": 1e400}', '{"at": 99999999999999999999}', "\x00"],
)
def test_a_line_that_is_no_record_is_named(tmp_path, line):
    path = tmp_path / "in.jsonl"
    path.write_text(line + "\n")
    with open_history(str(tmp_path / "h.db"), write=True) as store:
        with pytest.raises(InvalidInputError) as caught:
            import_file(store, str(path))
        assert caught.value.problems[0].line == 1
        assert store.info().records == 0


@pytest.mark.parametrize(
    "change", [{"payload": {"cost": float("nan")}}, {"workload": "\ud800"}, {"payload": {"user": "\udfff"}}]
)
def test_what_no_store_can_keep_is_named(tmp_path, change):
    """A number that is none and half a character are refused, and what stands before them is there."""
    path = tmp_path / "in.jsonl"
    with open_history(str(tmp_path / "a.db"), write=True) as store:
        store.append(HERE, life(1, NOVEMBER))
        export(store, str(path), "jsonl")
    lines = path.read_text().splitlines()
    lines[2] = json.dumps(json.loads(lines[2]) | change)
    path.write_text("\n".join(lines) + "\n")
    with open_history(str(tmp_path / "b.db"), write=True) as store:
        with pytest.raises(InvalidInputError, match="cannot be kept") as caught:
            import_file(store, str(path))
        assert caught.value.problems[0].line == 3


def to_version_1(store):
    """Take back what version 2 brought."""
    with store.writing() as connection:
        connection.execute(text("DROP TABLE tenure_usage"))
        for index in ("workload", "beneficiary"):
            connection.execute(text(f"DROP INDEX tenure_records_202611_{index}"))
        connection.execute(text("UPDATE tenure_history SET value = '1' WHERE key = 'schema'"))


def test_every_earlier_version_is_brought_to_the_present_one(address):
    assert sorted(STEPS) == list(range(1, SCHEMA))
    drafts = life(1, NOVEMBER) + [usage("a", NOVEMBER + number * MINUTE, 1000) for number in range(90)]
    with open_history(address, write=True) as store:
        store.append(HERE, drafts)
        before = statement_of(store, by="queue")
        to_version_1(store)
    with pytest.raises(HistoryError, match="tenure history migrate"):
        open_history(address)
    with open_history(address, write=True) as store:
        assert statement_of(store, by="queue") == before
        assert store.info().schema == SCHEMA
        assert store.append(HERE, drafts) == 0


def test_a_later_version_is_refused(address):
    with open_history(address, write=True) as store, store.writing() as connection:
        connection.execute(text("UPDATE tenure_history SET value = '99' WHERE key = 'schema'"))
    for write in (False, True):
        with pytest.raises(HistoryError, match="later Tenure"):
            open_history(address, write=write)


def test_a_store_opened_to_be_read_is_not_written(address):
    with open_history(address, write=True) as store:
        store.append(HERE, life(1, NOVEMBER))
    with open_history(address) as store, pytest.raises(HistoryError, match="opened to be read"):
        store.append(HERE, life(2, NOVEMBER))


def test_months_follow_each_other():
    assert [month_of(NOVEMBER - 1), month_of(NOVEMBER), next_month(202612)] == [202610, 202611, 202701]

"""Statements say the same after records were pruned, forgotten, or taken elsewhere; also if that was broken off."""

import itertools
import json
import random
import shutil
import sqlite3
import subprocess
from collections import Counter
from contextlib import suppress
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text
from tests import preloaded
from tests.effort import tries
from tests.history.worlds import MINUTE, Counted, recorded, worlds
from tests.history.writer import HERE, NOVEMBER, life_of

from tenure.history import connect, open_history
from tenure.history.errors import HistoryError
from tenure.history.exchange import export, import_file
from tenure.history.reading.statement import BY, statement_of
from tenure.history.reading.views import cluster_then, version_of_content
from tenure.history.record import Draft, Origin, key_of, payload_of
from tenure.history.retention import FORGOTTEN, KEPT, Retention, forget_user, prune
from tenure.history.rollup import HOUR
from tenure.model.values.duration import DAY, format_time

KILLS = tries(2, 40)
NAMES = itertools.count()


CLUSTER = {"nodes": [{"name": "n0", "allocatable": {"cpu": "4"}}], "queues": [{"name": "a"}]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("histories")


def new(folder):
    return str(folder / f"{next(NAMES)}.db")


def statements(store, since=None):
    return {by: statement_of(store, since, by=by) for by in BY}


def closes(store):
    """Every statement of a store closes: nothing is used that was not there, and who lost lost what others caused."""
    for found in statements(store).values():
        for name, whole in found.capacity.items():
            assert found.used[name] + found.lost[name] + found.idle[name] == whole
            assert found.idle[name] >= 0
        lost, caused = Counter(), Counter()
        for row in found.rows:
            lost.update(row.lost)
            caused.update(row.caused)
        assert +lost == +caused == +Counter(found.lost)


@settings(max_examples=tries(12, 300), deadline=None)
@given(world=worlds(), data=st.data())
def test_what_is_left_after_pruning_says_what_it_said(folder, world, data):
    """From the first whole hour of which nothing was pruned on, no statement changes, and the log says the same."""
    with open_history(new(folder), write=True) as store:
        log = recorded(store, *world)
        first, last = store.span()
        limit = data.draw(st.integers(first, last))
        whole = limit + -limit % HOUR
        before, there = statements(store, whole), [cluster_then(store, at) for at in (limit, last)]
        gone = prune(store, limit, Retention(0))
        assert whole >= last or statements(store, whole) == before
        assert [cluster_then(store, at) for at in (limit, last)] == there
        closes(store)
        assert prune(store, limit, Retention(0)) == 0, f"{gone} records went, and then more"
        assert not gone or store.span()[0] >= limit - limit % HOUR
        if first < whole < last:
            counted = Counted(world[0], log, whole - world[0].now)
            found = statement_of(store, whole, by="queue")
            told = {n: found.used[n] + found.lost[n] for n in found.used if found.used[n] + found.lost[n]}
            assert told == {name: amount for name, amount in counted.held.items() if amount}
            assert +Counter(found.lost) == +Counter(counted.lost)


def test_what_runs_longer_than_records_are_kept_is_still_there_when_they_are_pruned(address):
    """A service that came three years ago, and what came and ended then: of the one it stays said where it runs."""
    with open_history(address, write=True) as store:
        begin, now = NOVEMBER - 1095 * DAY, NOVEMBER
        placed = payload_of(tasks=[["t-0", "n0", []]])
        for number, (name, at) in enumerate([("default/serve", begin), ("default/batch", begin)]):
            drafts = [
                Draft(at, "submitted", name, "a", payload=payload_of(specs=[[1, {"cpu": 1000}]], tasks=1)),
                Draft(at + 1, "started", name, "a", payload=placed),
                Draft(begin + 2, "origin", payload=payload_of(cluster=CLUSTER)),
                *([Draft(at + DAY, "ended", name, "a", payload="{}")] if number else []),
                Draft(now, "leader", payload="{}"),
            ]
            store.append(Origin("c"), [d._replace(key=key_of(d.at, d.kind, d.workload)) for d in drafts])
        before = cluster_then(store, now)
        assert [w.key for w in before.workloads] == ["default/serve"]
        assert prune(store, now, Retention()) == 3
        assert cluster_then(store, now) == before
        assert store.span() == (now - KEPT - (now - KEPT) % HOUR, now)
        assert prune(store, now, Retention()) == 0


@settings(max_examples=tries(5, 100), deadline=None)
@given(world=worlds(), keep=st.integers(0, 40), kind=st.sampled_from(["usage", "evicted", "origin", "started"]))
def test_pruning_one_kind_leaves_sums_that_close(folder, world, keep, kind):
    """Whatever is kept for how long, usage goes with its capacity, and losses with what caused them."""
    with open_history(new(folder), write=True) as store:
        recorded(store, *world)
        prune(store, store.span()[1], Retention(1000 * 24 * HOUR, {kind: keep * HOUR}))
        closes(store)


@settings(max_examples=tries(8, 150), deadline=None)
@given(world=worlds())
def test_forgetting_a_user_changes_no_sum(folder, world):
    """The name is gone from every statement; all figures stay, and those of the user stand under no name."""
    with open_history(new(folder), write=True) as store:
        recorded(store, *world)
        before = statements(store)
        forget_user(store, "ada")
        after = statements(store)
        users, forgotten = ({row.key: row for row in one.pop("user").rows} for one in (before, after))
        assert before == after
        assert "ada" not in forgotten
        for row in users.values():
            row.key = FORGOTTEN if row.key == "ada" else row.key
        assert {row.key: row for row in users.values()} == forgotten


def test_nothing_of_a_forgotten_name_stays_in_the_file_or_its_log(tmp_path):
    """Neither in the runs of a user that a cluster lists, nor in labels of a plan's evictions, nor in free pages."""
    path = tmp_path / "history.db"
    listed = {
        **CLUSTER, "finishedRuns": [{"queue": "a", "user": "ada-lovelace", "ran": ["1h"]}],
        "evictions": [{"workload": "default/x", "task": "x-0", "labels": {"who": "ada-lovelace"}}],
    }  # fmt: skip
    drafts = [Draft(NOVEMBER, "origin", payload=payload_of(cluster=listed))]
    drafts += [
        Draft(NOVEMBER + n, "evicted", "default/x", "a", payload=payload_of(user="ada-lovelace", forUser="ben"))
        for n in range(300)
    ]
    with open_history(str(path), write=True) as store, open_history(str(path)) as other:
        store.append(Origin("c"), [d._replace(key=key_of(d.at, d.kind)) for d in drafts])
        assert other.span() is not None
        assert forget_user(store, "ada-lovelace") == 301
        assert forget_user(store, "ada-lovelace") == 0
        written = b"".join(file.read_bytes() for file in tmp_path.iterdir())
        assert b"ada-lovelace" not in written
        assert b"ben" in written


def test_nothing_of_a_name_stays_in_the_file_after_its_records_were_pruned(tmp_path, monkeypatch):
    """Also with a SQLite that leaves what is deleted where it stands: forgetting the user finds no record of theirs."""

    def careless(*args, **options):
        made = connected(*args, **options)
        made.execute("PRAGMA secure_delete=OFF")
        return made

    connected = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", careless)
    with open_history(str(tmp_path / "history.db"), write=True) as store:
        store.append(HERE, [d for n in range(600) for d in life_of(n)])
        store.settle()
        assert prune(store, store.span()[1], Retention(0))
        store.settle()
        written = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b'"user":"ada"' not in written


def test_what_was_taken_out_is_not_there_again_when_more_is_to_be_kept(address):
    """After a prune by hand, the scheduler's own, which keeps more, changes neither begin nor sums."""
    with open_history(address, write=True) as store:
        origin = Draft(NOVEMBER, "origin", payload=payload_of(cluster=CLUSTER), key=key_of("origin"))
        store.append(HERE, [origin, *(d for n in range(600) for d in life_of(n))])
        last = store.span()[1]
        prune(store, last, Retention(DAY))
        begin, wanted = store.span()[0], statements(store)
        assert begin == last - DAY
        assert prune(store, last, Retention(KEPT)) == 0
        assert store.span()[0] == begin
        assert statements(store) == wanted


@pytest.mark.parametrize("name", ["all.jsonl", "all.parquet"])
def test_an_export_of_a_pruned_history_begins_where_that_does(address, tmp_path, name):
    """Also on the way on from a store in which it was read twice; and nothing is hidden where all is there already."""
    target = str(tmp_path / name)
    origin = Draft(NOVEMBER, "origin", payload=payload_of(cluster=CLUSTER), key=key_of("origin"))
    drafts = [origin, *(d for n in range(300) for d in life_of(n))]
    with open_history(address, write=True) as store:
        store.append(HERE, drafts)
        full = store.span()
        prune(store, full[1], Retention(DAY))
        wanted, count, span = statements(store), store.info().records, store.span()
        assert span[0] == full[1] - DAY
        for number in range(2):
            assert export(store, target, "parquet" if name.endswith("parquet") else "jsonl") == count
            with open_history(str(tmp_path / f"{number}.db"), write=True) as back:
                assert import_file(back, target) == (count, count)
                assert import_file(back, target) == (count, 0)
                assert (back.span(), back.info().records) == (span, count)
                assert statements(back) == wanted
                export(back, target, "parquet" if name.endswith("parquet") else "jsonl")
        with open_history(str(tmp_path / "later.db"), write=True) as later:
            later.append(HERE, [d for d in drafts if d.at > full[1] - DAY // 2])
            import_file(later, target)
            assert later.span() == span
        with open_history(str(tmp_path / "full.db"), write=True) as whole:
            whole.append(HERE, drafts)
            assert import_file(whole, target) == (count, 0)
            assert whole.span() == full


@settings(max_examples=tries(4, 60), deadline=None)
@given(world=worlds(), form=st.sampled_from(["jsonl", "jsonl.gz", "parquet"]))
def test_an_import_says_what_its_source_says(folder, server, world, form):
    """From a file to a server to another file, each twice: the same records, the same statements."""
    with open_history(new(folder), write=True) as store:
        recorded(store, *world)
        wanted, count = statements(store), store.info().records
        there = open_history(server.database(), write=True)
        with there, open_history(new(folder), write=True) as back:
            for source, target in ((store, there), (there, back)):
                name = str(folder / f"{next(NAMES)}.{form}")
                export(source, name, form.removesuffix(".gz"))
                assert import_file(target, name) == (count, count)
                assert import_file(target, name) == (count, 0)
                assert statements(target) == wanted
                assert target.info().records == count


# -- broken off -------------------------------------------------------------------------------------------------------


def fill(address):
    """Fill a store with the life of a cluster over months: 4,500 records, of every other half an hour."""
    with open_history(address, write=True) as store:
        for begin in range(0, 1800, 600):
            store.append(HERE, [d for n in range(begin, begin + 600, 2) for d in life_of(n)])


@pytest.fixture(scope="module")
def filled(folder):
    """Give a function that gives a store its content: a file that was filled once is copied."""
    original = new(folder)
    fill(original)

    def give(address):
        if "://" in address:
            fill(address)
        else:
            shutil.copy(original, address)
        return address

    return give


@pytest.fixture(scope="module")
def said(filled, folder):
    """Give a function that says what the statements of that content are from a time on; they are worked out once."""
    with open_history(filled(new(folder))) as store:
        yield cache(lambda since: statements(store, since))


def killed(words, chance, longest):
    """Run a command and kill it within so many seconds; whether it was killed before its end."""
    process = preloaded.start(["history", *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    with suppress(subprocess.TimeoutExpired):
        process.wait(chance.uniform(0.02, longest))
    process.kill()
    error = process.communicate(timeout=20)[1]
    assert process.returncode in {0, -9}, error
    return process.returncode != 0


def done(*words):
    preloaded.run(["history", *words], check=True, timeout=120, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("what", ["prune", "forget", "import"])
def test_what_is_killed_on_its_way_and_done_again_is_done_once(tmp_path, address, filled, said, what):
    """At each moment statements close and say what they are to say; afterwards as if nobody had been killed."""
    chance = random.Random(what)
    source = filled(str(tmp_path / "source.db"))
    exported = str(tmp_path / "source.jsonl")
    if what == "import":
        done("export", exported, "--history", source)
    limit = NOVEMBER + 35 * 24 * HOUR
    words = {
        "prune": ["prune", "--keep", "1d", "--now", format_time(limit + 24 * HOUR)],
        "forget": ["forget", "--user", "ada"],
        "import": ["import", exported],
    }[what]
    target = address if what == "import" else filled(address)
    open_history(target, write=True).close()
    wanted = said(limit if what == "prune" else None)
    count = sum(killed([*words, "--history", target], chance, 0.4) for _ in range(KILLS))
    with open_history(target) as store:
        closes(store)
        if what == "prune":
            assert statements(store, limit) == wanted
    done(*words, "--history", target)
    with open_history(target) as store, open_history(source, write=True) as other:
        if what == "forget":
            forget_user(other, "ada")
            wanted = statements(other)
        assert statements(store, limit if what == "prune" else None) == wanted, f"killed {count} times"


@pytest.mark.parametrize("name", ["e.jsonl", "e.jsonl.gz", "e.otlp.json", "e.parquet"])
def test_an_export_that_is_killed_leaves_no_half_file_and_is_begun_again(tmp_path, filled, name):
    """Whether at its first record, in the middle or after the last: what had its name before still has it."""
    source, target = filled(str(tmp_path / "source.db")), tmp_path / name
    words = ["export", target, "--history", source]
    target.write_text("an earlier export")
    for at in (0, 3000, -1):
        ended = preloaded.run([at, "history", *words], module="tests.history.killed_export", timeout=60)
        assert ended.returncode == -9
        assert target.read_text() == "an earlier export"
    done(*words)
    assert not list(tmp_path.glob("*.part"))
    if "otlp" in name:
        told = [json.loads(line)["resourceLogs"] for line in target.read_text().splitlines()]
        found = [r for logs in told for log in logs for scope in log["scopeLogs"] for r in scope["logRecords"]]
        with open_history(source) as store:
            assert len(found) == store.info().records
        return
    with open_history(source) as store, open_history(str(tmp_path / "back.db"), write=True) as back:
        assert import_file(back, str(target)) == (store.info().records,) * 2


def test_who_has_read_a_history_sees_that_something_was_taken_out_or_written_over(address):
    """Also of the middle of a month, and where as many records as before are left."""
    with open_history(address, write=True) as store:
        store.append(HERE, [d for n in range(600) for d in life_of(n)])
        seen = [version_of_content(store)]
        prune(store, store.span()[1], Retention(300 * MINUTE))
        seen.append(version_of_content(store))
        forget_user(store, "ada")
        seen.append(version_of_content(store))
        assert len(set(seen)) == 3
        assert (prune(store, store.span()[1], Retention(300 * MINUTE)), forget_user(store, "ada")) == (0, 0)
        assert version_of_content(store) == seen[-1]


def test_a_name_that_a_reader_keeps_in_the_log_is_told_of_and_gone_the_next_time(tmp_path, monkeypatch):
    """The record has it no more; the log beside the file has, as long as somebody reads what was there before."""
    monkeypatch.setattr(connect, "LOCKED_SECONDS", 0.1)
    path = tmp_path / "history.db"
    with open_history(str(path), write=True) as store, open_history(str(path)) as other:
        store.append(HERE, [d for n in range(60) for d in life_of(n)])
        with other.reading() as connection:
            assert connection.execute(text("SELECT count(*) FROM tenure_months")).scalar() == 1
            with pytest.raises(HistoryError, match="120 records no longer name the user, but what they were") as raised:
                forget_user(store, "ada")
            assert raised.value.temporary
        assert forget_user(store, "ada") == 0
        written = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b'"user":"ada"' not in written

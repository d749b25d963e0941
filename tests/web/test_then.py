"""A past moment is shown as if nothing had come after it."""

import shutil
from dataclasses import replace

import pytest
from tests.builders import NOW, SECOND, cluster, node, spec, task, workload
from tests.web.consoles import always, shown

from tenure.history import open_history
from tenure.history.exchange import export, import_file
from tenure.history.query import Query
from tenure.model.values.duration import format_time
from tenure.model.workload import Nomination, Notice, Phase
from tenure.web.access.viewer import EVERYTHING, Viewer
from tenure.web.sources.past import PastSource
from tenure.web.sources.source import EvictionQuery, chosen, evictions_of
from tenure.web.sources.still import StillSource

ALL = EvictionQuery(limit=1000)


@pytest.fixture(scope="module")
def past(history):
    """Give the source of that history."""
    found = PastSource(history)
    yield found
    found.close()


def until(history, at, folder):
    """Give the source of what of a history was recorded until a moment."""
    made = str(folder / "until.db")
    with open_history(history) as store:
        export(store, str(folder / "until.jsonl"), "jsonl", Query(until=at + 1))
    with open_history(made, write=True) as store:
        import_file(store, str(folder / "until.jsonl"))
    return PastSource(made)


@pytest.mark.parametrize(("number", "tenths"), [(0, 2), (1, 5), (2, 8)])
def test_a_past_moment_is_told_of_as_if_nothing_was_recorded_after_it(history, past, tmp_path, number, tenths):
    """Each workload is asked about at one of the moments, and what is told of all of them at each."""
    begin, end = past.span()
    at = begin + (end - begin) * tenths // 10
    then = until(history, at, tmp_path)
    lives = past.waits(EVERYTHING, 1000)
    assert past.waits(EVERYTHING, 1000, at) == then.waits(EVERYTHING, 1000, at) != lives
    assert evictions_of(past, replace(ALL, at=at), EVERYTHING) == evictions_of(then, ALL, EVERYTHING)
    assert len(lives) > 9
    for line in lives[number::3]:
        assert past.story(line.workload, 1000, at) == then.story(line.workload, 1000)
        assert past.takers(line.workload, 100, at) == then.takers(line.workload, 100, at)
    then.close()


def test_what_an_eviction_gained_is_told_once_it_is_known(past):
    paid = [line for line in past.log() if line.paid is not None]
    assert paid
    assert all(line.settled_at >= line.at for line in paid)
    line = paid[0]._replace(settled_at=paid[0].at + SECOND)  # as where only the end of the run says what it gained
    before, after = (chosen([line], replace(ALL, at=at)) for at in (line.settled_at - 1, line.settled_at))
    assert [(one.gained, one.paid, one.lost) for one in before.lines] == [(None, None, line.lost)]
    assert (before.sums[0].paid, before.sums[0].unpaid) == (0, 0)
    assert after == chosen([line], ALL)
    assert not chosen([line], replace(ALL, at=line.at - 1)).total


def test_usage_is_shown_until_the_moment(past):
    begin, end = past.span()
    whole, at = past.series(50), (begin + end) // 2
    found = whole.as_of(at)
    assert 20 <= (count := len(found.moments)) <= 25
    assert found.moments[-1] + found.step <= at < found.moments[-1] + 2 * found.step
    assert all(list(found.queues[name]) == list(values[:count]) for name, values in whole.queues.items())
    assert whole.as_of(None) is whole


def test_pages_and_answers_know_a_workload_from_when_it_came(past):
    """Before that it is as unknown as any other; while it waits nothing is said of its start."""
    line = past.waits(EVERYTHING, 1)[0]
    before, meanwhile = format_time(line.created_at - 1), format_time(line.started_at - 1)
    with shown(past) as client:
        for path in (f"/workloads/{line.workload}", f"/api/v1/workloads/{line.workload}"):
            assert client.get(path, params={"at": before}).status_code == 404
            assert client.get(path, params={"at": meanwhile}).status_code == 200
        found = client.get(f"/api/v1/workloads/{line.workload}", params={"at": meanwhile}).json()
        assert (found["state"], [one["kind"] for one in found["story"]]) == ("waiting", ["submitted"])
        first = client.get("/api/v1/overview", params={"at": meanwhile}).json()["waits"][0]
        assert (first["workload"], first["startedAt"]) == (line.workload, None)
        named = [one["workload"] for one in client.get("/api/v1/overview", params={"at": before}).json()["waits"]]
        assert named
        assert line.workload not in named
        assert max(client.get("/api/v1/series", params={"at": before}).json()["moments"]) <= before


def test_a_cluster_file_tells_of_a_past_moment_what_it_knows_of_it():
    """What was told, promised or asked to leave later was not yet; who came later is not known."""
    later, at = NOW - 10 * SECOND, NOW - 60 * SECOND
    told = task("told-0", spec(cpu=1), on="n", notice=Notice(deadline=NOW, cause="reclaim", at=later))
    leaves = replace(task("leaves-0", spec(cpu=1), on="n"), phase=Phase.TERMINATING, terminating_since=later)
    promised = replace(task("promised-0", spec(cpu=1)), nominated=Nomination(node="n", at=later))
    source = StillSource(
        cluster(
            nodes=[node("n", cpu=4)],
            workloads=[
                *(workload(one.name[:-2], tasks=[one], age=600, running=500) for one in (told, leaves)),
                workload("promised", tasks=[promised], age=300),
                workload("new", of=spec(cpu=1), age=30),
                workload("started", of=spec(cpu=1), on=["n"], age=200, running=20),
            ],
        ),
        "a file",
    )
    tasks = {one.name: one for known in source.picture(at).workloads.values() for one in known.tasks}
    assert tasks["told-0"].notice is tasks["promised-0"].nominated is None
    assert tasks["leaves-0"].phase is Phase.RUNNING
    assert [line.kind for line in source.story("default/told", 10, at)] == ["submitted", "started"]
    assert [line.kind for line in source.story("default/promised", 10, at)] == ["submitted"]
    assert [line.kind for line in source.story("default/started", 10, at)] == ["submitted"]
    assert not source.story("default/new", 10, at)
    waits = {line.workload: line for line in source.waits(EVERYTHING, 10, at)}
    assert "default/new" not in waits
    assert (waits["default/started"].started_at, waits["default/started"].waited) == (None, 140 * SECOND)


@pytest.mark.parametrize("is_alone", [True, False])
def test_a_history_that_cannot_be_read_any_more_is_said_in_words(history, tmp_path, is_alone):
    """To others than whoever runs the console nothing is told of where it is, or what a server said."""
    made = tmp_path / "torn.db"
    shutil.copy(history, made)
    with shown(PastSource(str(made)), whose=None if is_alone else always(Viewer("one"))) as client:
        with made.open("r+b") as file:
            file.truncate(4096)
        for path in ("/workloads?at=1970-01-01T13:00:00Z", "/api/v1/workloads/default/job-8", "/"):
            answer = client.get(path)
            assert answer.status_code == 503
            assert "history cannot be read now" in answer.text
            assert ("is damaged" in answer.text) is is_alone
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["cache-control"] == "no-store"
            assert answer.headers["content-type"].startswith("application/json" if "api" in path else "text/html")

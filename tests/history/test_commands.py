"""The commands over a history, as one types them: what they print, and what they say of wrong input."""

import csv
import io
import json
import shutil
import signal
import sqlite3
import time
from contextlib import closing

import pytest

import tenure
from tenure.history import open_history
from tenure.history.record import Draft, Origin, key_of

CLUSTER = """\
apiVersion: tenure.dev/v1alpha1
kind: Cluster
now: 2026-11-20T10:00:00Z
nodes: [{name: n, count: 2, allocatable: {cpu: 4}}]
queues: [{name: a, guaranteed: {cpu: 4}}, {name: b, guaranteed: {cpu: 4}}]
"""
JOBS = """\
job,submit_s,runtime_s,expected_runtime_s,queue,pods,cpu_milli
long,0,7200,7200,b,2,4000
owed,600,600,600,a,1,4000
<i>odd,700,60,60,b,1,1000
"""


@pytest.fixture
def simulated(tmp_path, run_command):
    (tmp_path / "c.yaml").write_text(CLUSTER)
    (tmp_path / "jobs.csv").write_text(JOBS)
    store = tmp_path / "run.db"
    words = ("simulate", tmp_path / "jobs.csv", "--cluster", tmp_path / "c.yaml", "--format", "json")
    code, out, err = run_command(*words, "--history", store)
    assert (code, err) == (0, "")
    return store, json.loads(out), words


def test_names_that_turn_the_direction_of_writing_are_spelt_out(simulated, run_command):
    """What somebody typed or pasted is repeated so that it neither moves the cursor nor reads as something else."""
    store, _, (_, _, _, file, *_) = simulated
    odd = store.with_name("\u202ec.yaml")
    shutil.copy(file, odd)
    for words in (
        ("history", "forget", "--user", "ada\u202e\x1b[2J", "--history", store),
        ("history", "export", store.with_name("\u202ee.jsonl"), "--history", store),
        ("validate", odd),
        ("sweep", store.with_name("jobs.csv"), "--cluster", file, "--out", store.with_name("\u202eout")),
    ):
        code, out, err = run_command(*words)
        assert code == 0, err
        assert "\\u202e" in out
        assert all(letter == "\n" or letter.isprintable() for letter in out), out


def report(run_command, store, *words):
    code, out, err = run_command("report", "--history", store, *words)
    assert (code, err) == (0, "")
    return out


def test_a_report_closes_and_says_what_the_summary_says(simulated, run_command):
    store, summary, _ = simulated
    plain = json.loads(report(run_command, store, "--format", "json"))
    assert plain["lost"]["cpu"] == summary["lost"]["cpu"]
    assert plain["used"]["cpu"] + plain["lost"]["cpu"] + plain["idle"]["cpu"] == plain["capacity"]["cpu"]
    assert sum(r["lost"]["cpu"] for r in plain["rows"]) == sum(r["caused"]["cpu"] for r in plain["rows"])
    assert {r["key"]: r["evictions"] for r in plain["rows"]} == summary["evictions"]
    by_queue = {
        r["key"]: r for r in json.loads(report(run_command, store, "--by", "queue", "--format", "json"))["rows"]
    }
    assert by_queue["b"]["lost"] == by_queue["a"]["caused"] == plain["lost"]
    assert by_queue["a"]["gained"]["cpu"] > 0


def test_the_other_forms_say_the_same(simulated, run_command, tmp_path):
    store, summary, _ = simulated
    (tmp_path / "prices.yaml").write_text("cpu: 3600\n")
    rows = list(csv.DictReader(io.StringIO(report(run_command, store, "--format", "csv", "--by", "workload"))))
    assert sum(float(row["lost"]) for row in rows) == summary["lost"]["cpu"]
    page = report(run_command, store, "--format", "html", "--by", "workload")
    assert "<i>odd" not in page
    assert "&lt;i&gt;odd" in page
    text = report(run_command, store, "--prices", tmp_path / "prices.yaml")
    assert f"lost {summary['lost']['cpu']:,.2f}" in text


def test_every_line_of_a_table_for_spreadsheets_says_in_which_unit_it_is(simulated, run_command, tmp_path):
    """The units of JSON and CSV are the same; what has a price is there in money too, with the sum that JSON has."""
    store, _, _ = simulated
    (tmp_path / "prices.yaml").write_text("cpu: 3600\n")
    words = ("--by", "queue", "--prices", tmp_path / "prices.yaml")
    plain = json.loads(report(run_command, store, "--format", "json", *words))
    rows = list(csv.DictReader(io.StringIO(report(run_command, store, "--format", "csv", *words))))
    assert plain["units"] == {"cpu": "core-seconds"}
    assert {row["resource"]: row["unit"] for row in rows} == plain["units"]
    assert sum(float(row["lost_money"]) for row in rows) == plain["money"]["lost"] > 0
    assert {row["queue"]: int(row["repeated"]) for row in rows} == {r["key"]: r["repeated"] for r in plain["rows"]}
    bare = csv.DictReader(io.StringIO(report(run_command, store, "--format", "csv")))
    assert not [name for name in bare.fieldnames if "money" in name]


def test_a_price_of_what_there_was_none_of_is_warned_of(simulated, run_command, tmp_path):
    prices = tmp_path / "prices.yaml"
    prices.write_text("cpus: 3600\nexample.com/thing: 1\ncpu: 1\n")
    for form in ("text", "json", "csv", "html"):
        code, out, err = run_command("report", "--history", simulated[0], "--prices", prices, "--format", form)
        assert (code, bool(out)) == (0, True)
        assert err.splitlines() == [
            f"warning: {prices}: 'cpus' has a price, but there was none of it; did you mean cpu?",
            f"warning: {prices}: 'example.com/thing' has a price, but there was none of it",
        ]


@pytest.mark.parametrize(("price", "code", "last"), [("1", 0, "1000 further resources have a price"),
                                                     ("no", 1, "1000 further problems are not shown")])  # fmt: skip
def test_of_many_prices_that_are_wrong_a_thousand_are_told(simulated, tmp_path, run_command, price, code, last):
    """A file of another kind, or of a hostile hand, fills no terminal."""
    prices = tmp_path / "prices.yaml"
    prices.write_text("".join(f"example.com/r{i}: {price}\n" for i in range(2_000)))
    ended, _, err = run_command("report", "--history", simulated[0], "--prices", prices)
    told = err.splitlines()
    assert ended == code
    assert last in told[-1]
    assert len(told) == 1_001


def test_of_an_empty_file_it_is_said_how_one_of_its_kind_begins(simulated, run_command, tmp_path):
    empty = tmp_path / "empty"
    empty.write_text("")
    for words, begins in (
        (("report", "--history", simulated[0], "--prices", empty), "nvidia.com/gpu: 2.5"),
        (("plan", tmp_path / "c.yaml", "--queues", empty), "partitions:"),
        (("plan", empty), "apiVersion: tenure.dev/v1beta1"),
    ):
        code, out, err = run_command(*words)
        assert (code, out, err) == (1, "", f"{empty}: is empty; a file begins with '{begins}'\n")


def test_what_is_no_export_is_refused_in_words(run_command, tmp_path):
    """Whether it is a folder, or text in another encoding."""
    (tmp_path / "latin.jsonl").write_bytes(b'{"at": "caf\xe9"}\n')
    for name, said in (("", "is a folder; name a file in it"), ("latin.jsonl", "byte 0xe9 is not UTF-8")):
        code, out, err = run_command("history", "import", tmp_path / name, "--history", tmp_path / "new.db")
        assert (code, out) == (1, "")
        assert said in err
        assert "codec" not in err


@pytest.mark.parametrize("option", ["--simulation", "--history"])
def test_the_name_of_a_live_cluster_does_not_keep_a_console_from_a_simulation(
    simulated, run_command, monkeypatch, option
):
    """Where that name is asked for, a simulation of another is refused as before."""
    monkeypatch.setattr("tenure.web.access.server.serve", lambda *given: given[2]())
    monkeypatch.setenv("TENURE_CLUSTER", "prod")
    before = signal.getsignal(signal.SIGTERM)
    try:
        code, out, err = run_command("console", option, simulated[0], "--port", "0")
        assert (code, out[:28], err) == (0, "listening on http://127.0.0.", "")
        code, _, err = run_command("console", option, simulated[0], "--port", "0", "--cluster-name", "prod")
        assert code == 1
        assert "prod" in err
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_story_names_who_took_the_room(simulated, run_command):
    store, _, _ = simulated
    code, out, _ = run_command("story", "default/long", "--history", store, "--format", "json")
    story = json.loads(out)
    assert (code, story["workload"]) == (0, "default/long")
    taken = next(r for r in story["records"] if r["kind"] == "evicted")
    assert (taken["cause"], taken["for"]) == ("reclaim", "default/owed")
    _, text, _ = run_command("story", "owed", "--history", store)
    assert "was evicted for it by reclaim" in " ".join(text.split())


def test_a_story_says_who_took_the_room_and_what_the_wait_would_have_taken(simulated, run_command, monkeypatch):
    """The evicted workload waited ten minutes for one more node; the story of another one's eviction has it once."""
    monkeypatch.setenv("COLUMNS", "120")
    store, _, _ = simulated
    plain = json.loads(run_command("story", "long", "--history", store, "--format", "json")[1])
    (wait,) = plain["waits"]
    assert (wait["waited_s"], wait["reasons"][0]["code"]) == (600, "NoNodeFits")
    assert "room for 1 more of its tasks at the same time" in wait["whatItWouldHaveTaken"]
    assert [(t["workload"], t["how"], t["cause"]) for t in plain["takers"]] == [("default/owed", "evicted", "reclaim")]
    text = " ".join(run_command("story", "long", "--history", store)[1].split())
    assert "tasks long-0 and 1 more evicted from n-0, n-1 by reclaim" in text
    assert "default/owed a it was evicted for this one" in text
    assert "it waited 10 min, from 2026-11-20T10:10:00Z, until 2026-11-20T10:20:00Z why it waited: - NoNodeFits" in text
    assert "what it would have taken: - room for 1 more of its tasks at the same time" in text
    assert "why it waited" not in run_command("story", "long", "--history", store, "--waits", "0")[1]


@pytest.mark.parametrize("name", ["run.parquet", "run.jsonl.gz"])
def test_an_export_reports_as_its_store_does(simulated, run_command, tmp_path, name):
    store, _, _ = simulated
    code, _, err = run_command("history", "export", tmp_path / name, "--history", store)
    assert (code, err) == (0, "")
    for by in ("queue", "cause"):
        words = ("--by", by, "--format", "json")
        assert report(run_command, tmp_path / name, *words) == report(run_command, store, *words)


def test_parquet_opens_as_a_table(simulated, run_command, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    run_command("history", "export", tmp_path / "x.parquet", "--history", simulated[0])
    table = parquet.read_table(tmp_path / "x.parquet")
    assert str(table.schema.field("time").type) == "timestamp[us, tz=UTC]"
    assert table.num_rows > 5


def test_opentelemetry_logs_have_what_the_format_asks_for(simulated, run_command, tmp_path):
    run_command("history", "export", tmp_path / "x.otlp.json", "--history", simulated[0])
    for line in (tmp_path / "x.otlp.json").read_text().splitlines():
        for resource in json.loads(line)["resourceLogs"]:
            for record in resource["scopeLogs"][0]["logRecords"]:
                assert record["timeUnixNano"].isdecimal()
                assert record["eventName"].startswith("tenure.")
                assert json.loads(record["body"]["stringValue"]) is not None


def test_the_same_simulation_adds_nothing_and_another_is_refused(simulated, run_command):
    store, _, words = simulated
    before = report(run_command, store, "--format", "json")
    assert run_command(*words, "--history", store)[0] == 0
    assert report(run_command, store, "--format", "json") == before
    code, _, err = run_command(*words, "--set", "scheduler.actions=[allocate]", "--history", store)
    assert code == 3
    assert "holds another history already: a simulation of jobs.csv with other settings or input" in err


@pytest.mark.parametrize(("old", "new"), [("<i>odd", "even"), ("60,60,b", "60,60,a"), ("1,1000", "1,500")])
def test_what_jobs_are_tells_simulations_apart_where_all_happens_at_the_same_times(
    simulated, run_command, tmp_path, old, new
):  # fmt: skip
    store, _, words = simulated
    assert old in JOBS
    (tmp_path / "jobs.csv").write_text(JOBS.replace(old, new))
    code, _, err = run_command(*words, "--history", store)
    assert code == 3
    assert "holds another history already: a simulation of jobs.csv with other settings or input" in err


def test_that_a_history_is_of_an_earlier_version_is_said(simulated, run_command, tmp_path):
    """Versions may decide otherwise, and describe a cluster otherwise."""
    store, _, words = simulated
    for payload, version in (('json_set(payload, "$.tenure", "0.0.9")', "Tenure 0.0.9"),
                             ('json_remove(payload, "$.tenure")', "an earlier version of Tenure")):  # fmt: skip
        path = tmp_path / f"{len(version)}.db"
        shutil.copy(store, path)
        with sqlite3.connect(path) as connection:
            (table,) = next(connection.execute("SELECT 'tenure_records_' || min(month) FROM tenure_months"))
            connection.execute(f"UPDATE {table} SET payload = {payload}, key = x'00' WHERE kind = 'origin'")
        connection.close()
        code, _, err = run_command(*words, "--history", path)
        assert code == 3
        assert err.count("\n") == 1
        assert f"{path}: holds the simulation of jobs.csv by {version}; that of Tenure {tenure.__version__}" in err
        assert "name a new one, or remove it" in err


def test_a_replay_under_the_same_settings_is_what_happened(tmp_path, run_command, simulated):
    _, _, words = simulated
    store = tmp_path / "plain.db"
    words = (*words, "--set", "scheduler.actions=[allocate]", "--history", store)
    assert run_command(*words)[0] == 0
    code, out, err = run_command("replay", "--from", store, "--format", "json")
    both = json.loads(out)
    assert (code, err) == (0, "")
    assert both["happened"]["used"] == both["replayed"]["used"]
    code, out, _ = run_command("replay", "--from", store, "--set", "scheduler.actions=[allocate, reclaim]")
    assert code == 0
    assert "evictions by reclaim" in out


def test_what_plan_would_do_is_written_once(tmp_path, run_command):
    (tmp_path / "c.yaml").write_text(
        CLUSTER + "workloads: [{name: w, queue: a, requests: {cpu: 1}, createdAt: 2026-11-20T09:00:00Z}]\n"
    )
    for _ in range(2):
        assert run_command("plan", tmp_path / "c.yaml", "--history", tmp_path / "p.db", "--every", "1m")[0] == 0
    plain = json.loads(report(run_command, tmp_path / "p.db", "--by", "queue", "--format", "json"))
    assert plain["used"] == {"cpu": 60}
    assert plain["capacity"] == {"cpu": 8 * 60}
    story = json.loads(run_command("story", "w", "--history", tmp_path / "p.db", "--format", "json")[1])
    assert [r["kind"] for r in story["records"]] == ["submitted", "started"]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("report",), 2, "which history"),
        (("report", "--history", "none.db"), 1, "no such file"),
        (("report", "--history", "{}", "--since", "soon"), 2, "no time"),
        (
            ("report", "--history", "{}", "--since", "2026-11-21T00:00:00Z", "--until", "2026-11-20T00:00:00Z"),
            2,
            "before",
        ),
        (("report", "--history", "postgresql://u:pass@127.0.0.1:1/x"), 3, "cannot be reached"),
        (("story", "nobody", "--history", "{}"), 1, "nothing happened"),
        (("history", "export", "x", "--kind", "evictd", "--history", "{}"), 2, "did you mean evicted?"),
        (("history", "import", "none.jsonl", "--history", "{}"), 1, "no such file"),
        (("history", "prune", "--keep", "soon", "--history", "{}"), 2, "--keep"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(simulated, run_command, monkeypatch, words, code, told):
    monkeypatch.delenv("TENURE_HISTORY", raising=False)
    found, out, err = run_command(*(word.format(simulated[0]) for word in words))
    assert (found, out) == (code, "")
    assert told in err
    assert "Traceback" not in err
    assert ":pass@" not in err


@pytest.mark.parametrize(
    "words", [("prune", "--keep", "1d"), ("forget", "--user", "ada"), ("migrate",)], ids=lambda words: words[0]
)
def test_what_looks_after_a_history_makes_none(tmp_path, run_command, words):
    """A name is not reported as taken out of a file that was never there, and an empty or other file stays as it is."""
    missing, empty, other = (tmp_path / name for name in ("missing.db", "empty.db", "other.db"))
    empty.write_bytes(b"")
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("CREATE TABLE theirs (number INTEGER)")
    for path, expected, told in (
        (missing, 1, "there is no such file"),
        (empty, 1, "is empty, so it holds no history"),
        (other, 3, "holds no history"),
    ):
        code, out, err = run_command("history", *words, "--history", path)
        assert (code, out) == (expected, ""), err
        assert f"{path}: " in err
        assert told in err
    assert not missing.exists()
    assert empty.read_bytes() == b""
    with closing(sqlite3.connect(other)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]


def test_an_import_makes_no_history_of_what_is_no_export_and_says_where_it_makes_one(simulated, run_command, tmp_path):
    """A mistyped name of either file is seen."""
    store, exported = simulated[0], tmp_path / "all.jsonl"
    made = tmp_path / "made.db"
    (tmp_path / "wide.jsonl").write_text("{}", encoding="utf-16")
    for source, told in (
        ("missing.jsonl", "there is no such file"),
        (store, "is a history itself; export it first"),
        ("wide.jsonl", "is UTF-16 text; save it as UTF-8"),
    ):
        code, _, err = run_command("history", "import", tmp_path / source, "--history", made)
        assert (code, told in err, made.exists()) == (1, True, False), err
    assert run_command("history", "export", exported, "--history", store)[0] == 0
    code, out, _ = run_command("history", "import", exported, "--history", made)
    assert (code, f"{made} is a new history" in out) == (0, True)
    assert "new history" not in run_command("history", "import", exported, "--history", made)[1]


def test_pruning_counts_ages_from_now_where_the_last_record_is_of_a_clock_that_was_ahead(run_command, tmp_path):
    """One record of the year 9999 takes nothing of today out."""
    path, today = tmp_path / "history.db", time.time_ns() // 1000
    drafts = [Draft(at, "leader", payload="{}", key=key_of(at)) for at in (today, 253_402_300_000_000_000)]
    with open_history(str(path), write=True) as store:
        store.append(Origin("c"), drafts)
    assert run_command("history", "prune", "--history", path) == (0, "0 records taken out\n", "")
    assert (
        run_command("history", "prune", "--now", "9999-12-31T00:00:00Z", "--history", path)[1]
        == "1 records taken out\n"
    )


WRONG = [
    ("evicted", "lost", {"cpu": "x"}), ("evicted", "task", 5), ("started", "tasks", [["a"]]), ("started", "tasks", 2),
    ("submitted", "specs", [[10**12, {}]]), ("submitted", "tasks", []), ("submitted", "expected", "long"),
    ("submitted", "checkpoint", []), ("outcome", "start", None), ("outcome", "evictedAt", 10**30),
    ("usage", "level", {"cpu": 1}), ("usage", "held", {"cpu": 1e300}), ("origin", "cluster", [1]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name", "value"), WRONG)
def test_a_payload_that_is_not_what_records_have_is_refused_when_it_is_read(
    simulated, run_command, tmp_path, kind, name, value
):
    """It names the line and the field; nothing that reads a history meets it."""
    exported, odd = tmp_path / "all.jsonl", tmp_path / "odd.jsonl"
    assert run_command("history", "export", exported, "--history", simulated[0])[0] == 0
    lines = [json.loads(line) for line in exported.read_text().splitlines()]
    number = next(n for n, line in enumerate(lines) if line["kind"] == kind)
    lines[number]["payload"][name] = value
    odd.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for words in (("report",), ("story", "default/long"), ("history", "import", odd)):
        where = tmp_path / "new.db" if words[0] == "history" else odd
        code, _, err = run_command(*words, "--history", where)
        assert (code, err.startswith(f"{odd}:{number + 1}: payload.{name}: ")) == (1, True), err


def test_names_that_are_no_text_are_refused_or_spelt_out(simulated, run_command, tmp_path):
    """As a system gives them of bytes that are not UTF-8."""
    store, _, (_, trace, _, file, *_) = simulated
    for words in (("story", "a\udcff"), ("history", "forget", "--user", "\udcff")):
        code, _, err = run_command(*words, "--history", store)
        assert (code, "is no text in UTF-8" in err) == (2, True), err
    odd, made = tmp_path / "\udcff.csv", tmp_path / "odd.db"
    shutil.copy(trace, odd)
    assert run_command("simulate", odd, "--cluster", file, "--history", made)[0] == 0
    with open_history(str(made)) as found:
        assert [origin.cluster for origin in found.info().origins] == ["\\udcff.csv"]

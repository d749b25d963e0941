"""``tenure validate``: all problems of all files, one line each."""

import io
import json

import pytest

from tenure.cli.main import main

GOOD = """\
apiVersion: tenure.dev/v1alpha1
kind: Cluster
now: 2026-11-20T10:00:00Z
nodes: [{name: n, count: 2, allocatable: {cpu: 1}}]
queues: [{name: q}]
workloads: [{name: w, queue: q, replicas: 3}, {name: v, queue: q}]
"""
BAD = "kind: Cluster\nnow: soon\nqueues:\n- {name: a, parent: b}\n- {name: c, quota: 1}\n"


@pytest.fixture
def validate(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(files, *options):
        for name, content in files.items():
            (tmp_path / name).write_text(content)
        with pytest.raises(SystemExit) as caught:
            main(["validate", *options, *files])
        captured = capsys.readouterr()
        return caught.value.code, captured.out, captured.err

    return run


def test_a_valid_file_says_what_it_holds(validate):
    assert validate({"good.yaml": GOOD}) == (0, "good.yaml: valid, 2 nodes, 1 queue, 2 workloads (4 tasks)\n", "")


def test_all_problems_of_all_files_are_told_one_per_line(validate):
    code, out, err = validate({"bad.yaml": BAD, "good.yaml": GOOD, "worse.json": '{"nodes": [\n{}]}'})
    assert code == 1
    assert out == "good.yaml: valid, 2 nodes, 1 queue, 2 workloads (4 tasks)\n"
    assert err.splitlines() == [
        "bad.yaml:2: now: 'soon' is not a time; write one such as 2026-11-20T10:00:00Z (RFC 3339)",
        "bad.yaml:4: queues[0].parent: there is no queue b; add it, or leave the parent out",
        "bad.yaml:5: queues[1].quota: unknown key; leave it out",
        "worse.json:2: nodes[0].name: is missing; it is required",
    ]


@pytest.mark.parametrize(
    ("annotation", "text"), [("expected-runtime", "2 hours"), ("requeue-delay", "soon"), ("requeue-not-before", "noon")]
)
def test_annotations_that_a_plan_would_warn_of_are_told(validate, annotation, text):
    said = GOOD.replace("name: w,", f'name: w, annotations: {{tenure.dev/{annotation}: "{text}"}},')
    code, out, err = validate({"c.yaml": said})
    assert code == 0
    assert out.startswith("c.yaml: valid")
    assert err.startswith(f"c.yaml:6: workloads: warning: default/w: annotation tenure.dev/{annotation}: '{text}' is ")


def test_warnings_are_shown_and_change_no_exit_code(validate):
    text = GOOD.replace("replicas: 3", "tasks: [{name: t, node: n-1, requests: {cpu: 2}}]")
    code, out, err = validate({"c.yaml": text})
    assert code == 0
    assert out.startswith("c.yaml: valid")
    assert err == (
        "c.yaml:4: nodes[0].allocatable.cpu: warning: the tasks on node n-1 hold 2 of cpu, more than its 1\n"
    )


def test_settings_are_validated_by_the_same_command(validate):
    good = "kind: SchedulerConfig\nscheduler: {backfill: easy}\n"
    assert validate({"s.yaml": good}) == (0, "s.yaml: valid, settings of the scheduler\n", "")
    code, _, err = validate({"s.yaml": good.replace("easy", "hard")})
    assert code == 1
    assert err.startswith("s.yaml:2: scheduler.backfill: is 'hard' (text), but one of none | easy is expected")


def test_json_holds_the_same_as_data(validate):
    code, out, err = validate({"bad.yaml": BAD, "good.yaml": GOOD}, "--format", "json")
    assert (code, err) == (1, "")
    bad, good = json.loads(out)["files"]
    assert [(p["file"], p["line"], p["path"]) for p in bad["problems"]] == [
        ("bad.yaml", 2, "now"),
        ("bad.yaml", 4, "queues[0].parent"),
        ("bad.yaml", 5, "queues[1].quota"),
    ]
    assert good == {
        "file": "good.yaml",
        "valid": True,
        "kind": "Cluster",
        "nodes": 2,
        "queues": 1,
        "workloads": 2,
        "tasks": 4,
        "problems": [],
        "warnings": [],
    }


def test_what_cannot_be_read_is_a_problem_like_others(validate, tmp_path):
    (tmp_path / "folder").mkdir()
    code, out, err = validate({"empty.yaml": ""}, "folder", "gone.yaml")
    assert (code, out) == (1, "")
    assert err.splitlines() == [
        "folder: is a folder; name a file in it",
        "gone.yaml: there is no such file",
        "empty.yaml: is empty; a file begins with 'apiVersion: tenure.dev/v1beta1'",
    ]


def test_standard_input_is_a_file_like_others(validate, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(GOOD.encode())))
    assert validate({}, "-") == (0, "-: valid, 2 nodes, 1 queue, 2 workloads (4 tasks)\n", "")


def test_the_schema_is_printed_for_editors(validate):
    code, out, _ = validate({}, "--schema")
    assert code == 0
    assert json.loads(out)["$schema"].startswith("https://json-schema.org/")

"""Traces as they are published, and accounting of Slurm: what becomes of each record, and what is told of the rest."""
# ruff: noqa: E501  tables of values are lines

from __future__ import annotations

import json
import re

import pytest
from tests.simulator.trace_samples import (
    AZURE,
    COLLECTION_EVENTS,
    HELIOS,
    INSTANCE_EVENTS,
    JOB_EVENTS,
    PAI_INSTANCES,
    PAI_JOBS,
    PAI_TASKS,
    PHILLY_JOBS,
    SACCT,
    SAMPLES,
    json_lines,
    philly_job,
)

from tenure.model.values.problems import InvalidInputError
from tenure.model.values.resources import CPU, GPU, MEMORY
from tenure.simulator.trace import read_trace
from tenure.simulator.traces.registry import FORMATS
from tenure.simulator.traces.tres import parse_tres

SECOND = 1_000_000
GIB = 1 << 30


def sample(name, folder):
    path, options = SAMPLES[name].write(folder)
    return read_trace(path, **options)


def problems_of(path, **options):
    with pytest.raises(InvalidInputError) as caught:
        read_trace(path, **options)
    return [(p.line, p.path, p.message) for p in caught.value.problems]


def facts(job):
    """Give name, queue, submit time and run time in seconds, and what each pod has: cores, GiB and GPUs."""
    w = job.workload
    return w.name, w.queue, w.created_at / SECOND, job.runtime / SECOND, [pod(task) for task in w.tasks]


def pod(task):
    requests = dict(task.spec.requests)
    share = task.spec.gpu_share
    gpus = requests.get(GPU, 0) if share is None else share.milli * share.devices / 1000
    return requests.get(CPU, 0) / 1000, requests.get(MEMORY, 0) / GIB, gpus


FACTS = {
    "philly-json": [
        ("application_150_1", "ee9e8c", 0, 60, [(0, 0, 8)]),
        ("application_150_2", "ee9e8c", 90, 30 + 600, [(0, 0, 3), (0, 0, 1)]),
        ("application_150_5", "ee9e8c", 93, 30 * 60, [(0, 0, 1)]),
    ],
    "helios": [
        ("1425511", "vcJkd", 0, 60, [(6, 0, 1)]),
        ("1425512", "vchbv", 26, 249, [(16, 0, 6)] * 2),
        ("1425513", "vcpDC", 27, 7, [(1.5, 0, 3), (1.5, 0, 2)]),
        ("1425515", "vcpDC", 29, 240, [(1, 0, 1)]),
    ],
    "pai": [
        ("aaa", "default", 990, 35, [(6, 30000 / 1024, 0.5)]),
        ("bbb", "default", 1000, 105, [(6, 10, 0), (4, 20, 1.5), (4, 20, 1.5)]),
        ("ddd", "default", 1050, 65, [(6, 30000 / 1024, 1)]),
    ],
    "sacct": [
        ("101", "vision", 0, 7200, [(8, 64, 2)] * 2),
        ("102_1", "speech", 120, 60, [(1.5, 2000 / 1024, 0)] * 2),
        ("103", "speech", 300, 120, [(2, 1.5, 0), (1, 0.5, 3)]),
        ("104", "vision", 600, 60 + 120, [(1, 0, 0)]),
        ("105", "vision", 3600, 3600, [(1, 0, 0)]),
        ("106", "vision", 3600, 300, [(1, 0, 0)]),
    ],
    "sacct json": [
        ("5", "vision", 0, 60, [(4, 2000 / 1024, 1)] * 2),
        ("7_3", "vision", 0, 30, [(4, 2000 / 1024, 0)] * 2),
        ("9", "vision", 0, 40, [(4, 2000 / 1024, 0)] * 4),
        ("12", "vision", 0, 60, [(4, 2000 / 1024, 0)] * 2),
    ],
    "google 2019": [
        ("11", "default", 0, 6, [(2, 1, 0), (4, 1, 0)]),
        ("14", "default", 3, 5, [(10, 20, 0)]),
    ],
    "google 2011": [
        ("31", "default", 0, 100, [(2.5, 1628 / 1024, 0)]),
        ("32", "default", 605, 20 + 50, [(50, 25, 0)]),
    ],
    "azure": [
        ("vm1", "default", 0, 2591700, [(8, 32, 0)]),
        ("vm2", "default", 300, 600, [(24, 64, 0)]),
        ("vm3", "default", 600, 0, [(2, 1.75, 0)]),
    ],
}  # fmt: skip
FACTS["google 2019 json"], FACTS["azure with names"] = FACTS["google 2019"], FACTS["azure"]

DROPPED = {
    "philly-json": {"never started": 2, "asks for nothing": 1},
    "helios": {"never started": 2, "no end recorded": 1},
    "pai": {"never started": 1, "no end recorded": 1},
    "pai with names": {"never started": 1, "no end recorded": 1},
    "sacct": {"never started": 2, "ran in another cluster": 1, "step of a job": 3},
    "sacct json": {"never started": 1},
    "google 2019": {"never started": 1, "set of reservations": 1},
    "google 2019 json": {"never started": 1, "set of reservations": 1},
    "google 2011": {},
    "azure": {},
    "azure with names": {},
}


@pytest.mark.parametrize("name", FACTS)
def test_what_becomes_of_the_jobs(tmp_path, name):
    assert list(map(facts, sample(name, tmp_path).jobs)) == FACTS[name]


@pytest.mark.parametrize("name", SAMPLES)
def test_an_empty_line_before_all_others_is_none(tmp_path, name):
    path, options = SAMPLES[name].write(tmp_path)
    jobs = read_trace(path, **options).jobs
    path.write_bytes(b"\n" + path.read_bytes())
    assert read_trace(path, **options).jobs == jobs


@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_no_job_is_counted_and_what_still_ran_is_told(tmp_path, name):
    trace = sample(name, tmp_path)
    assert trace.format == SAMPLES[name].format
    assert trace.drop_reasons == DROPPED[name]
    assert trace.dropped == sum(DROPPED[name].values())
    running = [note for note in trace.notes if "1 job was still running" in note]
    assert len(running) == (0 if name.startswith("azure") else 1)


def test_without_tables_beside_times_and_users_are_those_of_tasks(tmp_path):
    first, *_ = sample("pai with names", tmp_path).jobs
    assert facts(first)[2:4] == (1000, 60)
    assert first.workload.labels == {"status": "Terminated", "gpu_type": "MISC"}


LABELS = {
    "philly-json": {"vc": "ee9e8c", "user": "ce2f4c", "status": "Pass"},
    "helios": {"vc": "vcJkd", "user": "uXBbc", "state": "COMPLETED"},
    "pai": {"status": "Terminated", "gpu_type": "MISC", "user": "u1"},
    "sacct": {"account": "vision", "user": "ann", "partition": "gpu", "qos": "normal", "state": "COMPLETED"},
    "google 2019": {"scheduling_class": "2", "user": "alice", "logical_name": "l1"},
    "azure": {"subscriptionid": "s1", "deploymentid": "d1", "vmcategory": "Delay-insensitive"},
}


@pytest.mark.parametrize("name", LABELS)
def test_who_and_where_is_kept_as_labels(tmp_path, name):
    assert sample(name, tmp_path).jobs[0].workload.labels == LABELS[name]


def test_a_time_limit_is_what_is_expected(tmp_path):
    expected = {job.record: job.workload.expected_runtime for job in sample("sacct", tmp_path).jobs}
    assert expected["101"] == 86_400 * SECOND
    assert expected["103"] == 600 * SECOND
    assert expected["102_1"] is expected["105"] is None


def test_cancelled_by_a_user_is_one_state(tmp_path):
    states = {job.record: job.workload.labels["state"] for job in sample("sacct", tmp_path).jobs}
    assert (states["102_1"], states["104"]) == ("CANCELLED", "COMPLETED")


def test_only_a_part_of_a_dated_log_is_kept_counted_from_its_first_submission(tmp_path):
    path, _ = SAMPLES["sacct"].write(tmp_path)
    assert [job.record for job in read_trace(path, start_s=120, end_s=600).jobs] == ["102_1", "103"]


def test_dates_of_sacct_of_which_only_some_have_an_offset_are_noted(tmp_path):
    """One that has none is read as UTC, hours beside the others where those are not."""
    plain, _ = SAMPLES["sacct"].write(tmp_path)
    assert not any("offset" in note for note in read_trace(plain).notes)
    mixed, alike = tmp_path / "mixed.txt", tmp_path / "alike.txt"
    mixed.write_text(SACCT.replace("2024-01-05T10:01:00", "2024-01-05T10:01:00+01:00"))
    alike.write_text(re.sub(r"(2024-\S\S-\S\ST\d\d:\d\d:\d\d)", r"\1+01:00", SACCT))
    assert any("have no offset from UTC and are read as if they were UTC" in n for n in read_trace(mixed).notes)
    assert read_trace(alike) == read_trace(plain)


def test_output_of_sacct_with_separators_at_the_ends_of_lines_is_the_same(tmp_path):
    plain, _ = SAMPLES["sacct"].write(tmp_path)
    other = tmp_path / "parsable.txt"
    other.write_text("".join(f"{line}|\n" for line in SACCT.splitlines()))
    assert read_trace(other) == read_trace(plain)


def test_names_of_columns_of_sacct_are_read_in_any_case(tmp_path):
    plain, _ = SAMPLES["sacct"].write(tmp_path)
    other = tmp_path / "lower.txt"
    head, rest = SACCT.split("\n", 1)
    other.write_text(f"{head.lower()}\n{rest}")
    assert read_trace(other) == read_trace(plain)


@pytest.mark.parametrize(
    ("header", "cells", "pods"),
    [
        ("NNodes|NCPUS|ReqMem", "2|8|64G", [(4, 32, 0)] * 2),
        ("NNodes|ReqCPUS|ReqMem", "2|8|2000Mn", [(4, 2000 / 1024, 0)] * 2),
        ("AllocNodes|AllocCPUS|ReqMem", "2|8|512Mc", [(4, 2, 0)] * 2),
        ("ReqNodes|NCPUS|ReqMem|ReqGRES", "2|8|0|gpu:2", [(4, 0, 2)] * 2),
        ("NNodes|NCPUS|ReqMem|ReqGRES", "1|8|1.5T|gpu:a100:3(S:0-1),nvme:1", [(8, 1536, 3)]),
        ("ReqTRES|AllocTRES", "|cpu=4,gres/gpu:v100=1,mem=1024K,node=1", [(4, 1 / 1024, 1)]),
        ("ReqTRES|ReqMem", "cpu=4,node=1|8G", [(4, 8, 0)]),
        ("NNodes|NCPUS", "2K|4096", [(2, 0, 0)] * 2048),
        ("ReqTRES", "billing=5,bb/cray=1,cpu=3,node=2,gres/gpu=3", [(1.5, 0, 2), (1.5, 0, 1)]),
    ],
)  # fmt: skip
def test_what_a_job_of_slurm_asks_for(tmp_path, header, cells, pods):
    path = tmp_path / "jobs.txt"
    path.write_text(
        f"JobID|Submit|Start|End|{header}\n1|2024-01-05T10:00:00|2024-01-05T10:00:00|2024-01-05T11:00:00|{cells}\n"
    )
    (job,) = read_trace(path).jobs
    assert facts(job)[4] == pods


@pytest.mark.parametrize(("cells", "runtime"), [("120|", 120), ("|1-00:00:10", 86_410), ("|03:04", 184)])
def test_an_end_that_is_missing_comes_from_how_long_it_took(tmp_path, cells, runtime):
    path = tmp_path / "jobs.txt"
    path.write_text(f"JobID|Submit|Start|State|NCPUS|ElapsedRaw|Elapsed\n1|1704448800|1704448860|FAILED|1|{cells}\n")
    (job,) = read_trace(path).jobs
    assert job.runtime == runtime * SECOND


def test_resources_without_a_name_are_refused():
    with pytest.raises(ValueError, match="NAME=AMOUNT"):
        parse_tres("cpu=3,64G")
    with pytest.raises(ValueError, match="no count"):
        parse_tres("gres/gpu=many")


def test_jobs_of_several_clusters_may_have_one_number(tmp_path):
    path = tmp_path / "jobs.txt"
    rows = [f"1|{cluster}|1704448800|1704448860|1704448870|1" for cluster in ("east", "west")]
    path.write_text("\n".join(["JobID|Cluster|Submit|Start|End|NCPUS", *rows]) + "\n")
    assert [job.record for job in read_trace(path).jobs] == ["1", "1.west"]


def changed(text, old, new):
    assert old in text
    return text.replace(old, new, 1)


WRONG = {
    "helios": (changed(HELIOS, '1425513,uzqls,vcpDC,"5"', "1425513,uzqls,vcpDC,five"), 4, "gpu_num", "'five' is not a number"),
    "helios date": (changed(HELIOS, "2020-06-09 18:41:27,", "09/06/2020,"), 3, "submit_time", "is no date"),
    "helios month": (changed(HELIOS, "2020-06-09 18:41:27,", "2020-13-09 18:41:27,"), 3, "submit_time", "is no date"),
    "helios twice": (changed(HELIOS, "1425512", "1425511"), 3, "job_id", "line 2 already"),
    "helios cut": (HELIOS[:-30], 8, "", "was the line cut?"),
    "pai": (changed(PAI_TASKS, "600.0,29.296875,50.0", "600.0,lots,50.0"), 1, "plan_mem", "'lots' is not a number"),
    "pai more": (changed(PAI_TASKS, "MISC", "MISC,1"), 1, "", "11 fields where the format has 10"),
    "sacct": (changed(SACCT, "cpu=16,gres/gpu:a100=4", "cpu=x,gres/gpu:a100=4"), 2, "reqtres", "'x' is no count"),
    "sacct id": (changed(SACCT, "\n106|", "\nsix|"), 14, "jobid", "'six' is no job"),
    "sacct name": (changed(SACCT, "|gone|", "|go|ne|"), 14, "", "is there a separator too many?"),
    "sacct state": (changed(SACCT, "|COMPLETED|", "|\u202e|"), 2, "state", "holds characters that cannot be printed"),
    "sacct limit": (changed(SACCT, "1-00:00:00", "a day"), 2, "timelimit", "is no length of time"),
    "google 2019": (changed(INSTANCE_EVENTS, "4000000,4,", "4000000,fourth,"), 6, "type", "'fourth' is not a number"),
    "google 2019 json": (changed(json_lines(INSTANCE_EVENTS), '"type": "4"', '"type": "99"'), 5, "type", "not between"),
    "azure": (changed(AZURE, ">24", "many"), 2, "vmcorecount", "'many' is not a number"),
    "azure empty": (changed(AZURE, ",300,900,", ",300,,"), 2, "vmdeleted", "every record needs it"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told_with_line_and_column(tmp_path, name):
    text, line, column, message = WRONG[name]
    known = SAMPLES[next(one for one in sorted(SAMPLES, key=len, reverse=True) if name.startswith(one))]
    path = tmp_path / known.name
    path.write_text(text)
    ((at, where, told),) = problems_of(path, format=known.format)
    assert (at, where) == (line, column)
    assert message in told


@pytest.mark.parametrize(
    ("changes", "path", "message"),
    [
        ({"submitted_time": None}, "submitted_time", "missing"),
        ({"submitted_time": 7.5}, "submitted_time", "is no date"),
        ({"jobid": ""}, "jobid", "missing"),
        ({"jobid": ["a"]}, "jobid", "is no text"),
        ({"jobid": "application_150_1"}, "jobid", "line 1 already"),
        ({"attempts": "none"}, "attempts", "is no list of objects"),
        ({"attempts": [{"start_time": "soon"}]}, "attempts[0].start_time", "is no date"),
        ({"attempts": [{"detail": 5}]}, "attempts[0].detail", "is no list of objects"),
        ({"attempts": [{"detail": [{"gpus": 8}]}]}, "attempts[0].detail[0].gpus", "is no list"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_json_record_is_told_with_its_path(tmp_path, changes, path, message):
    file = tmp_path / "cluster_job_log"
    other = philly_job(9, []) | changes
    file.write_text(f"[{json.dumps(PHILLY_JOBS[0])},\n\n{json.dumps(other)}]")
    ((line, where, told),) = problems_of(file, format="philly-json")
    assert (line, where) == (3, path)
    assert message in told


def test_a_key_that_is_missing_is_told(tmp_path):
    file = tmp_path / "cluster_job_log"
    file.write_text(json.dumps([{key: value for key, value in PHILLY_JOBS[0].items() if key != "attempts"}]))
    assert problems_of(file, format="philly-json") == [(1, "attempts", "missing, but every record needs it")]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('[{"jobid": "a", "attempts"', 1, "was the file cut?"),
        ("[\n\n5]", 3, "a record is a JSON object"),
        ('[{"a": 1}\n{"b": 2}]', 2, "',' or ']' is missing"),
        ("[" * 200_000, 1, "nesting without end"),
        ('[{"a": ' + "[" * 200_000, 1, "nesting without end"),
        ('[{"a": ' + "9" * 5000 + "}]", 1, "a number or a nesting"),
        ("x", 1, "no valid JSON"),
    ],
)  # fmt: skip
def test_what_is_no_json_is_told_with_its_line(tmp_path, text, line, message):
    path = tmp_path / "log"
    path.write_text(text)
    ((at, _, told),) = problems_of(path, format="philly-json")
    assert (at, message in told) == (line, True), told


@pytest.mark.parametrize(
    ("text", "message"), [('{"meta": {}}', "has no list 'jobs'; there are meta"), ("{}", "has no 'jobs'")]
)
def test_json_of_another_command_of_slurm_is_told(tmp_path, text, message):
    path = tmp_path / "log.json"
    path.write_text(text)
    ((_, _, told),) = problems_of(path, format="sacct")
    assert message in told


@pytest.mark.parametrize(
    ("format_name", "text"),
    [("pai", PAI_JOBS), ("pai", PAI_INSTANCES), ("google", JOB_EVENTS), ("google", COLLECTION_EVENTS),
     ("google", json_lines(COLLECTION_EVENTS))],
)  # fmt: skip
def test_a_table_that_says_nothing_of_requests_goes_beside(tmp_path, format_name, text):
    path = tmp_path / "table"
    path.write_text(text)
    ((_, _, told),) = problems_of(path, format=format_name)
    assert "--beside" in told


def test_a_table_beside_is_one_of_the_others(tmp_path):
    path, options = SAMPLES["pai"].write(tmp_path)
    ((_, _, told),) = problems_of(path, **options | {"beside": [path]})
    assert "beside the table of tasks goes that of jobs" in told


def test_tables_beside_may_name_their_columns(tmp_path):
    """A table of instances names all that one of jobs needs as well."""
    path, options = SAMPLES["pai"].write(tmp_path)
    plain = read_trace(path, **options)
    for table, text in zip(FORMATS["pai"].tables[1:], (PAI_JOBS, PAI_INSTANCES), strict=True):
        named = tmp_path / table.name.split(" ")[0]
        named.write_text(f"{','.join(table.names)}\n{text}")
        others = [one for one in options["beside"] if one.read_text() != text]
        assert len(others) < len(options["beside"])
        assert read_trace(path, **options | {"beside": [named, *others]}).jobs == plain.jobs


def test_tables_beside_a_format_of_one_table_are_refused(tmp_path):
    path, _ = SAMPLES["helios"].write(tmp_path)
    ((_, _, told),) = problems_of(path, beside=[path])
    assert "--beside goes with a trace of format pai or google" in told


def test_columns_that_are_missing_are_named_once_with_those_that_are_there(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("user,job_id\n" + "a,1\n" * 3)
    assert problems_of(path, format="helios") == [
        (1, "submit_time, gpu_num", "these columns are missing; there are user, job_id")
    ]

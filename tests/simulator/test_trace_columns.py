"""Which column is which: by a mapping, by what else a table has, and as the page about traces says it."""
# ruff: noqa: E501  tables of values are lines

from __future__ import annotations

import csv
import io
import json

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
    TASK_EVENTS,
)

from tenure.model.values.problems import InvalidInputError
from tenure.simulator.trace import read_trace
from tenure.simulator.traces import mapping
from tenure.simulator.traces.parquet import to_parquet
from tenure.simulator.traces.registry import FORMATS
from tenure.simulator.traces.table import MOST_COLUMNS

TABLE = """\
id,arrived,seconds,team,owner,cards
a,0,60,vision,ann,2
b,5,30,speech,bob,
c,7,,,,1
"""
MAPPED = "id=job,arrived=submit_s,seconds=runtime_s,cards=gpus"


def written(folder, text, name="jobs.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def told(path, **options):
    with pytest.raises(InvalidInputError) as caught:
        read_trace(path, **options)
    (problem,) = caught.value.problems
    return problem


def jobs(trace):
    return [(j.record, j.workload.queue, j.runtime, j.workload.labels) for j in trace.jobs]


def test_any_table_is_read_by_a_mapping_and_what_else_it_has_becomes_labels(tmp_path):
    trace = read_trace(written(tmp_path, TABLE), columns=MAPPED)
    assert jobs(trace) == [
        ("a", "default", 60_000_000, {"team": "vision", "owner": "ann"}),
        ("b", "default", 30_000_000, {"team": "speech", "owner": "bob"}),
        ("c", "default", None, {}),
    ]
    assert [dict(j.workload.tasks[0].spec.requests) for j in trace.jobs] == [
        {"nvidia.com/gpu": 2},
        {},
        {"nvidia.com/gpu": 1},
    ]


@pytest.mark.parametrize("separator", ["\t", ";", "|"])
def test_cells_may_be_separated_otherwise(tmp_path, separator):
    plain, other = written(tmp_path, TABLE), written(tmp_path, TABLE.replace(",", separator), "other.csv")
    assert read_trace(other, columns=MAPPED) == read_trace(plain, columns=MAPPED)


def test_parquet_is_read_by_a_mapping(tmp_path):
    pytest.importorskip("pyarrow")
    head, *rows = csv.reader(io.StringIO(TABLE))
    columns = {name: [row[place] or None for row in rows] for place, name in enumerate(head)}
    path = written(tmp_path, to_parquet(columns, dict.fromkeys(head, "string")), "jobs.parquet")
    assert read_trace(path, columns=MAPPED) == read_trace(written(tmp_path, TABLE), columns=MAPPED)


def test_parquet_of_a_published_table_is_read(tmp_path):
    pytest.importorskip("pyarrow")
    head, *rows = csv.reader(io.StringIO(HELIOS))
    columns = {name: [row[place] or None for row in rows] for place, name in enumerate(head)}
    path = written(tmp_path, to_parquet(columns, dict.fromkeys(head, "string")), "log.parquet")
    assert read_trace(path, format="helios") == read_trace(written(tmp_path, HELIOS))


def test_columns_of_another_format_are_mapped_where_it_is_named(tmp_path):
    other = written(tmp_path, HELIOS.replace("gpu_num", "gpus", 1), "other.csv")
    assert read_trace(other, format="helios", columns="gpus=gpu_num") == read_trace(written(tmp_path, HELIOS))


@pytest.mark.parametrize(
    ("template", "queues"),
    [("team", ["vision", "speech", "default"]), ("{team}-{owner}", ["vision-ann", "speech-bob", "default"]),
     ("all", None), ("{team", None), ("", None)],
)  # fmt: skip
def test_the_queue_comes_from_a_column_or_from_several(tmp_path, template, queues):
    path = written(tmp_path, TABLE)
    if queues is not None:
        trace = read_trace(path, columns=MAPPED, queue_from=template)
        assert [j.workload.queue for j in trace.jobs] == queues
        assert any("1 job has no team" in note for note in trace.notes)
        return
    with pytest.raises(
        (InvalidInputError, ValueError),
        match=r"which no job has; there are namespace, owner, queue, team|is neither a column",
    ):
        read_trace(path, columns=MAPPED, queue_from=template)


def test_the_queue_of_a_published_trace_comes_from_a_label(tmp_path):
    path = written(tmp_path, SACCT, "jobs.txt")
    assert {j.workload.queue for j in read_trace(path, queue_from="Partition").jobs} == {"gpu", "cpu"}
    assert {j.workload.queue for j in read_trace(path, queue_from="{queue}.{user}").jobs} == {
        "vision.ann",
        "speech.bob",
    }


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("name=job,arrived=submit_s", "--columns names 'name', which the file does not have; there are id, arrived, seconds, team, owner, cards"),
        ("name=job,when=submit_s", "--columns names 'name', 'when', which the file does not have"),
        ("id=job,arrived=submitted", "--columns names 'submitted', which is no field here; fields are job, submit_s"),
        ("id=job", "this column is missing; there are id, arrived"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_mapping_is_told_once_with_what_there_is(tmp_path, columns, message):
    problem = told(written(tmp_path, TABLE), columns=columns)
    assert (problem.line, message in problem.message) == (1, True), problem.message


@pytest.mark.parametrize("text", ["job", "=job", "id=", "a=job,b=job", "id=job,,"])
def test_a_mapping_that_is_none_is_refused(tmp_path, text):
    with pytest.raises(ValueError, match=r"is not COLUMN=FIELD|is given by two columns"):
        read_trace(written(tmp_path, TABLE), columns=text)


def test_a_cell_that_is_wrong_is_told_by_the_column_of_the_file(tmp_path):
    problem = told(written(tmp_path, TABLE.replace("b,5", "b,soon")), columns=MAPPED)
    assert (problem.line, problem.path) == (3, "arrived")


def test_a_table_that_is_not_recognised_is_told_what_would_help(tmp_path):
    message = told(written(tmp_path, TABLE)).message
    assert "--columns COLUMN=FIELD,… which columns are job and submit_s; there are id, arrived" in message


def test_columns_of_what_has_none_are_refused(tmp_path):
    path = written(tmp_path, json.dumps(PHILLY_JOBS), "log")
    assert "goes with a table that names its columns" in told(path, format="philly-json", columns="a=b").message


def test_a_further_column_without_a_mapping_is_refused(tmp_path):
    """A typing error in the name of a field would otherwise become a label, and the field be missing in silence."""
    assert "further ones are kept as labels" in told(written(tmp_path, "job,submit_s,gpuss\na,1,2\n")).message


def test_labels_are_bounded_in_number_and_in_length(tmp_path):
    more = [f"c{n}" for n in range(mapping.MOST_LABELS + 5)]
    cells = ["x" * 1000, "a\x07b", *("v" for _ in more[2:])]
    path = written(tmp_path, f"id,at,{','.join(more)}\nj,0,{','.join(cells)}\n")
    trace = read_trace(path, columns="id=job,at=submit_s", queue_from=more[-1])
    labels = trace.jobs[0].workload.labels
    assert len(labels) == mapping.MOST_LABELS
    assert (len(labels["c0"]), labels["c1"], trace.jobs[0].workload.queue) == (mapping.MOST_LETTERS, "a?b", "v")
    first, second = trace.notes
    assert "left out: c19, c20, c21, c22, c23" in first
    assert "2 labels were cut" in second


# -- what the page says of columns is so ------------------------------------------------------------------------------

SWF = "; MaxProcs: 8\n1 0 5 10 2 3 4 4 60 5 1 7 8 1 2 1 1 1\n2 5 5 10 -1 3 4 2 60 5 1 7 8 1 2 1 1 1\n3 9 5 10 1 3 4 2 60 5 3 7 8 1 2 1 1 1\n"
PHILLY = "job_id,submit_s,runtime_s,pods,gpus_per_pod,req_time_s,cpu_milli_per_pod,mem_mib_per_pod,user,group,queue,status,logged_wait_s\na,1,60,2,4,90,500,64,u,g,q,Pass,3\n"
OPENB = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\np,1000,64,1,500,T4,LS,Running,5,100,6\n"
OPENB_NODES = "sn,cpu_milli,memory_mib,gpu,model\nn,8000,1024,2,T4\n"
TENURE = (
    "job,submit_s,runtime_s,expected_runtime_s,namespace,queue,priority,preemptible,pods,min_member,cpu_milli,memory_mib,gpus,gpu_milli,gpu_models,checkpoint_s,restart_s,labels\n"
    "a,1,60,90,n,q,5,true,2,1,500,64,1,500,T4,10,3,x=y\n"
)
SLURM_JOBS = (
    {"End": 1704448920, "ElapsedRaw": 5, "TimelimitRaw": 90, "ReqNodes": 2, "ReqCPUS": 8, "ReqMem": "64G", "ReqGRES": "gpu:2", "Cluster": "main"},
    {"ElapsedRaw": 60, "NNodes": 3, "NCPUS": 8, "ReqTRES": ""},
    {"Elapsed": "00:01:00", "AllocNodes": 5, "AllocCPUS": 8},
    {"Elapsed": "00:01:00", "AllocTRES": "cpu=3"},
)  # fmt: skip
SLURM_COLUMNS = list(dict.fromkeys(key for job in SLURM_JOBS for key in job))
SLURM = "JobID|Submit|Start|State|" + "|".join(SLURM_COLUMNS) + "\n" + "".join(
    f"{number}|1704448800|1704448860|FAILED|{'|'.join(str(job.get(key, '')) for key in SLURM_COLUMNS)}\n"
    for number, job in enumerate(SLURM_JOBS)
)  # fmt: skip


def table_of(text, columns, separator, named):
    """Take a table apart; nameless ones have the columns of the format."""
    rows = [line.split(separator) for line in text.splitlines()]
    return (rows[0], rows[1:]) if named else (list(columns), rows)


def without_column(text, columns, name, separator=",", *, named=True, names=()):
    """Empty a column; columns that several names stand for are emptied under all of them."""
    head, rows = table_of(text, columns, separator, named)
    for place, one in enumerate(head):
        if one == name or one in names:
            for row in rows:
                row[place] = ""
    return "".join(f"{separator.join(row)}\n" for row in ([head] if named else []) + rows)


def without_swf(text, columns, name):
    place = list(columns).index(name)
    lines = [line.split() for line in text.splitlines()[1:]]
    return (
        text.splitlines()[0] + "\n" + "".join(" ".join([*row[:place], "-1", *row[place + 1 :]]) + "\n" for row in lines)
    )


def without_key(values, path):
    """Take a key out of objects, by a path such as ``attempts[].detail[].ip``."""
    key, _, rest = path.partition("[].")
    if rest:
        return {**values, key: [without_key(one, rest) for one in values[key]]}
    return {name: value for name, value in values.items() if name != key}


NAMELESS = {"pai", "google-2011", "azure"}
FILES = {
    ("swf", 0): [SWF], ("philly", 0): [PHILLY], ("openb", 0): [OPENB], ("tenure", 0): [TENURE], ("helios", 0): [HELIOS.replace(",60,10", ",61,10")],
    ("sacct", 0): [SACCT, SLURM], ("pai", 0): [PAI_TASKS], ("pai", 1): [PAI_JOBS], ("pai", 2): [PAI_INSTANCES],
    ("google", 0): [INSTANCE_EVENTS], ("google", 1): [COLLECTION_EVENTS], ("google", 2): [TASK_EVENTS],
    ("google", 3): [JOB_EVENTS.replace(",u1,", ",U1,")], ("azure", 0): [AZURE], ("openb", 1): [OPENB_NODES], ("philly-json", 0): [json.dumps(PHILLY_JOBS)],
}  # fmt: skip
"""For each table of each format, files of which every used column says something."""

MAIN = {
    ("pai", 1): PAI_TASKS,
    ("pai", 2): PAI_TASKS,
    ("google", 1): INSTANCE_EVENTS,
    ("google", 3): TASK_EVENTS,
    ("openb", 1): OPENB,
}
"""The trace that tables lie beside."""


def outcome(folder, kind, text):
    """Give what reading gives, or what it complains of."""
    name, _ = kind
    path = written(folder, MAIN.get(kind, text), "trace")
    options = {}
    if kind in MAIN:
        other = written(folder, text, "other")
        options = {"nodes_file": other} if name == "openb" else {"beside": [other]}
    try:
        return read_trace(path, format=name, **options)
    except InvalidInputError as error:
        return [(p.line, p.path) for p in error.problems]


COLUMNS = [
    (name, place, one)
    for name, known in FORMATS.items()
    for place, table in enumerate(known.tables)
    for one in table.columns
]


@pytest.mark.parametrize(("name", "place", "one"), COLUMNS, ids=lambda part: getattr(part, "name", part))
def test_a_column_that_becomes_something_counts_and_one_that_becomes_nothing_does_not(tmp_path, name, place, one):
    """Empty it: what is read changes, or an error says that it is needed; or nothing changes at all."""
    columns = FORMATS[name].tables[place].names
    differs = False
    for text in FILES[name, place]:
        if name == "swf":
            changed = without_swf(text, columns, one.name)
        elif name == "philly-json":
            changed = json.dumps([without_key(job, one.name) for job in json.loads(text)])
        else:
            named = name not in {"pai", "azure"} and not (name == "google" and place > 1)
            changed = without_column(text, columns, one.name, "|" if name == "sacct" else ",", named=named)
        differs |= outcome(tmp_path, (name, place), changed) != outcome(tmp_path, (name, place), text)
    assert differs == bool(one.becomes)


NEEDED = [
    (name, column.name)
    for name, known in FORMATS.items()
    for column in known.tables[0].columns
    if column.name in known.tables[0].needed and name not in {"swf", "philly-json"}
]


@pytest.mark.parametrize(("name", "column"), NEEDED)
def test_a_needed_column_that_is_missing_is_named_once_with_those_that_there_are(tmp_path, name, column):
    """In every format of tables; one of Alibaba is not taken for another of its tables then, nor one of Google."""
    separator = "|" if name == "sacct" else ","
    lines = [line.split(separator) for line in FILES[name, 0][0].splitlines()]
    if name in NAMELESS:
        lines.insert(0, list(FORMATS[name].tables[0].names))
    place = lines[0].index(column)
    kept = "".join(f"{separator.join(line[:place] + line[place + 1 :])}\n" for line in lines)
    problem = told(written(tmp_path, kept), format=name)
    others = [one for one in lines[0] if one != column]
    assert (problem.line, problem.path.lower()) == (1, column.lower())
    assert problem.message.lower().startswith(f"this column is missing; there are {', '.join(others[:4])}".lower())


@pytest.mark.parametrize("name", FORMATS)
def test_every_sample_is_read_without_a_complaint(tmp_path, name):
    for place in range(len(FORMATS[name].tables)):
        for text in FILES[name, place]:
            assert not isinstance(outcome(tmp_path, (name, place), text), list)


def test_a_table_has_no_more_than_so_many_columns(tmp_path):
    """What is packed well may be a line of millions of them; it is refused before more is made of it."""
    wide = ",".join(f"c{number}" for number in range(MOST_COLUMNS + 1))
    with pytest.raises(InvalidInputError, match="10,001 columns; a table has 10,000 at the most"):
        read_trace(written(tmp_path, wide + "\n"), columns=MAPPED)

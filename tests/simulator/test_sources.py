"""What can be wrong with a trace file as such."""

import gzip
import os

import pytest

from tenure.model.values.problems import InvalidInputError
from tenure.simulator.trace import read_trace
from tenure.simulator.traces.numbers import micros, whole
from tenure.simulator.traces.registry import FORMATS

RECORD = "1 0 0 10 4 -1 -1 4 60 -1 1 7 8 -1 2 -1 -1 -1\n"


def problem_of(path, **options):
    with pytest.raises(InvalidInputError) as caught:
        read_trace(path, **options)
    (problem,) = caught.value.problems
    assert problem.file == str(path)
    return problem


def test_a_missing_file(tmp_path):
    assert "no such file" in problem_of(tmp_path / "none.swf").message


def test_a_directory(tmp_path):
    assert "is a folder" in problem_of(tmp_path).message


@pytest.mark.parametrize(
    "content", [b"", b"\n \n", gzip.compress(b"", mtime=0)], ids=["nothing", "blank lines", "packed nothing"]
)
def test_an_empty_file(tmp_path, content):
    path = tmp_path / "empty.swf"
    path.write_bytes(content)
    assert "empty" in problem_of(path).message


def test_a_file_that_may_not_be_read(tmp_path):
    path = tmp_path / "secret.swf"
    path.write_text(RECORD)
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    assert "permission" in problem_of(path).message


def test_a_gzip_that_is_cut(tmp_path):
    path = tmp_path / "cut.swf.gz"
    path.write_bytes(gzip.compress(RECORD.encode() * 1000)[:-20])
    assert "cut" in problem_of(path).message


def test_a_gzip_that_is_damaged(tmp_path):
    path = tmp_path / "damaged.swf.gz"
    packed = bytearray(gzip.compress(RECORD.encode() * 1000))
    packed[len(packed) // 2] ^= 0xFF
    path.write_bytes(bytes(packed))
    assert "damaged" in problem_of(path).message


def test_a_file_that_is_not_text(tmp_path):
    path = tmp_path / "binary.swf"
    path.write_bytes(RECORD.encode() + b"\xff\xfe\x00\n")
    problem = problem_of(path)
    assert (problem.line, "UTF-8" in problem.message) == (2, True)


def test_a_file_of_no_known_format(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("hello, world\n")
    assert "--trace-format" in problem_of(path).message


def test_a_format_that_does_not_exist(tmp_path):
    assert f"known are {', '.join(FORMATS)}" in problem_of(tmp_path / "x", format="slurm").message


def test_a_node_list_is_no_trace_and_the_message_says_what_it_is(tmp_path):
    path = tmp_path / "nodes.csv"
    path.write_text("sn,cpu_milli,memory_mib,gpu,model\nn,1000,1024,0,\n")
    assert "--nodes" in problem_of(path).message


@pytest.mark.parametrize("options", [{"processors": 4}, {"nodes_file": "nodes.csv"}])
def test_options_of_another_format_are_refused(tmp_path, options):
    path = tmp_path / "jobs.csv"
    path.write_text("job,submit_s\na,1\n")
    assert "goes with an" in problem_of(path, **options).message


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("job,submit_s\na,1,2\n", 2, "3 fields where the header has 2"),
        ("job,submit_s\na,1\nb\n", 3, "1 fields where the header has 2"),
        ("job,submit_s,color\na,1,red\n", 1, "unknown column"),
        ("job,submit_s,job\na,1,b\n", 1, "twice"),
        ("job,submit_s\na,soon\n", 2, "'soon' is not a number"),
        ("job,submit_s\na,\n", 2, "empty"),
        ("job,submit_s\na,1\na,2\n", 3, "line 2 already"),
        ("job,submit_s,pods\na,1,0\n", 2, "not between 1 and"),
        ("job,submit_s,pods,min_member\na,1,2,3\n", 2, "core"),
        ("job,submit_s,preemptible\na,1,maybe\n", 2, "neither true nor false"),
        ("job,submit_s,labels\na,1,user\n", 2, "key=value"),
        ("job,submit_s,checkpoint_s\na,1,-5\n", 2, "negative"),
        ("job,submit_s,cpu_milli\na,1,1e30\n", 2, "not between"),
        ('job,submit_s\n"a,1\n', 2, "no valid CSV"),
    ],
)
def test_a_malformed_table_is_reported_with_the_line(tmp_path, text, line, message):
    path = tmp_path / "jobs.csv"
    path.write_text(text)
    problem = problem_of(path, format="tenure")
    assert problem.line == line
    assert message in f"{problem.path}: {problem.message}"


def test_problems_of_all_lines_are_reported_together(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("job,submit_s,pods\na,x,1\nb,1,y\nc,z,z\n")
    with pytest.raises(InvalidInputError) as caught:
        read_trace(path)
    assert [(problem.line, problem.path) for problem in caught.value.problems] == [
        (2, "submit_s"), (3, "pods"), (4, "pods"), (4, "submit_s"),
    ]  # fmt: skip


@pytest.mark.parametrize("cell", ["9" * 5_000, "9" * 1_000 + ".5", "x" * 5_000, "1e999999"])
@pytest.mark.parametrize("read", [micros, whole])
def test_a_number_in_a_message_is_cut_where_it_is_long(read, cell):
    with pytest.raises(ValueError, match=r"is not|is out of range") as caught:
        read(cell)
    assert len(str(caught.value)) < 150

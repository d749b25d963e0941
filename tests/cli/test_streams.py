"""What goes to standard output is whole, or the exit code says that it is not; who stops reading is no error."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests import preloaded

from tenure.cli.terminal.streams import reader_left

EXAMPLE = Path("examples/cluster.yaml").resolve()
LARGE = ["generate", "--jobs", "3000", "--seed", "1"]
needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")


def start(arguments, unbuffered=None, **options):
    """Start a command that need not be loaded first, or else, buffered or not, an interpreter for it."""
    if unbuffered is None:
        return preloaded.start(arguments, stderr=subprocess.PIPE, **options)
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    return subprocess.Popen(
        [sys.executable, "-m", "tenure", *arguments], env=environment, stderr=subprocess.PIPE, **options
    )


def ended(process):
    errors = process.stderr.read().decode()
    process.stderr.close()
    return process.wait(timeout=120), errors


COMMANDS = [
    ["plan", EXAMPLE], ["plan", EXAMPLE, "--format", "json"], ["--help"], LARGE, ["completion", "bash"],
    ["validate", EXAMPLE], ["validate", "--schema"], ["install"], ["explain", EXAMPLE, "train-large"],
]  # fmt: skip

UNBUFFERED = [["plan", EXAMPLE], ["--help"], LARGE]
"""Without a buffer it is the first write that fails, not the last: of a text, of click's own words, of much at once."""

BY_AN_INTERPRETER = [(COMMANDS[0], ""), *((words, "1") for words in UNBUFFERED)]

written = pytest.mark.parametrize(
    ("arguments", "unbuffered"), [*((words, None) for words in COMMANDS), *BY_AN_INTERPRETER]
)


@needs_full
@written
def test_a_full_disk_is_code_3_and_one_line(arguments, unbuffered):
    with Path("/dev/full").open("w") as full:
        code, errors = ended(start(arguments, unbuffered, stdout=full))
    assert code == 3
    assert "no space left on device" in errors
    assert "Traceback" not in errors
    assert "Exception ignored" not in errors


@pytest.mark.parametrize(
    ("arguments", "unbuffered"), [(["--help"], ""), (["validate", "--schema"], ""), (LARGE, ""), *BY_AN_INTERPRETER]
)
def test_a_closed_output_is_code_3(arguments, unbuffered):
    """An interpreter that starts without one; ``test_exit_codes.py`` has every command without one."""
    command = ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-m", "tenure", *map(str, arguments)]
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run(command, capture_output=True, env=environment, check=False, timeout=120)
    assert done.returncode == 3
    assert done.stderr.decode().strip().endswith("standard output is closed; let it go to a file or to /dev/null")


def test_a_file_that_is_written_never_takes_the_place_of_a_closed_output(tmp_path):
    page = tmp_path / "p.html"
    command = [
        "sh",
        "-c",
        'exec "$@" >&- 2>&-',
        "sh",
        sys.executable,
        "-m",
        "tenure",
        "plan",
        EXAMPLE,
        "--report",
        page,
    ]
    assert subprocess.run(command, check=False, timeout=120).returncode == 3
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert page.read_text().rstrip().endswith("</html>")


@written
def test_a_reader_that_stops_early_is_no_error(arguments, unbuffered):
    process = start(arguments, unbuffered, stdout=subprocess.PIPE)
    process.stdout.close()
    code, errors = ended(process)
    assert code == 0
    assert "rror" not in errors


DEMO = EXAMPLE.with_name("demo.py")


@needs_full
@pytest.mark.parametrize(("disk_is_full", "code", "words"), [(True, 3, "no space left on device\n"), (False, 0, "")])
def test_a_demonstration_ends_in_words_as_commands_do(disk_is_full, code, words):
    """Its output is full, or is not read."""
    with Path("/dev/full").open("w") as full:
        process = subprocess.Popen([sys.executable, DEMO], stdout=full if disk_is_full else subprocess.PIPE,
                                   stderr=subprocess.PIPE)  # fmt: skip
    if process.stdout is not None:
        process.stdout.close()
    assert ended(process) == (code, words)


def test_a_demonstration_says_that_it_was_started_by_another_python():
    done = subprocess.run([sys.executable, "-S", "-E", DEMO], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith(" does not know Tenure; run this by: make demo\n")
    assert done.stderr.count("\n") == 1


def test_files_are_written_though_the_reader_has_left(tmp_path):
    cluster, jobs, page = tmp_path / "c.yaml", tmp_path / "jobs.csv", tmp_path / "p.html"
    process = start([*LARGE, "--cluster", cluster], stdout=subprocess.PIPE)
    process.stdout.close()
    assert ended(process)[0] == 0
    trace = tmp_path / "t.csv"
    assert ended(start([*LARGE, "--out", trace], stdout=subprocess.DEVNULL))[0] == 0
    process = start(["simulate", trace, "--cluster", cluster, "--to", "2d", "--jobs", jobs, "--report", page],
                    stdout=subprocess.PIPE)  # fmt: skip
    process.stdout.close()
    assert ended(process)[0] == 0
    assert jobs.stat().st_size
    assert page.stat().st_size


@needs_full
def test_a_full_disk_is_named_with_the_file():
    code, errors = ended(start(["plan", EXAMPLE, "--report", "/dev/full"], stdout=subprocess.DEVNULL))
    assert (code, errors) == (3, "/dev/full: no space left on device\n")


def test_a_report_to_standard_output_by_name_stands_beside_the_text(tmp_path):
    both = tmp_path / "both.txt"
    with both.open("w") as stream:
        code, _ = ended(start(["plan", EXAMPLE, "--report", "/dev/stdout"], stdout=stream))
    assert code == 0
    assert "<!DOCTYPE html>" in both.read_text()
    assert "</html>" in both.read_text()
    assert "QUEUES" in both.read_text()


def test_a_pipe_is_known_to_be_read_or_not(monkeypatch):
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert not reader_left()
        os.close(reading)
        assert reader_left()


BLANKS = [
    ["plan", EXAMPLE], ["explain", EXAMPLE, "train-large"], ["validate", EXAMPLE],
    ["plan", EXAMPLE, "--set", "queue.vision.max.nvidia.com/gpu=32", "--cycles", "3", "--every", "1m"],
    ["reschedule", EXAMPLE.parent / "rescheduler" / "make-room.yaml"], ["generate", "--jobs", "20", "--seed", "1"],
    *(["diff", *(EXAMPLE.parent / "policy" / f"{name}.yaml" for name in ("today", "proposed")), "--cluster", EXAMPLE,
       "--format", form] for form in ("text", "markdown", "json")),
]  # fmt: skip


@pytest.mark.parametrize("arguments", BLANKS)
def test_what_is_written_for_other_programs_has_common_blanks(arguments, run_command):
    """So ``grep '96 GiB'`` finds what one sees."""
    code, out, errors = run_command(*arguments)
    assert code == 0
    assert out
    assert "\N{NO-BREAK SPACE}" not in out + errors


def test_summaries_and_comparisons_have_common_blanks(run_command, tmp_path):
    trace, cluster, summary = (tmp_path / name for name in ("t.csv", "c.yaml", "s.json"))
    run_command("generate", "--jobs", "20", "--seed", "1", "--out", trace, "--cluster", cluster)
    _, told, _ = run_command("simulate", trace, "--cluster", cluster)
    assert "mean wait" in told
    _, data, _ = run_command("simulate", trace, "--cluster", cluster, "--format", "json")
    summary.write_text(data)
    _, compared, _ = run_command("compare", summary, summary)
    assert compared
    assert "\N{NO-BREAK SPACE}" not in told + data + compared

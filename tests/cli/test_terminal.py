"""Commands on a real terminal: nothing is wider than it is, no word is cut, and what is long goes through a pager."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from pathlib import Path

import pytest
from tests import preloaded

from tenure.report.tables import text_width

EXAMPLES = Path("examples").resolve()
STYLE = re.compile(r"\x1b\[[0-9;]*m")
NARROW = 60


def in_terminal(words, columns=NARROW, lines=50, **environment):
    """Run a command on a terminal of that size; gives its exit code and what is shown, line by line."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    around = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES", "NO_COLOR"}}
    shown = b""
    with preloaded.start(words, stdin=slave, stdout=slave, stderr=subprocess.DEVNULL,
                         env={**around, "TERM": "xterm", "PAGER": "cat", **environment}) as process:  # fmt: skip
        os.close(slave)
        while True:
            try:
                more = os.read(master, 65_536)
            except OSError:  # what a terminal says once nothing writes to it any more
                break
            shown += more
        code = process.wait(timeout=120)
    os.close(master)
    return code, shown.decode().replace("\r\n", "\n").splitlines()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Make a small simulation twice, with its histories: without evictions, and with them."""
    folder = tmp_path_factory.mktemp("terminal")

    def run(*words):
        return preloaded.run(words, capture_output=True, check=True, timeout=300, text=True).stdout

    jobs, cluster = folder / "jobs.csv", folder / "cluster.yaml"
    run("generate", "--jobs", 120, "--gpus", 32, "--load", 1.2, "--seed", 3, "--out", jobs, "--cluster", cluster)
    for name, actions in (("off", "[allocate]"), ("on", "[allocate,reclaim]")):
        out = run("simulate", jobs, "--cluster", cluster, "--set", f"scheduler.actions={actions}", "--format", "json",
                  "--history", folder / f"{name}.db")  # fmt: skip
        (folder / f"{name}.json").write_text(out)
    return folder


COMMANDS = [
    "plan {examples}/cluster.yaml", "plan {examples}/cluster.yaml --cycles 3",
    "plan {examples}/cluster.yaml --queue vision", "plan {examples}/cluster.yaml --workload train-large",
    "plan {examples}/volumes/cluster.yaml",
    ("plan {examples}/quota/cluster.yaml --queues {examples}/quota/queues.yaml "
    "--set queue.prod.max.vcore=500 --cycles 20 --every 1m"),
    "explain {examples}/cluster.yaml train-large", "reschedule {examples}/rescheduler/make-room.yaml",
    "plan {examples}/rescheduler/improve.yaml",
    "diff {examples}/policy/today.yaml {examples}/policy/proposed.yaml --cluster {examples}/cluster.yaml",
    "simulate {made}/jobs.csv --cluster {made}/cluster.yaml", "compare {made}/off.json {made}/on.json",
    *(f"report --history {{made}}/on.db --by {by}" for by in ("cause", "queue", "team", "beneficiary", "workload")),
    "story default/job-31 --history {made}/on.db", "replay --from {made}/on.db --set scheduler.actions=[allocate]",
]  # fmt: skip


def check_fits(words, *widths, **environment):
    """Check that no line is wider than the terminal, unless it is a single word, and that no word is cut.

    A word is cut where it is a part of one that a wide terminal shows.
    """
    _, wide = in_terminal(words, columns=400, NO_COLOR="1", **environment)
    figures = re.compile(r"[0-9.,]+(s|ms|/s)?")  # how fast it was is another figure each time

    def all_words(lines):
        found = {word.strip("():") for line in lines for word in line.split()}
        return {word for word in found if not figures.fullmatch(word)}

    known = all_words(wide)
    for columns in widths:
        code, shown = in_terminal(words, columns, NO_COLOR="1", **environment)
        assert code == 0, shown
        assert len(shown) > 1
        assert "\x1b" not in "".join(shown)
        assert [line for line in shown if text_width(line) > columns and len(line.split()) > 1] == []
        told = all_words(shown) - known
        assert [word for word in told if any(one.startswith(word) or one.endswith(word) for one in known)] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_command_shows_fits_and_no_word_is_cut(made, command):
    check_fits(command.format(examples=EXAMPLES, made=made).split(), NARROW)


@pytest.mark.parametrize(("words", "environment", "colored"), [
    ((), {}, True), ((), {"NO_COLOR": "1"}, False), ((), {"TERM": "dumb"}, False),
    (("--color", "never"), {}, False), (("--color", "always"), {"NO_COLOR": "1"}, True),
])  # fmt: skip
def test_colour_is_where_the_terminal_has_it_or_where_it_is_said(words, environment, colored):
    code, shown = in_terminal(["plan", EXAMPLES / "cluster.yaml", *words], **environment)
    assert code == 0
    assert bool(STYLE.search("".join(shown))) is colored


def test_what_is_longer_than_the_terminal_goes_through_the_pager(tmp_path):
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho through the pager\nexec cat\n")
    pager.chmod(0o755)
    words = ["plan", EXAMPLES / "cluster.yaml"]
    _, short = in_terminal(words, lines=10, PAGER=str(pager))
    assert "through the pager" in short[0]
    for more, lines in (((), 200), (("--no-pager",), 10)):
        _, shown = in_terminal([*words, *more], lines=lines, PAGER=str(pager))
        assert "through the pager" not in "".join(shown)
        assert len(shown) > 10

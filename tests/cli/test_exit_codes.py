"""Every command ends with a code of the table in ``docs/reference/commands.md``, whatever happens, and in words."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests import preloaded

from tenure.cli.main import COMMANDS

EXAMPLE = Path("examples/cluster.yaml").resolve()
PAGE = Path("docs/reference/commands.md")
HEAD = "apiVersion: tenure.dev/v1beta1\nkind: Cluster\nnow: 2026-11-20T10:00:00Z\n"
EMPTY = HEAD + "nodes: [{name: n, allocatable: {cpu: 8}}]\n"
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
clusters: [{{name: c, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
users: [{{name: u, user: {{}}}}]
"""

GOOD = {
    "plan": "plan EXAMPLE",
    "simulate": "simulate t.csv --cluster c.yaml",
    "generate": "generate --jobs 20 --seed 1",
    "validate": "validate EXAMPLE",
    "explain": "explain EXAMPLE train-large",
    "reschedule": "reschedule EXAMPLE",
    "diff": "diff EXAMPLE EXAMPLE",
    "compare": "compare s.json s.json",
    "report": "report --history h.db",
    "story": "story JOB --history h.db",
    "history": "history export out.jsonl --history h.db",
    "sweep": "sweep t.csv --cluster c.yaml --seeds 2 --processes 1 --out sweep",
    "replay": "replay --from h.db",
    "install": "install",
    "completion": "completion bash",
}
"""By command, what is done; ``tests/kubernetes`` has what asks a live cluster."""

WRONG = (
    "plan none.yaml", "plan broken.yaml", "simulate none.csv --cluster c.yaml", "simulate t.csv --cluster broken.yaml",
    "simulate broken.yaml --cluster c.yaml", "validate broken.yaml", "explain broken.yaml w", "explain EXAMPLE no-such",
    "reschedule broken.yaml", "diff EXAMPLE broken.yaml", "compare s.json broken.yaml", "console --file broken.yaml",
    "report --history none.db", "report --history h.db --prices broken.yaml", "story default/none --history h.db",
    "history import broken.yaml --history h2.db", "sweep broken.yaml --cluster c.yaml --out sweep2",
    "replay --from none.db", "install --config broken.yaml", "scheduler --kubeconfig none.yaml",
    "snapshot --kubeconfig none.yaml", "queues --kubeconfig broken.yaml", "workloads --kubeconfig none.yaml",
    "pause --for 1h --kubeconfig none.yaml",
    "plan LONG", "validate LONG", "compare s.json LONG", "simulate LONG --cluster c.yaml", "report --history LONG",
    "replay --from LONG", "install --config LONG", "queues --kubeconfig LONG", "plan circle.yaml",
    "validate circle.yaml",
)  # fmt: skip

NOTHING = (
    "plan empty.yaml", "validate empty.yaml", "reschedule empty.yaml", "diff EXAMPLE EXAMPLE --exit-code",
    "simulate t.csv --cluster c.yaml --from 1e9", "history prune --keep 999d --history h.db", "compare s.json",
    "sweep t.csv --cluster c.yaml --from 1e9 --processes 1 --out sweep3", "generate --days 0.001 --load 0.001 --seed 1",
)  # fmt: skip
"""Where there is nothing to do, that is done."""

LIVE = {
    "plan": "plan --live", "explain": "explain w --live", "reschedule": "reschedule --live",
    "console": "console --live --port 0", "scheduler": "scheduler --listen 127.0.0.1:0", "snapshot": "snapshot",
    "queues": "queues", "workloads": "workloads", "pause": "pause --for 1h",
}  # fmt: skip

READING = (
    "plan FIFO", "simulate FIFO --cluster c.yaml", "validate FIFO", "explain FIFO w", "reschedule FIFO",
    "diff FIFO EXAMPLE", "compare FIFO s.json", "console --file FIFO --port 0", "report --history h.db --prices FIFO",
    "install --config FIFO", "queues --kubeconfig FIFO", "snapshot --kubeconfig FIFO", "workloads --kubeconfig FIFO",
    "pause --for 1h --kubeconfig FIFO", "scheduler --kubeconfig FIFO",
)  # fmt: skip
"""Commands that read from a pipe in which nothing comes: they are interrupted in the middle of it."""

INTERRUPTED = {signal.SIGINT: (130, -signal.SIGINT), signal.SIGTERM: (-signal.SIGTERM,)}
"""How a process ends by a signal. Shells say 130 and 143, for what Python ends by the signal itself as well."""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder with what the commands read: a trace, its cluster, a summary and a history of it, and wrong files."""
    folder = tmp_path_factory.mktemp("world")

    def run(words):
        return preloaded.run(words.split(), cwd=folder, check=True, capture_output=True, timeout=120).stdout

    run("generate --jobs 20 --seed 1 --out t.csv --cluster c.yaml")
    (folder / "s.json").write_bytes(run("simulate t.csv --cluster c.yaml --history h.db --format json"))
    (folder / "broken.yaml").write_text("nodes: [{name: ", encoding="utf-8")
    (folder / "circle.yaml").symlink_to("circle.yaml")
    (folder / "empty.yaml").write_text(EMPTY, encoding="utf-8")
    (folder / "away.yaml").write_text(KUBECONFIG.format(port=1), encoding="utf-8")
    return folder


@pytest.fixture
def here(world, monkeypatch):
    """Be in that folder, on no live cluster of one's own."""
    monkeypatch.chdir(world)
    for name in ("KUBECONFIG", "TENURE_HISTORY", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    return world


def of(words, folder):
    """Give the words of a command."""
    job = (folder / "t.csv").read_text(encoding="utf-8").splitlines()[1].split(",")[0]
    names = {"EXAMPLE": str(EXAMPLE), "JOB": f"default/{job}", "LONG": "x" * 300}
    return [names.get(word, word) for word in words.split()]


def in_words(errors):
    """Whether what is complained of is told in words, one line each."""
    return "Traceback" not in errors and "internal error" not in errors and "Warning:" not in errors


def test_the_page_names_every_code():
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)}
    assert codes == {0, 1, 2, 3, 4, 130, 143}


def test_no_command_is_left_out():
    assert set(GOOD) | set(LIVE) == set(COMMANDS)
    assert {words.split()[0] for words in WRONG} == set(COMMANDS) - {"generate", "completion"}  # they read nothing


@pytest.mark.parametrize("words", [*GOOD.values(), *NOTHING])
def test_what_is_done_is_code_0(words, here, run_command):
    code, _, errors = run_command(*of(words, here))
    assert (code, in_words(errors)) == (0, True), errors


@pytest.mark.parametrize("words", WRONG)
def test_wrong_input_is_code_1_and_says_what(words, here, run_command):
    code, out, errors = run_command(*of(words, here))
    assert (code, out, in_words(errors)) == (1, "", True), errors
    assert errors


@pytest.mark.parametrize("command", COMMANDS)
def test_wrong_usage_is_code_2_and_says_where_to_look(command, run_command):
    code, out, errors = run_command(command, "--no-such-option")
    assert (code, out) == (2, "")
    assert "--help" in errors


@pytest.mark.parametrize("words", [words for name, words in LIVE.items() if name != "scheduler"])
def test_a_cluster_that_is_away_is_code_3(words, here, run_command):
    before = set(threading.enumerate())
    code, _, errors = run_command(*words.split(), "--kubeconfig", here / "away.yaml")
    assert (code, in_words(errors)) == (3, True), errors
    assert "cannot be reached" in errors
    for thread in set(threading.enumerate()) - before:  # none goes on to ask
        thread.join(60)
        assert not thread.is_alive(), thread.name


@pytest.mark.parametrize("words", ["report --history URL", "story a/b --history URL", "console --history URL --port 0"])
def test_a_history_that_is_away_is_code_3(words, run_command):
    pytest.importorskip("psycopg")
    code, out, errors = run_command(*words.replace("URL", "postgresql://nobody@127.0.0.1:1/none").split())
    assert (code, out, in_words(errors)) == (3, "", True), errors


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", GOOD.values())
def test_an_output_that_is_full_or_closed_is_code_3(words, here, run_command, monkeypatch):
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        for output in (full, None):
            monkeypatch.setattr(sys, "stdout", output)
            code, _, errors = run_command(*of(words, here))
            monkeypatch.undo()
            monkeypatch.chdir(here)
            assert (code, in_words(errors)) == (3, True), errors
            assert "no space left" in errors or "standard output is closed" in errors


def start(words, folder):
    """Start a command in a process of its own."""
    around = {k: v for k, v in os.environ.items() if k not in ("KUBECONFIG", "TENURE_HISTORY")}
    return preloaded.start(of(words, folder), cwd=folder, env=around, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ended(process, number):
    """Send a signal; gives the code, and what was complained of."""
    process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    return process.returncode, errors.decode()


def opened(fifo, process):
    """Wait until a process reads from a pipe; gives the end on which nothing is written."""
    for _ in range(6000):
        try:
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.01)
    raise AssertionError("it never reads")


@pytest.mark.parametrize("number", INTERRUPTED)
@pytest.mark.parametrize("words", READING)
def test_a_command_that_reads_is_interrupted(words, number, world, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    process = start(words.replace("FIFO", str(fifo)), world)
    writing = opened(fifo, process)
    code, errors = ended(process, number)
    os.close(writing)
    assert code in INTERRUPTED[number]
    assert errors == ("interrupted\n" if number == signal.SIGINT else "")


@pytest.mark.parametrize("number", INTERRUPTED)
@pytest.mark.parametrize("words", [words for name, words in LIVE.items() if name != "scheduler"])
def test_a_command_that_waits_for_a_cluster_is_interrupted(words, number, world, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        config = tmp_path / "silent.yaml"
        config.write_text(KUBECONFIG.format(port=silent.getsockname()[1]), encoding="utf-8")
        process = start(f"{words} --kubeconfig {config}", world)
        silent.settimeout(60)
        asking, _ = silent.accept()
        with asking:
            assert asking.recv(1)
            code, errors = ended(process, number)
    assert code in INTERRUPTED[number]
    assert in_words(errors)


@pytest.mark.parametrize("number", INTERRUPTED)
def test_a_command_that_writes_is_interrupted(number, world):
    process = start("generate --jobs 5000 --seed 1", world)  # far more than a pipe holds
    assert process.stdout.read(1)
    code, errors = ended(process, number)
    assert code in INTERRUPTED[number]
    assert in_words(errors)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_console_ends_in_order_as_soon_as_it_says_where_it_is(number, code, world):
    process = start("console --file EXAMPLE --port 0", world)
    assert process.stdout.readline().startswith(b"listening on")
    ended_with, errors = ended(process, number)
    assert (ended_with, errors) == (code, "interrupted\n" if number == signal.SIGINT else "")


@pytest.mark.parametrize("number", INTERRUPTED)
def test_a_scheduler_waits_for_a_cluster_that_is_away_and_ends_in_order(number, world):
    process = start(f"scheduler --listen 127.0.0.1:0 --kubeconfig {world / 'away.yaml'}", world)
    told = []
    while sum(b"cannot be asked yet" in line for line in told) < 3 and (line := process.stderr.readline()):
        told.append(line)
    code, errors = ended(process, number)
    assert (code, in_words(errors)) == (0, True), (told, errors)
    assert "scheduler ends" in errors


@pytest.mark.parametrize("number", INTERRUPTED)
def test_a_sweep_that_is_interrupted_says_how_far_it_is(number, world, tmp_path):
    process = start(f"sweep t.csv --cluster c.yaml --seeds 500 --processes 1 --out {tmp_path / 'sweep'}", world)
    journal = tmp_path / "sweep" / "results.jsonl"
    for _ in range(6000):
        if journal.is_file() and journal.stat().st_size:
            break
        time.sleep(0.01)
    code, errors = ended(process, number)
    assert code == 130
    assert "of 500 simulations are done; the same command goes on" in errors
    assert in_words(errors)


def test_what_interrupts_the_loading_of_the_command_line_is_told_in_words(tmp_path):
    """It stands here for Ctrl-C that comes as soon as the command was started."""
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "tenure", "plan", EXAMPLE], env=environment, capture_output=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (130, b"interrupted\n")

"""Runs commands of Tenure's one after the other, each in a process of its own that need not import anything.

A server imports all commands once and forks for each that it is asked to run, or for several that are asked for
together, with the kernel's limits on processor and memory. So a hundred thousand of them take minutes, a crash takes
nobody with it, and what each used is known.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple, Self

ROOT = Path(__file__).resolve().parents[2]
MEMORY = 8 << 30
"""Bytes of address space that a command may take: beyond what is wanted, so that one sees by how much."""


class Answer(NamedTuple):
    """How a command ended: its exit code, seconds of the processor, MiB at most, what it printed and complained of.

    A negative code is the signal that ended it: 9 or 24 is the kernel's limit. The memory is the most that its process
    held until then, with what it ran before.
    """

    code: int
    seconds: float
    mebibytes: float
    printed: str
    said: str


class ForkingServer:
    """A process that has everything imported and forks for each command."""

    def __init__(self, seconds: int = 60) -> None:
        self._command = [sys.executable, str(Path(__file__)), str(seconds)]

    def __enter__(self) -> Self:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("TENURE_")}
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                         env=environment, cwd=ROOT)  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()

    def run(self, words: list[str], folder: Path) -> Answer:
        """Run a command in a folder; what it prints is read from files beside that."""
        (answer,) = self.run_together([(words, folder)])
        return answer

    def run_together(self, commands: list[tuple[list[str], Path]]) -> list[Answer]:
        """Run commands, each with its folder, one after the other in one process.

        To fork, and to use everything for the first time, takes longer than most commands. Where one ends the process,
        the next one has a new process.
        """
        self._process.stdin.write(json.dumps([[words, str(folder)] for words, folder in commands]) + "\n")
        self._process.stdin.flush()
        return [self._answer(folder) for _, folder in commands]

    def _answer(self, folder: Path) -> Answer:
        code, seconds, mebibytes = json.loads(self._process.stdout.readline())
        told = [folder.with_name(folder.name + end) for end in (".out", ".err")]
        printed, said = (path.read_text(errors="replace") for path in told)
        for path in told:
            path.unlink()
        return Answer(code, seconds, mebibytes, printed, said)


def serve(seconds: int) -> None:
    """Fork for the commands of each line of standard input."""
    import importlib  # noqa: PLC0415

    from tenure.cli.main import COMMANDS  # noqa: PLC0415

    for entry in COMMANDS.values():
        with contextlib.suppress(ImportError):
            importlib.import_module(entry.module)
    for name in BESIDE:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        commands = json.loads(line)
        while commands:
            told = _forked(commands, seconds)
            answers.writelines(json.dumps(one) + "\n" for one in told)
            answers.flush()
            commands = commands[len(told) :]


def _forked(commands: list[tuple[list[str], str]], seconds: int) -> list[list[float]]:
    """Run commands in a process; give code, seconds and MiB of each that has ended: the last may have ended it."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        _run(commands, seconds, writing)
    os.close(writing)
    with os.fdopen(reading) as stream:
        told: list[list[float]] = [json.loads(line) for line in stream]
    _, status, used = os.wait4(child, 0)
    if len(told) < len(commands):
        took = used.ru_utime + used.ru_stime - sum(one[1] for one in told)
        told.append([os.waitstatus_to_exitcode(status), took, used.ru_maxrss / 1024])
    return told


BESIDE = (
    "yaml", "numpy", "tenure.model.documents.yaml_source", "tenure.model.documents.json_source",
    "tenure.model.file.load", "tenure.model.file.added", "tenure.model.file.override", "tenure.model.yunikorn.convert",
    "tenure.playthrough", "tenure.explanation.explain", "tenure.explanation.remedies", "tenure.report.plans.plan_page",
    "tenure.report.plans.plan_text", "tenure.report.plans.plan_json", "tenure.report.simulation_page",
    "tenure.simulator.run", "tenure.simulator.checker", "tenure.simulator.metrics", "tenure.simulator.generate",
    "tenure.history", "tenure.history.exchange", "tenure.history.reading.replaying",
    "tenure.history.reading.statement", "tenure.history.store", "tenure.history.writing.playing",
    "tenure.history.retention", "tenure.history.reading.waits", "tenure.history.writing.whole",
    "tenure.history.window", "tenure.report.budget_use_text", "tenure.report.statement_json",
    "tenure.report.statement_text", "tenure.simulator.jobs_csv", "tenure.rescheduler.run",
    "tenure.rescheduler.execution", "tenure.cli.live_tables", "tenure.clusters.kubernetes.cluster",
    "tenure.clusters.kubernetes.client.access", "difflib", "hmac", "numpy.random", "pyarrow.parquet", "secrets",
    "statistics", "sqlalchemy.dialects.sqlite", "sqlalchemy.dialects.postgresql", "tenure.cli.input.inputs",
    "tenure.cli.terminal.outputs", "tenure.simulator.traces.writer",
)  # fmt: skip
"""Modules that commands import when they run."""


def _run(commands: list[tuple[list[str], str]], seconds: int, telling: int) -> None:
    """Be the commands, tell of the end of each, and end."""
    from tenure.cli.main import main  # noqa: PLC0415

    try:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        took = 0.0
        for words, folder in commands:
            resource.setrlimit(resource.RLIMIT_CPU, (int(took) + 1 + seconds, resource.RLIM_INFINITY))
            os.chdir(folder)
            _direct(folder)
            code: object = None
            try:
                main(words)
            except SystemExit as ended:
                code = ended.code
            sys.stdout.flush()
            sys.stderr.flush()
            before, took = took, _used()
            most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            os.write(telling, f"{json.dumps([code if isinstance(code, int) else 70, took - before, most])}\n".encode())
    finally:
        os._exit(70)


def _direct(folder: str) -> None:
    """Have nothing come in, and what goes out go to files beside a folder."""
    for number, name in ((0, "/dev/null"), (1, f"{folder}.out"), (2, f"{folder}.err")):
        opened = os.open(name, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(opened, number)
        os.close(opened)


def _used() -> float:
    """Give the seconds of the processor that this process has used, and those that it started."""
    found = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in found)


if __name__ == "__main__":
    sys.path[0] = str(ROOT)
    serve(int(sys.argv[1]))

"""Runs commands of Tenure's one after the other, each in a process of its own that need not import anything.

A server imports all commands once and forks for each that it is asked to run, with the kernel's limits on processor
and memory. So a hundred thousand of them take minutes, a crash takes nobody with it, and what each used is known.
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

    A negative code is the signal that ended it: 9 or 24 is the kernel's limit.
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
        self._process.stdin.write(json.dumps([words, str(folder)]) + "\n")
        self._process.stdin.flush()
        code, seconds, mebibytes = json.loads(self._process.stdout.readline())
        told = [folder.with_name(folder.name + end) for end in (".out", ".err")]
        printed, said = (path.read_text(errors="replace") for path in told)
        for path in told:
            path.unlink()
        return Answer(code, seconds, mebibytes, printed, said)


def serve(seconds: int) -> None:
    """Fork for each line of standard input."""
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
        words, folder = json.loads(line)
        child = os.fork()
        if not child:
            _run(words, folder, seconds)
        _, status, used = os.wait4(child, 0)
        took = used.ru_utime + used.ru_stime
        answers.write(json.dumps([os.waitstatus_to_exitcode(status), took, used.ru_maxrss / 1024]) + "\n")
        answers.flush()


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


def _run(words: list[str], folder: str, seconds: int) -> None:
    """Be the command, and end."""
    from tenure.cli.main import main  # noqa: PLC0415

    code = 70
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.chdir(folder)
        for number, name in ((0, "/dev/null"), (1, f"{folder}.out"), (2, f"{folder}.err")):
            opened = os.open(name, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(opened, number)
            os.close(opened)
        try:
            main(words)
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 70
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    sys.path[0] = str(ROOT)
    serve(int(sys.argv[1]))

"""Starts commands of Tenure's as processes of their own that need not import anything first.

A process that has imported all that commands import forks for each. What is tested is what a command does as a process:
signals, streams, terminals, exit codes. How it comes to be loaded is tested with the interpreter itself.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import functools
import gc
import importlib
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODULES = (
    "yaml", "numpy", "jinja2", "starlette.applications", "uvicorn", "urllib3", "msgspec", "prometheus_client",
    "pyarrow.parquet", "tenure.model.documents.yaml_source", "tenure.model.documents.json_source",
    "tenure.model.file.load", "tenure.model.file.added", "tenure.model.file.override", "tenure.model.yunikorn.convert",
    "tenure.playthrough", "tenure.explanation.explain", "tenure.explanation.remedies", "tenure.report.plans.plan_page",
    "tenure.report.plans.plan_text", "tenure.report.plans.plan_json", "tenure.report.simulation_page",
    "tenure.simulator.run", "tenure.simulator.checker", "tenure.simulator.metrics", "tenure.simulator.generate",
    "tenure.history", "tenure.history.exchange", "tenure.history.reading.replaying",
    "tenure.history.reading.statement", "tenure.web.access.server", "tenure.web.app", "tenure.web.console",
    "tenure.web.sources.live", "tenure.web.sources.past", "tenure.web.sources.both", "tenure.live.service",
    "tenure.live.log", "tenure.rescheduler.run", "tenure.rescheduler.execution", "tenure.history.store",
    "tenure.history.writing.playing", "tenure.history.retention", "tenure.history.reading.waits",
    "tenure.history.writing.whole", "tenure.history.window", "tenure.report.budget_use_text",
    "tenure.report.statement_json", "tenure.report.statement_text", "tenure.simulator.jobs_csv",
    "tenure.simulator.traces.writer", "tenure.cli.input.inputs", "tenure.cli.terminal.outputs",
    "tenure.cli.live_tables", "sqlalchemy.dialects.sqlite", "sqlalchemy.dialects.postgresql", "difflib", "hmac",
    "numpy.random", "secrets", "statistics",
)  # fmt: skip
"""Modules that commands import when they run, beside those of the commands."""


class Command:
    """A process, as `subprocess.Popen` shows one. ``status`` says its number, and in the end how it ended."""

    def __init__(self, status, stdout, stderr):
        self._status = status
        self.stdout, self.stderr = stdout, stderr
        self.pid = int(status.readline())
        self.returncode = None
        self._lock = threading.Lock()

    def poll(self):
        """Give the exit code, None as long as it runs."""
        if self.returncode is None and self._is_told(0):
            self.wait()
        return self.returncode

    def _is_told(self, timeout):
        """Whether it is told within seconds how it ended; `select.select` knows no descriptor above 1023."""
        looked_at = select.poll()
        looked_at.register(self._status, select.POLLIN | select.POLLHUP)
        return bool(looked_at.poll(None if timeout is None else 1000 * timeout))

    def wait(self, timeout=None):
        """Wait for its end and give the exit code; a negative one is the signal that ended it."""
        if self.returncode is None:
            if not self._is_told(timeout):
                raise subprocess.TimeoutExpired("tenure", timeout)
            with self._lock:  # several threads may wait for it
                if self.returncode is None:
                    self.returncode = int(self._status.readline())
        return self.returncode

    def communicate(self, timeout=None):
        """Read all that it prints and complains of, and wait for its end."""
        found = {}
        readers = [
            threading.Thread(target=lambda s=stream: found.__setitem__(s, s.read()), daemon=True)
            for stream in (self.stdout, self.stderr)
            if stream is not None
        ]
        until = None if timeout is None else time.monotonic() + timeout
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(None if until is None else max(0, until - time.monotonic()))
        self.wait(None if until is None else max(0, until - time.monotonic()))
        return found.get(self.stdout), found.get(self.stderr)

    def send_signal(self, number):
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.wait()
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()


@functools.cache
def _server():
    """Start the process that forks; it ends with this one."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TENURE_")}
    subprocess.Popen([sys.executable, __file__, str(its.fileno())], pass_fds=[its.fileno()], cwd=ROOT, env=environment)
    its.close()
    return ours


def start(words, *, cwd=None, env=None, stdin=None, stdout=None, stderr=None, text=False, module="tenure"):
    """Start ``python -m MODULE WORDS…``; streams are given as to `subprocess.Popen`.

    A module of Tenure's has been imported, one of the tests' is then; each has a ``main`` without arguments.
    """
    mine, handed, opened = {}, [], []
    for number, stream in enumerate((stdin, stdout, stderr)):
        if stream is None:
            handed.append(number)
        elif stream == subprocess.DEVNULL:
            opened.append(os.open(os.devnull, os.O_RDWR))
            handed.append(opened[-1])
        elif stream == subprocess.PIPE:
            reading, writing = os.pipe()
            mine[number] = os.fdopen(reading, "r" if text else "rb")
            opened.append(writing)
            handed.append(writing)
        else:
            handed.append(stream if isinstance(stream, int) else stream.fileno())
    status, telling = os.pipe()
    around = dict(os.environ if env is None else env)
    assert _of_python(around) == _of_python(os.environ), "what the interpreter reads when it starts has been read"
    asked = json.dumps([list(map(str, words)), str(cwd or Path.cwd()), around, module]).encode()
    socket.send_fds(_server(), [asked], [*handed, telling])
    for one in (*opened, telling):
        os.close(one)
    return Command(os.fdopen(status, "rb", buffering=0), mine.get(1), mine.get(2))


def _of_python(environment):
    return {name: value for name, value in environment.items() if name.startswith("PYTHON")}


def run(words, *, check=False, timeout=None, capture_output=False, text=False, **options):
    """Run a command to its end, as `subprocess.run` does."""
    if capture_output:
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start(words, text=text, **options) as process:
        try:
            printed, said = process.communicate(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    if check and process.returncode:
        raise subprocess.CalledProcessError(process.returncode, words, printed, said)
    return subprocess.CompletedProcess(words, process.returncode, printed, said)


class _BeCommandError(Exception):
    """Unwinds what serves, in a process that is to be a command."""


def _serve(asking):
    """Fork for each command that is asked for, and tell how each ends, until nobody can ask any more."""
    watched = select.poll()
    watched.register(asking, select.POLLIN)
    running = {}
    while running or asking is not None:
        for number, _ in watched.poll():
            if number in running:
                watched.unregister(number)
                _tell_end(number, *running.pop(number))
                continue
            asked, descriptors, _, _ = socket.recv_fds(asking, 1 << 20, 8)
            if not asked:
                watched.unregister(asking)
                asking.close()
                asking = None
                break
            child = os.fork()
            if not child:
                for one in (asking.fileno(), *running, *(telling for _, telling in running.values())):
                    os.close(one)
                _become(asked, descriptors)
            *streams, telling = descriptors
            for one in streams:
                os.close(one)
            os.write(telling, f"{child}\n".encode())
            end = os.pidfd_open(child)
            running[end] = child, telling
            watched.register(end, select.POLLIN)


def _tell_end(end, child, telling):
    """Tell how a command has ended."""
    _, status = os.waitpid(child, 0)
    os.close(end)
    with contextlib.suppress(OSError):
        os.write(telling, f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os.close(telling)


def _become(asked, descriptors):
    """Be the command, in a process that was forked for it."""
    *streams, telling = descriptors
    words, folder, environment, module = json.loads(asked)
    os.close(telling)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for one in streams:
        os.close(one)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    raise _BeCommandError(module, words)


def _code_of(main):
    """Give the code with which a command ends; what its frames held has gone then, as it has for the interpreter."""
    try:
        main()
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        raise
    return 0


def _end(code):
    """End as the interpreter does, but for the memory: to free it object by object copies all that was loaded."""
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            if not stream.closed:
                stream.flush()
        except OSError:
            code = 120  # as the interpreter says that something could not be written
    os._exit(code)


def _text(number, mode):
    """Give a standard stream as Python makes one when it starts."""
    raw = io.FileIO(number, mode, closefd=False)
    below = io.BufferedReader(raw) if mode == "r" else io.BufferedWriter(raw)
    errors = "backslashreplace" if number == 2 else "strict"
    return io.TextIOWrapper(below, encoding="utf-8", errors=errors, line_buffering=number == 2 or raw.isatty())


CLUSTER = """apiVersion: tenure.dev/v1alpha1
kind: Cluster
now: 2026-11-20T10:00:00Z
nodes: [{name: n, allocatable: {cpu: 8}}]
queues: [{name: q}]
workloads: [{name: w, queue: q, requests: {cpu: 1}, tasks: [{name: t}]}]
"""
TRACE = "job,submit_s,runtime_s,queue,pods,cpu_milli\nj0,0,10,q,1,500\nj1,1,10,q,1,500\n"


def _use():
    """Run some commands: what is made when something is first used is there then in every process that is forked.

    A plan takes half of the processor's time then, as does a simulation.
    """
    from tenure.cli.main import main  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        cluster, trace, history = (Path(folder, name) for name in ("cluster.yaml", "trace.csv", "history.db"))
        cluster.write_text(CLUSTER)
        trace.write_text(TRACE)
        for words in (
            ["plan", cluster], ["explain", cluster, "w"],
            ["simulate", trace, "--cluster", cluster, "--history", history], ["report", "--history", history],
        ):  # fmt: skip
            said = io.StringIO()
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), contextlib.suppress(SystemExit):
                main(list(map(str, words)))


def _load():
    """Import all that commands import, and use it."""
    from tenure.cli.main import COMMANDS  # noqa: PLC0415

    for name in ("tenure.__main__", "tenure.cli.plugin", *(entry.module for entry in COMMANDS.values()), *MODULES):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    _use()
    gc.collect()
    gc.freeze()


def _main():
    """Load, serve, and in a process that is forked be the command."""
    _load()
    try:
        _serve(socket.socket(fileno=int(sys.argv[1])))
    except _BeCommandError as asked:
        module, words = asked.args
    else:
        return
    sys.argv[1:] = words
    sys.stdin = sys.__stdin__ = _text(0, "r")
    sys.stdout = sys.__stdout__ = _text(1, "w")
    sys.stderr = sys.__stderr__ = _text(2, "w")
    faulthandler.register(signal.SIGUSR2)  # asked what its threads are at, it says so on standard error
    _end(_code_of(importlib.import_module(f"{module}.__main__" if module == "tenure" else module).main))


if __name__ == "__main__":
    sys.path[0] = str(ROOT)
    _main()

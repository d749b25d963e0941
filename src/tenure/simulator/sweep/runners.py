"""Where the points of a sweep are worked on: processes of this machine, or a Dask cluster."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, Protocol

Work = Callable[[Any], dict[str, Any]]
"""What is done with a point's task; it has to be found by name in another process. The result is plain data."""

_LOOK_SECONDS = 1.0
"""So often a worker looks whether the sweep that it works for is still there."""

CONNECT_SECONDS = 30
"""So long a Dask scheduler may take to answer."""


class SweepRunner(Protocol):
    """A place that works on tasks and gives the number and the result of each as it is done, in any order."""

    def __call__(self, work: Work, tasks: Sequence[Any]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Work on all tasks."""


class LocalProcesses:
    """Processes of this machine, ``count`` of them. They end with the sweep, however that ends."""

    def __init__(self, count: int | None = None) -> None:
        self.count = count or os.cpu_count() or 1

    def __call__(self, work: Work, tasks: Sequence[Any]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Work on all tasks; an exception, or to want no more results, cancels those that have not begun.

        Raises
        ------
        ChildProcessError
            A process was killed.
        """
        if not tasks:
            return
        context = multiprocessing.get_context("spawn")  # a fork would copy the threads of whatever calls this
        count = min(self.count, len(tasks))
        pool = ProcessPoolExecutor(count, mp_context=context, initializer=_end_with, initargs=(os.getpid(),))
        try:
            with _uninterrupted():
                futures = {pool.submit(work, task): number for number, task in enumerate(tasks)}
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool:
            raise ChildProcessError(
                "a process that simulates was killed, maybe for want of memory (fewer --processes need less); "
                "what is done is kept, and the same command goes on"
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)  # it waits: a pool that has gone has forgotten what it was to cancel


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let Ctrl-C wait until processes were started: they begin with it blocked, and would else tell where it came."""
    resource_tracker.ensure_running()  # to start it unblocks Ctrl-C
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with(parent: int) -> None:
    """End this process with Ctrl-C, and once its parent has gone: after a kill nothing else would tell it to."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class DaskCluster:
    """A Dask cluster by the address of its scheduler; ``modules`` are files that its workers need beside Tenure.

    Workers need Tenure, and the files that tasks name under the same paths.
    """

    def __init__(self, address: str, modules: Sequence[Path] = ()) -> None:
        self.address = address
        self.modules = modules

    def __call__(self, work: Work, tasks: Sequence[Any]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Work on all tasks.

        Raises
        ------
        ModuleNotFoundError
            Dask is not installed here.
        OSError
            The scheduler does not answer, or its workers have no Tenure.
        """
        distributed: Any = import_module("distributed")  # wanted only with a Dask cluster
        with distributed.Client(self.address, timeout=CONNECT_SECONDS) as client:
            for module in self.modules:
                client.upload_file(str(module))
            try:
                client.submit(_import_tenure, pure=False).result()
            except ModuleNotFoundError as error:
                raise OSError(f"the workers of {self.address} have no {error.name}; install it there") from None
            futures = client.map(work, list(tasks), pure=False)
            numbers = {future.key: number for number, future in enumerate(futures)}
            for future in distributed.as_completed(futures):
                yield numbers[future.key], future.result()


def _import_tenure() -> str:
    """Find out whether a worker has what it needs."""
    import tenure.simulator.whole_run  # noqa: PLC0415  it is the worker that imports it

    return tenure.simulator.whole_run.__name__

"""A signal ends a command, whatever its main thread does at that moment."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from tenure.cli.terminal.signals import ENDING, on_end


@pytest.fixture
def handlers():
    """Leave the handlers of signals as they were."""
    before = [(number, signal.getsignal(number)) for number in ENDING]
    yield
    for number, handler in before:
        signal.signal(number, handler)


@pytest.mark.parametrize("number", ENDING)
@pytest.mark.usefixtures("handlers")
def test_a_signal_that_comes_while_the_main_thread_holds_a_lock_ends_the_command(number):
    """What ends the command waits for that lock, and gets it as soon as the main thread goes on."""
    lock, stopped = threading.Lock(), threading.Event()

    def stop():
        with lock:
            stopped.set()

    on_end(stop)
    with lock:
        os.kill(os.getpid(), number)
        assert not stopped.wait(0.05)
    assert stopped.wait(60)

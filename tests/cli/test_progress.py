"""On a terminal one sees that a command works; anywhere else there is not a word of it."""

import io
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from tenure.cli.terminal import progress

EXAMPLE = Path("examples/cluster.yaml").resolve()
POLICIES = [EXAMPLE.parent / "policy" / f"{name}.yaml" for name in ("today", "proposed")]


class Screen(io.StringIO):
    """A terminal on which two looks at how long something takes are waited for."""

    def __init__(self):
        super().__init__()
        self.seen_twice = threading.Event()

    def isatty(self):
        return True

    def write(self, text):
        written = super().write(text)
        if self.getvalue().count("planning …") > 1:
            self.seen_twice.set()
        return written


def test_what_takes_long_is_told_of_again_and_again_and_then_taken_away():
    screen = Screen()
    with progress.busy("planning", screen, first=0.001):
        assert screen.seen_twice.wait(60)
    *_, shown, blank, end = screen.getvalue().split("\r")
    assert shown.startswith("planning …  0")
    assert (blank.strip(" "), len(blank), end) == ("", len(shown.rstrip(" ")), "")


def test_nothing_is_told_of_elsewhere(monkeypatch):
    monkeypatch.setattr(threading, "Thread", None)
    log = io.StringIO()
    with progress.busy("planning", log, first=0.0):
        pass
    assert log.getvalue() == ""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["plan", EXAMPLE], ["reading", "planning"]),
        (["explain", EXAMPLE, "train-large"], ["reading", "working out what would happen"]),
        (["reschedule", EXAMPLE], ["reading", "planning moves"]),
        (["diff", *POLICIES, "--cluster", EXAMPLE, "--cycles", "1"], ["planning under both policies"]),
        (["validate", EXAMPLE], ["reading"]),
    ],
    ids=lambda words: words[0],
)
def test_what_may_take_long_is_told_of(words, told, run_command, monkeypatch):
    """Reading and planning, each by its name."""
    entered = []

    @contextmanager
    def noted(what):
        entered.append(what)
        yield

    monkeypatch.setattr(progress, "busy", noted)
    assert run_command(*words)[0] == 0
    assert entered == told

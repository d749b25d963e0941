"""Hostile inputs over all commands and formats: each is answered in words, in bounds, and leaves no ruin.

A thousand in each run; ``python -m tests.cli.hostile 100000`` makes as many by hand.
"""

from collections import Counter
from functools import cache

import pytest
from tests.cli.forking import ForkingServer
from tests.cli.hostile import COMMANDS, run

from tenure.cli.main import COMMANDS as ALL

EACH = 80
SELDOM = {"queues", "workloads", "snapshot", "pause", "replay", "story", "sweep"}
"""Commands that need a cluster, a record that is there by chance, or more than a moment."""

SERVING = {"console", "scheduler"}
"""Commands that go on until they are ended."""

SEEDS = range(0, 1040, EACH)


@pytest.fixture(scope="module")
def server():
    with ForkingServer() as made:
        yield made


@pytest.fixture(scope="module")
def answered(server, tmp_path_factory):
    """Give a function that answers some inputs, once: it gives what is wrong, and counts commands and exit codes."""
    folder = tmp_path_factory.mktemp("hostile")

    @cache
    def answer(first):
        seen = Counter()
        return run(server, range(first, first + EACH), folder, seen), seen

    return answer


@pytest.mark.parametrize("first", SEEDS)
def test_hostile_inputs_are_answered_in_words(first, answered):
    assert answered(first)[0] == []


def test_the_grammar_reaches_every_command_beyond_its_input(answered):
    """Of each command some inputs are taken and some refused: a grammar of nothing but rubbish shows little."""
    assert set(COMMANDS) == set(ALL) - SERVING
    seen = sum((answered(first)[1] for first in SEEDS), Counter())
    done = {command for command, code in seen if code == 0}
    assert set(COMMANDS) - done - SELDOM == set()
    assert {code for _, code in seen} >= {0, 1, 2}

"""Hostile inputs over all commands and formats: each is answered in words, in bounds, and leaves no ruin.

A thousand in each run; ``python -m tests.cli.hostile 100000`` makes as many by hand.
"""

import shutil
from collections import Counter

import pytest
from tests.cli.forking import ForkingServer
from tests.cli.hostile import COMMANDS, run

EACH = 80
SELDOM = {"queues", "replay", "story"}
"""Commands that need a cluster, or a record that is there by chance."""

SEEDS = range(0, 720, EACH)


@pytest.fixture(scope="module")
def server():
    with ForkingServer() as made:
        yield made


@pytest.mark.parametrize("first", SEEDS)
def test_hostile_inputs_are_answered_in_words(first, server, tmp_path):
    found = []
    for seed in range(first, first + EACH):
        folder = tmp_path / str(seed)
        folder.mkdir()
        found.append(run(server, seed, folder))
        shutil.rmtree(folder)
    assert [fault for fault in found if fault] == []


def test_the_grammar_reaches_every_command_beyond_its_input(server, tmp_path):
    """Of each command some inputs are taken and some refused: a grammar of nothing but rubbish shows little."""
    seen, found = Counter(), []
    for seed in range(2_000, 2_300):
        folder = tmp_path / str(seed)
        folder.mkdir()
        found.append(run(server, seed, folder, seen))
        shutil.rmtree(folder)
    assert [fault for fault in found if fault] == []
    done = {command for command, code in seen if code == 0}
    assert set(COMMANDS) - done - SELDOM == set()
    assert {code for _, code in seen} >= {0, 1, 2}

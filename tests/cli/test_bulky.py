"""Large inputs of every kind are answered within bounds of the processor and of memory.

Here they are of a tenth of a megabyte, with a time at which work that grows with the square of the size is seen
already. What is bounded is the processor's time, not the clock's. The most that a few bytes can stand for is the same
at any size, and so is its bound.
``python benchmarks/b27_large_inputs.py`` does the same with 10 MB.
"""

import time

import pytest
from tests.cli.bulky import ask_together, faults, inputs
from tests.cli.forking import ForkingServer

SIZE = 100_000
SHORT, LONG = 200.0, 1_000.0
"""What so much may take, in times of `bare_loop` on the same processor, which takes 10 to 30 ms; it is run where an
answer took more than so many times 10 ms. Most take a tenth of it. What grows with the square and takes longer than ten
seconds at ten megabytes, by far, takes longer here too."""

MUCH_FROM_LITTLE = ("beyond all bounds", "a bomb", "rows that are alike")
"""What stands in names of inputs of which a few bytes stand for very much."""

GROUPS = ("cluster", "YAML", "settings", "JSON", "--add", "queues.yaml", "trace", "gzip", "summary",
          "history", "kubeconfig", "changes", "prices")  # fmt: skip


def bare_loop() -> float:
    """Give the seconds of the processor that a bare loop takes now."""
    began = time.process_time()
    sum(range(10**6))
    return time.process_time() - began


@pytest.fixture(scope="module")
def server():
    with ForkingServer(seconds=120) as made:
        yield made


@pytest.fixture(scope="module")
def large():
    return list(inputs(SIZE))


@pytest.mark.parametrize("group", GROUPS)
def test_a_large_input_is_answered_in_bounds(group, server, large, tmp_path):
    tried = [case for case in large if case.name.startswith(group)]
    assert tried
    found = []
    for case, answer in zip(tried, ask_together(tried, tmp_path, server), strict=True):
        loops = LONG if any(words in case.name for words in MUCH_FROM_LITTLE) else SHORT
        most = loops * 0.01
        if answer.seconds > most:
            most = loops * max(bare_loop(), bare_loop(), 0.01)
        wrong = faults(case, answer, seconds=most, letters=1_000_000)
        found += [f"{case.name}: {what}: {answer.said[:200]}" for what in wrong]
    assert found == []


def test_no_input_is_left_out():
    """Every input belongs to a group that is tried."""
    assert [
        case.name
        for case in inputs(2_000)
        if not case.name.startswith((*GROUPS, "kubeconfig", "one", "many", "prices"))
    ] == []

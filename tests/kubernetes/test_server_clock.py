"""Time is the API server's: a machine whose clock is off by minutes decides as one whose clock is right."""

from __future__ import annotations

from email.utils import formatdate

import pytest

from tenure.clusters.kubernetes.client.server_clock import TOLERANCE, ServerClock

TRUE = 1_800_000_000_000_000


class Machine:
    """A machine whose clock is ``off`` µs ahead, and whose steady clock began at any time."""

    def __init__(self, off):
        self.off, self.passed = off, 0.0
        self.clock = ServerClock(lambda: self.true + self.off, lambda: 1234.5 + self.passed)

    @property
    def true(self):
        return TRUE + round(self.passed * 1_000_000)

    def ask(self, took=0.01, server=0):
        """Ask the server, whose own clock is ``server`` µs ahead."""
        sent = self.clock.steady()
        self.passed += took / 2
        date = formatdate((self.true + server) // 1_000_000, usegmt=True)
        self.passed += took / 2
        self.clock.note(date, sent)
        self.passed += 0.7


@pytest.mark.parametrize("off", [0, 900_000, -900_000, 600_000_000, -600_000_000, 86_400_000_000])
def test_the_time_is_that_of_the_server(off):
    machine = Machine(off)
    for _ in range(20):
        machine.ask()
    assert abs(machine.clock.now() - machine.true) <= max(abs(off) if abs(off) < TOLERANCE else 0, 1_000_000)
    assert (machine.clock.skew == 0) == (abs(off) < TOLERANCE)


def test_a_clock_that_jumps_is_noticed_without_another_answer():
    machine = Machine(0)
    machine.ask()
    machine.off = -3_600_000_000
    assert abs(machine.clock.now() - machine.true) <= 1_000_000


def test_one_slow_answer_or_one_odd_server_decides_nothing():
    machine = Machine(0)
    for _ in range(5):
        machine.ask()
    machine.ask(took=30)
    for _ in range(2):
        machine.ask(server=3_600_000_000)
    assert machine.clock.now() == machine.true


@pytest.mark.parametrize("date", [None, "", "yesterday", "Mon, 99 Foo 2026 10:00:00 GMT"])
def test_what_is_no_time_is_none(date):
    machine = Machine(600_000_000)
    machine.clock.note(date, machine.clock.steady())
    assert machine.clock.now() == machine.true + machine.off

"""An address with very many connections loses its own, and keeps no other address out."""

import socket
import time

import pytest
from starlette.applications import Starlette
from tests.web.consoles import served, small

from tenure.web.access.connections import (
    MOST_CONNECTIONS,
    NEW_AT_ONCE,
    NEW_PER_SECOND,
    ConnectionPace,
    ConnectionShares,
    most_connections,
)
from tenure.web.access.senders import MOST_SENDERS
from tenure.web.access.server import configured


class Opened:
    """A connection that notes whether it was ended."""

    def __init__(self, *, is_idle=True):
        self.is_idle, self.is_ended = is_idle, False
        self.transport = self

    def abort(self):
        self.is_ended = True


def test_who_has_most_loses_one_for_each_that_comes():
    shares = ConnectionShares(10)
    many = [Opened() for _ in range(9)]
    for one in many:
        shares.came(one, "10.0.0.1")
    others = [Opened() for _ in range(4)]
    for number, one in enumerate(others):
        shares.came(one, f"10.0.1.{number}")
    assert [one.is_ended for one in many] == [True] * 3 + [False] * 6
    assert not any(one.is_ended for one in others)


def test_one_that_is_being_answered_is_ended_last():
    shares = ConnectionShares(3)
    busy, idle, last = Opened(is_idle=False), Opened(), Opened(is_idle=False)
    for one in (busy, idle, last):
        shares.came(one, "a")
    shares.came(Opened(), "b")
    assert [one.is_ended for one in (busy, idle, last)] == [False, True, False]
    shares.came(Opened(is_idle=False), "b")
    assert [one.is_ended for one in (busy, last)] == [False, False]


def test_an_address_that_makes_too_many_in_a_second_is_refused_more_and_no_other_is():
    """It may make some again each second; what is refused takes no room, and ends none of those that are there."""
    now = 0.0
    shares = ConnectionShares(10**6, lambda: now)
    first = [Opened() for _ in range(NEW_AT_ONCE + 3)]
    for one in first:
        shares.came(one, "10.0.0.1")
    assert [one.is_ended for one in first] == [False] * NEW_AT_ONCE + [True] * 3
    other = Opened()
    shares.came(other, "10.0.0.2")
    now = 2.0
    later = [Opened() for _ in range(2 * NEW_PER_SECOND + 1)]
    for one in later:
        shares.came(one, "10.0.0.1")
        shares.went(one, "10.0.0.1")
    assert [one.is_ended for one in later] == [False] * (2 * NEW_PER_SECOND) + [True]
    assert not other.is_ended
    for one in (*first, other):
        shares.went(one, "10.0.0.1")


def test_only_so_many_addresses_are_remembered():
    pace = ConnectionPace(lambda: 0.0)
    assert all(pace.allows(f"a{number}") for number in range(MOST_SENDERS + 10))
    assert len(pace._left) == MOST_SENDERS


def test_the_server_refuses_nothing_by_a_bound_of_its_own():
    """It counts what was ended and is not let go yet: a burst of one address had all others refused."""
    assert configured(Starlette()).limit_concurrency is None


def test_what_has_ended_is_forgotten():
    shares = ConnectionShares(2)
    for _ in range(10):
        one = Opened()
        shares.came(one, "a")
        shares.went(one, "a")
        shares.went(one, "a")
        assert not one.is_ended


def test_there_are_no_more_than_the_process_may_open(monkeypatch):
    monkeypatch.setattr("resource.getrlimit", lambda _: (1024, 4096))
    assert most_connections() == 824
    monkeypatch.setattr("resource.getrlimit", lambda _: (100_000, 100_000))
    assert most_connections() == MOST_CONNECTIONS


@pytest.mark.parametrize("most", [20])
def test_a_server_that_one_address_fills_answers_others(most, monkeypatch):
    monkeypatch.setattr("tenure.web.access.server.ConnectionShares", lambda: ConnectionShares(most))
    with served(small()) as address:
        port = int(address.rpartition(":")[2])
        held = [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(3 * most)]
        try:
            for _ in range(3):
                with socket.socket() as other:
                    other.settimeout(20)
                    other.bind(("127.0.0.2", 0))
                    other.connect(("127.0.0.1", port))
                    time.sleep(0.1)
                    other.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
                    assert other.recv(4096).startswith(b"HTTP/1.1 200")
        finally:
            for one in held:
                one.close()

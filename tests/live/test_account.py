"""The account of evictions is read beside the loop by who decides, whatever goes wrong with one look."""

import threading
from contextlib import contextmanager

import pytest

from tenure.history import open_history
from tenure.history.record import Origin
from tenure.live.records.account import EvictionAccount

SOON = 60.0
"""Seconds in which a thread surely has its turn."""


@pytest.fixture
def address(tmp_path):
    """Give a history in which nothing stands."""
    at = str(tmp_path / "history.db")
    with open_history(at, write=True):
        return at


@contextmanager
def reading(address, clock, *, leads=lambda: True, failed=lambda _: None):
    """Read an account all the time; gives it, what was told, and what is set whenever something is."""
    told, heard = [], threading.Event()

    def tell(outcomes):
        told.append(outcomes)
        heard.set()

    account = EvictionAccount(address, Origin("here"), clock, tell, leads=leads, failed=failed, every=0.01)
    account.start()
    try:
        yield account, told, heard
    finally:
        account.stop()


def test_what_goes_wrong_with_one_look_is_told_and_the_next_one_reads(address):
    times, failed = iter([ValueError("no such time")]), []

    def clock():
        for error in times:
            raise error
        return 1_795_200_000_000_000

    with reading(address, clock, failed=failed.append) as (_, told, heard):
        assert heard.wait(SOON)
    assert [str(error) for error in failed] == ["no such time"]
    assert told == [()]


def test_who_stands_by_does_not_read_and_who_leads_no_longer_forgets(address):
    asked, leads, read = threading.Event(), threading.Event(), threading.Event()

    def is_leading():
        asked.set()
        return leads.is_set()

    def clock():
        read.set()
        return 1_795_200_000_000_000

    with reading(address, clock, leads=is_leading) as (account, told, heard):
        assert asked.wait(SOON)
        assert not read.wait(0.2)
        assert account.outcomes is None
        leads.set()
        assert heard.wait(SOON)
        heard.clear()
        leads.clear()
        assert heard.wait(SOON)
    assert told == [(), None]

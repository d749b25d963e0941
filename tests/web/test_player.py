"""What-ifs of users do not hold up what pages need, which all users share."""

import threading
import time

import pytest
from tests.builders import cluster, node

from tenure.web.playing.player import MOST_WAITING, BusyError, Player


class Slow(Player):
    """Takes its time, and notes in which order it plays."""

    def __init__(self):
        super().__init__()
        self.played, self.goes = [], threading.Event()

    def _ask(self, _, task, arguments):
        self.played.append((task, *arguments))
        self.goes.wait(20)
        time.sleep(0.01)
        return task


def until(holds):
    for _ in range(2000):
        if holds():
            return
        time.sleep(0.01)
    raise AssertionError


def test_what_pages_need_comes_after_one_what_if_at_most():
    player, found = Slow(), cluster([node("n")])
    threads = [threading.Thread(target=player.ask, args=(found, "plan", number)) for number in range(MOST_WAITING)]
    for thread in threads:
        thread.start()
    until(lambda: len(player.played) == 1 and not player._waiting[True]._value)
    with pytest.raises(BusyError):
        player.ask(found, "plan", "one more")
    pages = threading.Thread(target=player.ask, args=(found, "explain", "ns/name"))
    pages.start()
    until(lambda: player._waiting[False]._value == MOST_WAITING - 1)
    time.sleep(0.2)  # it waits for its turn by now
    player.goes.set()
    for thread in (*threads, pages):
        thread.join(20)
    assert player.played.index(("explain", "ns/name")) <= 2
    assert len(player.played) == MOST_WAITING + 1

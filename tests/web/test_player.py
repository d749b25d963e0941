"""What-ifs of users do not hold up what pages need, which all users share."""

import threading
import time

import pytest
from tests.builders import cluster, node

from tenure.web.playing.ordered_lock import OrderedLock
from tenure.web.playing.player import MOST_WAITING, BusyError, Player


class Slow(Player):
    """Takes its time, and notes in which order it plays."""

    def __init__(self):
        super().__init__()
        self.played, self.goes = [], threading.Event()

    def _ask(self, _, task, arguments):
        self.played.append((task, *arguments))
        assert self.goes.wait(60)
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
    for number, thread in enumerate(threads):
        thread.start()
        until(lambda number=number: len(player.played) == 1 and player._what_ifs.waiting == number)
    with pytest.raises(BusyError):
        player.ask(found, "plan", "one more")
    pages = threading.Thread(target=player.ask, args=(found, "explain", "ns/name"))
    pages.start()
    until(lambda: player._turn.waiting == 1)
    player.goes.set()
    for thread in (*threads, pages):
        thread.join(60)
    assert player.played.index(("explain", "ns/name")) == 1
    assert [number for task, number in player.played if task == "plan"] == list(range(MOST_WAITING))


def test_an_ordered_lock_is_had_by_one_at_a_time_in_the_order_of_asking():
    lock, had, inside = OrderedLock(), [], []

    def take(number):
        with lock:
            inside.append(number)
            time.sleep(0)
            assert inside == [number]
            had.append(number)
            inside.remove(number)

    for _ in range(20):
        had.clear()
        threads = [threading.Thread(target=take, args=(number,)) for number in range(8)]
        with lock:
            for number, thread in enumerate(threads):
                thread.start()
                until(lambda number=number: lock.waiting == number + 1)
        for thread in threads:
            thread.join(60)
        assert had == list(range(8))
        assert not lock.waiting

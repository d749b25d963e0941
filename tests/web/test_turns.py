"""Whoever asks for very much waits for it, and nobody else does."""

import asyncio
import threading
import time

import pytest
from tests.web.consoles import shown, small

from tenure.web.access.viewer import Viewer
from tenure.web.playing.player import BusyError
from tenure.web.playing.turns import AT_ONCE, MOST_WAITING, Turns
from tenure.web.sources.still import StillSource


class Slow(StillSource):
    """A cluster whose past takes a while to find."""

    def picture(self, at=None):
        """Give it, after a while where it is of a moment."""
        if at is not None:
            time.sleep(0.5)
        return super().picture(at)


def test_one_user_who_asks_for_very_much_holds_up_nobody_else():
    """What another one asks for after all of it is there before most of it is."""
    done = []

    async def whose(request):
        return Viewer(request.headers["x-who"])

    def ask(client, number):
        client.get(f"/workloads?at=2027-01-15T07:{number:02}:00Z", headers={"x-who": "greedy"})
        done.append(number)

    with shown(Slow(small(), "slow"), whose=whose) as client:
        many = [threading.Thread(target=ask, args=(client, number)) for number in range(40)]
        for one in many:
            one.start()
        time.sleep(0.5)
        answer = client.get("/workloads?at=2027-01-15T05:00:00Z", headers={"x-who": "other"})
        before = len(done)
        for one in many:
            one.join()
    assert answer.status_code == 200
    assert before < 20


def test_a_user_gets_a_few_turns_at_a_time_and_waits_for_so_many():
    async def run():
        turns, held, most = Turns(), 0, 0
        last = asyncio.Event()

        async def hold():
            nonlocal held, most
            async with turns.of("one"):
                held += 1
                most = max(most, held)
                await last.wait()
                held -= 1

        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE + MOST_WAITING):
                group.create_task(hold())
            await asyncio.sleep(0)
            with pytest.raises(BusyError, match="you wait for 103 answers"):
                async with turns.of("one"):
                    pass
            async with turns.of("two"), turns.of(""):
                pass
            last.set()
        return most, turns._users

    assert asyncio.run(run()) == (AT_ONCE, {})

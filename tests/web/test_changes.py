"""All who follow a console are told of a change by one look, and nobody looks where nobody follows."""

import asyncio

import pytest

from tenure.web import changes
from tenure.web.changes import ChangeWatch


class Counted:
    """Something that changes, and counts how often it is looked at."""

    def __init__(self):
        self.number, self.looks = 1, 0

    @property
    def version(self):
        self.looks += 1
        return self.number


def test_all_are_woken_by_one_look_at_a_time():
    async def run():
        watched = Counted()
        watch = ChangeWatch(watched)
        followers = [asyncio.create_task(watch.wait(1, 60)) for _ in range(500)]
        await asyncio.sleep(4 * changes.LOOK)
        before = watched.looks
        assert not any(one.done() for one in followers)
        watched.number = 2
        await asyncio.wait_for(asyncio.gather(*followers), 30)
        assert watched.looks - before < 500
        await asyncio.sleep(2 * changes.LOOK)
        after = watched.looks
        await asyncio.sleep(4 * changes.LOOK)
        assert watched.looks == after, "it is looked although nobody waits"
        await watch.wait(1, 60)  # it has changed already

    asyncio.run(run())


@pytest.mark.parametrize("version", [1, 2])
def test_a_wait_ends_without_a_change_and_another_one_begins_anew(version):
    async def run():
        watched = Counted()
        watched.number = version
        watch = ChangeWatch(watched)
        await watch.wait(version, 0.01)
        waiting = asyncio.create_task(watch.wait(version, 60))
        await asyncio.sleep(2 * changes.LOOK)
        waiting.cancel()
        again = asyncio.create_task(watch.wait(version, 60))
        await asyncio.sleep(0)
        watched.number = 9
        await asyncio.wait_for(again, 30)

    asyncio.run(run())

"""What users may: of however many namespaces all that are theirs, and for each user only so many questions."""

import asyncio
import threading

import msgspec
import pytest

from tenure.clusters.kubernetes.client.requests import ApiError
from tenure.web.access import rights
from tenure.web.access.put_off import PutOffError
from tenure.web.access.rights import Rights

TENANT = {"username": "tenant", "groups": ["a"], "uid": "1"}


class Judge:
    """Answers as an API server would, of what is allowed now, and keeps what it was asked."""

    def __init__(self, *allowed):
        self.allowed, self.asked = set(allowed), []
        self.goes = threading.Event()
        self.goes.set()
        self.fails = False

    def create(self, path, body):
        assert path.endswith("subjectaccessreviews")
        self.goes.wait(10)
        if self.fails:
            raise ApiError(500, "InternalError", "no")
        spec = body["spec"]
        wanted = spec["resourceAttributes"]
        assert wanted["verb"] == "list"
        asked = spec["user"], wanted["resource"], wanted.get("namespace")
        self.asked.append(asked)
        return msgspec.json.encode({"status": {"allowed": asked in self.allowed}})

    def taken(self):
        """Give the namespaces asked about since the last time."""
        found, self.asked = [name for _, _, name in self.asked if name], []
        return found


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def named(count):
    return {f"ns-{number:05}" for number in range(count)}


async def settled(tried):
    """Wait until nothing is asked beside any more."""
    for known in tried._users.values():
        if known.asking is not None:
            await asyncio.wait({known.asking})


def test_the_last_of_many_namespaces_is_seen():
    judge = Judge(("tenant", "pods", "ns-01500"))
    tried = Rights(judge, lambda: named(1600), Clock())
    viewer = asyncio.run(tried.viewer(TENANT))
    assert viewer.namespaces == {"ns-01500"}
    assert not viewer.nodes
    assert sorted(judge.taken()) == sorted(named(1600))


def test_who_may_list_all_pods_is_asked_about_once():
    judge = Judge(("tenant", "pods", None))
    tried = Rights(judge, lambda: named(1600), Clock())
    assert asyncio.run(tried.viewer(TENANT)).sees_all
    assert judge.taken() == []


def test_a_user_costs_so_much_and_no_more():
    """Over ten minutes with a request each second: once about each, then ten a second, and about theirs each minute."""

    async def went():
        judge, clock = Judge(*(("tenant", "pods", f"ns-{number:05}") for number in range(3))), Clock()
        tried = Rights(judge, lambda: named(3000), clock)
        await tried.viewer(TENANT)
        assert len(judge.taken()) == 3000
        for _ in range(600):
            clock.now += 1
            assert len((await tried.viewer(TENANT)).namespaces) == 3
            await settled(tried)
        asked = judge.taken()
        theirs = [name for name in asked if name < "ns-00003"]
        assert 3 * 10 <= len(theirs) <= 3 * 21
        assert len(asked) - len(theirs) <= 600 * rights.AGAIN_PER_SECOND
        assert set(asked) == named(3000)

    asyncio.run(went())


def test_a_right_that_is_taken_away_is_gone_after_a_minute():
    async def went():
        judge, clock = Judge(("tenant", "pods", "ns-00007"), ("tenant", "nodes", None)), Clock()
        tried = Rights(judge, lambda: named(50), clock)
        assert (await tried.viewer(TENANT)).namespaces == {"ns-00007"}
        judge.allowed.clear()
        clock.now += rights.HOLDS
        viewer = await tried.viewer(TENANT)
        assert (viewer.namespaces, viewer.nodes) == (frozenset(), False)

    asyncio.run(went())


def test_a_right_that_is_given_is_noticed_within_a_round():
    async def went():
        judge, clock = Judge(), Clock()
        tried = Rights(judge, lambda: named(300), clock)
        assert (await tried.viewer(TENANT)).namespaces == frozenset()
        judge.allowed.add(("tenant", "pods", "ns-00299"))
        for _ in range(300 // rights.AGAIN_PER_SECOND + 1):
            clock.now += 1
            await tried.viewer(TENANT)
            await settled(tried)
        assert (await tried.viewer(TENANT)).namespaces == {"ns-00299"}

    asyncio.run(went())


def test_about_a_namespace_that_comes_is_asked_and_about_no_other():
    async def went():
        there, judge, clock = named(200), Judge(("tenant", "pods", "later")), Clock()
        tried = Rights(judge, lambda: set(there), clock)
        await tried.viewer(TENANT)
        judge.taken()
        there.add("later")
        clock.now += rights.LOOKED
        assert (await tried.viewer(TENANT)).namespaces == {"later"}
        assert judge.taken()[0] == "later"

    asyncio.run(went())


def test_namespaces_that_come_and_go_take_no_more_room_and_no_questions(monkeypatch):
    """Where most that had a number are gone, those that stay are numbered anew, and are still known."""
    monkeypatch.setattr(rights, "SPARE", 10)

    async def went():
        judge, clock = Judge(("tenant", "pods", "stays-1")), Clock()
        stays = {"stays-0", "stays-1"}
        there = set(stays)
        tried = Rights(judge, lambda: set(there), clock)
        for number in range(40):
            there = stays | {f"comes-{number}"}
            clock.now += rights.LOOKED
            assert (await tried.viewer(TENANT)).namespaces == {"stays-1"}
            await settled(tried)
        assert len(tried._numbered) <= 2 * 3 + 10 + 1
        asked = judge.taken()
        assert {f"comes-{number}" for number in range(40)} <= set(asked)
        assert len(asked) <= 42 + 40 * rights.AGAIN_PER_SECOND

    asyncio.run(went())


def test_where_not_all_is_asked_yet_nothing_is_shown_rather_than_a_part(monkeypatch):
    monkeypatch.setattr(rights, "PATIENCE", 0.05)

    async def went():
        judge = Judge(("tenant", "pods", "ns-00000"))
        judge.allowed.add(("all", "pods", None))
        tried = Rights(judge, lambda: named(100), Clock())
        asked = tried._may

        async def slowly(user, resource, namespace):
            if namespace:
                await asyncio.sleep(0.02)
            return await asked(user, resource, namespace)

        monkeypatch.setattr(tried, "_may", slowly)
        with pytest.raises(PutOffError, match="still being asked in which namespaces you may list pods"):
            await tried.viewer(TENANT)
        assert (await tried.viewer({"username": "all"})).sees_all  # others do not wait for it
        await settled(tried)
        assert (await tried.viewer(TENANT)).namespaces == {"ns-00000"}

    asyncio.run(went())


def test_what_cannot_be_asked_is_told_and_asked_again():
    async def went():
        judge = Judge(("tenant", "pods", "ns-00001"))
        judge.fails = True
        tried = Rights(judge, lambda: named(3), Clock())
        with pytest.raises(ApiError):
            await tried.viewer(TENANT)
        judge.fails = False
        assert (await tried.viewer(TENANT)).namespaces == {"ns-00001"}

    asyncio.run(went())


def test_rights_are_those_of_the_user_with_their_groups():
    """Two tokens may name one user, once with more groups."""

    async def went():
        judge = Judge(("tenant", "pods", "ns-00001"))
        tried = Rights(judge, lambda: named(3), Clock())
        await tried.viewer(TENANT)
        judge.taken()
        await tried.viewer({**TENANT, "groups": ["a", "b"]})
        assert len(judge.taken()) == 3

    asyncio.run(went())

"""Finished answers: made once for all who see the same, known by a tag, packed; a large cluster holds nobody up."""

import asyncio
import gzip
import threading
import time
from contextlib import suppress
from dataclasses import replace

import pytest
from starlette.datastructures import Headers
from tests.builders import cluster, node, queue, spec, workload
from tests.web.consoles import Asking, served, shown, small

from tenure.web import pages
from tenure.web.access.viewer import Viewer
from tenure.web.at_once import FinishedFirst
from tenure.web.console import MANY
from tenure.web.finished import FinishedAnswers, finished

PATHS = ("/", "/queues", "/workloads/team-b/longest", "/nodes", "/api/v1/overview", "/api/v1/workloads")


def settled(client, path, **more):
    """Ask until nothing is being worked out any more, and give the answer."""
    for _ in range(300):
        answer = client.get(path, **more)
        if 'class="later"' not in answer.text:
            time.sleep(0.3)  # until it is noted that what came late is there
            return client.get(path, **more)
        time.sleep(0.1)
    raise AssertionError(path)


@pytest.mark.parametrize("path", PATHS)
def test_who_has_the_newest_is_sent_nothing(path):
    with shown(small()) as client:
        first = settled(client, path)
        tag = first.headers["etag"]
        again = client.get(path, headers={"if-none-match": tag})
        assert (again.status_code, again.text, again.headers["etag"]) == (304, "", tag)
        other = client.get(path, headers={"if-none-match": 'W/"other"'})
        assert (other.status_code, other.text) == (200, first.text)


def test_packed_is_the_same():
    with served(small()) as address:
        pool = Asking(address).pool
        plain = pool.request("GET", f"{address}/nodes")
        packed = pool.request("GET", f"{address}/nodes", headers={"accept-encoding": "gzip"}, decode_content=False)
        assert packed.headers["content-encoding"] == "gzip"
        assert "Accept-Encoding" in packed.headers["vary"]
        assert gzip.decompress(packed.data) == plain.data
        assert len(packed.data) < len(plain.data)


def test_viewers_who_see_the_same_share_one_page_that_does_not_name_them(monkeypatch):
    made = []
    shown_by = pages.VIEWS["/queues"]
    monkeypatch.setitem(pages.VIEWS, "/queues", lambda *given: made.append(1) or shown_by(*given))
    seen = {"anna": frozenset({"team-b"}), "bert": frozenset({"team-b"}), "cora": frozenset({"team-a"})}

    async def whose(request):
        name = request.headers["x-name"]
        return Viewer(name, seen[name])

    with shown(small(), whose=whose) as client:
        settled(client, "/queues", headers={"x-name": "anna"})
        made.clear()
        texts = {name: client.get("/queues", headers={"x-name": name}).text for name in seen}
        assert len(made) == 1  # only for the one who sees something else
        assert texts["anna"] == texts["bert"]
        assert not any(name in text for name in seen for text in texts.values())
        assert client.get("/me", headers={"x-name": "bert"}).text == "bert"


def test_many_who_ask_at_once_wait_for_one_that_makes_it():
    answers, made = FinishedAnswers(4, "test"), []

    def make():
        made.append(threading.get_ident())
        time.sleep(0.1)
        return finished(b"x", "text/plain")

    async def all_at_once():
        return await asyncio.gather(*(answers.get("key", make) for _ in range(50)))

    found = asyncio.run(all_at_once())
    answers.close()
    assert len(made) == 1
    assert {one.body for one in found} == {b"x"}


def test_what_is_finished_goes_past_the_routes():
    """Also where it is only being made; what failed is asked for as if nothing had been found."""
    answers = FinishedAnswers(1, "test")
    routed = []

    async def app(scope, receive, send):
        routed.append(scope["path"])
        with suppress(ValueError):
            found = await answers.get(scope["path"], lambda: made(scope["path"]))
            await found.sent(Headers())(scope, receive, send)

    def made(path):
        time.sleep(0.05)
        if path == "/wrong":
            raise ValueError
        return finished(b"x", "text/plain")

    async def ask():
        first, bodies = FinishedFirst(app, lambda scope: answers.found(scope["path"])), []

        async def send(message):
            bodies.append(message.get("body"))

        for path in ("/", "/", "/wrong"):
            asked = {"type": "http", "method": "GET", "path": path, "headers": []}
            await asyncio.gather(*(first(dict(asked), None, send) for _ in range(3)))
        return [body for body in bodies if body]

    assert asyncio.run(ask()) == [b"x"] * 6
    answers.close()
    assert routed == ["/", *["/wrong"] * 3]


def test_what_fails_fails_for_all_who_wait_and_is_tried_again():
    answers, tries = FinishedAnswers(4, "test"), []

    def make():
        tries.append(1)
        raise ValueError("no")

    async def twice():
        return [await asyncio.gather(*(answers.get("key", make) for _ in range(3)), return_exceptions=True)
                for _ in range(2)]  # fmt: skip

    found = asyncio.run(twice())
    answers.close()
    assert all(isinstance(one, ValueError) for part in found for one in part)
    assert len(tries) == 2


def test_no_more_is_kept_than_is_allowed_and_what_is_not_settled_for_a_moment_only():
    answers = FinishedAnswers(1, "test", most=100)

    async def fill():
        for number in range(20):
            await answers.get(number, lambda: finished(b"x" * 30, "text/plain"))
        assert [key for key, _ in answers.kept()] == [17, 18, 19]
        gone = finished(b"y", "text/plain", settled=False)
        await answers.get("y", lambda: gone._replace(until=time.monotonic() - 1))
        return await answers.get("y", lambda: finished(b"z", "text/plain"))

    assert asyncio.run(fill()).body == b"z"
    answers.close()


def large():
    """A cluster of more workloads than are waited for."""
    made = [workload(f"w{number}", of=spec(cpu=1), queue="a", age=number + 1) for number in range(MANY + 1)]
    return replace(cluster(nodes=[node("n", cpu=4)], queues=[queue("a")]), workloads=tuple(made))


def test_of_a_large_cluster_nobody_waits_for_what_is_played_unless_they_say_so():
    with shown(large()) as client:
        at_once = client.get("/api/v1/overview").json()
        assert at_once["settled"] is False
        assert client.get("/api/v1/overview", params={"wait": "30"}).json()["settled"] is True
        assert client.get("/api/v1/overview").json()["settled"] is True
        assert client.get("/api/v1/nodes", params={"wait": "1"}).status_code == 400
        assert client.get("/api/v1/overview", params={"wait": "31"}).status_code == 400


def test_a_queue_that_is_due_nothing_does_not_keep_the_overview_waiting():
    """Pods of other schedulers stand in a queue of which nobody works out what it is due."""
    there = small()
    other = replace(workload("other", of=spec(cpu=1), on=["cpu-0"], queue=""), scheduler_name="default-scheduler")
    with shown(replace(there, workloads=(*there.workloads, other))) as client:
        page = settled(client, "/").text
        assert ">default<" in page
        due = {one["name"]: one["fairShare"] for one in client.get("/api/v1/queues").json()["queues"]}
        assert due["default"] is None

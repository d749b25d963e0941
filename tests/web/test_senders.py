"""Where requests come from, and that wrong tokens of one sender leave others theirs."""

import asyncio
import threading
import time
from contextlib import suppress
from types import SimpleNamespace

import msgspec
import pytest
from tests.web.consoles import Asking, served, small

from tenure.clusters.kubernetes.client.requests import ApiError
from tenure.web import login
from tenure.web.access import rights, senders
from tenure.web.access.put_off import PutOffError
from tenure.web.access.senders import FORWARDED, MOST_SENDERS, WRONG_AT_ONCE, Sender, WrongTokens, network_of
from tenure.web.login import COOKIE, IDLE_SECONDS, Logins
from tenure.web.routes import change_streams
from tenure.web.sources.still import StillSource


class Server:
    """Knows the tokens that begin with ``good``; each answer takes ``seconds``."""

    def __init__(self, seconds=0.0):
        self.reviewed, self.seconds = [], seconds
        self.known = "good"

    def create(self, path, body):
        if not path.endswith("tokenreviews"):
            return msgspec.json.encode({"status": {"allowed": True}})
        token = body["spec"]["token"]
        self.reviewed.append(token)
        time.sleep(self.seconds)
        known = token.startswith(self.known)
        return msgspec.json.encode({"status": {"authenticated": known, "user": {"username": token} if known else {}}})


def logins(server, required=True):
    return Logins(server, SimpleNamespace(namespaces=set), required=required)


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("10.0.0.1", "10.0.0.1"), ("::ffff:10.0.0.1", "10.0.0.1"), ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("unknown", "unknown"), ("x" * 1000, "x" * 64), ("", ""),
    ],
)  # fmt: skip
def test_senders_by_ipv6_are_told_apart_by_network(address, network):
    assert network_of(address) == network


def test_wrong_tokens_are_bounded_by_sender_and_come_back():
    now = [0.0]
    counted = WrongTokens(lambda: now[0])
    one, other = Sender("10.0.0.1"), Sender("10.0.0.2")
    for _ in range(WRONG_AT_ONCE):
        counted.take(one)
    with pytest.raises(PutOffError, match="too many wrong tokens came from where you are; try again in 1 s") as raised:
        counted.take(one)
    assert raised.value.status == 429
    counted.take(other)
    now[0] = 1.0
    counted.take(one)
    with pytest.raises(PutOffError):
        counted.take(one)


def test_right_tokens_do_not_count():
    counted = WrongTokens(lambda: 0.0)
    for _ in range(3 * WRONG_AT_ONCE):
        counted.take(Sender("proxy"))
        counted.give_back(Sender("proxy"))


def test_behind_a_proxy_each_has_their_own_and_names_that_are_made_up_do_not_help():
    counted = WrongTokens(lambda: 0.0)
    for _ in range(WRONG_AT_ONCE):
        counted.take(Sender("proxy", "10.0.0.1"))
    with pytest.raises(PutOffError):
        counted.take(Sender("proxy", "10.0.0.1"))
    counted.take(Sender("proxy", "10.0.0.2"))
    gone = 0
    with suppress(PutOffError):
        for number in range(2 * MOST_SENDERS):
            counted.take(Sender("liar", f"made up {number}"))
            gone += 1
    assert gone == WRONG_AT_ONCE * FORWARDED
    counted.take(Sender("proxy", "10.0.0.2"))


def test_one_sender_with_many_wrong_tokens_costs_the_api_server_little_and_others_nothing():
    """Hundreds at a time, each answered slowly: who comes from elsewhere, and who was known, waits for few of them."""
    server = Server(seconds=0.02)
    asked = logins(server)

    async def went():
        assert await asked.viewer_of("good-before", Sender("10.0.0.9"))
        flood = [asyncio.create_task(asked.viewer_of(f"wrong-{number}", Sender("10.0.0.1"))) for number in range(500)]
        await asyncio.sleep(0)
        assert await asked.viewer_of("good", Sender("10.0.0.2"))
        asked._users = type(asked._users)((key, (0.0, user)) for key, (_, user) in asked._users.items())
        assert await asked.viewer_of("good-before", Sender("10.0.0.1"))
        return await asyncio.gather(*flood, return_exceptions=True)

    found = asyncio.run(went())
    assert sum(token.startswith("wrong") for token in server.reviewed) <= WRONG_AT_ONCE + 5
    assert sum(isinstance(one, PutOffError) for one in found) >= 500 - WRONG_AT_ONCE - 5
    assert server.reviewed.index("good") < WRONG_AT_ONCE / 3


def test_a_token_that_many_requests_bring_at_once_is_asked_about_once():
    server = Server(seconds=0.05)
    asked = logins(server)

    async def went():
        return await asyncio.gather(*(asked.viewer_of("good", Sender("a")) for _ in range(50)))

    assert len(asyncio.run(went())) == 50
    assert server.reviewed == ["good"]


def test_wrong_tokens_push_out_none_that_is_known(monkeypatch):
    monkeypatch.setattr(login, "MOST_TOKENS", 5)
    server = Server()
    asked = logins(server)

    async def went():
        assert await asked.viewer_of("good", Sender("a"))
        for number in range(15):
            assert await asked.viewer_of(f"wrong-{number}", Sender("b")) is None
        assert await asked.viewer_of("good", Sender("a"))

    asyncio.run(went())
    assert server.reviewed.count("good") == 1
    assert len(asked._wrong) == 5


def test_what_the_api_server_cannot_say_does_not_count_as_wrong():
    server = Server()
    asked = logins(server)
    server.create = lambda *_: (_ for _ in ()).throw(ApiError(0, "Unreachable", "away"))

    async def went():
        for number in range(3 * WRONG_AT_ONCE):
            with pytest.raises(PutOffError, match="it cannot be asked who you are"):
                await asked.viewer_of(f"t-{number}", Sender("a"))

    asyncio.run(went())


@pytest.fixture
def console():
    source = StillSource(small(), "a file")
    server = Server()
    asked = Logins(server, source, required=True)
    with served(source, whose=asked.whose, more=asked.routes) as address:
        yield Asking(address), asked, server


def logged_in(client, token):
    return client.post(
        "/login", content=f"token={token}", headers={"content-type": "application/x-www-form-urlencoded"}
    )


def test_too_many_wrong_tokens_are_told_to_a_browser_and_to_a_program(console, monkeypatch):
    monkeypatch.setattr(senders, "WRONG_PER_SECOND", 0.01)
    client, _, server = console
    for number in range(WRONG_AT_ONCE):
        assert logged_in(client, f"wrong-{number}").status_code == 401
    answer = logged_in(client, "wrong-again")
    assert answer.status_code == 429
    assert 50 < int(answer.headers["retry-after"]) <= 100
    assert "Too many wrong tokens" in answer.text
    answer = client.get("/api/v1/overview", headers={"authorization": "Bearer wrong-once-more"})
    assert answer.status_code == 429
    assert "too many wrong tokens" in answer.json()["error"]
    assert len(server.reviewed) <= WRONG_AT_ONCE + 2
    elsewhere = {"authorization": "Bearer good", "x-forwarded-for": "203.0.113.7, 10.1.1.1"}
    assert client.get("/api/v1/overview", headers=elsewhere).status_code == 200


def test_names_of_others_that_are_made_up_help_on_no_address(console, monkeypatch):
    """Not on loopback either, where servers like to believe them."""
    monkeypatch.setattr(senders, "WRONG_PER_SECOND", 0.01)
    monkeypatch.setattr(senders, "WRONG_AT_ONCE", 2)
    client, _, server = console
    for number in range(30):
        made_up = {"authorization": f"Bearer wrong-{number}", "x-forwarded-for": f"203.0.113.{number}"}
        answer = client.get("/api/v1/overview", headers=made_up)
    assert answer.status_code == 429
    assert len(server.reviewed) <= 2 * FORWARDED + 2


def test_one_token_ends_its_own_sessions_and_not_those_of_others(console, monkeypatch):
    monkeypatch.setattr(login, "MOST_SESSIONS_EACH", 3)
    monkeypatch.setattr(login, "MOST_SESSIONS", 5)
    client, _, _ = console
    cookies = [
        logged_in(client, token).headers["set-cookie"].partition(";")[0] for token in ("good-1", *["good-2"] * 9)
    ]
    found = [client.get("/api/v1/overview", headers={"cookie": cookie}).status_code for cookie in cookies]
    assert found == [200, *[401] * 6, *[200] * 3]


def test_a_page_that_is_left_open_keeps_no_session(console):
    """What tells it of changes looks again and again who asks."""
    client, asked, _ = console
    cookie = logged_in(client, "good").headers["set-cookie"].partition(";")[0]
    (session,) = asked._sessions.values()
    session.asked = old = time.monotonic() - IDLE_SECONDS + 60
    stream = client.pool.request("GET", f"{client.address}/changes", headers={"cookie": cookie}, preload_content=False)
    assert stream.status == 200
    stream.close()
    assert session.asked == old
    assert client.get("/api/v1/overview", headers={"cookie": cookie}).status_code == 200
    assert session.asked > old
    assert COOKIE in cookie


def test_a_user_has_only_so_many_streams(console, monkeypatch):
    monkeypatch.setattr(change_streams, "MOST_STREAMS_EACH", 2)
    client, _, _ = console

    def stream(token):
        headers = {"authorization": f"Bearer {token}"}
        found = client.pool.request("GET", f"{client.address}/changes", headers=headers, preload_content=False)
        if found.status == 200:
            kept.append(found.stream(64))
            next(kept[-1])
        return found

    kept = []
    opened = [stream("good-1"), stream("good-1"), stream("good-1"), stream("good-2")]
    assert [one.status for one in opened] == [200, 200, 503, 200]
    for one in opened:
        one.close()


def test_whose_rights_are_still_being_asked_is_told_so_and_asked_again(console, monkeypatch):
    """A browser does so by itself, and then has all that is theirs."""
    client, _, server = console
    monkeypatch.setattr(rights, "PATIENCE", 0.05)
    created, goes = server.create, threading.Event()

    def create(path, body):
        wanted = body["spec"].get("resourceAttributes", {})
        if "namespace" in wanted:
            goes.wait(20)
        elif wanted.get("resource") == "pods":
            return msgspec.json.encode({"status": {"allowed": False}})
        return created(path, body)

    server.create = create
    browser = {"authorization": "Bearer good", "accept": "text/html"}
    page = client.get("/workloads", headers=browser)
    assert (page.status_code, page.headers["refresh"]) == (503, "2")
    assert "still being asked in which namespaces you may list pods; 2 of 2 are left" in page.text
    answer = client.get("/api/v1/workloads", headers={"authorization": "Bearer good"})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    goes.set()
    monkeypatch.setattr(rights, "PATIENCE", 20.0)
    assert client.get("/api/v1/workloads", headers={"authorization": "Bearer good"}).json()["total"] == 4

"""The proxy that lets things go wrong, between a client and the real API server."""

import http.client
import json
import threading
import time
from contextlib import contextmanager
from itertools import count

import pytest
from tests.kubernetes.faults import (
    CutWatch,
    Delay,
    DelayWatch,
    DropRequest,
    ExpireWatch,
    LoseAnswer,
    Refuse,
    RepeatWatch,
    Request,
    Script,
)
from tests.kubernetes.proxy import FaultProxy, read_lines
from tools.controlplane.client import ApiError, Client
from tools.controlplane.plane import KubectlError

MAPS = "/api/v1/namespaces/default/configmaps"
NUMBERS = count()
BROKEN = (OSError, http.client.HTTPException)


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@pytest.fixture
def name(plane):
    name = f"proxied-{next(NUMBERS)}"
    yield name
    if plane.client().exists(f"{MAPS}/{name}"):
        plane.client().delete(f"{MAPS}/{name}")


@pytest.fixture
def client(plane, proxy):
    return Client(proxy.server, plane.credentials.tokens["admin"])


class Watch:
    """The events of one object's watch, through the proxy."""

    def __init__(self, plane, proxy, name, version):
        self._connection = http.client.HTTPConnection(proxy.server.removeprefix("http://"), timeout=20)
        query = f"?watch=1&resourceVersion={version}&fieldSelector=metadata.name%3D{name}&timeoutSeconds=20"
        headers = {"Authorization": f"Bearer {plane.credentials.tokens['admin']}"}
        self._connection.request("GET", MAPS + query, headers=headers)
        answer = self._connection.getresponse()
        assert answer.status == 200
        self._lines = read_lines(answer)

    def next(self):
        """Give the next event; None at an orderly end, an error at a rough one."""
        line = next(self._lines, None)
        return json.loads(line) if line else None

    def close(self):
        self._connection.close()


@pytest.fixture
def watched(plane, proxy, name):
    """Give a function that creates an object, changes it twice, and watches that from the start."""
    opened = []

    def watch():
        direct = plane.client()
        version = direct.create(MAPS, config_map(name, step="0"))["metadata"]["resourceVersion"]
        for step in "12":
            direct.patch(f"{MAPS}/{name}", {"data": {"step": step}})
        opened.append(Watch(plane, proxy, name, version))
        return opened[-1]

    yield watch
    for each in opened:
        each.close()


def step(event):
    return event["object"]["data"]["step"]


def test_without_faults_it_is_not_noticed(plane, proxy, client, name):
    """Reads, writes, errors and watches pass through as they are, and are logged; writes are numbered."""
    made = client.create(MAPS, config_map(name, a="1"))
    assert client.get(f"{MAPS}/{name}") == made
    client.patch(f"{MAPS}/{name}", {"data": {"a": "2"}})
    with pytest.raises(ApiError, match="404"):
        client.get(f"{MAPS}/not-there")
    watch = Watch(plane, proxy, name, made["metadata"]["resourceVersion"])
    assert watch.next()["object"]["data"] == {"a": "2"}
    watch.close()
    client.delete(f"{MAPS}/{name}")
    answered = [(e.request.method, e.status, e.request.write) for e in proxy.log if not e.request.is_watch]
    assert answered == [("POST", 201, 1), ("GET", 200, 0), ("PATCH", 200, 2), ("GET", 404, 0), ("DELETE", 200, 3)]


def test_kubectl_works_through_it_with_the_same_certificate(plane, name):
    """It can serve by the API server's own certificate, so that a kubeconfig differs by the address alone."""
    made = plane.credentials
    certificate = (made.certificate, made.key)
    with FaultProxy(plane.server, plane.authority, certificate=certificate) as proxy:
        by_proxy = plane.kubeconfig_for(made.tokens["admin"], "by-proxy", proxy.server)
        plane.kubectl("create", "configmap", name, "--from-literal=a=1", kubeconfig=by_proxy)
        assert name in plane.kubectl("get", "configmap", name, kubeconfig=by_proxy)
        assert 201 in proxy.statuses(MAPS)
        proxy.script.add(Refuse(503, "away"), path=MAPS, method="DELETE", times=20)
        with pytest.raises(KubectlError, match="away"):
            plane.kubectl("delete", "configmap", name, kubeconfig=by_proxy)


REASONS = {409: "Conflict", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}


@pytest.mark.parametrize(("status", "reason"), REASONS.items())
def test_a_refused_write_has_no_effect(plane, proxy, client, name, status, reason):
    """A refusal looks like the server's own, and the server never sees the request."""
    proxy.script.add(Refuse(status, "injected", retry_after=1), write=True)
    with pytest.raises(ApiError) as refused:
        client.create(MAPS, config_map(name))
    assert (refused.value.status, refused.value.body["reason"]) == (status, reason)
    assert not plane.client().exists(f"{MAPS}/{name}")
    client.create(MAPS, config_map(name))


def test_a_dropped_request_has_no_effect_and_a_lost_answer_has(plane, proxy, client, name):
    """Both look alike to the client; only after the lost answer the write is there."""
    proxy.script.add(DropRequest(), write=True)
    with pytest.raises(BROKEN):
        client.create(MAPS, config_map(name))
    assert not plane.client().exists(f"{MAPS}/{name}")
    proxy.script.add(LoseAnswer(), write=True)
    with pytest.raises(BROKEN):
        client.create(MAPS, config_map(name))
    assert plane.client().exists(f"{MAPS}/{name}")
    with pytest.raises(ApiError, match="409"):
        client.create(MAPS, config_map(name))


def test_a_silent_answer_runs_into_the_clients_time_out(plane, proxy, name):
    """An answer that is lost in silence takes as long as the client waits, and the write is there."""
    proxy.script.add(LoseAnswer(seconds=3.0), write=True)
    impatient = http.client.HTTPConnection(proxy.server.removeprefix("http://"), timeout=1.0)
    token = plane.credentials.tokens["admin"]
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    impatient.request("POST", MAPS, json.dumps(config_map(name)), headers)
    with pytest.raises(TimeoutError):
        impatient.getresponse()
    impatient.close()
    assert plane.client().exists(f"{MAPS}/{name}")


def test_a_delayed_request_arrives(proxy, client, name):
    """A delay is felt, and nothing else."""
    proxy.script.add(Delay(0.5), write=True)
    begun = time.monotonic()
    client.create(MAPS, config_map(name))
    assert time.monotonic() - begun >= 0.5


def test_a_watch_is_cut_between_events(proxy, watched):
    """A watch breaks off after so many events; the client sees an end that is none of the protocol's."""
    proxy.script.add(CutWatch(events=1), watch=True)
    watch = watched()
    assert step(watch.next()) == "1"
    with pytest.raises(BROKEN):
        watch.next()


def test_a_watch_is_cut_within_an_event(proxy, watched):
    """A watch breaks off in the middle of an event: what has come of it is no JSON."""
    proxy.script.add(CutWatch(events=1, torn=True), watch=True)
    watch = watched()
    assert step(watch.next()) == "1"
    with pytest.raises((*BROKEN, ValueError)):
        watch.next()


def test_events_are_repeated(proxy, watched):
    """Each event comes twice, in order."""
    proxy.script.add(RepeatWatch(2), watch=True)
    watch = watched()
    assert [step(watch.next()) for _ in range(4)] == ["1", "1", "2", "2"]


def test_events_are_delayed(proxy, watched):
    """Each event comes later."""
    proxy.script.add(DelayWatch(0.3), watch=True)
    watch = watched()
    begun = time.monotonic()
    assert [step(watch.next()) for _ in range(2)] == ["1", "2"]
    assert time.monotonic() - begun >= 0.55  # the first may have been on its way before the clock was read


def test_a_watch_expires_in_the_stream_or_at_once(proxy, client, watched):
    """410 comes as an event and ends the stream, as the server does it; or as the answer to the watch or list."""
    proxy.script.add(ExpireWatch(events=1), watch=True)
    watch = watched()
    assert step(watch.next()) == "1"
    gone = watch.next()
    assert (gone["type"], gone["object"]["code"]) == ("ERROR", 410)
    assert watch.next() is None
    proxy.script.add(Refuse(410, "too old resource version"), path=MAPS, method="GET")
    with pytest.raises(ApiError) as refused:
        client.get(f"{MAPS}?watch=1&resourceVersion=1")
    assert (refused.value.status, refused.value.body["reason"]) == (410, "Expired")


def test_hooks_run_before_and_after_the_write_takes_effect(plane, proxy, client, name):
    """What is to happen before the n-th write finds it undone, what is to happen after it finds it done."""
    direct, seen = plane.client(), []

    def look(request):
        seen.append((request.write, direct.exists(f"{MAPS}/{name}")))

    proxy.before_write(1, look)
    proxy.after_write(1, look)
    proxy.before_write(2, look)
    proxy.after_write(2, look)
    client.create(MAPS, config_map(name))
    client.get(f"{MAPS}/{name}")
    client.delete(f"{MAPS}/{name}")
    assert seen == [(1, False), (1, True), (2, True), (2, False)]


def test_a_client_killed_before_a_write_is_like_one_that_never_sent_it(plane, proxy, client, name):
    """A hook that raises stands for a crash: the connection closes, and the server has not seen the write."""

    def crash(_request):
        raise ConnectionAbortedError

    proxy.before_write(1, crash)
    with pytest.raises(BROKEN):
        client.create(MAPS, config_map(name))
    assert not plane.client().exists(f"{MAPS}/{name}")


def test_all_connections_can_be_cut(proxy, watched, client):
    """Open watches break at once; new requests are served again."""
    watch = watched()
    assert [step(watch.next()) for _ in range(2)] == ["1", "2"]
    threading.Timer(0.2, proxy.cut_all).start()
    with pytest.raises(BROKEN):
        watch.next()
    client.get("/readyz")


def test_the_server_restarts_behind_it(start_plane):
    """Meanwhile requests fail and watches break; afterwards what was written is there, and old versions have expired.

    What the server itself says of a version that is too old is what the proxy says of one.
    """
    plane = start_plane(controllers=False, nodes=False)
    with FaultProxy(plane.server, plane.authority) as proxy:
        client = Client(proxy.server, plane.credentials.tokens["admin"])
        version = client.create(MAPS, config_map("kept"))["metadata"]["resourceVersion"]
        client.patch(f"{MAPS}/kept", {"data": {"step": "1"}})
        watch = Watch(plane, proxy, "kept", version)
        assert step(watch.next()) == "1"
        plane.apiserver.kill()
        with pytest.raises(BROKEN):
            watch.next()
        with pytest.raises(BROKEN):
            client.get(f"{MAPS}/kept")
        plane.apiserver.start()
        plane.apiserver.wait_until(plane.is_ready)
        client.get(f"{MAPS}/kept")
        gone = Watch(plane, proxy, "kept", version).next()
        own, ours = gone["object"], Refuse(410).body()
        assert (gone["type"], own["code"], own["reason"]) == ("ERROR", ours["code"], ours["reason"])
        plane.restart_etcd()
        client.get(f"{MAPS}/kept")


@contextmanager
def many_threads(work, number=8):
    threads = [threading.Thread(target=work) for _ in range(number)]
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join()


def test_each_fault_comes_as_often_as_it_says_with_many_clients():
    """Skips and times are counted over all threads together."""
    script, found = Script(), []
    script.add(Refuse(409), write=True, times=5, skip=10)

    def ask():
        found.extend(script.next_for(Request("POST", "/x", write=1)) for _ in range(10))

    with many_threads(ask):
        pass
    assert len([fault for fault in found if fault]) == 5
    assert script.pending == 0


def test_random_faults_are_the_same_for_the_same_seed():
    """A seed decides which requests go wrong, and how."""

    def outcome(seed):
        script = Script()
        script.add_random(seed, [Refuse(500), DropRequest(), LoseAnswer()], rate=0.2, times=20)
        return [script.next_for(Request("GET", "/")) for _ in range(300)]

    assert outcome(1) == outcome(1) != outcome(2)
    assert len([fault for fault in outcome(1) if fault]) == 20

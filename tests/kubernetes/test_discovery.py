"""What an API server serves is learned in one request for all groups, and is what each of its groups says by itself."""

from __future__ import annotations

import http.server
import json
import threading

import pytest

from tenure.clusters.kubernetes.cache.informers import InformerCache, Options
from tenure.clusters.kubernetes.client.access import Access, find_access
from tenure.clusters.kubernetes.client.discovery import AGGREGATED, ServedResources
from tenure.clusters.kubernetes.client.requests import ApiError, Client


class Asked(Client):
    """A client that notes where it asks what is served; with ``plainly`` it cannot ask for the aggregated form."""

    def __init__(self, access, *, plainly=False):
        super().__init__(access)
        self.plainly, self.paths = plainly, []

    def get(self, path, *, accept="", **query):
        if accept == AGGREGATED:
            self.paths.append(path)
            accept = "application/json" if self.plainly else accept
        return super().get(path, accept=accept, **query)


@pytest.mark.parametrize("plainly", [False, True])
def test_it_is_what_each_group_says(plane, plainly):
    """Each resource of each version of each group, Tenure's own definitions among them, either way that it is said."""
    groups = plane.client().get("/apis")["groups"]
    paths = ["/api/v1", *(f"/apis/{v['groupVersion']}" for group in groups for v in group["versions"])]
    asked = Asked(find_access(str(plane.kubeconfig)), plainly=plainly)
    served, there = ServedResources(asked), 0
    for path in paths:
        for entry in plane.client().get(path)["resources"]:
            if "/" not in entry["name"]:
                there += 1
                assert served.serves(path, entry["name"]), (path, entry["name"])
        assert not served.serves(path, "nothings")
    assert not served.serves("/apis/nobody.example.com/v1", "things")
    assert not served.serves("/apis/batch/v999", "jobs")
    assert there > 60
    assert asked.paths == ["/api", "/apis"] if not plainly else len(asked.paths) == len(set(asked.paths))


def test_whoever_starts_to_watch_asks_once(plane):
    """Before, it asked 26 times at each start and each minute."""
    asked = Asked(find_access(str(plane.kubeconfig)))
    informers = InformerCache(asked, Options())
    try:
        informers.start()
        assert asked.paths == ["/apis"]
        assert informers.wait_synced(60)
    finally:
        informers.stop()
    paths = {reflector.path for reflector in informers.reflectors.values()}
    assert {"/apis/tenure.dev/v1beta1/queues", "/apis/batch/v1/jobs", "/apis/apps/v1/replicasets"} <= paths


class _Answers(http.server.BaseHTTPRequestHandler):
    code, body = 200, b""

    def do_GET(self):
        self.send_response(self.code)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def answering():
    """Give a function that has a server on loopback answer everything alike, and gives what is served there."""
    servers = []

    def answer(code, body):
        handler = type("Handler", (_Answers,), {"code": code, "body": body})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return ServedResources(Client(Access(server=f"http://127.0.0.1:{server.server_port}")))

    yield answer
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("code", [403, 404])
def test_what_may_not_be_asked_is_not_served(answering, code):
    assert not answering(code, b"{}").serves("/apis/batch/v1", "jobs")


@pytest.mark.parametrize("body", [b"<html>", json.dumps({"items": 5}).encode(), b'{"items": [{"versions": {}}]}'])
def test_an_answer_that_is_none_is_an_error_that_says_where(answering, body):
    with pytest.raises(ApiError, match="/apis: "):
        answering(200, body).serves("/apis/batch/v1", "jobs")

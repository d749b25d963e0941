"""An address that there is not: a browser gets a page with a way back, a program gets JSON, both the right status."""

import pytest
from starlette.requests import Request
from tests.web.consoles import always, shown, small

from tenure.web.access.viewer import Viewer
from tenure.web.app import application
from tenure.web.console import Console
from tenure.web.routes.troubles import wants_page
from tenure.web.sources.still import StillSource

BROWSER = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


@pytest.fixture(scope="module")
def client():
    with shown(small()) as found:
        yield found


@pytest.mark.parametrize("path", ["/nothing", "/workload/a/b", "/workloads/a/b/c", "/<b>x", "/logout"])
def test_a_browser_gets_a_page_with_a_way_back(client, path):
    answer = client.get(path, headers=BROWSER)
    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")
    assert "There is no page at that address." in answer.text
    assert '<a href="/">To the overview</a>' in answer.text
    assert "<b>x" not in answer.text


@pytest.mark.parametrize(
    ("path", "to"),
    [
        ("/queues/", "/queues"), ("/queues//?sort=name&at=", "/queues?sort=name&at="), ("/workloads/a%3F/%0d/",
        "/workloads/a%3F/%0D"), ("/api/v1/overview/", "/api/v1/overview"),
    ],
)  # fmt: skip
def test_a_slash_too_many_leads_to_the_address_without_it_on_the_same_host(client, path, to):
    """Neither scheme nor host are named: behind a proxy with TLS they would be others."""
    answer = client.get(path, headers=BROWSER)
    assert (answer.status_code, answer.headers["location"]) == (307, to)


@pytest.mark.parametrize("path", ["/nothing/", "//queues/", "//example.com/", "//example.com//", "/queues/x/", "//"])
def test_a_slash_too_many_leads_nowhere_where_nothing_is(client, path):
    answer = client.get(path, headers=BROWSER)
    assert answer.status_code == 404


@pytest.mark.parametrize("accept", ["*/*", "application/json", "", "text/plain;q=0.5, application/json"])
def test_a_program_gets_json(client, accept):
    answer = client.get("/nothing", headers={"accept": accept})
    assert answer.status_code == 404
    assert answer.json() == {"error": "there is nothing at that address; /openapi.json lists what there is"}


def test_below_the_api_all_get_json(client):
    answer = client.get("/api/v1/nothing", headers=BROWSER)
    assert (answer.status_code, answer.json()["error"][:16]) == (404, "there is nothing")


def test_a_method_that_does_not_go_with_an_address_is_told_alike(client):
    answer = client.post("/queues", headers=BROWSER)
    assert (answer.status_code, set(answer.headers["allow"].split(", "))) == (405, {"GET", "HEAD"})
    assert "To the overview" in answer.text
    answer = client.post("/queues")
    assert (answer.status_code, set(answer.headers["allow"].split(", "))) == (405, {"GET", "HEAD"})
    assert answer.json() == {"error": "that method does not go with that address"}


def test_it_tells_those_who_have_not_logged_in_nothing_of_the_cluster():
    with shown(small(), whose=always(Viewer("somebody"))) as client:
        page = client.get("/nothing", headers=BROWSER)
    assert page.status_code == 404
    assert "a file" not in page.text
    assert "somebody" not in page.text


def test_what_fails_here_is_told_a_browser_as_a_page():
    console = Console(StillSource(small(), ""))
    try:
        made = application(console).state.console
        for headers, kind in ((BROWSER, "text/html"), ({}, "application/json")):
            lines = [(name.encode(), text.encode()) for name, text in headers.items()]
            scope = {"type": "http", "method": "GET", "path": "/", "headers": lines, "query_string": b""}
            answer = made.troubles.broken(Request(scope), RuntimeError("secret"))
            assert (answer.status_code, answer.media_type) == (500, kind)
            assert b"by a fault of the console" in answer.body
            assert b"secret" not in answer.body
            assert wants_page(Request(scope)) is (kind == "text/html")
            assert "content-security-policy" in answer.headers
    finally:
        console.close()

"""Moves rest on an admission policy: where it is missing, or the API server does not apply it, nothing is moved."""

from __future__ import annotations

import pytest
from tests.kubernetes.foreign.helpers import events, nothing_is_left, replicas, seen, settle
from tests.kubernetes.running import SETS, bound, running
from tests.kubernetes.stage import wait_until

from tenure.clusters.kubernetes.external.admission import BINDING_PATH, NAME


@pytest.fixture
def unbound(plane, client):
    """Take the policy's binding away, give how to bind it again, and start the API server anew in the end."""
    found = client.get(BINDING_PATH)
    body = {key: found[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": {"name": NAME}}

    def bind():
        client.create(BINDING_PATH.rpartition("/")[0], body)

    client.delete(BINDING_PATH)
    yield bind
    if not client.exists(BINDING_PATH):
        bind()
    anew(plane, client)


def anew(plane, client):
    """Start the API server anew."""
    plane.restart_apiserver()
    client.close()


def refused(client, why):
    """Whether an event says why nothing can be moved."""
    return any(why in event["note"] for event in events(client, "HoleRefused"))


def test_without_the_policy_nothing_is_moved_and_once_it_holds_again_only_if_the_server_applies_it(
    plane, client, unbound, kubeconfig, tmp_path
):
    """An API server whose last binding went reads no ConfigMap for policies any more, until it is started anew."""
    settle(client)
    client.create(SETS, replicas("large", 9))
    with running(kubeconfig, tmp_path):
        wait_until(lambda: refused(client, "is not installed"), "it does not say that the policy is missing", 60)
    assert "tenure install" in events(client, "HoleRefused")[-1]["note"]
    assert nothing_is_left(client)
    assert bound(client, "large") == 0
    unbound()
    with running(kubeconfig, tmp_path) as scheduler:
        wait_until(lambda: refused(client, "does not apply"), lambda: scheduler.log.read_text()[-3000:], 60)
        wait_until(lambda: nothing_is_left(client), "something is left", 10)
        assert not [line for line in scheduler.lines() if line["message"] == "evicted"]
    assert bound(client, "large") == 0
    anew(plane, client)
    with running(kubeconfig, tmp_path):
        wait_until(lambda: bound(client, "large") == 1, lambda: seen(client, "large", "small-a", "small-b"), 60)

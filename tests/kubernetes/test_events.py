"""Events are told without anybody waiting for them."""

from __future__ import annotations

import time

from tenure.clusters.kubernetes.client.access import find_access
from tenure.clusters.kubernetes.client.requests import Client
from tenure.clusters.kubernetes.write.events import MOST_WAITING, Events, Subject


def test_telling_of_many_at_once_takes_time_in_proportion(plane):
    """A cycle that starts ten thousand workloads tells of each; four times as many take about four times as long."""
    events = Events(Client(find_access(str(plane.kubeconfig))), "test")

    def tell(count, what):
        began = time.process_time()
        for number in range(count):
            events.tell(Subject("v1", "Pod", "default", f"{what}-{number}", ""), "Started", "All of its core is bound.")
        return time.process_time() - began

    few = tell(2 * MOST_WAITING, "few")
    many = tell(8 * MOST_WAITING, "many")
    events.stop(0.0)
    assert many < 20 * few, (few, many)
    assert events.dropped >= 8 * MOST_WAITING

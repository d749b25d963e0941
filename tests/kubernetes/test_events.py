"""Events are told without anybody waiting for them."""

from __future__ import annotations

import threading
import time

from tests.kubernetes.stage import wait_until

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


class Waiting:
    """Stands for an API server that takes events from a moment on; it keeps of which namespaces they were."""

    def __init__(self):
        self.opened = threading.Event()
        self.namespaces = []

    def create(self, _path, body):
        self.opened.wait()
        self.namespaces.append(body["metadata"]["namespace"])


def test_who_says_very_much_silences_itself_alone():
    """What is dropped is of the namespace of which most waits, and the others do not wait behind all of that."""
    client = Waiting()
    events = Events(client, "test")
    for number in range(2 * MOST_WAITING):
        events.tell(Subject("v1", "Pod", "evil", f"p-{number}", ""), "Invalid", "It is not well.")
        if number % 100 == 0:
            events.tell(Subject("v1", "Pod", "honest", f"p-{number}", ""), "Started", "All of its core is bound.")
    client.opened.set()
    wait_until(lambda: client.namespaces.count("honest") == MOST_WAITING // 50, "what others say is lost")
    assert client.namespaces.count("evil") < 2 * client.namespaces.count("honest")
    assert events.dropped <= MOST_WAITING + MOST_WAITING // 50
    events.stop(0.0)


def test_what_is_being_written_at_the_end_is_written():
    """A process that ends waits for the answer to its last event, and not only until none is left to be sent."""
    client = Waiting()
    events = Events(client, "test")
    events.tell(Subject("v1", "Pod", "default", "p", ""), "Started", "All of its core is bound.")
    wait_until(lambda: not events._waiting, "it is not taken")
    threading.Timer(0.3, client.opened.set).start()
    events.stop(30.0)
    assert client.namespaces == ["default"]

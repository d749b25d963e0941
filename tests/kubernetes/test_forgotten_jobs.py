"""One control plane for many tests: a Job that went does not hinder the next one of its name."""

import signal
import threading

from tests.kubernetes.running import JOBS, PODS, job
from tools.controlplane.process import wait_for


def test_what_went_does_not_hinder_what_comes_by_its_name(plane):
    """A Job's controller that is held up while it makes pods has forgotten it before the next one of its name comes."""
    client = plane.client()
    for _ in range(3):
        client.create(JOBS, job("left", "team", 3))
        wait_for(lambda: client.get(PODS)["items"], "a pod of the first", 60)
        plane.controllers.signal(signal.SIGSTOP)
        going_on = threading.Timer(1.0, plane.controllers.signal, (signal.SIGCONT,))
        going_on.start()
        plane.put_back()
        going_on.join()
        client.create(JOBS, job("left", "team", 3))
        wait_for(lambda: len(client.get(PODS)["items"]) == 3, "the pods of the second", 60)
        plane.put_back()

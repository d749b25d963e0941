"""A control plane with the default kube-scheduler, beside which the rescheduler runs."""

from __future__ import annotations

import pytest
from tests.kubernetes.foreign.helpers import RESCHEDULER, filled
from tests.kubernetes.shared_plane import DEPLOYMENT
from tools.controlplane.plane import Options

from tenure.clusters.kubernetes.install.installation import Installation

INSTALLATION = Installation(image="tenure:test", config={"rescheduler": RESCHEDULER})
"""Tenure may move the pods of the other scheduler."""


@pytest.fixture(scope="module")
def plane(shared_plane):
    """Give a control plane with kube-scheduler, on which two replicas of Tenure are simulated."""
    made = shared_plane.take(Options(scheduler=True), INSTALLATION)
    made.client().patch(DEPLOYMENT, {"spec": {"replicas": 2}})
    first = {"metadata": {"name": "thief"}, "value": 1000, "preemptionPolicy": "Never"}
    made.client().create("/apis/scheduling.k8s.io/v1/priorityclasses", first)
    yield made
    shared_plane.give_back()


@pytest.fixture
def client(plane):
    with filled(plane) as made:
        yield made


@pytest.fixture
def kubeconfig(plane):
    return plane.kubeconfig_for(plane.token_of("tenure", "tenure-system"), "tenure")

"""A control plane with the default kube-scheduler, beside which the rescheduler runs."""

from __future__ import annotations

import pytest
from tests.kubernetes.foreign.helpers import filled, started


@pytest.fixture(scope="module")
def plane(programs, tmp_path_factory):
    with started(programs, tmp_path_factory.mktemp("plane")) as made:
        yield made


@pytest.fixture
def client(plane):
    with filled(plane) as made:
        yield made


@pytest.fixture
def kubeconfig(plane):
    return plane.kubeconfig_for(plane.token_of("tenure", "tenure-system"), "tenure")

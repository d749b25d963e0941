"""What the containers of a pod ask for of extended resources, as the requests of a claim."""

from __future__ import annotations

import pytest

from tenure.model.manifests.extended_resources import is_extended, made_claim_name
from tenure.model.manifests.pods import pod_entry, read_pod
from tenure.model.values.report import ProblemReport

GPU, NIC = "example.com/gpu", "example.com/nic"


def container(name, *, restart="", **amounts):
    keys = {"gpu": GPU, "nic": NIC, "cpu": "cpu"}
    made = {"name": name, "resources": {"requests": {keys[k]: str(v) for k, v in amounts.items()}}}
    return {**made, "restartPolicy": restart} if restart else made


def requests_of(containers, first=()):
    report = ProblemReport()
    read = pod_entry().decode({"containers": containers, "initContainers": list(first)}, None, report)
    found = read_pod(read, {}, report).asked["extended"]
    assert not report.problems
    return [(r.resource.partition("/")[2], r.name, r.count, r.containers) for r in found]


CASES = {
    "each container has a request of its own": (
        [container("a", cpu=1, gpu=2), container("b", gpu=1, nic=3)],
        (),
        [("gpu", "container-0-request-1", 2, ("a",)), ("gpu", "container-1-request-0", 1, ("b",)),
         ("nic", "container-1-request-1", 3, ("b",))],
    ),
    "an init container uses what the containers have": (
        [container("main", gpu=2)],
        [container("load", gpu=1)],
        [("gpu", "container-1-request-0", 2, ("main", "load"))],
    ),
    "of what init containers need beyond that the most counts, and all of these use it": (
        [container("main", gpu=1)],
        [container("one", gpu=2), container("two", gpu=4)],
        [("gpu", "container-2-request-0", 1, ("main", "one", "two")),
         ("gpu", "container-1-request-0", 3, ("one", "two"))],
    ),
    "an init container does not use what a sidecar before it has": (
        [container("main", cpu=1)],
        [container("side", gpu=1, restart="Always"), container("load", gpu=1)],
        [("gpu", "container-0-request-0", 1, ("side",)), ("gpu", "container-1-request-0", 1, ("load",))],
    ),
    "it takes no more than it needs": (
        [container("a", gpu=2), container("b", gpu=2)],
        [container("load", gpu=2)],
        [("gpu", "container-1-request-0", 2, ("a", "load")), ("gpu", "container-2-request-0", 2, ("b",))],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_requests_are_those_that_kube_scheduler_would_write(name):
    """The names, counts and users of requests follow from the places of containers and resources."""
    containers, first, wanted = CASES[name]
    assert requests_of(containers, first) == wanted


def test_only_extended_resources_are_served():
    """Native resources and quotas are not; every class has a name under Kubernetes' own domain that is."""
    assert is_extended(GPU)
    assert is_extended("deviceclass.resource.kubernetes.io/gpu")
    assert not any(map(is_extended, ("cpu", "hugepages-2Mi", "kubernetes.io/x", "requests.example.com/gpu")))


def test_the_claim_of_a_pod_is_always_called_the_same():
    """It differs between pods of one name, and is no longer than a name may be."""
    assert made_claim_name("p", "1") == made_claim_name("p", "1") != made_claim_name("p", "2")
    assert len(made_claim_name("p" * 253, "1")) == 253

"""kube-scheduler is the referee: a pod has the same nodes to go to with it and with Tenure.

More states by hand: ``python -m tests.kubernetes.referee --states 2000 --seed 1``, with ``--devices`` such whose pod
waits for claims on devices.
"""

import itertools

import pytest
from tests.effort import tries
from tests.engine.device_expressions import ATTRIBUTES, CAPACITY, DOMAIN, EVALUATED, NOT_EVALUATED
from tests.kubernetes.referee import describe, judge_all, refereeing
from tests.kubernetes.referee_devices import DRA, claims_in
from tests.kubernetes.stage import wait_until

from tenure.clusters.kubernetes.client.requests import ApiError

STATES = tries(100, 1000)
DEVICE_STATES = tries(30, 300)
SEED = 7
PODS = "/api/v1/namespaces/ref-a/pods"
EVALUATIONS = itertools.count()
"""Claims, slices and classes stay until the end: each try has its own."""


@pytest.fixture(scope="module")
def refereed(programs, tmp_path_factory):
    assert programs.exists()
    with refereeing(tmp_path_factory.mktemp("referee")) as made:
        yield made


@pytest.fixture
def referee(refereed):
    """Give the referee, who has counted nothing yet; no pod and no node is left."""
    refereed.tally.clear()
    refereed.extender.seen.clear()
    yield refereed
    refereed.clear()


def test_kube_scheduler_gives_the_answers_that_the_cases_have(referee):
    """A pod for each expression, and one device: it gets a node where the answer is true, and only there."""
    expressions = [*EVALUATED, *NOT_EVALUATED]
    own = f"e{next(EVALUATIONS)}"
    wanted = {f"{own}-{n}" for n, e in enumerate(expressions) if EVALUATED.get(e, True)}
    client = referee.client
    amounts = {"cpu": "8", "pods": "500"}
    status = {"allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    referee.add_node({"metadata": {"name": own}, "spec": {"taints": []}, "status": status})
    device = {"name": "d0", "attributes": ATTRIBUTES, "capacity": CAPACITY}
    pool = {"name": own, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DOMAIN, "pool": pool, "nodeName": own, "devices": [device]}
    client.create(f"{DRA}/resourceslices", {"metadata": {"name": own}, "spec": spec})
    client.create(f"{DRA}/deviceclasses", {"metadata": {"name": own}, "spec": {}})
    refused = []
    for number, expression in enumerate(expressions):
        exactly = {"deviceClassName": own, "selectors": [{"cel": {"expression": expression}}]}
        asked = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
        try:
            client.create(claims_in("ref-a"), {"metadata": {"name": f"{own}-{number}"}, "spec": asked})
        except ApiError as error:
            refused.append(str(error))
            continue
        claims = [{"name": "r", "resourceClaimName": f"{own}-{number}"}]
        spec = {"resourceClaims": claims, "containers": [{"name": "c", "image": "none"}]}
        client.create(PODS, {"metadata": {"name": f"{own}-{number}"}, "spec": spec})
    client.create(PODS, {"metadata": {"name": "last"}, "spec": {"containers": [{"name": "c", "image": "none"}]}})
    assert not refused
    seen = referee.extender.seen
    missing = lambda: wanted - seen.keys()  # noqa: E731
    wait_until(lambda: "last" in seen and not missing(), lambda: missed(missing(), expressions), 60)
    admitted = {name for name, nodes in seen.items() if nodes} - {"last"}
    assert admitted == wanted, missed(admitted ^ wanted, expressions)


def missed(names, expressions):
    """Say of which expressions the answer is another one."""
    return "kube-scheduler answers otherwise: " + "; ".join(
        expressions[int(name.partition("-")[2])] for name in sorted(names)
    )


def test_tenure_admits_the_nodes_that_kube_scheduler_admits(referee):
    """For random pods on random states, both ways; and the states tell something: some nodes do, and some do not."""
    found, judged = judge_all(referee, SEED, STATES)
    assert [describe(difference) for difference in found] == []
    assert judged >= 0.9 * STATES
    assert referee.tally["states with both"] >= STATES // 5


def test_tenure_finds_devices_on_the_nodes_on_which_kube_scheduler_does(referee):
    """For random claims on random devices; where kube-scheduler gives up with an error, there is nothing to compare."""
    found, judged = judge_all(referee, SEED, DEVICE_STATES, has_devices=True)
    assert [describe(difference) for difference in found] == []
    assert judged >= 0.8 * DEVICE_STATES
    assert referee.tally["states with both"] >= DEVICE_STATES // 5

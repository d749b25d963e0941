"""Selectors of devices, as kube-scheduler evaluates them: the answers of the cases by which Tenure's are tested."""

from __future__ import annotations

from tests.engine.device_expressions import ATTRIBUTES, CAPACITY, DOMAIN, EVALUATED, NOT_EVALUATED
from tests.kubernetes.referee import Referee
from tests.kubernetes.referee_devices import DRA, claims_in
from tests.kubernetes.stage import wait_until

from tenure.clusters.kubernetes.client.requests import ApiError

PODS = "/api/v1/namespaces/ref-a/pods"


def test_kube_scheduler_gives_the_answers_that_the_cases_have(tmp_path):
    """A pod for each expression, and one device: it gets a node where the answer is true, and only there."""
    expressions = [*EVALUATED, *NOT_EVALUATED]
    wanted = {f"p{n}" for n, e in enumerate(expressions) if EVALUATED.get(e, True)}
    with Referee(tmp_path) as referee:
        client = referee.client
        amounts = {"cpu": "8", "pods": "500"}
        status = {"allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
        referee._add_node({"metadata": {"name": "n0"}, "spec": {"taints": []}, "status": status})
        device = {"name": "d0", "attributes": ATTRIBUTES, "capacity": CAPACITY}
        pool = {"name": "n0", "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DOMAIN, "pool": pool, "nodeName": "n0", "devices": [device]}
        client.create(f"{DRA}/resourceslices", {"metadata": {"name": "s"}, "spec": spec})
        client.create(f"{DRA}/deviceclasses", {"metadata": {"name": "any"}, "spec": {}})
        refused = []
        for number, expression in enumerate(expressions):
            exactly = {"deviceClassName": "any", "selectors": [{"cel": {"expression": expression}}]}
            asked = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
            try:
                client.create(claims_in("ref-a"), {"metadata": {"name": f"p{number}"}, "spec": asked})
            except ApiError as error:
                refused.append(str(error))
                continue
            claims = [{"name": "r", "resourceClaimName": f"p{number}"}]
            spec = {"resourceClaims": claims, "containers": [{"name": "c", "image": "none"}]}
            client.create(PODS, {"metadata": {"name": f"p{number}"}, "spec": spec})
        client.create(PODS, {"metadata": {"name": "last"}, "spec": {"containers": [{"name": "c", "image": "none"}]}})
        assert not refused
        seen = referee.extender.seen
        missing = lambda: wanted - seen.keys()  # noqa: E731
        wait_until(lambda: "last" in seen and not missing(), lambda: missed(missing(), expressions), 60)
        admitted = {name for name, nodes in seen.items() if nodes} - {"last"}
        assert admitted == wanted, missed(admitted ^ wanted, expressions)


def missed(names, expressions):
    """Say of which expressions the answer is another one."""
    return "kube-scheduler answers otherwise: " + "; ".join(expressions[int(name[1:])] for name in sorted(names))

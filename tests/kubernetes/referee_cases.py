"""Random realistic pods on random states, as objects of an API server, for the referee.

States stand side by side in one cluster and do not see each other: each has its own node label, its own topology keys
and its own values of the label ``app``; the namespaces are shared.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.kubernetes.referee_devices import devise
from tests.kubernetes.referee_storage import store

STATE = "referee/state"
HOST = "kubernetes.io/hostname"
NAMESPACES = {
    "ref-a": {"team": "blue", "resource.kubernetes.io/admin-access": "true"},
    "ref-b": {"team": "red", "tier": "prod"},
    "ref-c": {},
}
APPS = ("web", "db", "job")
TAINTS = (
    {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
    {"key": "gpu", "value": "no", "effect": "NoSchedule"},
    {"key": "maintenance", "effect": "NoExecute"},
    {"key": "slow", "value": "disk", "effect": "PreferNoSchedule"},
    {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
)
NOT_READY = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
MEMORY = ("1Gi", "1.1Gi", "512Mi", "1500M", "0.3Gi", "700m", "2147483648", "3Gi")
CPU = ("250m", "1", "1500m", "0.1", "2", "100u", "3")
GPUS = "nvidia.com/gpu"


@dataclass
class RefereeState:
    """Nodes, pods that stand on them, claims, and a pod that waits; each as it is created, with what becomes of it."""

    number: int
    nodes: list[dict] = field(default_factory=list)
    standing: list[dict] = field(default_factory=list)
    claims: list[dict] = field(default_factory=list)
    storage: list[tuple[str, dict, str | None]] = field(default_factory=list)
    driver: str = ""
    devices: list[tuple[str, dict, dict | None]] = field(default_factory=list)
    given: list[str] = field(default_factory=list)
    waiting: dict = field(default_factory=dict)

    @property
    def name(self):
        """Give the value of the state's label."""
        return f"s{self.number}"


def make_state(seed: int, number: int, *, has_devices: bool = False) -> RefereeState:
    """Make a state; equal seeds and numbers make equal ones. ``has_devices``: its pod waits for claims on these."""
    dice = random.Random(f"{seed}-{number}")
    state = RefereeState(number)
    state.nodes = [_node(dice, state, i) for i in range(dice.randint(2, 6))]
    for i in range(dice.choice((0, 2, 4, 6, 8))):
        state.standing.append(_standing(dice, state, i))
    state.waiting = _waiting(dice, state)
    if any(c.get("nodeTaintsPolicy") == "Honor" for c in state.waiting["spec"].get("topologySpreadConstraints", ())):
        _taint_cordoned(state)
    if has_devices:
        devise(random.Random(f"devices-{seed}-{number}"), state)
    else:
        _mount(random.Random(f"volumes-{seed}-{number}"), state)
        store(random.Random(f"storage-{seed}-{number}"), state)
    _silence(dice, state)
    return state


def _silence(dice, state):
    """Let most nodes with a taint for it be not ready; Tenure waits for the taint before it places anything there."""
    for node in state.nodes:
        if any(taint["key"] in NOT_READY for taint in node["spec"]["taints"]) and _maybe(dice, 0.8):
            node["status"]["conditions"][0]["status"] = dice.choice(("False", "Unknown"))


def _taint_cordoned(state):
    """Give nodes that are cordoned their taint, as the controller of nodes does: Tenure counts it at once."""
    for node in state.nodes:
        spec, taint = node["spec"], TAINTS[-1]
        if spec.get("unschedulable") and taint not in spec["taints"]:
            spec["taints"].append(taint)


def _maybe(dice, share):
    return dice.random() < share


def _node(dice, state, index):
    name = f"{state.name}-n{index}"
    labels = {STATE: state.name}
    if _maybe(dice, 0.9):
        labels[HOST] = name
    if _maybe(dice, 0.85):
        labels[f"{state.name}/zone"] = dice.choice("ab")
    if _maybe(dice, 0.6):
        labels[f"{state.name}/rack"] = dice.choice("uvw")
    if _maybe(dice, 0.5):
        labels["gen"] = dice.choice(("1", "2", "3", "10", "007", "1_0", "x", "", "9223372036854775808"))
    if _maybe(dice, 0.4):
        labels["disk"] = dice.choice(("ssd", "hdd"))
    if _maybe(dice, 0.12):
        labels["tenure.dev/node-pool"] = "other"
    allocatable = _allocatable(dice)
    status = {
        "allocatable": allocatable,
        "capacity": allocatable,
        "conditions": [{"type": "Ready", "status": "True", "reason": "Referee"}],
    }
    if _maybe(dice, 0.2):
        status["declaredFeatures"] = ["RestartAllContainersOnContainerExits"]
    spec = {"taints": [dice.choice(TAINTS) for _ in range(dice.choice((0, 0, 0, 0, 0, 1, 2)))]}
    spec["taints"] = list({(t["key"], t["effect"]): t for t in spec["taints"]}.values())
    if _maybe(dice, 0.08):
        spec["unschedulable"] = True
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}


def _allocatable(dice):
    allocatable = {
        "cpu": dice.choice(("4", "8", "16", "7500m")),
        "memory": dice.choice(("4Gi", "8Gi", "16Gi", "8589934592500m", "6.6Gi")),
        "pods": dice.choice(("3", "110", "110", "110")),
    }
    if _maybe(dice, 0.4):
        allocatable[GPUS] = dice.choice(("1", "2", "4"))
    if _maybe(dice, 0.3):
        allocatable["ephemeral-storage"] = dice.choice(("1Gi", "10Gi"))
    if _maybe(dice, 0.2):
        allocatable["example.org/nic"] = "2"
    if _maybe(dice, 0.15):
        allocatable["hugepages-2Mi"] = "64Mi"
    if _maybe(dice, 0.03):
        del allocatable["pods"]
    return allocatable


def _amounts(dice, *, small=False):
    found = {}
    if _maybe(dice, 0.85):
        found["cpu"] = dice.choice(CPU[:4] if small else CPU)
    if _maybe(dice, 0.7):
        found["memory"] = dice.choice(MEMORY)
    if _maybe(dice, 0.1):
        found["ephemeral-storage"] = dice.choice(("500Mi", "100m", "2Gi"))
    if _maybe(dice, 0.12):
        found[GPUS] = dice.choice(("1", "2"))
    if _maybe(dice, 0.05):
        found["example.org/nic"] = "1"
    if _maybe(dice, 0.04):
        found["hugepages-2Mi"] = "32Mi"
        found.setdefault("cpu", "100m")
    return found


def _resources(dice, *, small=False):
    requests = _amounts(dice, small=small)
    limits = {k: v for k, v in requests.items() if "/" in k or k.startswith("hugepages-")}
    if _maybe(dice, 0.1):
        limits["memory"] = "4Gi"
    return {"requests": requests, "limits": limits}


def _container(dice, name, *, small=False):
    made = {"name": name, "image": "none", "resources": _resources(dice, small=small)}
    if _maybe(dice, 0.12):
        port = dice.choice((80, 443, 8080))
        made["ports"] = [
            {
                "containerPort": port,
                "hostPort": port,
                "protocol": dice.choice(("TCP", "TCP", "UDP")),
                **dice.choice(({}, {"hostIP": "10.0.0.1"}, {"hostIP": "10.0.0.2"}, {"hostIP": "0.0.0.0"})),
            }
        ]
    return made


def _pod(dice, state, name):
    spec = {
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 300,
        "containers": [_container(dice, f"c{i}", small=True) for i in range(dice.choice((1, 1, 2)))],
    }
    inits = [_container(dice, f"i{i}", small=True) for i in range(dice.choice((0, 0, 0, 1, 2)))]
    for container in inits:
        container.pop("ports", None)
        if _maybe(dice, 0.5):
            container["restartPolicy"] = "Always"
    if inits:
        spec["initContainers"] = inits
    if _maybe(dice, 0.08):
        spec["resources"] = {"requests": {"cpu": "3", "memory": "3.5Gi"}}
    if _maybe(dice, 0.04):
        spec["hostNetwork"] = True
        for container in spec["containers"]:
            for port in container.get("ports", ()):
                port["hostPort"] = port["containerPort"]
    labels = {"app": f"{dice.choice(APPS)}-{state.name}"}
    if _maybe(dice, 0.4):
        labels["version"] = dice.choice("12")
    spec["affinity"] = _affinity(dice, state)
    return {"metadata": {"name": name, "namespace": dice.choice(list(NAMESPACES)), "labels": labels}, "spec": spec}


def _standing(dice, state, index):
    pod = _pod(dice, state, f"{state.name}-p{index}")
    spec = pod["spec"]
    spec["nodeName"] = dice.choice(state.nodes)["metadata"]["name"]
    affinity = spec.get("affinity") or {}
    affinity.pop("podAffinity", None)
    affinity.pop("nodeAffinity", None)
    status = {"phase": "Running"}
    if _maybe(dice, 0.25):
        status |= _resized(dice, spec)
    return {"pod": pod, "status": status, "goes": _maybe(dice, 0.1)}


def _resized(dice, spec):
    """What a pod has while, or after, it is resized in place."""

    def statuses(containers):
        found = []
        for container in containers:
            made = {"name": container["name"], "image": "none", "imageID": "", "ready": True, "restartCount": 0}
            if _maybe(dice, 0.7):
                made["allocatedResources"] = {"cpu": dice.choice(CPU[:5]), "memory": dice.choice(MEMORY)}
            if _maybe(dice, 0.7):
                made["resources"] = {"requests": {"cpu": dice.choice(CPU[:5])}}
            found.append(made)
        return found

    status = {"containerStatuses": statuses(spec["containers"])}
    if spec.get("initContainers"):
        status["initContainerStatuses"] = statuses(spec["initContainers"])
    if _maybe(dice, 0.3):
        reason = dice.choice(("Infeasible", "Deferred"))
        status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    if "resources" in spec:
        status["resources"] = {"requests": {"cpu": "5", "memory": "1Gi"}}
        if _maybe(dice, 0.5):
            status["allocatedResources"] = {"cpu": "3", "memory": "6Gi"}
    return status


def _waiting(dice, state):
    pod = _pod(dice, state, f"{state.name}-w")
    spec = pod["spec"]
    spec["nodeSelector"] = {STATE: state.name}
    if _maybe(dice, 0.15):
        spec["nodeSelector"]["disk"] = dice.choice(("ssd", "hdd"))
    spec["tolerations"] = [
        dice.choice(
            (
                {"operator": "Exists"},
                {"key": "gpu", "operator": "Exists"},
                {"key": NOT_READY[0], "operator": "Exists"},
                {"key": NOT_READY[1], "operator": "Exists", "effect": "NoSchedule"},
                {"key": NOT_READY[0], "operator": "Exists", "effect": "NoExecute"},
                {"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"},
                {"key": "gpu", "value": "no"},
                {"key": "maintenance", "operator": "Exists", "effect": "NoExecute"},
                {"key": "maintenance", "operator": "Exists", "effect": "NoSchedule"},
                {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
            )
        )
        for _ in range(dice.choice((0, 0, 1, 2)))
    ]
    if _maybe(dice, 0.45):
        spec["topologySpreadConstraints"] = _spread(dice, state)
    if _maybe(dice, 0.06):
        spec["containers"][0]["restartPolicyRules"] = [
            {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [7]}}
        ]
        spec["containers"][0]["restartPolicy"] = "Never"
    return pod


_FREE_SOURCES = (
    {"nfs": {"server": "10.0.0.9", "path": "/data"}},
    {"csi": {"driver": "inline.example.org"}},
    {"cephfs": {"monitors": ["10.0.0.9"]}},
    {"fc": {"targetWWNs": ["50060e801049cfd1"], "lun": 0}},
    {"flexVolume": {"driver": "example.org/flex"}},
    {"emptyDir": {}},
)
_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"


def _mount(dice, state):
    """Let the pod that waits mount volumes, some of them by claims."""
    for node in state.nodes:
        if _maybe(dice, 0.8):
            node["metadata"]["labels"][_ZONE] = dice.choice(("z1", "z2", "z3"))
        if _maybe(dice, 0.3):
            node["metadata"]["labels"][_REGION] = dice.choice(("r1", "r2"))
    if _maybe(dice, 0.5):
        return
    mounted = []
    for i in range(dice.choice((1, 1, 2, 3))):
        source = dice.choice(_FREE_SOURCES)
        if _maybe(dice, 0.7):
            made = _claim(dice, state, f"{state.name}-c{i}")
            source = {"persistentVolumeClaim": {"claimName": f"{state.name}-c{i}"}}
            if made is not None:
                state.claims.append(made)
        mounted.append({"name": f"v{i}", **source})
    state.waiting["spec"]["volumes"] = mounted


def _claim(dice, state, name):
    """A claim with its volume: None where it is not there, and in all states of its life."""
    fate = dice.choice(("bound",) * 10 + ("missing", "unbound", "lost", "volume missing", "half bound", "going"))
    if fate == "missing":
        return None
    namespace = state.waiting["metadata"]["namespace"]
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""}
    claim = {"metadata": {"name": name, "namespace": namespace, "annotations": {}}, "spec": spec}
    if fate != "unbound":
        spec["volumeName"] = f"{name}-volume"
    if fate not in ("unbound", "half bound"):
        claim["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = "yes"
    phase = {"unbound": "Pending", "half bound": "Pending", "lost": "Lost"}.get(fate, "Bound")
    volume = None if fate in ("unbound", "volume missing", "lost") else _volume(dice, state, f"{name}-volume", claim)
    return {"claim": claim, "volume": volume, "phase": phase, "goes": fate == "going"}


def _volume(dice, state, name, claim):
    labels = {}
    if _maybe(dice, 0.3):
        labels[_ZONE] = dice.choice(("z1", "z2", "z1__z3"))
        if _maybe(dice, 0.3):
            labels[_REGION] = dice.choice(("r1", "r1__r2"))
    sources = ({"nfs": {"server": "s", "path": "/"}}, {"csi": {"driver": "free.example.org", "volumeHandle": name}},
               {"local": {"path": "/data"}})  # fmt: skip
    spec = {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "persistentVolumeReclaimPolicy": "Retain",
        "claimRef": {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "name": claim["metadata"]["name"],
                     "namespace": claim["metadata"]["namespace"]},
        **dice.choice(sources),
    }  # fmt: skip
    if "local" in spec or _maybe(dice, 0.3):
        terms = [{"matchExpressions": [_reach(dice, state)]} for _ in range(dice.choice((1, 1, 2)))]
        if _maybe(dice, 0.3):
            terms[0]["matchExpressions"].append(_reach(dice, state))
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


def _reach(dice, state):
    hosts = sorted(dice.sample([n["metadata"]["name"] for n in state.nodes], min(2, len(state.nodes))))
    return dice.choice(
        (
            {"key": HOST, "operator": "In", "values": hosts},
            {"key": _ZONE, "operator": "In", "values": ["z1", "z2"]},
            {"key": f"{state.name}/zone", "operator": "In", "values": [dice.choice("ab")]},
            {"key": f"{state.name}/rack", "operator": "Exists"},
            {"key": "disk", "operator": "NotIn", "values": ["hdd"]},
        )
    )


def _key(dice, state):
    return dice.choice((HOST, f"{state.name}/zone", f"{state.name}/zone", f"{state.name}/rack"))


def _selector(dice, state):
    kind = dice.randrange(6)
    app = f"{dice.choice(APPS)}-{state.name}"
    if kind < 3:
        return {"matchLabels": {"app": app}}
    if kind == 3:
        other = f"{dice.choice(APPS)}-{state.name}"
        return {"matchExpressions": [{"key": "app", "operator": "In", "values": sorted({app, other})}]}
    if kind == 4:
        values = [f"{a}-{state.name}" for a in APPS]
        both = [{"key": "app", "operator": "In", "values": values}, {"key": "version", "operator": "DoesNotExist"}]
        return {"matchExpressions": both}
    return {
        "matchLabels": {"app": app},
        "matchExpressions": [{"key": "version", "operator": "NotIn", "values": ["1"]}],
    }


def _spread(dice, state):
    found = {}
    for _ in range(dice.choice((1, 1, 2))):
        made = {
            "maxSkew": dice.choice((1, 1, 2)),
            "topologyKey": _key(dice, state),
            "whenUnsatisfiable": dice.choice(("DoNotSchedule", "DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")),
            "labelSelector": {} if _maybe(dice, 0.06) else _selector(dice, state),
        }
        if made["whenUnsatisfiable"] == "DoNotSchedule" and _maybe(dice, 0.2):
            made["minDomains"] = dice.choice((1, 2, 3, 4))
        if _maybe(dice, 0.25):
            made["nodeAffinityPolicy"] = dice.choice(("Honor", "Ignore"))
        if _maybe(dice, 0.25):
            made["nodeTaintsPolicy"] = dice.choice(("Honor", "Ignore"))
        if made["labelSelector"] and "version" not in str(made["labelSelector"]) and _maybe(dice, 0.2):
            made["matchLabelKeys"] = ["version"]
        found[made["topologyKey"], made["whenUnsatisfiable"]] = made
    kept = list(found.values())
    for constraint in kept:  # one whose nodes are not counted by selector would look at other states
        if constraint.get("nodeAffinityPolicy") == "Ignore" and constraint["topologyKey"] == HOST:
            del constraint["nodeAffinityPolicy"]
    return kept


def _term(dice, state):
    made = {"topologyKey": _key(dice, state), "labelSelector": _selector(dice, state)}
    kind = dice.randrange(7)
    if kind == 0:
        made["namespaces"] = dice.sample(list(NAMESPACES), dice.randint(1, 2))
    elif kind == 1:
        made["namespaceSelector"] = {}
    elif kind == 2:
        made["namespaceSelector"] = {"matchLabels": {"team": dice.choice(("blue", "red", "green"))}}
    elif kind == 3:
        made["namespaces"] = ["ref-c"]
        made["namespaceSelector"] = {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}
    elif kind == 4:
        name = dice.choice(list(NAMESPACES))
        made["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": name}}
    if "version" not in str(made["labelSelector"]) and _maybe(dice, 0.25):
        made[dice.choice(("matchLabelKeys", "mismatchLabelKeys"))] = ["version"]
    return made


def _affinity(dice, state):
    found = {}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    if _maybe(dice, 0.18):
        found["nodeAffinity"] = {required: {"nodeSelectorTerms": _node_terms(dice, state)}}
    if _maybe(dice, 0.15):
        found["podAffinity"] = {required: [_term(dice, state) for _ in range(dice.choice((1, 1, 2)))]}
    if _maybe(dice, 0.3):
        found["podAntiAffinity"] = {required: [_term(dice, state) for _ in range(dice.choice((1, 1, 2)))]}
    return found


def _node_terms(dice, state):
    def expression():
        return dice.choice(
            (
                {"key": "gen", "operator": "Gt", "values": [dice.choice(("1", "2", "+2", "-9", "x"))]},
                {"key": "gen", "operator": "Lt", "values": [dice.choice(("3", "11", "9223372036854775807"))]},
                {"key": "disk", "operator": "In", "values": ["ssd"]},
                {"key": "disk", "operator": "NotIn", "values": ["ssd", "nvme"]},
                {"key": "disk", "operator": "Exists"},
                {"key": f"{state.name}/rack", "operator": "DoesNotExist"},
            )
        )

    found = []
    for _ in range(dice.choice((1, 1, 2))):
        term = {"matchExpressions": [expression() for _ in range(dice.choice((1, 1, 2)))]}
        if _maybe(dice, 0.2):
            name = f"{state.name}-n{dice.randrange(3)}"
            term["matchFields"] = [{"key": "metadata.name", "operator": dice.choice(("In", "NotIn")), "values": [name]}]
            if _maybe(dice, 0.5):
                del term["matchExpressions"]
        found.append(term)
    return found

"""Storage of random states for the referee: what pods use alone, what nodes attach, and claims that are bound late."""

from __future__ import annotations

STORAGE = "/apis/storage.k8s.io/v1"
VOLUMES = "/api/v1/persistentvolumes"
ZONE = "topology.kubernetes.io/zone"
SIZES = ("1Gi", "1.5Gi", "2Gi", "2G", "10Gi")


def store(dice, state):
    """Give a state storage, and let its pods mount it."""
    if dice.random() < 0.35:
        return
    state.driver = f"{state.name}.csi.example.org"
    _plain(dice, state)
    _around(dice, state)
    for node in state.nodes:
        if dice.random() < 0.7:
            state.storage.append((f"{STORAGE}/csinodes", _csi_node(dice, state, node), None))
    _shared(dice, state)
    if dice.random() < 0.6:
        _late(dice, state)


def claims_of(namespace):
    """Give the path of the claims of a namespace."""
    return f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"


def _plain(dice, state):
    """Let little but its volumes decide about the pod that waits, in most states."""
    if dice.random() < 0.75:
        spec = state.waiting["spec"]
        chosen = {key: value for key, value in spec.get("nodeSelector", {}).items() if key.startswith("referee/")}
        plain = {"nodeSelector": chosen, "containers": [{"name": "c", "image": "none"}]}
        spec.clear()
        spec.update(plain)
        for node in state.nodes:
            node["spec"]["taints"] = []


def _around(dice, state):
    """Add the driver and the classes."""
    driver = {"metadata": {"name": state.driver}, "spec": {"attachRequired": True}}
    if dice.random() < 0.5:
        driver["spec"]["storageCapacity"] = True
    if dice.random() < 0.3:
        driver["spec"]["preventPodSchedulingIfMissing"] = True
    if dice.random() < 0.8:
        state.storage.append((f"{STORAGE}/csidrivers", driver, None))
    made = {
        "metadata": {"name": f"{state.name}-late"},
        "provisioner": dice.choice((state.driver, state.driver, "kubernetes.io/no-provisioner")),
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    if dice.random() < 0.4:
        made["allowedTopologies"] = [
            {"matchLabelExpressions": [{"key": ZONE, "values": dice.sample(["z1", "z2", "z3"], 2)}]}
        ]
    state.storage.append((f"{STORAGE}/storageclasses", made, None))
    for number in range(dice.choice((0, 1, 2))):
        left = {
            "metadata": {"name": f"{state.name}-left-{number}", "namespace": "ref-a"},
            "storageClassName": f"{state.name}-late",
            "capacity": dice.choice(SIZES),
        }
        if dice.random() < 0.3:
            left["maximumVolumeSize"] = dice.choice(SIZES)
        if dice.random() < 0.85:
            left["nodeTopology"] = dice.choice(
                (
                    {"matchLabels": {ZONE: dice.choice(("z1", "z2"))}},
                    {"matchExpressions": [{"key": ZONE, "operator": "NotIn", "values": ["z3"]}]},
                    {},
                )
            )
        state.storage.append((f"{STORAGE}/namespaces/ref-a/csistoragecapacities", left, None))


def _csi_node(dice, state, node):
    drivers = [{"name": "free.example.org", "nodeID": "x", "topologyKeys": []}]
    if dice.random() < 0.8:
        own = {"name": state.driver, "nodeID": "x", "topologyKeys": []}
        if dice.random() < 0.8:
            own["allocatable"] = {"count": dice.choice((1, 2, 2, 3, 5))}
        drivers.append(own)
    return {"metadata": {"name": node["metadata"]["name"]}, "spec": {"drivers": drivers}}


def _shared(dice, state):
    """Let pods that stand and the one that waits mount volumes of the driver, some of them the same."""
    names = []
    for number in range(dice.choice((1, 2, 3, 4))):
        name = f"{state.name}-s{number}"
        names.append(name)
        volume = _volume(state, name, dice.choice(SIZES), csi=True)
        volume["spec"]["claimRef"] = {"namespace": "x", "name": name, "uid": "x"}
        state.storage.append((VOLUMES, volume, "Bound"))
    modes = {name: "ReadWriteOncePod" if dice.random() < 0.25 else "ReadWriteMany" for name in names}
    there = set()
    for item in state.standing:
        if dice.random() < 0.6:
            _mount(dice, state, item["pod"], names, modes, there)
    if dice.random() < 0.8:
        _mount(dice, state, state.waiting, names, modes, there)
    for node in state.nodes:
        for name in names:
            if dice.random() < 0.15:
                at = node["metadata"]["name"]
                spec = {"attacher": state.driver, "nodeName": at, "source": {"persistentVolumeName": name}}
                state.storage.append(
                    (f"{STORAGE}/volumeattachments", {"metadata": {"name": f"{name}-{at}"}, "spec": spec}, None)
                )


def _mount(dice, state, pod, names, modes, there):
    namespace = pod["metadata"]["namespace"]
    for name in dice.sample(names, min(len(names), dice.choice((1, 1, 2)))):
        if (namespace, name) not in there:
            there.add((namespace, name))
            claim = _claim(namespace, name, "", "1Gi", modes[name])
            claim["spec"]["volumeName"] = name
            claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
            state.storage.append((claims_of(namespace), claim, "Bound"))
        volumes = pod["spec"].setdefault("volumes", [])
        volumes.append({"name": f"m{len(volumes)}", "persistentVolumeClaim": {"claimName": name}})


def _keep_one_for_each(state):
    """Keep at most one volume for a claim that is open: of two kube-scheduler looks at whichever comes first."""
    kept = set()
    for path, item, _ in state.storage:
        reference = item["spec"].get("claimRef", {}) if path == VOLUMES else {}
        if reference and "uid" not in reference:
            if reference["name"] in kept:
                del item["spec"]["claimRef"]
            kept.add(reference["name"])


def _late(dice, state):
    """Let the pod that waits mount claims that are bound where it is placed."""
    namespace = state.waiting["metadata"]["namespace"]
    for number in range(dice.choice((0, 1, 2, 4))):
        volume = _volume(state, f"{state.name}-v{number}", dice.choice(SIZES), csi=dice.random() < 0.5)
        spec = volume["spec"]
        spec["storageClassName"] = f"{state.name}-late" if dice.random() < 0.85 else "other"
        if dice.random() < 0.3:
            volume["metadata"]["labels"] = {"kind": dice.choice(("fast", "slow"))}
        if dice.random() < 0.2:
            spec["volumeMode"] = "Block"
        if dice.random() < 0.7:
            here = {"key": ZONE, "operator": "In", "values": dice.sample(["z1", "z2", "z3"], dice.choice((1, 2)))}
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}
        if dice.random() < 0.2:
            name = dice.choice((f"{state.name}-l0", "somebody-else"))
            spec["claimRef"] = {"namespace": namespace, "name": name}
        state.storage.append((VOLUMES, volume, dice.choice(("Available",) * 5 + ("Released",))))
    _keep_one_for_each(state)
    for number in range(dice.choice((1, 1, 2, 3))):
        name = f"{state.name}-l{number}"
        mode = dice.choice(("ReadWriteOnce", "ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"))
        claim = _claim(namespace, name, f"{state.name}-late", dice.choice(SIZES), mode)
        if dice.random() < 0.2:
            claim["spec"]["selector"] = {"matchLabels": {"kind": "fast"}}
        if dice.random() < 0.15:
            claim["spec"]["volumeMode"] = "Block"
        if dice.random() < 0.15:
            at = dice.choice(state.nodes)["metadata"]["name"]
            claim["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": at}
        state.storage.append((claims_of(namespace), claim, "Pending"))
        volumes = state.waiting["spec"].setdefault("volumes", [])
        volumes.append({"name": f"m{len(volumes)}", "persistentVolumeClaim": {"claimName": name}})


def _claim(namespace, name, of_class, size, mode):
    spec = {"accessModes": [mode], "resources": {"requests": {"storage": size}}, "storageClassName": of_class}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec}


def _volume(state, name, size, *, csi):
    source = {"csi": {"driver": state.driver, "volumeHandle": name}} if csi else {"nfs": {"server": "s", "path": "/"}}
    modes = ["ReadWriteOnce", "ReadWriteMany"]
    spec = {"capacity": {"storage": size}, "accessModes": modes, "persistentVolumeReclaimPolicy": "Retain", **source}
    return {"metadata": {"name": name}, "spec": spec}

"""Devices of random states for the referee: slices, classes, claims that have devices, claims of the pod that waits."""

from __future__ import annotations

DRA = "/apis/resource.k8s.io/v1"
STATE = "referee/state"
ZONES = "ab"
GIB = 1 << 30


def claims_in(namespace):
    """Give the path of the claims of a namespace."""
    return f"{DRA}/namespaces/{namespace}/resourceclaims"


def devise(dice, state):
    """Give a state devices, and let the pod that waits claim some; little else decides about it."""
    _plain(dice, state)
    domain = f"{state.name}.example.org"
    _classes(state, domain)
    devices = []
    for node in state.nodes:
        if dice.random() < 0.85:
            devices += _local_pool(dice, state, domain, node["metadata"]["name"])
    if dice.random() < 0.4:
        devices += _network_pool(dice, state, domain)
    _given(dice, state, domain, devices)
    _waiting(dice, state, domain)
    if dice.random() < 0.35:
        _extended(dice, state)


def _plain(dice, state):
    spec = state.waiting["spec"]
    chosen = {key: value for key, value in spec.get("nodeSelector", {}).items() if key.startswith("referee/")}
    spec.clear()
    spec.update({"nodeSelector": chosen, "containers": [{"name": "c", "image": "none"}]})
    for node in state.nodes:
        if dice.random() < 0.9:
            node["spec"]["taints"] = []


def _classes(state, domain):
    is_of_driver = f'device.driver == "{domain}"'
    for number, more in enumerate(("", f' && device.attributes["{domain}"].kind == "a"', None)):
        selectors = [] if more is None else [{"cel": {"expression": is_of_driver + more}}]
        if more is None:
            selectors = [{"cel": {"expression": is_of_driver}},
                         {"cel": {"expression": f'"fast" in device.attributes["{domain}"]'}}]  # fmt: skip
        spec = {"selectors": selectors}
        body = {"metadata": {"name": f"{state.name}-c{number}"}, "spec": spec}
        state.devices.append((f"{DRA}/deviceclasses", body, None))


def _device(dice, name, *, shared_ok=True, counters=()):
    made = {"name": name, "attributes": {"kind": {"string": dice.choice("aab")}, "numa": {"int": dice.randint(0, 1)}}}
    if dice.random() < 0.4:
        made["attributes"]["fast"] = {"bool": dice.random() < 0.7}
    if dice.random() < 0.6:
        made["attributes"]["version"] = {"version": dice.choice(("1.2.3", "1.10.0", "2.0.0-rc.1", "2.0.0"))}
    if dice.random() < 0.7:
        made["attributes"]["other.org/root"] = {"string": dice.choice("pq")}
    if dice.random() < 0.8:
        made["capacity"] = {"memory": {"value": dice.choice(("10Gi", "40Gi", "80Gi", "1500M"))}}
    if shared_ok and dice.random() < 0.25:
        made["allowMultipleAllocations"] = True
        made.setdefault("capacity", {"memory": {"value": "40Gi"}})
        if dice.random() < 0.6:
            value = made["capacity"]["memory"]
            value["requestPolicy"] = dice.choice((
                {"default": "5Gi", "validRange": {"min": "1Gi", "step": "2Gi"}},
                {"default": "1Gi", "validRange": {"min": "1Gi", "max": "20Gi"}},
                {"default": "2Gi", "validValues": ["2Gi", "8Gi", "9Gi"]},
            ))  # fmt: skip
            value["value"] = dice.choice(("20Gi", "40Gi"))
    if dice.random() < 0.2:
        made["taints"] = [{"key": "sick", "value": dice.choice("xy"),
                           "effect": dice.choice(("NoSchedule", "NoExecute", "NoSchedule", "None"))}]  # fmt: skip
    if dice.random() < 0.1:
        made["bindingConditions"], made["bindingFailureConditions"] = ["example.org/ready"], ["example.org/broken"]
    if counters and dice.random() < 0.7:
        amount = dice.choice(("1", "2", "3"))
        made["consumesCounters"] = [{"counterSet": dice.choice(counters), "counters": {"slots": {"value": amount}}}]
    return made


def _local_pool(dice, state, domain, node):
    """Add a pool of a node: one slice or two, perhaps with counters, perhaps incomplete, perhaps of two generations."""
    counters = ("one", "two") if dice.random() < 0.35 else ()
    parts = [[], []] if dice.random() < 0.25 else [[]]
    for number in range(dice.randint(2, 7)):
        dice.choice(parts).append(_device(dice, f"d{number}", counters=counters))
    parts = [part for part in parts if part] or [[_device(dice, "d0")]]
    count = len(parts) + bool(counters)
    if dice.random() < 0.06:
        count += 1
    generation = dice.choice((1, 1, 3))
    pool = {"name": node, "generation": generation, "resourceSliceCount": count}
    where = {"nodeName": node}
    if dice.random() < 0.15:
        where = {"nodeSelector": _here([{"key": "referee/name", "operator": "In", "values": [node]}])}
        _label(state, node)
    for number, part in enumerate(parts):
        _slice(state, f"{node}-{number}", {"driver": domain, "pool": pool, "devices": part, **where})
    if counters:
        sets = [{"name": n, "counters": {"slots": {"value": dice.choice(("2", "3", "4"))}}} for n in counters]
        _slice(state, f"{node}-counters", {"driver": domain, "pool": pool, "sharedCounters": sets, **where})
    if generation > 1 and dice.random() < 0.5:
        old = {"name": node, "generation": 1, "resourceSliceCount": 1}
        _slice(state, f"{node}-old", {"driver": domain, "pool": old, "devices": [_device(dice, "d0")], **where})
    return [(node, device) for part in parts for device in part]


def _label(state, name):
    for node in state.nodes:
        if node["metadata"]["name"] == name:
            node["metadata"]["labels"]["referee/name"] = name


def _here(expressions):
    return {"nodeSelectorTerms": [{"matchExpressions": expressions}]}


def _network_pool(dice, state, domain):
    """Add a pool that several nodes reach: by a selector of the slice, or of each device."""
    name = f"{state.name}-net"
    inside = {"key": STATE, "operator": "In", "values": [state.name]}
    zone = {"key": f"{state.name}/zone", "operator": "In", "values": [dice.choice(ZONES)]}
    devices = [_device(dice, f"d{n}") for n in range(dice.randint(1, 3))]
    if dice.random() < 0.5:
        where = {"nodeSelector": _here([inside, zone] if dice.random() < 0.5 else [inside])}
    else:
        where = {"perDeviceNodeSelection": True}
        for device in devices:
            if dice.random() < 0.4:
                device["nodeName"] = dice.choice(state.nodes)["metadata"]["name"]
            else:
                device["nodeSelector"] = _here([inside, zone] if dice.random() < 0.5 else [inside])
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    _slice(state, name, {"driver": domain, "pool": pool, "devices": devices, **where})
    return [(name, device) for device in devices]


def _slice(state, name, spec):
    state.devices.append((f"{DRA}/resourceslices", {"metadata": {"name": name}, "spec": spec}, None))


def _given(dice, state, domain, devices):
    """Let claims that exist have some of the devices; one of them the pod that waits may share."""
    for number, (pool, device) in enumerate(devices):
        if dice.random() >= 0.3:
            continue
        result = {"request": "r", "driver": domain, "pool": pool, "device": device["name"]}
        exactly = {"deviceClassName": f"{state.name}-c0"}
        if dice.random() < 0.1:
            exactly["adminAccess"] = result["adminAccess"] = True
        elif device.get("allowMultipleAllocations"):
            result["shareID"] = f"00000000-0000-4000-8000-{state.number:06d}{number:06d}"
            result["consumedCapacity"] = {"memory": dice.choice(("1Gi", "5Gi", "15Gi"))}
        allocation = {"devices": {"results": [result]}}
        if dice.random() < 0.3 or pool != f"{state.name}-net":
            reach = {"key": "metadata.name", "operator": "In", "values": [dice.choice(state.nodes)["metadata"]["name"]]}
            allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [reach]}]}
        body = {"metadata": {"name": f"{state.name}-given-{number}"},
                "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}}  # fmt: skip
        other = {"resource": "pods", "name": "other", "uid": "other"}  # else kube-scheduler would take them back
        state.devices.append((claims_in("ref-a"), body, {"allocation": allocation, "reservedFor": [other]}))
        state.given.append(body["metadata"]["name"])


def _waiting(dice, state, domain):
    namespace = "ref-a"
    state.waiting["metadata"]["namespace"] = namespace
    named = []
    for number in range(dice.choice((1, 1, 1, 1, 2, 3))):
        name = f"{state.name}-w{number}"
        body = {"metadata": {"name": name}, "spec": {"devices": _demand(dice, state, domain)}}
        state.devices.append((claims_in(namespace), body, None))
        named.append(name)
    if state.given and dice.random() < 0.15:
        named.append(dice.choice(state.given))
    state.waiting["spec"]["resourceClaims"] = [{"name": f"r{i}", "resourceClaimName": n} for i, n in enumerate(named)]


def _extended(dice, state):
    """Let the pod ask for extended resources that classes serve, perhaps beside its claims; some nodes have some."""
    names = [f"{state.name}.example.com/r{n}" for n in range(2)]
    classes = [body for path, body, _ in state.devices if path.endswith("deviceclasses")]
    for number, name in enumerate(names):
        if dice.random() < 0.9:
            classes[number]["spec"]["extendedResourceName"] = name
        for node in state.nodes:
            if dice.random() < 0.25:
                for known in (node["status"]["allocatable"], node["status"].setdefault("capacity", {})):
                    known[name] = dice.choice(("0", "1", "2", "4"))
    spec = state.waiting["spec"]
    if dice.random() < 0.7:
        spec.pop("resourceClaims", None)
    own = f"deviceclass.resource.kubernetes.io/{classes[2]['metadata']['name']}"

    def container(name):
        amounts = {n: str(dice.choice((1, 1, 2, 3))) for n in dice.sample([*names, own], dice.choice((0, 1, 1, 2)))}
        return {"name": name, "image": "none", "resources": {"requests": amounts, "limits": amounts}}

    spec["containers"] = [container(f"c{n}") for n in range(dice.choice((1, 1, 2)))]
    if dice.random() < 0.3:
        spec["initContainers"] = [container(f"i{n}") for n in range(dice.choice((1, 2)))]
        if dice.random() < 0.4:
            spec["initContainers"][0]["restartPolicy"] = "Always"


def _demand(dice, state, domain):
    requests, names = [], []
    for number in range(dice.choice((1, 1, 1, 2, 3))):
        name = f"q{number}"
        if dice.random() < 0.25:
            options = [{"name": f"o{n}", **_asked(dice, state, domain)} for n in range(dice.choice((1, 2, 3)))]
            requests.append({"name": name, "firstAvailable": options})
            names += [name, f"{name}/o0"]
        else:
            asked = _asked(dice, state, domain)
            if dice.random() < 0.06:
                asked["adminAccess"] = True
            requests.append({"name": name, "exactly": asked})
            names.append(name)
    constraints = []
    for _ in range(dice.choice((0, 0, 0, 1, 1, 2))):
        attribute = dice.choice((f"{domain}/numa", f"{domain}/kind", "other.org/root", f"{domain}/version"))
        made = {dice.choice(("matchAttribute", "matchAttribute", "distinctAttribute")): attribute}
        if dice.random() < 0.4:
            made["requests"] = dice.sample(names, 1)
        constraints.append(made)
    return {"requests": requests, **({"constraints": constraints} if constraints else {})}


def _asked(dice, state, domain):
    made = {"deviceClassName": f"{state.name}-c{dice.choice((0, 0, 0, 1, 2))}"}
    if dice.random() < 0.12:
        made["allocationMode"] = "All"
    else:
        made["count"] = dice.choice((1, 1, 1, 1, 2, 3))
    if dice.random() < 0.4:
        made["selectors"] = [{"cel": {"expression": dice.choice(_expressions(domain))}}]
    if dice.random() < 0.3:
        made["tolerations"] = [dice.choice((
            {"key": "sick", "operator": "Exists"}, {"operator": "Exists", "effect": "NoSchedule"},
            {"key": "sick", "operator": "Equal", "value": "x"},
        ))]  # fmt: skip
    if dice.random() < 0.25:
        made["capacity"] = {"requests": {"memory": dice.choice(("1Gi", "3Gi", "7Gi", "20Gi", "50Gi"))}}
    return made


def _expressions(domain):
    own, kept = f'device.attributes["{domain}"]', f'device.capacity["{domain}"]'
    return (
        f'{own}.kind == "a"',
        f"{own}.numa == 1",
        f"{own}.numa < 1 || {own}.kind.startsWith('b')",
        f'"fast" in {own} && {own}.fast',
        f'!("fast" in {own})',
        f'"version" in {own} && {own}.version.isGreaterThan(semver("1.9.0"))',
        f'"version" in {own} && {own}.version.compareTo(semver("2.0.0")) < 0',
        f'"memory" in {kept} && {kept}.memory.compareTo(quantity("40Gi")) >= 0',
        f'"memory" in {kept} && {kept}.memory.isLessThan(quantity("20Gi"))',
        '"root" in device.attributes["other.org"] && device.attributes["other.org"].root == "p"',
        f'cel.bind(own, {own}, own.kind == "a" && own.numa == 0)',
        f"{own}.?fast.orValue(false)",
        f'{own}.kind in ["a", "c"] && [0, 1].exists(n, n == {own}.numa)',
        f'device.driver.matches("^{domain}$")',
        "device.allowMultipleAllocations == true",
        "true",
    )  # fmt: skip

"""Random small clusters, with a bit of everything, in a state that a cluster could really be in."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from hypothesis import assume
from hypothesis import strategies as st
from tests.builders import NOW, SECOND, cluster, node, queue, spec, task, workload
from tests.made_once import integers, pick, rarely
from tests.properties.ledger import CPU, NodeLedger

from tenure.model.checks.cluster import check_cluster
from tenure.model.selectors import (
    Affinity,
    HostPort,
    LabelSelector,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PreferredNodeTerm,
    PreferredPodTerm,
    Requirement,
    SpreadConstraint,
    Taint,
    Toleration,
    Topology,
)
from tenure.model.settings import Settings
from tenure.model.workload import Nomination, Phase, SubGroup

ZONE, RACK, DISK = "zone", "rack", "disk"
APPS = ("x", "y")
TAINT = Taint(key="dedicated", value="gpu")
PLACEMENTS = (
    "binpack",
    "spread",
    "fragmentation",
    {"binpack": 1.0, "fragmentation": 3.0},
    {"spread": 1.0, "binpack": 0.5},
)
PLAIN_PLACEMENTS = ("binpack", "spread", {"spread": 1.0, "binpack": 0.5})


missing_labels = rarely(st.sampled_from(((ZONE,), (RACK,), (DISK, RACK))), default=())
few_pods = rarely(st.integers(1, 3))
node_taints = rarely(st.sampled_from(((TAINT,), (replace(TAINT, effect="PreferNoSchedule"),))), default=())


@st.composite
def nodes(draw, *, most=4):
    """Draw a few nodes, some with GPUs, some not usable by everybody."""
    found = []
    for number in range(draw(integers(2, most))):
        gpus = pick(draw, (0, 0, 1, 2, 4))
        labels = {
            ZONE: pick(draw, "ab"),
            RACK: pick(draw, "rst"),
            DISK: pick(draw, ("1", "5")),
        }
        for missing in draw(missing_labels):
            del labels[missing]
        found.append(
            node(
                f"n{number}",
                cpu=draw(integers(1, 8)),
                gpu=gpus,
                memory=pick(draw, (4, 16)),
                pods=draw(few_pods),
                gpu_memory=pick(draw, (16, 24)) if gpus else None,
                labels=labels,
                taints=draw(node_taints),
                unschedulable=draw(rarely(st.booleans(), default=False, one_in=8)),
                ready=draw(rarely(st.booleans(), default=True, one_in=8)),
            )
        )
    return found


selectors = st.builds(LabelSelector, match_labels=st.sampled_from(tuple((("app", a),) for a in APPS)))
selectors |= st.just(LabelSelector(match_expressions=(Requirement(key="app", operator="Exists"),)))
HERE = LabelSelector(match_labels=(("kubernetes.io/metadata.name", "default"),))
pod_terms = st.builds(
    PodAffinityTerm,
    topology_key=st.sampled_from((ZONE, RACK, "host")),
    selector=selectors,
    namespace_selector=st.sampled_from((None, LabelSelector(), HERE)),
    match_label_keys=rarely(st.just(("app",)), default=()),
    mismatch_label_keys=rarely(st.just(("app",)), default=()),
)
node_terms = st.sampled_from(
    (
        Requirement(key=ZONE, operator="In", values=("a",)),
        Requirement(key=ZONE, operator="NotIn", values=("b",)),
        Requirement(key=RACK, operator="Exists"),
        Requirement(key=RACK, operator="DoesNotExist"),
        Requirement(key=DISK, operator="Gt", values=("2",)),
        Requirement(key=DISK, operator="Lt", values=("2",)),
    )
).map(lambda r: NodeSelectorTerm(match_expressions=(r,)))


volumes = st.lists(node_terms, min_size=1, max_size=2).map(lambda terms: NodeSelector(terms=tuple(terms)))


required_nodes = st.none() | st.lists(node_terms, min_size=1, max_size=2).map(tuple)
preferred_nodes = rarely(node_terms.map(lambda t: (PreferredNodeTerm(weight=10, term=t),)), default=())
soft = rarely(pod_terms.map(lambda t: (PreferredPodTerm(weight=5, term=t),)), default=())
together = st.none() | st.builds(PodAffinity, required=st.lists(pod_terms, max_size=2).map(tuple), preferred=soft)
affinities = st.builds(
    Affinity,
    node=st.builds(NodeAffinity, required=required_nodes, preferred=preferred_nodes),
    pod=together,
    pod_anti=together,
)


spreads = st.builds(
    SpreadConstraint,
    max_skew=st.integers(1, 2),
    topology_key=st.sampled_from((ZONE, RACK)),
    when_unsatisfiable=st.sampled_from(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")),
    selector=selectors,
    min_domains=st.none() | st.integers(1, 3),
    node_affinity_policy=st.sampled_from(("Honor", "Ignore")),
    node_taints_policy=st.sampled_from(("Honor", "Ignore")),
)


crowds = st.none() | st.lists(pod_terms, min_size=1, max_size=2).map(lambda terms: PodAffinity(required=tuple(terms)))
crowd_affinities = st.builds(Affinity, pod=crowds, pod_anti=crowds)


some_spreads = st.lists(spreads, min_size=1, max_size=2).map(tuple)
at_most_one = st.lists(spreads, max_size=1).map(tuple)
exactly_one = st.tuples(spreads)
crowd_affinity = st.none() | crowd_affinities

own_labels = rarely(st.sampled_from(tuple((("app", a),) for a in APPS)), default=(), one_in=2)
own_nodes = rarely(st.sampled_from(((("zone", "a"),), (("zone", "b"), ("rack", "r")))), default=())
own_affinity = rarely(affinities, one_in=3)
own_tolerations = rarely(
    st.sampled_from(((Toleration(key="dedicated", operator="Exists"),), (Toleration(operator="Exists"),))), default=()
)
own_spread = rarely(some_spreads, default=())
own_ports = rarely(
    st.sampled_from(((HostPort(port=80),), (HostPort(port=80, ip="10.0.0.1"),), (HostPort(port=80, ip="10.0.0.2"),))),
    default=(),
    one_in=5,
)
unsupported = rarely(st.just(("volumes",)), default=(), one_in=12)
volume_nodes = rarely(st.lists(volumes, min_size=1, max_size=2).map(tuple), default=())
awaited = rarely(st.just(("claim c, which is not there",)), default=(), one_in=12)


@st.composite
def specs(draw, *, constrained=True, crowded=False):
    """Draw what a task asks for; ``crowded``: little, but with an eye on other tasks."""
    if crowded:
        affinity = draw(crowd_affinity)
        even = draw(at_most_one if affinity else exactly_one)
        return spec(cpu=0.5, labels=(("app", pick(draw, APPS)),), affinity=affinity, spread=even)
    asked = {"cpu": pick(draw, (0, 0.5, 1, 2, 3)), "memory": pick(draw, (0, 0, 1, 3))}
    gpu = pick(draw, ("none", "none", "whole", "part", "memory"))
    if gpu == "whole":
        asked["gpu"] = draw(integers(1, 3))
    elif gpu == "part":
        asked |= {
            "fraction": pick(draw, (200, 300, 500, 600, 1000)),
            "devices": pick(draw, (1, 1, 2)),
        }
    elif gpu == "memory":
        asked |= {"gpu_memory": pick(draw, (5, 7, 16, 20)), "devices": pick(draw, (1, 1, 2))}
    if not constrained:
        return spec(**asked)
    return spec(
        **asked,
        labels=draw(own_labels),
        node_selector=draw(own_nodes),
        affinity=draw(own_affinity),
        tolerations=draw(own_tolerations),
        spread=draw(own_spread),
        host_ports=draw(own_ports),
        unsupported=draw(unsupported),
        volume_nodes=draw(volume_nodes),
        awaits=draw(awaited),
    )


@st.composite
def limits(draw, most):
    """Draw amounts of a queue."""
    found = {}
    for name, step in (("cpu", 1), ("gpu", 0.5)):
        if draw(integers(0, 2)) == 0:
            found[name] = draw(integers(0, most)) * step
    return found


@st.composite
def queues(draw):
    """Draw no queues, or up to three at the top, one of which may have two below."""
    found = []
    for number in range(draw(integers(0, 3))):
        found.append(draw(_queue(f"q{number}", None)))
        if draw(integers(0, 2)) == 0:
            found += [draw(_queue(f"q{number}-{child}", f"q{number}")) for child in range(draw(integers(1, 2)))]
    return found


creation = st.none() | st.integers(0, 2)


@st.composite
def _queue(draw, name, parent):
    floor, most = draw(limits(6)), draw(limits(12))
    floor = {r: min(v, most.get(r, v)) for r, v in floor.items()}
    return queue(
        name,
        parent,
        guaranteed=floor,
        max=most,
        weight=pick(draw, (1.0, 1.0, 2.0, 0.0)),
        priority=pick(draw, (100, 100, 200)),
        created_at=draw(creation),
    )


levels = st.builds(Topology, required=st.sampled_from((ZONE, RACK)), preferred=st.none() | st.just(RACK))
levels |= st.just(Topology(preferred=RACK))
gated = rarely(st.just(Phase.GATED), default=Phase.PENDING, one_in=12)
one_or_none = st.none() | st.just(1)
few_or_none = st.none() | st.integers(1, 2)
expectations = st.none() | st.sampled_from((60, 100, 600))
namespaces = rarely(st.just("other"), default="default")


@cache
def _at_most(count):
    return st.none() | st.integers(1, count)


@st.composite
def workloads(draw, name, leaves, pool, *, plain=False):
    """Draw a workload all of whose tasks are pending or gated."""
    count = draw(integers(1, 4))
    grouped = not plain and count > 1 and draw(integers(0, 4)) == 0
    shared = pick(draw, pool)
    tasks = []
    for number in range(count):
        of = shared if draw(integers(0, 3)) else pick(draw, pool)
        phase = draw(gated)
        tasks.append(task(f"{name}-{number}", of, phase=phase, sub_group="gh"[number % 2] if grouped else None))
    fields = {"min_member": draw(_at_most(count + (draw(integers(0, 5)) == 0)))}
    if grouped:
        groups = [SubGroup(name=g, min_member=draw(one_or_none), topology=draw(rarely(levels))) for g in "gh"]
        fields = {"sub_groups": tuple(groups), "min_sub_group": draw(few_or_none)}
    return workload(
        name,
        tasks=tasks,
        queue=pick(draw, leaves),
        namespace=draw(namespaces),
        priority=pick(draw, (0, 0, 50, 100)),
        preemptible=draw(rarely(st.booleans())),
        topology=None if plain else draw(rarely(levels, one_in=5)),
        age=draw(integers(0, 3)),
        expected_runtime=draw(expectations),
        **fields,
    )


@cache
def _pools(*, constrained, crowded):
    return st.lists(specs(constrained=constrained, crowded=crowded), min_size=1, max_size=4)


@st.composite
def clusters(
    draw, *, plain=False, crowded=False, leaving=False, placements=PLACEMENTS, backfills=("none", "easy"), most=6
):
    """Draw a cluster. ``plain``: no constraints; ``crowded``: tasks look at each other; ``leaving``: much ends."""
    machines = draw(nodes())
    tree = [] if crowded or leaving else draw(queues())
    leaves = sorted({q.name for q in tree} - {q.parent for q in tree}) or ["default"]
    pool = draw(_pools(constrained=not plain, crowded=crowded))
    made = [draw(workloads(f"w{i}", leaves, pool, plain=plain)) for i in range(draw(integers(2, most)))]
    made = draw(
        placed(machines, made, modes=("leaving", "pending") if leaving else ("pending", "pending", "running", "ragged"))
    )
    machines = draw(shrunk(machines))
    found = cluster(machines, made, tree)
    settings = Settings(placement=pick(draw, placements), backfill=pick(draw, backfills), actions=("allocate",))
    found = replace(found, settings=settings)
    assume(all(finding.is_warning for finding in check_cluster(found)))
    return found


@st.composite
def shrunk(draw, machines):
    """Let a node have less than it had when it took what it holds."""
    if draw(integers(0, 5)):
        return machines
    less = pick(draw, (0, 500))
    return [replace(machines[0], allocatable={**machines[0].allocatable, CPU: less}), *machines[1:]]


@st.composite
def placed(draw, machines, pending, modes):
    """Place some workloads, within what the nodes have; let some tasks terminate, have ended, or be promised room."""
    ledgers = {n.name: NodeLedger(n) for n in machines}
    later = {n.name: NodeLedger(n) for n in machines}  # once what terminates has left
    result = []
    for one in pending:
        mode = pick(draw, modes)
        result.append(one if mode == "pending" else draw(_running(one, mode, ledgers, later)))
    if draw(integers(0, 1)):
        result = [draw(_promised(one, later)) if one.started_at is None else one for one in result]
    return result


PHASES = {
    "running": (Phase.RUNNING, Phase.BOUND),
    "ragged": tuple(Phase),
    "leaving": (Phase.TERMINATING,),
}


@st.composite
def _running(draw, one, mode, ledgers, later):
    tasks, running = [], 0
    for found in one.tasks:
        phase = pick(draw, PHASES[mode])
        placement = (
            _first_fit(found.spec, ledgers) if phase in (Phase.RUNNING, Phase.BOUND, Phase.TERMINATING) else None
        )
        if phase in (Phase.SUCCEEDED, Phase.FAILED, Phase.GATED):
            tasks.append(replace(found, phase=phase))
        elif placement is None:
            tasks.append(found)
        else:
            where, devices = placement
            ledgers[where].take(found.spec, devices)
            stays = phase is not Phase.TERMINATING
            since = NOW - pick(draw, (0, 10)) * SECOND
            grace = pick(draw, (None, 5 * SECOND))
            stuck = not stays and grace is not None and since + grace <= NOW
            if stays or stuck:
                later[where].take(found.spec, devices)
            running += stays
            gone = {"terminating_since": since, "grace_period": grace} if not stays else {"started_at": NOW - SECOND}
            tasks.append(replace(found, phase=phase, node=where, devices=devices, **gone))
    start = NOW - draw(integers(1, 50)) * SECOND if running else None
    return replace(one, tasks=tuple(tasks), started_at=start)


@st.composite
def _promised(draw, one, later):
    if draw(integers(0, 2)):
        return one
    at = NOW - pick(draw, (0, 0, 400)) * SECOND
    tasks = []
    for found in one.tasks:
        placement = _first_fit(found.spec, later)
        if found.phase is not Phase.PENDING or found.node or placement is None or found.spec.unsupported:
            tasks.append(found)
        else:
            where, devices = placement
            later[where].take(found.spec, devices)
            tasks.append(replace(found, nominated=Nomination(node=where, devices=devices, at=at)))
    return replace(one, tasks=tuple(tasks))


def _first_fit(of, ledgers):
    for name, ledger in ledgers.items():
        devices = ledger.choose(of)
        if devices is not None:
            return name, devices
    return None

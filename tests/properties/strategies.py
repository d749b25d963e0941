"""Random small clusters, with a bit of everything, in a state that a cluster could really be in."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume
from hypothesis import strategies as st
from tests.builders import NOW, SECOND, cluster, node, queue, spec, task, workload
from tests.properties.ledger import CPU, NodeLedger

from tenure.model.check import check_cluster
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


def rarely(strategy, *, default=None, one_in=4):
    """Draw the default mostly, and else from the strategy."""
    return st.integers(1, one_in).flatmap(lambda n: strategy if n == one_in else st.just(default))


@st.composite
def nodes(draw, *, most=4):
    """Draw a few nodes, some with GPUs, some not usable by everybody."""
    found = []
    for number in range(draw(st.integers(2, most))):
        gpus = draw(st.sampled_from((0, 0, 1, 2, 4)))
        labels = {
            ZONE: draw(st.sampled_from("ab")),
            RACK: draw(st.sampled_from("rst")),
            DISK: draw(st.sampled_from(("1", "5"))),
        }
        for missing in draw(rarely(st.sampled_from(((ZONE,), (RACK,), (DISK, RACK))), default=())):
            del labels[missing]
        found.append(
            node(
                f"n{number}",
                cpu=draw(st.integers(1, 8)),
                gpu=gpus,
                memory=draw(st.sampled_from((4, 16))),
                pods=draw(rarely(st.integers(1, 3))),
                gpu_memory=draw(st.sampled_from((16, 24))) if gpus else None,
                labels=labels,
                taints=draw(
                    rarely(st.sampled_from(((TAINT,), (replace(TAINT, effect="PreferNoSchedule"),))), default=())
                ),
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


@st.composite
def affinities(draw):
    """Draw one or several kinds of affinity."""
    required = draw(st.none() | st.lists(node_terms, min_size=1, max_size=2).map(tuple))
    preferred = draw(rarely(node_terms.map(lambda t: (PreferredNodeTerm(weight=10, term=t),)), default=()))
    kind = st.lists(pod_terms, max_size=2).map(tuple)
    soft = rarely(pod_terms.map(lambda t: (PreferredPodTerm(weight=5, term=t),)), default=())
    together = st.none() | st.builds(PodAffinity, required=kind, preferred=soft)
    return Affinity(
        node=NodeAffinity(required=required, preferred=preferred), pod=draw(together), pod_anti=draw(together)
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


@st.composite
def specs(draw, *, constrained=True, crowded=False):
    """Draw what a task asks for; ``crowded``: little, but with an eye on other tasks."""
    if crowded:
        affinity = draw(st.none() | crowd_affinities)
        even = draw(st.lists(spreads, min_size=0 if affinity else 1, max_size=1).map(tuple))
        return spec(cpu=0.5, labels=(("app", draw(st.sampled_from(APPS))),), affinity=affinity, spread=even)
    asked = {"cpu": draw(st.sampled_from((0, 0.5, 1, 2, 3))), "memory": draw(st.sampled_from((0, 0, 1, 3)))}
    gpu = draw(st.sampled_from(("none", "none", "whole", "part", "memory")))
    if gpu == "whole":
        asked["gpu"] = draw(st.integers(1, 3))
    elif gpu == "part":
        asked |= {
            "fraction": draw(st.sampled_from((200, 300, 500, 600, 1000))),
            "devices": draw(st.sampled_from((1, 1, 2))),
        }
    elif gpu == "memory":
        asked |= {"gpu_memory": draw(st.sampled_from((5, 7, 16, 20))), "devices": draw(st.sampled_from((1, 1, 2)))}
    if not constrained:
        return spec(**asked)
    return spec(
        **asked,
        labels=draw(rarely(st.sampled_from(tuple((("app", a),) for a in APPS)), default=(), one_in=2)),
        node_selector=draw(rarely(st.sampled_from(((("zone", "a"),), (("zone", "b"), ("rack", "r")))), default=())),
        affinity=draw(rarely(affinities(), one_in=3)),
        tolerations=draw(
            rarely(
                st.sampled_from(((Toleration(key="dedicated", operator="Exists"),), (Toleration(operator="Exists"),))),
                default=(),
            )
        ),
        spread=draw(rarely(st.lists(spreads, min_size=1, max_size=2).map(tuple), default=())),
        host_ports=draw(
            rarely(
                st.sampled_from(
                    ((HostPort(port=80),), (HostPort(port=80, ip="10.0.0.1"),), (HostPort(port=80, ip="10.0.0.2"),))
                ),
                default=(),
                one_in=5,
            )
        ),
        unsupported=draw(rarely(st.just(("volumes",)), default=(), one_in=12)),
        volume_nodes=draw(rarely(st.lists(volumes, min_size=1, max_size=2).map(tuple), default=())),
        awaits=draw(rarely(st.just(("claim c, which is not there",)), default=(), one_in=12)),
    )


@st.composite
def limits(draw, most):
    """Draw amounts of a queue."""
    found = {}
    for name, step in (("cpu", 1), ("gpu", 0.5)):
        if draw(st.integers(0, 2)) == 0:
            found[name] = draw(st.integers(0, most)) * step
    return found


@st.composite
def queues(draw):
    """Draw no queues, or up to three at the top, one of which may have two below."""
    found = []
    for number in range(draw(st.integers(0, 3))):
        found.append(draw(_queue(f"q{number}", None)))
        if draw(st.integers(0, 2)) == 0:
            found += [draw(_queue(f"q{number}-{child}", f"q{number}")) for child in range(draw(st.integers(1, 2)))]
    return found


@st.composite
def _queue(draw, name, parent):
    floor, most = draw(limits(6)), draw(limits(12))
    floor = {r: min(v, most.get(r, v)) for r, v in floor.items()}
    return queue(
        name,
        parent,
        guaranteed=floor,
        max=most,
        weight=draw(st.sampled_from((1.0, 1.0, 2.0, 0.0))),
        priority=draw(st.sampled_from((100, 100, 200))),
        created_at=draw(st.none() | st.integers(0, 2)),
    )


@st.composite
def workloads(draw, name, leaves, pool, *, plain=False):
    """Draw a workload all of whose tasks are pending or gated."""
    count = draw(st.integers(1, 4))
    grouped = not plain and count > 1 and draw(st.integers(0, 4)) == 0
    shared = draw(st.sampled_from(pool))
    tasks = []
    for number in range(count):
        of = shared if draw(st.integers(0, 3)) else draw(st.sampled_from(pool))
        phase = draw(rarely(st.just(Phase.GATED), default=Phase.PENDING, one_in=12))
        tasks.append(task(f"{name}-{number}", of, phase=phase, sub_group="gh"[number % 2] if grouped else None))
    levels = st.builds(Topology, required=st.sampled_from((ZONE, RACK)), preferred=st.none() | st.just(RACK))
    levels |= st.just(Topology(preferred=RACK))
    fields = {"min_member": draw(st.none() | st.integers(1, count + (draw(st.integers(0, 5)) == 0)))}
    if grouped:
        groups = [
            SubGroup(name=g, min_member=draw(st.none() | st.just(1)), topology=draw(rarely(levels))) for g in "gh"
        ]
        fields = {"sub_groups": tuple(groups), "min_sub_group": draw(st.none() | st.integers(1, 2))}
    return workload(
        name,
        tasks=tasks,
        queue=draw(st.sampled_from(leaves)),
        namespace=draw(rarely(st.just("other"), default="default")),
        priority=draw(st.sampled_from((0, 0, 50, 100))),
        preemptible=draw(rarely(st.booleans())),
        topology=None if plain else draw(rarely(levels, one_in=5)),
        age=draw(st.integers(0, 3)),
        expected_runtime=draw(st.none() | st.sampled_from((60, 100, 600))),
        **fields,
    )


@st.composite
def clusters(
    draw, *, plain=False, crowded=False, leaving=False, placements=PLACEMENTS, backfills=("none", "easy"), most=6
):
    """Draw a cluster. ``plain``: no constraints; ``crowded``: tasks look at each other; ``leaving``: much ends."""
    machines = draw(nodes())
    tree = [] if crowded or leaving else draw(queues())
    leaves = sorted({q.name for q in tree} - {q.parent for q in tree}) or ["default"]
    pool = draw(st.lists(specs(constrained=not plain, crowded=crowded), min_size=1, max_size=4))
    made = [draw(workloads(f"w{i}", leaves, pool, plain=plain)) for i in range(draw(st.integers(2, most)))]
    made = draw(
        placed(machines, made, modes=("leaving", "pending") if leaving else ("pending", "pending", "running", "ragged"))
    )
    machines = draw(shrunk(machines))
    found = cluster(machines, made, tree)
    settings = Settings(
        placement=draw(st.sampled_from(placements)), backfill=draw(st.sampled_from(backfills)), actions=("allocate",)
    )
    found = replace(found, settings=settings)
    assume(all(finding.is_warning for finding in check_cluster(found)))
    return found


@st.composite
def shrunk(draw, machines):
    """Let a node have less than it had when it took what it holds."""
    if draw(st.integers(0, 5)):
        return machines
    less = draw(st.sampled_from((0, 500)))
    return [replace(machines[0], allocatable={**machines[0].allocatable, CPU: less}), *machines[1:]]


@st.composite
def placed(draw, machines, pending, modes):
    """Place some workloads, within what the nodes have; let some tasks terminate, have ended, or be promised room."""
    ledgers = {n.name: NodeLedger(n) for n in machines}
    later = {n.name: NodeLedger(n) for n in machines}  # once what terminates has left
    result = []
    for one in pending:
        mode = draw(st.sampled_from(modes))
        result.append(one if mode == "pending" else draw(_running(one, mode, ledgers, later)))
    if draw(st.integers(0, 1)):
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
        phase = draw(st.sampled_from(PHASES[mode]))
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
            since = NOW - draw(st.sampled_from((0, 10))) * SECOND
            grace = draw(st.sampled_from((None, 5 * SECOND)))
            stuck = not stays and grace is not None and since + grace <= NOW
            if stays or stuck:
                later[where].take(found.spec, devices)
            running += stays
            gone = {"terminating_since": since, "grace_period": grace} if not stays else {"started_at": NOW - SECOND}
            tasks.append(replace(found, phase=phase, node=where, devices=devices, **gone))
    start = NOW - draw(st.integers(1, 50)) * SECOND if running else None
    return replace(one, tasks=tuple(tasks), started_at=start)


@st.composite
def _promised(draw, one, later):
    if draw(st.integers(0, 2)):
        return one
    at = NOW - draw(st.sampled_from((0, 0, 400))) * SECOND
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

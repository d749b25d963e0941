"""Does what ``tenure explain`` says would help: each sentence, read word by word, becomes a changed cluster."""

from __future__ import annotations

import re
from dataclasses import replace

from tests.builders import node

from tenure.explanation.explain import explain_workload
from tenure.model.settings import DEFAULT_ACTIONS, DisruptionSettings
from tenure.model.values.duration import parse_time
from tenure.model.values.resources import CPU, GPU, MEMORY, PODS
from tenure.model.workload import Phase, Task, TaskSpec
from tenure.playthrough import play

_UNITS = {"core": (CPU, 1000), "GPU": (GPU, 1), "pod slot": (PODS, 1), "GiB of memory": (MEMORY, 1 << 30)}
_AMOUNT = re.compile(r"(?P<share>room for its part of )?(?P<many>[\d.]+) (?P<unit>core|GPU|pod slot|GiB of memory)s?$")
_NODE = re.compile(
    r"one node that admits it(?: \(.+?\))? and has (.+?) free(?:, and as much for each of the (\d+) tasks)?"
    r".*?(, or a smaller request)?(?:: no waiting helps|, and that no workload before it takes the room)"
)
WAITING = frozenset({"pending", "partly running"})
HELPED = frozenset({"Nominated", "MadeRoom", "AwaitsNodes", "NextCycle"})
_WORKLOADS = re.compile(r"default/\w+")
SMALL = TaskSpec(requests=((CPU, 1),))


def amount(text, *, of_queue=False):
    """Resource and amount; GPUs of queues in milli-GPU."""
    found = _AMOUNT.match(text)
    resource, unit = _UNITS[found["unit"]]
    return resource, round(float(found["many"]) * (1000 if of_queue and resource == GPU else unit))


def with_queue(found, name, **fields):
    """The cluster with another queue of a name."""
    return replace(found, queues=tuple(replace(q, **fields) if q.name == name else q for q in found.queues))


def with_workloads(found, keys, **fields):
    """The cluster with other workloads of some keys."""
    return replace(found, workloads=tuple(replace(w, **fields) if w.key in keys else w for w in found.workloads))


def _queue(found, name):
    return next(q for q in found.queues if q.name == name)


def _path(found, name):
    while name:
        yield name
        name = _queue(found, name).parent


def _max(found, _, match):
    resource, most = amount(match[1], of_queue=True)
    queue = _queue(found, match[2])
    return [with_queue(found, queue.name, max={**queue.max, resource: most})]


def _higher_max(found, _, match):
    resource, more = amount(match[1], of_queue=True)
    queue = _queue(found, match[2])
    return [with_queue(found, queue.name, max={**queue.max, resource: queue.max[resource] + more})]


def _guarantee(found, waiting, match):
    resource, least = amount(match[1], of_queue=True)
    queue = _queue(found, match[2])
    higher = {**queue.guaranteed, resource: least}
    other = [with_workloads(found, {waiting.key}, preemptible=True)] if match[3] else []
    return [with_queue(found, queue.name, guaranteed=higher), *other]


def _nodes(found, waiting, match):
    free = {PODS: 1}
    for part in match[1].split(" and "):
        resource, most = amount(part)
        free[resource] = free.get(resource, 0) + most
    made = [_admitting(found, waiting, f"new{number}", free) for number in range(int(match[2] or 1))]
    return [replace(found, nodes=(*found.nodes, *made)), *([_smaller(found, waiting)] if match[3] else [])]


def _admitting(found, waiting, name, free):
    spec = next(t.spec for t in waiting.tasks if t.phase is Phase.PENDING)
    labels = {"zone": name, **dict(spec.node_selector)}
    if waiting.topology is not None and waiting.topology.required:
        label = waiting.topology.required
        known = {n.name: n.labels.get(label) for n in found.nodes}
        labels[label] = next((at for t in waiting.tasks if (at := known.get(t.node))), "new")
    return node(name, cpu=0, extra=free, labels=labels, features=spec.features)


def _smaller(found, waiting):
    tasks = (replace(t, spec=replace(t.spec, requests=SMALL.requests, gpu_share=None)) for t in waiting.tasks)
    return with_workloads(found, {waiting.key}, tasks=tuple(tasks))


def _more_nodes(found, waiting, match):
    spec = next(t.spec for t in waiting.tasks if t.phase is Phase.PENDING)
    free = {**dict(spec.requests), PODS: 1}
    if spec.gpu_share is not None:
        free[GPU] = spec.gpu_share.devices
    made = [_admitting(found, waiting, f"new{number}", free) for number in range(int(match[1]))]
    return [replace(found, nodes=(*found.nodes, *made))]


def _wait(found, _, match):  # as things stand once this cycle is over
    return [replace(play(found).after, now=parse_time(match[1]))]


def _priority(found, waiting, match):
    keys = _WORKLOADS.findall(match[1])
    highest = max(w.priority for w in found.workloads if w.key in keys)
    own = {"preemptible": True} if "on itself" in match[0] else {}
    changed = with_workloads(found, {waiting.key}, priority=highest + 1, **own)
    return [with_workloads(changed, keys, preemptible=True) if "together with" in match[0] else changed]


def _preemptible(found, _, match):
    keys = _WORKLOADS.findall(match[1])
    ended = replace(found, workloads=tuple(w for w in found.workloads if w.key not in keys))
    return [with_workloads(found, keys, preemptible=True), ended]


def _policy(found, _, match):
    for key in _WORKLOADS.findall(match[1]):
        for name in _path(found, next(w.queue for w in found.workloads if w.key == key)):
            found = with_queue(found, name, preemption_policy="default")
    return [found]


def _fence(found, waiting, _):
    for name in _path(found, waiting.queue):
        found = with_queue(found, name, preemption_policy="default")
    return [found]


def _right(found, waiting, _):
    for name in _path(found, waiting.queue):
        found = with_queue(found, name, guaranteed={CPU: 1_000_000, GPU: 1_000_000}, max={})
    return [found]


def _settings(found, **fields):
    return [replace(found, settings=replace(found.settings, **fields))]


def _action(found, _, match):
    if "the mode enforce" in match.string:
        (found,) = _mode(found, _, match)
    wanted = {*found.settings.actions, match[1]}
    return _settings(found, actions=tuple(a for a in DEFAULT_ACTIONS if a in wanted))


def _mode(found, _, match):
    return _settings(found, modes={cause: mode for cause, mode in found.settings.modes.items() if cause != match[1]})


def _end_by(found, waiting, match):
    return [with_workloads(found, {waiting.key}, expected_runtime=parse_time(match[1]) - found.now)]


def _higher_priorities(found, waiting, _):
    highest = max(w.priority for w in found.workloads)
    found = with_workloads(found, {waiting.key}, priority=highest + 1, preemptible=True)
    most = max(q.priority for q in found.queues)
    for name in _path(found, waiting.queue):
        found = with_queue(found, name, priority=most + 1)
    return [found]


def _nodes_come(found, *_):
    nodes = tuple(replace(n, awaited_until=None) for n in found.nodes)
    return [replace(play(found).after, nodes=nodes)]


def _no_gates(found, waiting, _):
    tasks = (replace(t, phase=Phase.PENDING) if t.phase is Phase.GATED else t for t in waiting.tasks)
    return [with_workloads(found, {waiting.key}, tasks=tuple(tasks))]


def _more_tasks(found, waiting, match):
    more = tuple(Task(name=f"more-{n}", spec=waiting.tasks[0].spec) for n in range(int(match[1])))
    fewer = waiting.min_member - int(match[1])
    return [
        with_workloads(found, {waiting.key}, tasks=(*waiting.tasks, *more)),
        with_workloads(found, {waiting.key}, min_member=fewer),
    ]


_SENTENCES = tuple(
    (re.compile(pattern), apply)
    for pattern, apply in (
        (r"^a max of (.+?) or more for queue (\w+)", _max),
        (r"^(.+) less used in queue (\w+), or a max that is higher by as much", _higher_max),
        (
            r"^a guarantee of (.+?) or more for queue (\w+)(, or preemptible: true on the workload)?$",
            _guarantee,
        ),
        (_NODE.pattern, _nodes),
        (r"^larger or more nodes, with room for (\d+) more tasks?", _more_nodes),
        (r"^room for (\d+) more of its tasks", _more_nodes),
        (r"^to wait: from (\S+) on", _wait),
        (r"to wait until (\S+): until then", _wait),
        (r"^to wait: \w+ is paused until (\S+) at the latest", _wait),
        (r"^to wait for nodes; from (\S+) on", _wait),
        (r"^to wait: it is bound as soon as these nodes are there", _nodes_come),
        (r"^an end by (\S+) \(a shorter expectedRuntime\)", _end_by),
        (r"^its turn, after \d+ other workloads?, or a higher priority", _higher_priorities),
        (r"^for \w+, a priority above that of (.+)$", _priority),
        (r"^for \w+, preemptible: true on (.+), or the end of (?:it|them)$", _preemptible),
        (r"^for \w+, another preemptionPolicy for the queue of (.+)$", _policy),
        (r"^for \w+, its own queue without the fence", _fence),
        (r"^for \w+, a larger guarantee or share for queue", _right),
        (r"^for \w+, (\w+) among the actions", _action),
        (r"^(allocate) among the actions", _action),
        (r"^for \w+, the mode enforce \(scheduler.modes.(\w+)\)", _mode),
        (r"^the removal of the scheduling gates", _no_gates),
        (r"^(\d+) more tasks?, or a smaller minMember", _more_tasks),
        (
            r"^for \w+, allowPreemption: true on (.+)$",
            lambda found, _, match: [with_workloads(found, _WORKLOADS.findall(match[1]), allow_preemption=True)],
        ),
        (r"^for \w+, a budget that allows", lambda found, *_: _settings(found, disruption=DisruptionSettings())),
        (
            r"^a preemptionPolicy other than Never",
            lambda found, waiting, _: [with_workloads(found, {waiting.key}, preemption_policy=None)],
        ),
        # of these no single change is meant, or nothing has to be done
        (r"^its claims, bound to|^its resource claims, and|^to wait until \S+ is ready", None),
        (r"^for \w+, (?:more room|free room|other queues that hold|less usage|other victims|nothing:|a higher)", None),
        (
            r"^for \w+, a shorter runtime|^another node|^room for all|^room for its task|^to wait: |^the next cycle",
            None,
        ),
    )
)


def tried(found, waiting, said):
    """The clusters that a sentence asks for, one for each way; AssertionError for a sentence that is not known."""
    for pattern, apply in _SENTENCES:
        match = pattern.search(said)
        if match:
            return [] if apply is None else apply(found, waiting, match)
    raise AssertionError(f"no test does what this says: {said!r}")


def obstacles(reasons):
    """What stands in the way, each as specific as a sentence about it is."""
    found = set()
    for reason in reasons:
        n = reason.numbers
        if reason.code == "ShieldedVictims":
            found |= {(reason.code, n["cause"], e["shield"], e["workload"]) for e in n["shields"]}
        else:
            found.add((reason.code, n.get("queue"), n.get("resource"), n.get("cause")))
    return found


def placed(played):
    """Tasks that a plan places, and whether they are bound: what is promised room may be bound instead."""
    return {(s.workload, s.task, s.action) for s in played.steps if s.action in {"bind", "nominate"}}


def try_all(found, first, item):
    """Do what each sentence says that a workload is told, alone; gives the sentences of which that could be done.

    What each names is gone then, or the workload, or another that comes before it, starts.
    """
    told = explain_workload(first, item) if any(p.workload == item.key for p in first.pending) else None
    if told is None or told.state not in WAITING:
        return []
    done = []
    for said in told.helps:
        for changed in tried(found, item, said):
            second = play(changed)
            then = explain_workload(second, next(w for w in changed.workloads if w.key == item.key))
            starts = then.state not in WAITING or HELPED & {r.code for r in then.reasons}
            gone = obstacles(told.reasons) - obstacles(then.reasons)
            assert starts or gone or placed(second) - placed(first), (item.key, said, then.reasons)
            done.append(said)
    return done

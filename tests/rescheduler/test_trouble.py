"""What goes wrong between a plan and its landing, and bad input: nothing is stuck, nobody is moved for nothing."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.builders import NOW, SECOND, cluster, node, queue, spec, workload

from tenure.clusters.embedded import EmbeddedCluster
from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.model.selectors import LabelSelector
from tenure.model.settings import BudgetRule, DisruptionSettings, ReschedulerSettings

MINUTE = 60 * SECOND
EXAMPLES = Path(__file__).parents[2] / "examples/rescheduler"


def two_waves(settle=60 * MINUTE):
    """Two replicas have to leave a so that big fits, one may be down at a time; they can go to b or c."""
    web = workload("web", tasks=2, of=spec(cpu=2, labels=(("app", "web"),)), on=["a", "a"], running=100, age=200,
                   min_member=1)  # fmt: skip
    rule = BudgetRule(name="web", selector=LabelSelector(match_labels=(("app", "web"),)), max_unavailable=1)
    return cluster(
        [node("a", cpu=8), node("b", cpu=4), node("c", cpu=4)], [web, workload("big", of=spec(cpu=8), age=600)],
        [queue("default")], actions=("allocate", "reschedule"), rescheduler=ReschedulerSettings(settle=settle),
        disruption=DisruptionSettings(budgets=(rule,)),
    )  # fmt: skip


def run(embedded, minutes, change=None):
    """Play a cycle a minute; ``change`` alters the cluster after the first. Gives the moves of each cycle."""
    found = []
    for minute in range(minutes):
        if minute:
            embedded.advance(NOW + minute * MINUTE)
        if minute == 1 and change is not None:
            embedded.cluster = change(embedded.cluster)
        plan = Scheduler(session_of(embedded.observe())).cycle(embedded.observe().now)
        found.append([(s.task, s.node, s.to) for s in plan.steps if s.action == "evict"])
        embedded.carry_out(plan)
    return found


def test_two_waves_land_one_after_the_other():
    """The case that the others disturb."""
    embedded = EmbeddedCluster(two_waves())
    found = run(embedded, 8)
    assert [len(m) for m in found if m] == [1, 1]
    assert all(t.phase == "Running" for w in embedded.observe().workloads for t in w.tasks)


def test_a_node_disappears_between_planning_and_the_second_wave():
    """What was promised there is placed anew, here where it came from; once that has settled it is planned again."""
    embedded = EmbeddedCluster(two_waves(2 * MINUTE))

    def without_the_target(state):
        gone = {e.to_node for e in state.evictions}
        return replace(state, nodes=tuple(n for n in state.nodes if n.name not in gone))

    found = run(embedded, 20, without_the_target)
    assert not any(found[1:4]), "what came back to its origin backs off: twice as long"
    after = embedded.observe()
    assert len(after.nodes) == 2
    assert all(t.phase == "Running" for w in after.workloads for t in w.tasks), (
        "both replicas fit the node that is left"
    )


def test_a_moved_pod_that_nobody_recreates_holds_nothing_up():
    """Its workload has gone meanwhile: the contender gets the room, and nobody waits for what does not come back."""
    made = cluster(
        [node("a", cpu=8), node("b", cpu=4)],
        [workload("orphan", of=spec(cpu=2), on=["a"], running=100, age=200),
         workload("big", of=spec(cpu=8), age=600)],
        [queue("default")], actions=("allocate", "reschedule"), rescheduler=ReschedulerSettings(moves="reserve-first"),
    )  # fmt: skip
    embedded = EmbeddedCluster(made)
    found = run(embedded, 6, lambda s: replace(s, workloads=tuple(w for w in s.workloads if w.name != "orphan")))
    assert found[0] == [("orphan-0", "a", "b")]
    (big,) = embedded.observe().workloads
    assert big.tasks[0].phase == "Running"


@pytest.fixture
def ended(run_command):
    """The exit code of a command, and all that it printed."""

    def call(*arguments):
        code, printed, complaints = run_command(*arguments)
        return code, printed + complaints

    return call


def test_a_page_shows_the_nodes_before_and_after(ended, tmp_path):
    """`tenure reschedule --report`: every trigger's plan with its certificate, and nothing fetched from elsewhere."""
    page = tmp_path / "page.html"
    code, output = ended("reschedule", EXAMPLES / "improve.yaml", "--report", page)
    assert code == 0, output
    text = page.read_text()
    assert "(hot-node): 1 move in 1 wave" in text
    assert "(background): 2 moves in 1 wave" in text
    assert "no plan can leave more than" in text
    assert "://" not in text.replace("http://www.w3.org/2000/svg", "")


NEVER = """
apiVersion: tenure.dev/v1alpha1
kind: Cluster
now: 2026-11-20T10:00:00Z
nodes:
  - {name: node, count: 4, allocatable: {cpu: "32", nvidia.com/gpu: 8}}
workloads:
  - {name: big, createdAt: 2026-11-20T09:50:00Z, requests: {nvidia.com/gpu: 8}}
  - {name: a, preemptible: false, requests: {nvidia.com/gpu: 3}, createdAt: 2026-11-20T08:00:00Z,
     tasks: [{name: a-0, node: node-0}, {name: a-1, node: node-1}, {name: a-2, node: node-2}]}
  - {name: b, preemptible: false, requests: {nvidia.com/gpu: 2}, createdAt: 2026-11-20T08:00:00Z,
     tasks: [{name: b-0, node: node-3}]}
  - {name: c, requests: {nvidia.com/gpu: 2}, createdAt: 2026-11-20T08:00:00Z, tasks: [{name: c-0, node: node-3}]}
evictions:
  - {at: TIME, workload: default/c, task: c-0, cause: reschedule, from: node-1, to: node-3}
"""


def test_explain_tells_of_the_largest_hole_and_of_what_was_moved(ended, tmp_path):
    """The signal for an autoscaler; and of a moved pod from where, where to, and until when it rests."""
    file = tmp_path / "never.yaml"
    file.write_text(NEVER.replace("TIME", "2026-11-20T08:30:00Z"))
    _, output = ended("explain", file, "big")
    assert "even if every movable pod moved, the largest hole is 6 GPUs on node-3" in output
    assert "another node, or fewer pods that must not move" in output
    file.write_text(NEVER.replace("TIME", "2026-11-20T09:55:00Z"))
    _, output = ended("explain", file, "c")
    assert "c-0 was moved lately, and is not moved again before 2026-11-20T10:55:00Z" in output
    assert "Evicted 2026-11-20T09:55:00Z: c-0 from node-1 to node-3, reschedule" in output


RACKS = """
apiVersion: tenure.dev/v1alpha1
kind: Cluster
now: 2026-11-20T10:00:00Z
nodes:
  - {name: a, labels: {rack: one}, allocatable: {nvidia.com/gpu: 2}}
  - {name: b, labels: {rack: two}, allocatable: {nvidia.com/gpu: 1}}
  - {name: c, labels: {rack: two}, allocatable: {nvidia.com/gpu: 2}}
  - {name: d, allocatable: {nvidia.com/gpu: 8}}
queues: [{name: research}]
workloads:
  - name: gang
    queue: research
    replicas: 4
    createdAt: 2026-11-20T09:00:00Z
    requests: {nvidia.com/gpu: 1}
    topology: {required: LABEL}
  - name: grows
    queue: research
    minMember: 1
    replicas: 2
    createdAt: 2026-11-20T09:00:00Z
    startedAt: 2026-11-20T09:00:00Z
    requests: {nvidia.com/gpu: 1}
    topology: {required: rack}
    tasks: [{name: grows-0, node: b}]
  - name: full
    queue: research
    preemptible: false
    startedAt: 2026-11-20T09:00:00Z
    requests: {nvidia.com/gpu: 2}
    tasks: [{name: full-0, node: c}]
"""


def test_what_a_required_topology_leaves_is_told(ended, tmp_path):
    """How many fit under one value, not in all; that a label is missing; and which value the rest of a group has."""
    file = tmp_path / "racks.yaml"
    file.write_text(RACKS.replace("LABEL", "rack"))
    _, output = ended("explain", file, "gang")
    assert (
        "it starts with 4 tasks of 1 GPU, and there is room for 2: 1 node no label rack, 2 nodes insufficient" in output
    )
    _, output = ended("explain", file, "grows")
    assert "0 of 4 nodes fit: 1 no label rack, 1 another rack than that of its group, 2 insufficient" in output
    alone = RACKS.partition("  - name: grows")[0]
    file.write_text(alone.replace("LABEL", "rack"))
    _, output = ended("explain", file, "gang")
    assert "each of its 4 tasks would fit on its own, but not all of them together, under one value of rack" in output
    holes = "3 of 4 would fit at once under one value of its topology; the largest hole is 2 GPUs on a"
    assert f"even if every movable pod moved, {holes}" in output
    file.write_text(alone.replace("LABEL", "row"))
    _, output = ended("explain", file, "gang")
    assert "0 of 4 nodes fit: 4 no label row" in output


BUDGETS = [
    ("selector: {matchLabels: [x]}, maxUnavailable: 1", "budgets[0].selector.matchLabels: is a list"),
    ("maxUnavailable: 130%", "budgets[0].maxUnavailable: is '130%' (text), but a percentage goes up to 100%"),
    ("maxUnavailable: x%", "a percentage such as 30% is expected"),
    ('schedule: "0 26 * * *", duration: 1h, maxEvictions: 0', "budgets[0].schedule: '26' is no hour"),
    ('schedule: "0 6 * *", duration: 1h, maxEvictions: 0', "has 4 fields, and a cron line has 5"),
]


@pytest.mark.parametrize(("rule", "message"), BUDGETS)
def test_a_malformed_budget_names_its_line(ended, tmp_path, rule, message):
    """Selector, percentage and cron line; the command ends without a traceback."""
    file = tmp_path / "bad.yaml"
    file.write_text(
        "apiVersion: tenure.dev/v1alpha1\nkind: Cluster\nnow: 2026-11-20T10:00:00Z\nscheduler:\n  disruption:\n"
        f"    budgets:\n      - {{name: b, {rule}}}\nnodes: []\n"
    )
    code, output = ended("reschedule", file)
    assert code == 1
    assert f"{file}:7: scheduler.disruption." in output
    assert message in output

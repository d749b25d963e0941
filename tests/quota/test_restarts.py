"""Deadlines over changes and restarts: whatever happens between two cycles, they are what the table of arming says.

A second reading of the table runs beside the scheduler. The cluster goes through a file and back between any two
steps, and nothing else is kept.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from tests.builders import NOW, SECOND, cluster, node, queue, spec, workload
from tests.quota.oracle import OCCUPIES, Tree, over
from tests.quota.test_rounds import delay_of

from tenure.clusters.embedded import EmbeddedCluster
from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.model.checks.cluster import check_cluster
from tenure.model.file.dump import dump_cluster
from tenure.model.file.load import load_cluster
from tenure.model.settings import QuotaPreemptionSettings
from tenure.model.workload import Phase

MINUTE = 60 * SECOND
HOLDS = (*OCCUPIES, Phase.TERMINATING)
NAMES = ("top", "top.a", "top.b", "top.b.x")
LEAVES = ("top.a", "top.b.x")


class Deadlines(RuleBasedStateMachine):
    """A tree of four queues whose limits, delays and work change, and its scheduler."""

    @initialize()
    def start(self):
        """Six tasks run; nothing is limited yet."""
        work = [workload(f"w{i}", of=spec(cpu=2), on=["n"], queue=LEAVES[i % 2], running=600 + i) for i in range(6)]
        tree = [queue("top"), queue("top.a", "top"), queue("top.b", "top"), queue("top.b.x", "top.b")]
        on = QuotaPreemptionSettings(enabled=True)
        self.cluster = cluster([node("n", cpu=500)], work, tree, quota_preemption=on, actions=("quota", "allocate"))
        self.deadlines = {}
        self.delays = {}
        self.number = 0

    def change(self, name, **fields):
        """Change a queue, unless what results is refused; then the old configuration stays."""
        queues = tuple(replace(q, **fields) if q.name == name else q for q in self.cluster.queues)
        changed = replace(self.cluster, queues=queues)
        if all(finding.is_warning for finding in check_cluster(changed)):
            self.cluster = changed

    @rule(name=st.sampled_from(NAMES), cores=st.sampled_from((None, 0, 2, 4, 6, 8, 20)))
    def set_max(self, name, cores):
        """Lower, raise or remove a max."""
        self.change(name, max={} if cores is None else {"cpu": cores * 1000})

    @rule(name=st.sampled_from(NAMES), minutes=st.sampled_from((None, 0, 1, 3, 10)))
    def set_delay(self, name, minutes):
        """Switch a delay on or off, or change it."""
        self.change(name, quota_preemption_delay=None if minutes is None else minutes * MINUTE)

    @rule(enabled=st.booleans(), inherit=st.booleans())
    def switch(self, enabled, inherit):
        """Switch the feature and inheritance."""
        quota = replace(self.cluster.settings.quota_preemption, enabled=enabled, inherit=inherit)
        self.cluster = replace(self.cluster, settings=replace(self.cluster.settings, quota_preemption=quota))

    @rule(leaf=st.sampled_from(LEAVES), cores=st.integers(1, 4), spared=st.booleans())
    def slip_in(self, leaf, cores, spared):
        """Somebody else binds a workload, whatever the max."""
        self.number += 1
        more = workload(f"s{self.number}", of=spec(cpu=cores), on=["n"], queue=leaf, allow_preemption=not spared)
        more = replace(more, created_at=self.cluster.now, started_at=self.cluster.now)
        self.cluster = replace(self.cluster, workloads=(*self.cluster.workloads, more))

    @rule(data=st.data())
    def finish(self, data):
        """Something ends by itself."""
        if self.cluster.workloads:
            gone = data.draw(st.sampled_from(self.cluster.workloads))
            left = tuple(w for w in self.cluster.workloads if w is not gone)
            self.cluster = replace(self.cluster, workloads=left)

    @rule()
    def restart(self):
        """The cluster is written to a file and read back, unchanged."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "cluster.yaml"
            with path.open("w") as stream:
                dump_cluster(self.cluster, stream)
            read = load_cluster(path).cluster
        assert [q.status for q in read.queues] == [q.status for q in self.cluster.queues]
        self.cluster = read

    @rule(seconds=st.sampled_from((1, 20, 60, 200)))
    def cycle(self, seconds):
        """Time passes, and the scheduler decides."""
        embedded = EmbeddedCluster(self.cluster)
        embedded.advance(self.cluster.now + seconds * SECOND)
        before = embedded.observe()
        plan = Scheduler(session_of(before)).cycle(before.now)
        self.expect(before)
        assert {q.queue: q.deadline for q in plan.quota} == self.deadlines
        fired = {e.queue for e in plan.quota_events if e.kind == "fired"}
        assert all(self.deadlines[name] <= before.now for name in fired)
        self.check_evictions(before, plan, fired)
        embedded.carry_out(plan)
        self.cluster = embedded.observe()
        stored = {q.name: q.status.quota_preemption for q in self.cluster.queues if q.status is not None}
        told = {name: (status.deadline, status.max) for name, status in stored.items() if status is not None}
        assert told == {name: (at, Tree(before).queues[name].max) for name, at in self.deadlines.items()}

    def expect(self, before):
        """Work out the deadlines the plain way."""
        for name in NAMES:
            delay = delay_of(before, name) if before.settings.quota_preemption.enabled else 0
            if not delay or not over(before, name, HOLDS):
                self.deadlines.pop(name, None)
                self.delays.pop(name, None)
            elif name in self.deadlines:
                self.deadlines[name] += delay - self.delays[name]
                self.delays[name] = delay
            else:
                self.deadlines[name], self.delays[name] = before.now + delay, delay

    def check_evictions(self, before, plan, fired):
        """Only queues that fire lose anything, and none of them more than it takes to get under its max."""
        tree = Tree(before)
        evicted = [s.workload for s in plan.steps if s.action == "evict"]
        for key in evicted:
            leaf = next(w.queue for w in before.workloads if w.key == key)
            assert fired & set(tree.path(leaf))
        for name in fired:
            assert not fired & set(tree.path(name)[1:]), "parent and child in one round"


TestDeadlines = Deadlines.TestCase
TestDeadlines.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


def test_deadlines_start_from_the_cluster_s_time():
    """The second reading and the scheduler begin at the same instant."""
    machine = Deadlines()
    machine.start()
    machine.set_delay("top", 1)
    machine.set_max("top", 8)
    machine.cycle(1)
    assert machine.deadlines == {"top": NOW + SECOND + MINUTE}
    machine.restart()
    machine.cycle(59)
    assert not [w for w in machine.cluster.workloads if w.tasks[0].phase is Phase.TERMINATING]
    machine.cycle(1)
    assert len([w for w in machine.cluster.workloads if w.tasks[0].phase is Phase.TERMINATING]) == 2

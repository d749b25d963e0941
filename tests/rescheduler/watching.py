"""A second reading of all disruption rules: what is seen of a cluster, cycle by cycle, against the rules as written.

It shares nothing with the ledger or the planner: it counts pods in the states that it is shown, and evictions in a log
of its own. What it cannot know exactly (who "has been up before", what a run has lost) it reckons to the advantage of
the planner, so that whatever it reports is a fault.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

MINUTE = 60_000_000
HERE = ("Bound", "Running", "Terminating")


class Gone(NamedTuple):
    """An eviction, as this file notes it."""

    at: int
    key: str
    task: str
    queue: str
    labels: dict
    cause: str
    cpu_time: int
    forced: bool
    beneficiary: str | None
    origin: str
    target: str | None


def pods_in(state):
    """Give all pods by workload and name."""
    return {(w.key, t.name): (w, t) for w in state.workloads for t in w.tasks}


def is_up(task):
    return task.phase == "Running" and task.ready


def selected(selector, labels):
    return selector is None or all(labels.get(k) == v for k, v in selector.match_labels)


def share(bound, count):
    """Give a count; percentages round up."""
    return -(-int(bound[:-1]) * count // 100) if isinstance(bound, str) else bound


class Watcher:
    """Looks at a cluster before and after every step, and gathers ``faults``."""

    def __init__(self, cluster):
        self.settings = cluster.settings
        self.pdbs = cluster.disruption_budgets
        self.rules = cluster.settings.disruption.budgets
        self.log = []
        self.faults = []
        self.has_been_up = set()
        self.disturbed = set()

    def fault(self, *words):
        self.faults.append(" ".join(map(str, words)))

    def look(self, state):
        """Look at one instant: nobody is over capacity, and nobody who made way is back."""
        used = Counter()
        for _, task in pods_in(state).values():
            if task.node is not None and task.phase in HERE:
                used[task.node] += dict(task.spec.requests)["cpu"]
        for node in state.nodes:
            if used[node.name] > node.allocatable["cpu"]:
                self.fault("node", node.name, "holds", used[node.name])
        self.has_been_up |= {key for key, (_, t) in pods_in(state).items() if t.phase == "Running"}
        self._nobody_is_back(state)

    def _nobody_is_back(self, state):
        """While the one for whom it left still waits, and promises hold, no pod is at its origin again."""
        pods = pods_in(state)
        waits = {w.key for w in state.workloads if any(t.phase == "Pending" for t in w.tasks)}
        latest = {(g.key, g.task): g for g in self.log if g.cause == "reschedule"}
        for key, gone in latest.items():
            held = state.now <= gone.at + self.settings.nomination_timeout and key not in self.disturbed
            there = pods[key][1].phase in ("Bound", "Running") and pods[key][1].node == gone.origin
            if held and there and gone.beneficiary in waits:
                self.fault(*key, "is back on", gone.origin, "and", gone.beneficiary, "waits")

    def decided(self, state, plan):
        """Look at what a cycle evicts, on the state in which it decides."""
        triggers = {(s.workload, s.task): m.trigger for m in plan.moves for wave in m.waves for s in wave}
        pods = pods_in(state)
        new = []
        for step in plan.steps:
            if step.action != "evict":
                continue
            workload, task = pods[step.workload, step.task]
            if step.to is None:
                self.fault(step.task, "has no place to land")
            cpus = dict(task.spec.requests)["cpu"]
            start = max(workload.started_at or 0, task.started_at or 0)
            forced = triggers.get((step.workload, step.task)) == "drain"
            lost, labels = cpus * (state.now - start) // 1000, dict(task.spec.labels)
            new.append(Gone(state.now, step.workload, step.task, workload.queue, labels, step.cause, lost, forced,
                            step.beneficiary, step.node, step.to))  # fmt: skip
            self._spared(workload, task, step.cause)
        self._pod_disruption_budgets(pods, new)
        self.log += new
        for rule in self.rules:
            self._rule(rule, pods, new, state.now)

    def _spared(self, workload, task, cause):
        """Shields: who must not be moved at all, or not by the rescheduler."""
        opted_out = not workload.allow_preemption and cause == "reschedule"
        if workload.preemptible is False or workload.owner_kind in ("DaemonSet", "Pod") or opted_out:
            self.fault(workload.key, task.name, "must not be moved")

    def _pod_disruption_budgets(self, pods, new):
        """As the API server does: one eviction after the other, each on what the ones before have left."""
        for gone in new:
            if sum(self._in(b, gone.key, gone.labels) for b in self.pdbs) > 1:
                self.fault(gone.task, "is in several PodDisruptionBudgets")
        for budget in self.pdbs:
            mine = {k: t for k, (_, t) in pods.items() if self._in(budget, k[0], dict(t.spec.labels))}
            if budget.min_available is not None:
                least = share(budget.min_available, len(mine))
            else:
                least = len(mine) - share(budget.max_unavailable, len(mine))
            up = sum(map(is_up, mine.values()))
            for gone in new:
                task = mine.get((gone.key, gone.task))
                if task is None or task.phase == "Bound":
                    continue
                if up - is_up(task) < least and (is_up(task) or up < least):
                    self.fault(gone.task, "goes at", gone.at, "with", up, "up of", least, "for", budget.name)
                up -= is_up(task)

    @staticmethod
    def _in(budget, key, labels):
        return key.split("/")[0] == budget.namespace and selected(budget.selector, labels)

    def _rule(self, rule, pods, new, now):
        """Every window that ends now, the literal way; what is forced counts and is not refused."""
        if not self._in_force(rule, now):
            return
        fresh = [g for g in new if self._about(rule, g) and not (g.forced and g.cause not in (rule.causes or ()))]
        groups = [lambda _: True] if rule.each is None else [lambda k, w=w: k == w for w in {g.key for g in fresh}]
        for group in groups if fresh else ():
            since = now - rule.per if rule.per is not None else None
            window = [
                g for g in self.log
                if self._about(rule, g) and group(g.key) and self._in_force(rule, g.at)
                and (g.at > since if since is not None else self._same_window(rule, g.at, now))
            ]  # fmt: skip
            own = [g for g in fresh if group(g.key)]
            if rule.max_evictions is not None and own and len(window) > rule.max_evictions:
                self.fault("rule", rule.name, "at", now, "holds", len(window), "of", rule.max_evictions)
            most = (rule.max_lost or {}).get("cpu")
            if most is not None and own and sum(g.cpu_time for g in window) > most:
                self.fault("rule", rule.name, "at", now, "has lost", sum(g.cpu_time for g in window), "of", most)
            self._down(rule, pods, own, group)

    def _down(self, rule, pods, own, group):
        """How many of those that have ever been up are down once these have gone."""
        if rule.max_unavailable is None or not own:
            return
        gone = {(g.key, g.task) for g in own}
        mine = {
            key: t for key, (w, t) in pods.items()
            if key in self.has_been_up and group(key[0]) and selected(rule.selector, dict(t.spec.labels))
            and rule.queue in (None, w.queue) and rule.namespace in (None, w.namespace)
        }  # fmt: skip
        down = {key for key, t in mine.items() if not is_up(t)}
        if (gone & mine.keys()) - down and len(down | (gone & mine.keys())) > rule.max_unavailable:
            self.fault("rule", rule.name, "has", len(down), "down before", sorted(gone), "of", rule.max_unavailable)

    @staticmethod
    def _about(rule, gone):
        return (
            (rule.causes is None or gone.cause in rule.causes)
            and (rule.namespace is None or gone.key.split("/")[0] == rule.namespace)
            and (rule.queue is None or gone.queue == rule.queue)
            and selected(rule.selector, gone.labels)
        )

    @staticmethod
    def _in_force(rule, at):
        """Schedules here begin at one minute of every hour."""
        if rule.schedule is None:
            return True
        return (at // MINUTE - int(rule.schedule.split()[0])) % 60 < rule.duration // MINUTE

    @staticmethod
    def _same_window(rule, at, now):
        return rule.schedule is None or now - at < rule.duration

"""JobSets live on: pods succeed, fail for good, are evicted and go away, and what is left starts where there is room.

The controllers are played: a Job makes a pod for each index that is left, and a JobSet its Jobs in their order.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from tests.effort import tries
from tests.kubernetes.pods import node, observed, owner, pod, sealed

from tenure.playthrough import play

LABEL, VERSION = "jobset.sigs.k8s.io/replicatedjob-name", "jobset.x-k8s.io/v1alpha2"
INDEX, NEAR = "batch.kubernetes.io/job-completion-index", "alpha.jobset.sigs.k8s.io/exclusive-topology"
LIVES = tries(60, 2000)
QUIET = 8
"""Rounds after the last event in which all that waits has to start: Jobs that come later take two each."""


@dataclass
class PlayedJob:
    """A Job with a pod for each index: phases by index, those that are left, and how many it makes at a time."""

    name: str
    role: str
    parallelism: int
    completions: int
    succeeded: int = 0
    failed: list[int] = field(default_factory=list)
    phases: dict[int, str] = field(default_factory=dict)
    left: list[int] = field(default_factory=list)

    @property
    def has_ended(self):
        return not self.left and not self.active

    @property
    def active(self):
        return [index for index, phase in self.phases.items() if phase in ("Pending", "Running")]

    @property
    def is_ready(self):
        running = sum(phase == "Running" for phase in self.phases.values())
        return self.has_ended or running >= min(self.parallelism, len(self.left) + len(self.active))

    def act(self, *, leads):
        """Make the pods that are missing; where the first ``leads``, the others once that has a place."""
        for index in list(self.left):
            is_refused = leads and index != 0 and self.phases.get(0) == "Pending"
            if len(self.active) < self.parallelism and not is_refused and not (leads and index and 0 in self.left):
                self.left.remove(index)
                self.phases[index] = "Pending"

    def befall(self, dice, *, leads):
        """Let pods succeed, fail for good, get lost, and go away once they have ended."""
        for index, phase in list(self.phases.items()):
            chance = dice.random()
            if phase == "Running" and chance < 0.15:
                self.phases[index], self.succeeded = "Succeeded", self.succeeded + 1
            elif phase == "Running" and chance < 0.2 and not (leads and index == 0):
                self.phases[index] = "Failed"
                self.failed.append(index)
            elif phase == "Running" and chance < 0.25:
                self.lose(index)
            elif phase in ("Succeeded", "Failed") and chance < 0.4:
                del self.phases[index]

    def lose(self, index):
        """Let a pod be gone that has not ended; another will be made."""
        del self.phases[index]
        self.left = sorted([*self.left, index])


class PlayedJobSet:
    """A JobSet of random Jobs, its controller, and Tenure beside it."""

    def __init__(self, seed):
        self.dice = dice = random.Random(seed)
        self.order, self.leads = dice.choice(("AnyOrder", "InOrder", "Ready", "Complete")), dice.random() < 0.3
        self.shapes = [
            (f"r{n}", dice.randint(1, 2), dice.randint(1, 3), dice.choice((0, 0, 2))) for n in range(dice.randint(1, 3))
        ]
        self.made = {}

    def act(self):
        """Let controllers do what is to do."""
        before = None
        for role, replicas, parallelism, more in self.shapes:
            if role not in self.made and (before is None or self.may_follow(self.made[before])):
                count = parallelism + more
                self.made[role] = [
                    PlayedJob(f"s-{role}-{n}", role, parallelism, count, left=list(range(count)))
                    for n in range(replicas)
                ]
            if role not in self.made:
                break
            before = role
        for job in self.jobs:
            job.act(leads=self.leads)

    def may_follow(self, jobs):
        """Whether the Jobs after some may be made."""
        if self.order == "Complete":
            return all(job.has_ended for job in jobs)
        return self.order == "AnyOrder" or all(job.is_ready for job in jobs)

    @property
    def jobs(self):
        return [job for made in self.made.values() for job in made]

    def objects(self):
        """Give the objects that there are."""
        listed = []
        for number, (role, replicas, parallelism, more) in enumerate(self.shapes):
            after = self.order in ("Ready", "Complete") and number
            listed.append({
                "name": role, "replicas": replicas,
                "template": {"spec": {"parallelism": parallelism, "completions": parallelism + more}},
                **({"dependsOn": [{"name": self.shapes[number - 1][0], "status": self.order}]} if after else {}),
            })  # fmt: skip
        order = "InOrder" if self.order == "InOrder" else "AnyOrder"
        status = [{"name": r, "succeeded": sum(job.has_ended for job in jobs)} for r, jobs in self.made.items()]
        said = {
            "spec": {"replicatedJobs": listed, "startupPolicy": {"startupPolicyOrder": order}},
            "status": {"replicatedJobsStatus": status},
            "metadata": {"annotations": {NEAR: "example.com/rack"} if self.leads else {}},
        }
        jobs = [
            owner(job.name, "JobSet", "s", VERSION,
                  spec={"parallelism": job.parallelism, "completions": job.completions},
                  status={"succeeded": job.succeeded, "failedIndexes": ",".join(map(str, sorted(job.failed)))})
            for job in self.jobs
        ]  # fmt: skip
        return {"jobsets.jobset.x-k8s.io": [owner("s", **said)], "jobs": jobs}

    def schedule(self):
        """Let Tenure decide, with room for all; gives whether what runs is stale."""
        by_name = {f"{job.name}-{index}": (job, index) for job in self.jobs for index in job.phases}
        seal = sealed(queue="default", started="2026-11-20T09:00:00Z")
        pods = [
            pod(
                name, owner=("Job", job.name, "batch/v1"), labels={LABEL: job.role, INDEX: str(index)},
                node=None if job.phases[index] == "Pending" else "n", phase=job.phases[index],
                **({"status": seal} if job.phases[index] == "Running" else {}),
            )
            for name, (job, index) in by_name.items()
        ]  # fmt: skip
        played = play(observed(node("n", "1000"), *pods, **self.objects()).cluster)
        for step in played.steps:
            assert step.action == "bind"
            job, index = by_name[step.task]
            job.phases[index] = "Running"
        return any(workload.stale_since is not None for workload in played.after.workloads)

    def befall(self):
        """Let something happen to pods; now and then all that run are evicted."""
        for job in self.jobs:
            job.befall(self.dice, leads=self.leads)
        if self.dice.random() < 0.15:
            for job in self.jobs:
                for index in job.active:
                    job.lose(index)


@pytest.mark.parametrize("seed", range(LIVES))
def test_what_is_left_of_a_job_set_starts_where_there_is_room(seed):
    """Whatever has happened, nothing of it waits for what does not come, and nothing that runs is stale."""
    played = PlayedJobSet(seed)
    for _ in range(played.dice.randint(1, 12)):
        played.act()
        played.schedule()
        played.befall()
    for _ in range(QUIET):
        played.act()
        is_stale = played.schedule()
    played.act()
    assert [f"{job.name}-{n}" for job in played.jobs for n, phase in job.phases.items() if phase == "Pending"] == []
    assert not is_stale

"""What a generated workload looks like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DEFAULT_JOBS = 1000
DEFAULT_LOAD = 0.8
DEFAULT_CAPACITY = 64

MAX_JOBS = 10_000_000
MAX_DAYS = 36_500
MIN_LOAD = 0.001
MAX_LOAD = 100
MAX_CAPACITY = 1_000_000
MAX_QUEUES = 10_000
MAX_USERS = 10_000


class TooManyJobsError(ValueError):
    """Days, load and capacity ask for more jobs than the generator makes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorConfig:
    """Size and shape of a workload. Of ``jobs``, ``days`` and ``load`` no more than two are given.

    ``capacity`` is in GPUs or processors, as ``unit`` says; ``node_size`` is how many of them a node has, and the
    most that one pod asks for. ``load`` is the offered load: work of all jobs divided by capacity and by the
    time between the first and the last arrival. ``shared`` is the share of one-GPU jobs that ask for a part of a GPU,
    ``saving`` the share of jobs that make checkpoints.
    """

    jobs: int | None = None
    days: float | None = None
    load: float | None = None
    capacity: int = DEFAULT_CAPACITY
    unit: Literal["gpu", "cpu"] = "gpu"
    node_size: int = 8
    queues: int = 3
    users: int = 8
    shared: float = 0.25
    saving: float = 0.5

    def problems(self) -> list[str]:
        """Say what is wrong with the values, one sentence each."""
        checks = (
            (1 <= self.capacity <= MAX_CAPACITY, f"capacity {self.capacity} is not between 1 and {MAX_CAPACITY}"),
            (self.node_size >= 1, f"node size {self.node_size} is less than 1"),
            (self.jobs is None or 1 <= self.jobs <= MAX_JOBS, f"{self.jobs} jobs are not between 1 and {MAX_JOBS}"),
            (
                self.days is None or 0 < self.days <= MAX_DAYS,
                f"{self.days} days are not more than 0 and at most {MAX_DAYS}",
            ),
            (
                self.load is None or MIN_LOAD <= self.load <= MAX_LOAD,
                f"load {self.load} is not between {MIN_LOAD} and {MAX_LOAD}",
            ),
            (1 <= self.queues <= MAX_QUEUES, f"{self.queues} queues are not between 1 and {MAX_QUEUES}"),
            (1 <= self.users <= MAX_USERS, f"{self.users} users are not between 1 and {MAX_USERS}"),
            (0 <= self.shared <= 1, f"share {self.shared} of shared GPUs is not between 0 and 1"),
            (0 <= self.saving <= 1, f"share {self.saving} of checkpointing jobs is not between 0 and 1"),
            (None in (self.jobs, self.days, self.load), "jobs, days and load are all given: any two decide the third"),
        )
        return [message for holds, message in checks if not holds]

"""Gangs of which each task takes a node, as in a load of many jobs: causes add up on them as well.

Such states have larger gangs and more that grows than the clusters that `adding_up` draws.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.properties.adding_up import GPU, HALF, MINUTE, NOW, forbidden, played

from tenure.model.cluster import Cluster
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.settings import Settings
from tenure.model.workload import Checkpoint, Phase, Task, TaskSpec, Workload

SAVES = Checkpoint(interval=10 * MINUTE, restart_overhead=MINUTE)


def gangs(table, *, guaranteed, priorities, free, **settings):
    """A cluster of a table: name, queue, priority, core, tasks, and minutes since it runs (with a +) or waits.

    Then its expected run time (minutes), whether it makes checkpoints (``saves``), and whether it asked to be spared
    (``stays``).
    Of the queues a, b and c is given what they are guaranteed (milli-GPU).
    """
    nodes, workloads = [], []
    for row in table.strip().splitlines():
        name, leaf, priority, core, tasks, minutes, *more = row.split()
        since, members = NOW - int(minutes.strip("+")) * MINUTE - HALF, []
        for number in range(int(tasks)):
            task = Task(name=f"{name}-{number}", spec=TaskSpec(requests=((GPU, 1),)))
            if "+" in minutes:
                nodes.append(Node(name=f"n{len(nodes):03}", allocatable={GPU: 1}))
                where = nodes[-1].name
                task = replace(task, phase=Phase.RUNNING, node=where, devices=(0,), started_at=since)
            members.append(task)
        workloads.append(
            Workload(
                name=name,
                queue=leaf,
                priority=int(priority),
                min_member=int(core),
                tasks=tuple(members),
                created_at=since,
                started_at=since if "+" in minutes else None,
                allow_preemption="stays" not in more,
                checkpoint=SAVES if "saves" in more else None,
                expected_runtime=next((int(m) * MINUTE for m in more if m.isdigit()), None),
            )
        )
    nodes += [Node(name=f"f{n:03}", allocatable={GPU: 1}) for n in range(free)]
    queues = tuple(
        Queue(name=name, guaranteed={GPU: floor}, priority=priority)
        for name, floor, priority in zip("abc", guaranteed, priorities, strict=True)
    )
    return Cluster(
        now=NOW, settings=Settings(**settings), nodes=tuple(nodes), queues=queues, workloads=tuple(workloads)
    )


BROKEN_ONCE = {
    "only four further steps of what grows were looked at": gangs(
        """
            j165 b 0 6 6 1183
            j205 a 0 11 11 393+ 30
            j221 a 0 1 9 101
            j233 b 0 1 3 1+
            j235 b 50 1 1 0
        """,
        guaranteed=[10750, 3875, 0],
        priorities=[50, 100, 50],
        free=0,
        actions=("allocate", "reclaim", "preempt", "requeue"),
    ),
    "what another that waits takes first was not looked at": gangs(
        """
            j155 c 0 32 32 2099
            j179 b 0 2 8 71+ 30 saves
            j185 a 50 16 16 6+ 5
            j187 a 0 2 2 55
            j188 b 0 3 4 38+ 100
            j194 a 0 1 1 0+
            j195 c 0 4 4 0
        """,
        guaranteed=[17000, 9000, 6000],
        priorities=[100, 50, 100],
        free=1,
        actions=("allocate", "reclaim", "requeue"),
    ),
    "a victim that loses more in a cycle was believed to ask in it": gangs(
        """
            j77 a 0 128 128 4376
            j220 a 0 64 64 232+ stays
            j268 a 50 16 16 343+ 5
            j273 a 0 16 16 336 30 saves
            j274 b 50 11 11 336+ 5 saves stays
            j281 a 0 1 2 13+ saves
            j284 b 50 4 4 274+ saves
            j285 a 0 14 16 196 30 saves
            j302 a 0 1 1 10+ saves
            j304 a 0 8 8 8+ saves stays
            j307 c 50 32 32 3 100 saves
            j308 c 50 2 16 2 5 saves
            j309 b 50 32 32 2 100 saves stays
        """,
        guaranteed=[69750, 34875, 23250],
        priorities=[100, 100, 50],
        free=0,
        actions=("allocate", "reclaim", "preempt", "requeue"),
        preempt_min_runtime=300000000,
    ),
    "what grows would take the contender one cycle later": gangs(
        """
            j165 b 0 30 32 1183
            j201 a 0 2 32 433 100
            j205 a 50 32 32 393+ 30
            j208 c 0 53 64 194
            j209 a 0 8 8 1+ 5
            j230 a 100 32 32 67+ 100
            j233 b 50 6 6 1+ 5
            j235 b 50 16 16 0
        """,
        guaranteed=[69750, 34875, 23250],
        priorities=[50, 100, 50],
        free=34,
        actions=("allocate", "reclaim", "preempt", "requeue"),
    ),
    "tasks of one workload that are alike used up what requeue was believed to try": gangs(
        """
            j34 a 0 1 64 218+ 100 saves stays
            j41 a 0 128 128 701
            j43 b 0 5 32 563
            j46 b 0 128 128 558 saves
            j49 b 50 32 32 168+ saves
            j50 a 0 16 16 143+ saves
            j53 c 0 19 32 145 30 stays
            j56 a 0 4 4 143+ saves
            j69 a 50 1 1 0+ saves
            j70 a 50 9 32 0 30 saves
        """,
        guaranteed=[69750, 34875, 23250],
        priorities=[100, 50, 100],
        free=7,
        requeue_delay=0,
    ),
}
"""States on which a plan broke it, by what was wrong."""


@pytest.mark.parametrize("wrong", BROKEN_ONCE)
def test_they_add_up(wrong):
    """On a cluster that does not change nothing is evicted that somebody was evicted for, or for a victim unsaid."""
    assert forbidden(played(BROKEN_ONCE[wrong], 20)) == []

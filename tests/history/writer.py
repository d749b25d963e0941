"""A process that writes records until it is done or killed: python -m tests.history.writer ADDRESS."""

from __future__ import annotations

import sys

from tenure.history import open_history
from tenure.history.record import Draft, Origin, key_of, payload_of

MINUTE = 60_000_000
NOVEMBER = 1_793_491_200_000_000
HERE = Origin("here", "gpu")


def written():
    """Give what it writes: evictions and usage, in the order of time."""
    found = []
    for number in range(1500):
        at = NOVEMBER + number * MINUTE
        payload = payload_of(task="t", lost={"cpu": MINUTE})
        found.append(Draft(at, "evicted", f"team/job-{number}", "a", "reclaim", "team/other", 50, payload,
                           key=key_of(number, "e")))  # fmt: skip
        payload = payload_of(until=at + MINUTE, held={"cpu": 1000 * MINUTE}, within={}, level={"cpu": [1000, 0]})
        found.append(Draft(at, "usage", queue="a", value=MINUTE, payload=payload, key=key_of(number, "u")))
    return found


if __name__ == "__main__":
    with open_history(sys.argv[1], write=True) as store:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        drafts = written()
        for begin in range(0, len(drafts), 30):
            store.append(HERE, drafts[begin : begin + 30])

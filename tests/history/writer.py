"""A process that writes records until it is done or killed: ADDRESS."""

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


def life_of(number):
    """Give the records of one job out of a row of them, half an hour after the one before: it is evicted, and ends."""
    at = NOVEMBER + 30 * number * MINUTE
    name, key = f"team/job-{number}", lambda kind: key_of(number, kind)
    who = {"user": ("ada", "ben")[number % 2], "forUser": "ada"}
    lost = {"cpu": 500 * MINUTE}
    level = {"cpu": [1000, 0]}
    held = payload_of(until=at + 30 * MINUTE, held={"cpu": 30_000 * MINUTE}, within={}, level=level)
    room = payload_of(until=at + 30 * MINUTE, held={}, within={}, capacity={"cpu": 60_000 * MINUTE},
                      level={"cpu": [0, 0, 2000]})  # fmt: skip
    return [
        Draft(at, "usage", queue="a", value=30 * MINUTE, payload=held, key=key("u")),
        Draft(at, "usage", queue="", value=30 * MINUTE, payload=room, key=key("c")),
        Draft(at, "started", name, "a", value=MINUTE, payload=payload_of(tasks=[], user=who["user"]), key=key("s")),
        Draft(at + MINUTE, "evicted", name, "a", "reclaim", "team/other", 50,
              payload_of(task="t", lost=lost, held=lost, forQueue="b", **who), key=key("e")),
        Draft(at + 2 * MINUTE, "ended", name, "a", value=MINUTE, key=key("d"),
              payload=payload_of(state="finished", held={"cpu": 29_500 * MINUTE}, user=who["user"])),
    ]  # fmt: skip


def main() -> None:
    """Write them, thirty at a time, once it was said that this begins."""
    with open_history(sys.argv[1], write=True) as store:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        drafts = written()
        for begin in range(0, len(drafts), 30):
            store.append(HERE, drafts[begin : begin + 30])

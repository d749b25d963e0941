"""Teams that keep a scheduler busy with all it does, round by round, and what must hold meanwhile."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime

from tests.kubernetes.hostile import LiveTenant
from tests.kubernetes.invariants import History
from tests.kubernetes.running import JOBS, PODS, SETS, TENURE, bound, clear, gang, job, pods_of, queue
from tests.kubernetes.stage import pause_after, wait_until

WATCHED = {
    "nodes": "/api/v1/nodes",
    "queues": f"{TENURE}/queues",
    "pods": PODS,
    "configmaps": "/api/v1/namespaces/tenure-system/configmaps",
}
SEAT, TOKEN = "example.com/seat", "example.com/token"
CREATED = 201
BESIEGED = os.environ.get("TENURE_TENANT") == "hostile"
PATIENCE, LIVES = 300, 60
MOST, WINDOW = 4, 8
"""So many pods of team-a may be evicted within so many seconds."""


class Teams:
    """Who wants what: one queue is owed what another holds, two take turns, and one's quota is lowered and raised.

    ``besieged``: a tenant writes hostile objects all the time.
    """

    def __init__(self, plane, *, besieged=BESIEGED):
        self.plane = plane
        self.since = datetime.now(UTC).isoformat()
        self.client = client = plane.client()
        for number in range(2):
            plane.add_node(f"node-{number}", {"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "4"})
        plane.add_node("node-2", {"cpu": "16", "memory": "64Gi", SEAT: "1", TOKEN: "2"})
        settings = {"requeueDelay": "6s", "requeue": {"contenders": "any"}, "quotaPreemption": {"enabled": True}}
        for kind, name, spec in (
            ("NodePool", "default", {"scheduler": settings}),
            ("DisruptionBudget", "few", {"queue": "team-a", "maxEvictions": MOST, "per": f"{WINDOW}s"}),
        ):
            body = {"apiVersion": "tenure.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
            client.create(f"{TENURE}/{kind.lower()}s", body)
        for name in ("team-a", "team-b"):
            client.create(f"{TENURE}/queues", queue(name, guaranteed={"nvidia.com/gpu": 4}))
        client.create(f"{TENURE}/queues", queue("shared", expectedRuntime="1s"))
        client.create(f"{TENURE}/queues", queue("metered", max={TOKEN: 2}, quotaPreemptionDelay="3s"))
        self.rounds = 0
        self.lives = lambda: 0
        self.tenant = LiveTenant(plane).start() if besieged else None

    def ask(self):
        """Let those who hold everything ask for it."""
        for name in ("a-first", "a-second"):
            self.client.create(SETS, gang(name, "team-a", 4))
        for name in ("turn-1", "turn-2"):
            self.client.create(SETS, gang(name, "shared", 1, resource=SEAT))
        metered = gang("metered", "metered", 2, resource=TOKEN)
        metered["spec"]["template"]["metadata"]["annotations"]["tenure.dev/min-member"] = "1"
        self.client.create(SETS, metered)

    def runs(self, name, pods):
        """Wait until so many pods of a workload are bound.

        Whoever is killed within every few writes gets a plan done in some of its lives only: on a machine that does
        other things as well there are few of them in the time. So it has both: seconds, and lives.
        """
        began, lived = time.monotonic(), self.lives()
        while bound(self.client, name) != pods:
            seconds, lives = time.monotonic() - began, self.lives() - lived
            assert seconds < PATIENCE or (0 < lives < LIVES), (
                f"{name} does not run with {pods}: {seconds:.0f} s, {lives} lives"
            )
            time.sleep(pause_after(seconds))

    def quota(self, tokens):
        """Change a quota."""
        self.client.patch(f"{TENURE}/queues/metered", {"spec": {"max": {TOKEN: tokens}}})

    def everything_runs(self):
        """Wait until all that there is room for runs."""
        for name in ("a-first", "a-second"):
            self.runs(name, 4)
        self.runs("metered", 2)

    def round(self):
        """Let one queue be owed what another holds, and a quota be lowered; then all is as before."""
        self.disturb()
        self.settle()

    def disturb(self):
        """Begin a round."""
        self.everything_runs()
        self.seat = self.seated()
        self.client.create(JOBS, job(f"b-{self.rounds}", "team-b", 4))
        self.quota(1)

    def settle(self):
        """Wait until everybody has what they are owed, and let it end."""
        owed = f"b-{self.rounds}"
        self.runs(owed, 4)
        back = lambda: [len(pods_of(self.client, name)) for name in ("a-first", "a-second")] == [4, 4]  # noqa: E731
        wait_until(back, "nobody comes back", 60)
        assert bound(self.client, "a-first") + bound(self.client, "a-second") == 4
        self.runs("metered", 1)
        self.quota(2)
        wait_until(lambda: self.seated() - self.seat, "nobody else has had a turn", 120)
        self.client.delete(f"{JOBS}/{owed}", {"propagationPolicy": "Background"})
        self.rounds += 1

    def seated(self):
        """Give who has the only seat."""
        found = (p for name in ("turn-1", "turn-2") for p in pods_of(self.client, name))
        return {p["metadata"]["uid"] for p in found if p["spec"].get("nodeName")}

    def end(self):
        """Wait until the same runs as ever, when nobody asks for more."""
        if self.tenant is not None:
            self.tenant.stop()
            assert self.tenant.written, "the hostile tenant never wrote anything"
        self.everything_runs()
        wait_until(lambda: sum(bound(self.client, n) for n in ("turn-1", "turn-2")) == 1, "nobody has the turn", 60)

    def go(self):
        """Leave the cluster as it was."""
        clear(self.client)

    def checked(self, witness, by_hand=()):
        """Give what a witness of `WATCHED` saw; nothing of it may have been wrong.

        ``by_hand``: names of pods that somebody deleted before they were evicted.
        """
        history = History.of(witness.changes(), witness.gaps)
        history.check_budget("team-a", MOST, WINDOW)
        assert not history.wrong, history.wrong
        alive = {pod["metadata"]["name"] for pod in history.pods.values()}
        unrecorded = self.tried() - alive - set(by_hand) - {entry.task for entry in history.entries()}
        assert not unrecorded, unrecorded
        return history

    def tried(self):
        """Give the names of pods whose eviction the API server granted so far, without effect or with it."""
        return {
            event["objectRef"]["name"]
            for event in self.plane.audit("system:serviceaccount:tenure-system:tenure")
            if event["requestReceivedTimestamp"] > self.since
            and event.get("objectRef", {}).get("subresource") == "eviction"
            and event["objectRef"]["namespace"] == "default"
            and event["responseStatus"]["code"] == CREATED
        }

"""What has to hold at every moment of a cluster's life, whatever happens to the scheduler: told of what was witnessed.

Nothing of Tenure is used but the names of annotations and the reader of its log.
"""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import datetime
from fractions import Fraction

from tenure.clusters.kubernetes import keys
from tenure.clusters.kubernetes.read import eviction_log

SUFFIXES = {"": 1, "m": Fraction(1, 1000), "Ki": 1024, "Mi": 1024**2, "Gi": 1024**3}
_PAGE = "tenure-evictions-"


class History:
    """The cluster at one moment, what was wrong until then, and by uid the record of each pod that was evicted."""

    def __init__(self):
        self.wrong = []
        self.blind = False
        self.pods = {}
        self.nodes = {}
        self.queues = {}
        self.deadlines = {}
        self.pages = {}
        self.evicted = {}
        self.notes = {}
        self.cooling = {}

    @classmethod
    def of(cls, changes, gaps=()):
        """Go through all that was seen of ``pods``, ``nodes``, ``queues`` and the scheduler's ``configmaps``.

        In ``gaps`` (first and last version) not everything was seen: what is judged by the order of things is not then.
        """
        history = cls()
        for change in changes:
            history.blind = any(first < change.version <= last for first, last in gaps)
            history.take(change)
        return history

    def take(self, change):
        """Take the next change, and look at what it may not do."""
        meta = change.item["metadata"]
        if change.kind == "nodes":
            self.nodes[meta["name"]] = change.item
        elif change.kind == "pods":
            self.check_pod(self.pods.get(meta["uid"]), change.item)
            self.pods[meta["uid"]] = change.item
            if change.gone:
                del self.pods[meta["uid"]]
        elif change.kind == "queues":
            self.check_queue(self.queues.get(meta["uid"]), change.item)
            self.queues[meta["uid"]] = change.item
        elif change.kind == "configmaps" and meta["name"].startswith(_PAGE):
            self.check_page(meta["name"], [] if change.gone else entries_of(change.item))

    # -- pods -------------------------------------------------------------------------------------------------------

    def check_pod(self, before, pod):
        """A pod is bound once, with its start, within what its node has; it goes on record, for who has a promise."""
        name, place = pod["metadata"]["name"], pod["spec"].get("nodeName")
        was = before["spec"].get("nodeName") if before else None
        if was and was != place:
            self.wrong.append(f"{name} was bound to {was}, and then to {place}")
        if place and not was and is_ours(pod) and not said(pod, keys.STARTED):
            self.wrong.append(f"{name} was bound, and nobody knows when it started")
        if was and said(before, keys.STARTED) != said(pod, keys.STARTED):
            self.wrong.append(f"{name} started {said(before, keys.STARTED)}, and then {said(pod, keys.STARTED)}")
        if self.blind:
            return
        if place and not was:
            self.check_room(pod, place)
        if before and is_going(pod) and not is_going(before) and said(pod, keys.EVICTION) and is_granted(pod):
            self.check_eviction(pod)
        if before and nominated_to(before) and not nominated_to(pod) and not place and not is_going(pod):
            self.check_lost_promise(pod)

    def check_room(self, pod, place):
        """Look at what a node has to give, with all that is there."""
        there = [p for p in self.pods.values() if p["spec"].get("nodeName") == place and holds(p)]
        has = self.nodes[place]["status"]["allocatable"]
        asked = defaultdict(Fraction)
        for other in [*(p for p in there if p["metadata"]["uid"] != pod["metadata"]["uid"]), pod]:
            for resource, amount in requests(other).items():
                asked[resource] += amount
        for resource, amount in asked.items():
            if amount > quantity(has.get(resource, "0")):
                self.wrong.append(f"{place} has {has.get(resource)} of {resource}, and {float(amount)} are bound there")

    def check_eviction(self, pod):
        """Whoever goes is on record, after its cooldown and its deadline, for who was promised its place."""
        meta, note = pod["metadata"], said(pod, keys.EVICTION)
        told = json.loads(note)
        found = [e for e in self.entries() if e.uid == meta["uid"]]
        if not any((e.cause, e.beneficiary) == (told["cause"], told.get("for")) for e in found):
            self.wrong.append(f"{meta['name']} was evicted ({note}) without a record; the log has {found}")
            return
        entry = next(e for e in reversed(found) if e.cause == told["cause"])
        self.evicted[meta["uid"]] = entry
        self.notes[meta["uid"]] = note
        at = seconds(told["at"])
        if told["cause"] == "requeue":
            until = max((seconds(e.not_before) for e in self.happened(entry) if e.not_before), default=0)
            if at < until:
                self.wrong.append(f"{meta['name']} was requeued {until - at:g} s before its cooldown was over")
            if not entry.not_before:
                self.wrong.append(f"{meta['name']} was requeued without a cooldown")
        if told["cause"] == "quota":
            deadline = self.deadlines.get(entry.queue)
            if deadline is None or at < seconds(deadline):
                self.wrong.append(f"{meta['name']} went for a quota at {told['at']}, with the deadline {deadline}")
        if told.get("for"):
            waiting = [p for p in self.pods.values() if workload_of(p) == told["for"]]
            if not any(meta["uid"] in needs(p) or p["spec"].get("nodeName") for p in waiting):
                self.wrong.append(f"{meta['name']} was evicted for {told['for']}, which was promised nothing for that")

    def happened(self, entry):
        """Give earlier evictions of the same workload that were made."""
        return [e for uid, e in self.evicted.items() if uid != entry.uid and e.workload_uid == entry.workload_uid]

    def check_lost_promise(self, pod):
        """A promise for which somebody went already is not taken back."""
        whom = workload_of(pod)
        since = max((seconds(e.at) for e in self.evicted.values() if e.beneficiary == whom), default=0)
        if since and any(e.beneficiary == whom and uid in self.pods for uid, e in self.evicted.items()):
            self.wrong.append(f"{pod['metadata']['name']} lost its promise, for which somebody is on the way out")

    # -- the scheduler's own ----------------------------------------------------------------------------------------

    def entries(self):
        """Give the log as it is now."""
        return [entry for page in self.pages.values() for entry in page]

    def check_page(self, name, entries):
        """What was evicted stays on record."""
        missing = {e.uid for e in self.pages.get(name, ())} - {e.uid for e in entries}
        for uid in missing & set(self.evicted):
            self.wrong.append(f"the record of the eviction of {self.evicted[uid].task} is lost")
        self.pages[name] = entries

    def check_queue(self, before, queue):
        """An armed deadline stays until what it is for is settled."""
        name = queue["metadata"]["name"]
        was, now = armed(before), armed(queue)
        if now:
            self.deadlines[name] = now
        if self.blind:
            return
        if was and now and was != now and before["spec"] == queue["spec"]:
            self.wrong.append(f"the deadline of {name} was {was}, and then {now}")
        if was and not now:
            for resource, most in queue["spec"].get("max", {}).items():
                held = sum(
                    requests(p).get(resource, 0)
                    for p in self.pods.values()
                    if queue_of(p) == name and p["spec"].get("nodeName") and holds(p) and not is_going(p)
                )
                if held > quantity(most):
                    self.wrong.append(f"the deadline of {name} was lost: it holds {float(held)} of {resource}")

    def check_budget(self, queue, most, window):
        """No more went within any window than the budget allows."""
        times = sorted(seconds(e.at) for e in self.evicted.values() if e.queue == queue)
        for first, last in zip(times, times[most:], strict=False):
            if last - first < window:
                self.wrong.append(f"{most + 1} of {queue} went within {last - first:g} s; {most} in {window:g} s may")


def entries_of(config_map):
    """Give the entries of a page of the log."""
    return eviction_log.parse((config_map.get("data") or {}).get(eviction_log.DATA, ""))[0]


def said(pod, key):
    """Give an annotation."""
    return (pod["metadata"].get("annotations") or {}).get(key)


def needs(pod):
    """Give who has to go for the promise that a pod has."""
    note = said(pod, keys.NOMINATION)
    return json.loads(note).get("needs", ()) if note else ()


def nominated_to(pod):
    """Give the node that a pod was promised."""
    return pod["status"].get("nominatedNodeName")


def is_going(pod):
    """Whether a pod is to go."""
    return "deletionTimestamp" in pod["metadata"]


def is_granted(pod):
    """Whether the API server granted an eviction of a pod: then its own reason stands there, or Tenure's once more.

    A pod that was marked for an eviction that never came, and went by itself, says so in other words.
    """
    conditions = pod["status"].get("conditions") or ()
    found = next((c for c in conditions if c["type"] == "DisruptionTarget" and c["status"] == "True"), None)
    return found is not None and (
        found["reason"] == "EvictionByEvictionAPI" or found["message"].startswith("tenure: evicted")
    )


def holds(pod):
    """Whether a pod holds what it asked for."""
    return pod["status"].get("phase") not in ("Succeeded", "Failed")


def is_ours(pod):
    """Whether a pod is Tenure's to bind."""
    return pod["spec"].get("schedulerName") == "tenure"


def queue_of(pod):
    """Give the queue of a pod."""
    return (pod["metadata"].get("labels") or {}).get("tenure.dev/queue")


def workload_of(pod):
    """Give the workload of a pod, as the log names it."""
    owner = next((o["name"] for o in pod["metadata"].get("ownerReferences", ()) if o.get("controller")), "")
    return f"{pod['metadata']['namespace']}/{owner or pod['metadata']['name']}"


def armed(queue):
    """Give the deadline of a queue."""
    return ((queue or {}).get("status", {}).get("quotaPreemption") or {}).get("deadline")


def requests(pod):
    """Give what a pod asks for."""
    asked = defaultdict(Fraction)
    for container in pod["spec"]["containers"]:
        for resource, amount in (container.get("resources", {}).get("requests") or {}).items():
            asked[resource] += quantity(amount)
    return asked


def quantity(text):
    """Read a quantity."""
    digits = str(text).rstrip("KMGim")
    return Fraction(digits) * SUFFIXES[str(text)[len(digits) :]]


def seconds(text):
    """Read a time."""
    return datetime.fromisoformat(text).timestamp()

"""A cluster's GPUs and what was said of its workloads, drawn in the terminal as it changes."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from typing import Any

GPU = "nvidia.com/gpu"
_COLOURS = (32, 36, 33, 35, 34, 31, 92, 96)
_TOLD = {
    "Started", "Evicted", "Promised", "Nominated", "Requeued", "Moved", "WouldEvict", "Waiting", "FailedScheduling",
}  # fmt: skip
_EVENTS = 8
_LOOK_SECONDS = 0.3


class View:
    """Looks at a namespace through a client of the API server, and draws it whenever it has changed.

    On a terminal the picture is redrawn in place; elsewhere each change is printed below the last.
    """

    def __init__(self, client: Any, namespace: str, goes_on: Callable[[], bool] = lambda: True) -> None:
        self._client = client
        self._goes_on = goes_on
        self._namespace = namespace
        self._is_terminal = sys.stdout.isatty()
        self._told: list[str] = []
        self._seen: set[str] = set()
        self._colours: dict[str, int] = {}
        self._drawn: list[str] = []
        self._begun = time.monotonic()

    def title(self, text: str, *lines: str) -> None:
        """Begin a scene."""
        self._drawn = []
        print(f"\n\033[1m{text}\033[0m", flush=True)
        for line in lines:
            print(f"  {line}")
        print()
        self._told.clear()
        self._begun = time.monotonic()

    def watch(self, until: Callable[[list[dict[str, Any]]], bool], seconds: float) -> bool:
        """Draw until the pods are as wanted; False where they were not in time."""
        deadline = time.monotonic() + seconds
        while True:
            pods = self.pods()
            self._draw(pods)
            if until(pods):
                return True
            if time.monotonic() > deadline or not self._goes_on():
                return False
            time.sleep(_LOOK_SECONDS)

    def linger(self, seconds: float) -> None:
        """Draw for a while."""
        self.watch(lambda _: False, seconds)

    def pods(self) -> list[dict[str, Any]]:
        """Give the pods that hold room or want some."""
        items: list[dict[str, Any]] = self._client.get(f"/api/v1/namespaces/{self._namespace}/pods")["items"]
        return [pod for pod in items if pod["status"]["phase"] not in ("Succeeded", "Failed")]

    def _draw(self, pods: list[dict[str, Any]]) -> None:
        lines = [*self._nodes(pods), *self._waiting(pods)]
        fresh = self._events()
        if self._is_terminal:
            shown = [*lines, "", *self._told[-_EVENTS:]]
            if shown == self._drawn:
                return
            if self._drawn:
                print(f"\033[{len(self._drawn)}A\033[J", end="")
            width = shutil.get_terminal_size().columns
            print("\n".join(_cut(line, width) for line in shown), flush=True)
            self._drawn = shown
        elif lines != self._drawn or fresh:
            print("\n".join([f"  {self._seconds()} s", *lines, *fresh]), flush=True)
            self._drawn = lines

    def _nodes(self, pods: list[dict[str, Any]]) -> list[str]:
        lines = []
        for node in sorted(self._client.get("/api/v1/nodes")["items"], key=lambda node: str(node["metadata"]["name"])):
            name = node["metadata"]["name"]
            here = (pod for pod in pods if pod["spec"].get("nodeName") == name)
            there = sorted(here, key=lambda pod: str(pod["metadata"]["name"]))
            bar = "".join(self._block(pod) for pod in there)
            free = int(node["status"]["allocatable"][GPU]) - sum(map(_gpus, there))
            lines.append(f"  {name}  {bar}{'·' * free}  {self._legend(there)}")
        return lines

    def _waiting(self, pods: list[dict[str, Any]]) -> list[str]:
        waiting: dict[str, list[dict[str, Any]]] = {}
        for pod in pods:
            if not pod["spec"].get("nodeName"):
                waiting.setdefault(_workload(pod), []).append(pod)
        if not waiting:
            return ["  waits   nobody"]
        return [f"  waits   {self._paint(name, name)}{_why(members)}" for name, members in sorted(waiting.items())]

    def _block(self, pod: dict[str, Any]) -> str:
        leaves = "deletionTimestamp" in pod["metadata"]
        return self._paint(_workload(pod), ("░" if leaves else "█") * _gpus(pod))

    def _legend(self, pods: list[dict[str, Any]]) -> str:
        names = dict.fromkeys(map(_workload, pods))
        return ", ".join(self._paint(name, name) for name in names)

    def _paint(self, name: str, text: str) -> str:
        colour = self._colours.setdefault(name, _COLOURS[len(self._colours) % len(_COLOURS)])
        return f"\033[{colour}m{text}\033[0m" if self._is_terminal else text

    def _events(self) -> list[str]:
        """Give what Tenure has said since the last look."""
        fresh = []
        listed = self._client.get(f"/apis/events.k8s.io/v1/namespaces/{self._namespace}/events")["items"]
        own = [e for e in listed if e.get("reportingController", "").startswith("tenure") and e["reason"] in _TOLD]
        for event in sorted(own, key=lambda e: str(e["eventTime"])):
            line = f"  {event['reason']:>9}  {event['regarding']['name']}: {event.get('note', '')}"
            if event["metadata"]["name"] not in self._seen:
                self._seen.add(event["metadata"]["name"])
                fresh.append(line)
        self._told += fresh
        return fresh

    def _seconds(self) -> str:
        return f"{time.monotonic() - self._begun:.0f}"


def _workload(pod: dict[str, Any]) -> str:
    owners = pod["metadata"].get("ownerReferences") or [{"name": pod["metadata"]["name"]}]
    return str(owners[0]["name"])


def _gpus(pod: dict[str, Any]) -> int:
    return sum(int(c["resources"].get("requests", {}).get(GPU, 0)) for c in pod["spec"]["containers"])


def _why(pods: list[dict[str, Any]]) -> str:
    nominated = sorted({pod["status"].get("nominatedNodeName", "") for pod in pods} - {""})
    if nominated:
        return f": room on {', '.join(nominated)} is promised to it"
    conditions = [c for pod in pods for c in pod["status"].get("conditions", ()) if c["type"] == "PodScheduled"]
    said = [c["message"] for c in conditions if c["status"] == "False" and c.get("message")]
    return f": {said[0]}" if said else ""


def _cut(line: str, width: int) -> str:
    """Cut a line to the terminal's width; colours take no room."""
    shown, at = 0, 0
    while at < len(line) and shown < width - 1:
        if line[at] == "\033":
            at = line.index("m", at)
        else:
            shown += 1
        at += 1
    return line[:at] + ("\033[0m" if "\033" in line else "")

"""What the controller of Jobs still knows of those that went.

The controller keeps by a Job's name which pods it awaits, for five minutes, and how often pods of it failed, for ten.
Where a Job goes while its pods are made, the next Job of its name gets no pods until then. The controller forgets both
when it looks for a Job that is not there, which it no longer does once the next one is.
"""

from __future__ import annotations

import http.client
from collections.abc import Callable, Sequence
from typing import Final

from tools.controlplane.client import ApiError, Client
from tools.controlplane.process import wait_for

_SUSPENDED: Final = {
    "suspend": True,
    "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]}},
}
"""A Job of which nothing comes."""

_SEEN_SECONDS: Final = 5.0
"""The controller says so within that; else it saw such a Job before it had forgotten the one that went."""

_SEEN_IN_ALL: Final = 120.0


def forget(client: Client, jobs: Sequence[str], remove: Callable[[list[str]], object]) -> None:
    """Wait until the controller has forgotten Jobs that went, ``namespace/name``, in namespaces that are there.

    Suspended Jobs of the same names are made: the controller says that they are suspended only once it awaits nothing
    by these names. They are removed, and one of another name is made: once the controller has seen that one, it has
    seen that the others went. ``remove`` takes out Jobs by their paths.

    Raises
    ------
    TimeoutError
        If the controllers do not go on.
    """
    if jobs:
        _see(client, jobs, remove)
        _see(client, ["default/seen-last"], remove)


def _see(client: Client, jobs: Sequence[str], remove: Callable[[list[str]], object]) -> None:
    """Make suspended Jobs until the controller says that they are, and remove them."""
    wait_for(lambda: _are_seen(client, jobs, remove), f"Jobs to be seen: {jobs}", _SEEN_IN_ALL)


def _are_seen(client: Client, jobs: Sequence[str], remove: Callable[[list[str]], object]) -> bool:
    made = [path for job in jobs if (path := _suspended(client, *job.split("/")))]
    try:
        wait_for(lambda: all("conditions" in client.get(path)["status"] for path in made), "Jobs", _SEEN_SECONDS)
    except TimeoutError:
        return False
    finally:
        remove(made)
    return True


def _suspended(client: Client, namespace: str, name: str) -> str:
    """Make a Job of which nothing comes, and give its path; nothing where there is no such namespace."""
    collection = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    try:
        client.create(collection, {"metadata": {"name": name}, "spec": _SUSPENDED})
    except ApiError as error:
        if error.status not in (http.client.NOT_FOUND, http.client.FORBIDDEN):
            raise
        return ""
    return f"{collection}/{name}"

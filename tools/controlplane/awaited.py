"""What the controller of Jobs still knows of those that went.

A Job that goes while its pods are made leaves behind that these are awaited, by its name, for five minutes, and one of
which pods went that new ones are put off: nothing would come of the next of that name. The controller forgets it when
it looks for a Job that is not there any more, at some time after the Job has gone, unless the next is there by then.
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
    """Wait until nothing is known of Jobs that went, ``namespace/name``, in namespaces that are there.

    Of suspended Jobs of the same names it is said that they are that only when nothing is under way or awaited by these
    names any more. Once they have gone, and what comes after them is seen, so is that they have gone. ``remove`` takes
    out, by their paths, Jobs that were made to learn it.

    Raises
    ------
    TimeoutError
        If the controllers do not go on.
    """
    if jobs:
        for names in (jobs, ["default/seen-last"]):
            wait_for(lambda: _are_seen(client, names, remove), f"Jobs to be seen: {names}", _SEEN_IN_ALL)  # noqa: B023


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

"""One control plane for many modules: what a module leaves is taken out before the next one has it."""

from __future__ import annotations

import http.client
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tools.controlplane.client import ApiError
from tools.controlplane.plane import ControlPlane, Options
from tools.controlplane.process import wait_for
from tools.controlplane.store import LeftError, Store

from tenure.clusters.kubernetes.install.installation import Installation

DEPLOYMENT = "/apis/apps/v1/namespaces/tenure-system/deployments/tenure"
"""What is installed to run Tenure. Nothing runs it here, and what never begins to run is told of ever again."""

SETTLED_SECONDS = 60.0

_POD = {
    "metadata": {"name": "tried"},
    "spec": {"schedulerName": "tenure", "containers": [{"name": "main", "image": "none"}]},
}


class SharedPlane:
    """The control plane of a worker, on which Tenure is installed; one is started where there is none that fits.

    What runs beside its API server is started and ended as a module asks; for each such set of programs there is a
    state that the store is put back to. ``folder`` gives a new folder for each control plane.
    """

    def __init__(self, folder: Callable[[], Path]) -> None:
        self._folder = folder
        self._plane: ControlPlane | None = None
        self._installed: Installation | None = None
        self._states: dict[Options, Store] = {}

    def take(self, options: Options, installation: Installation | None = None) -> ControlPlane:
        """Give a control plane with these options and the audit log, Tenure installed the ordinary way, or this one."""
        asked = replace(options, audit=True)
        if self._plane is not None and (self._plane.options.server, self._installed) != (asked.server, installation):
            self.close()  # policies that go and come again are not in effect
        try:
            plane = self._plane or self._start(asked.server, installation)
            if plane.options != asked:
                plane.run_beside(asked)
                self._take_state(plane)
        except BaseException:
            self.close()
            raise
        plane.forget_audit()
        return plane

    def _start(self, options: Options, installation: Installation | None) -> ControlPlane:
        """Start one with nothing beside the API server, and install Tenure on it."""
        self._plane = plane = ControlPlane(self._folder(), options)
        plane.start()
        plane.install_tenure(installation)
        plane.client().patch(DEPLOYMENT, {"spec": {"replicas": 0}})
        self._installed = installation
        self._take_state(plane)
        return plane

    def _take_state(self, plane: ControlPlane) -> None:
        """Have the store be put back to how it is with these programs, now and later."""
        if plane.options in self._states:
            plane.store = self._states[plane.options]
            plane.put_back()
            return
        if plane.options.controllers:
            wait_for(lambda: _is_seen(plane), "the controllers to see what is installed", SETTLED_SECONDS)
        plane.store = self._states[plane.options] = Store(plane.store.address)
        plane.store.keep()

    def give_back(self) -> None:
        """Put everything back; where that fails, or something does not run any more, nobody else has this one."""
        plane = self._plane
        assert plane is not None, "it was taken"
        try:
            if plane.runs:
                if plane.options.controllers:
                    wait_for(lambda: _takes_pods(plane), "the policies to be in effect", SETTLED_SECONDS)
                plane.put_back()
                return
            why = "not all of it runs"
        except (LeftError, ApiError, OSError) as error:
            why = str(error)
        warnings.warn(f"this control plane is used no more: {why}", stacklevel=2)
        self.close()

    def close(self) -> None:
        """End it."""
        if self._plane is not None:
            self._plane.stop()
            self._plane = None
            self._states.clear()


def _takes_pods(plane: ControlPlane) -> bool:
    """Tell whether policies are in effect: an API server that was started anew refuses pods until it has found all."""
    try:
        plane.client().create("/api/v1/namespaces/default/pods?dryRun=All", _POD)
    except ApiError as error:
        return error.status != http.client.UNPROCESSABLE_ENTITY
    return True


def _is_seen(plane: ControlPlane) -> bool:
    """Tell whether the deployment's controller has done what it has to do."""
    found = plane.client().get(DEPLOYMENT)
    return bool(found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"])

"""One control plane for many modules: what a module leaves is taken out before the next one has it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

from tools.controlplane.plane import ControlPlane, Options
from tools.controlplane.store import LeftError

from tenure.clusters.kubernetes.install.installation import Installation

DEPLOYMENT = "/apis/apps/v1/namespaces/tenure-system/deployments/tenure"
"""What is installed to run Tenure. Nothing runs it here, and what never begins to run is told of ever again."""


class SharedPlane:
    """The control plane of a worker, on which Tenure is installed; one is started where there is none that fits.

    ``folder`` gives a new folder for each.
    """

    def __init__(self, folder: Callable[[], Path]) -> None:
        self._folder = folder
        self._plane: ControlPlane | None = None
        self._installed: Installation | None = None

    def take(self, options: Options, installation: Installation | None = None) -> ControlPlane:
        """Give a control plane with these options, as it is after this installation, or after the ordinary one."""
        if self._plane is not None and (self._plane.options, self._installed) != (options, installation):
            self.close()
        if self._plane is None:
            self._plane = ControlPlane(self._folder(), options)
            self._plane.start()
            self._plane.install_tenure(installation)
            self._plane.client().patch(DEPLOYMENT, {"spec": {"replicas": 0}})
            self._plane.store.keep()
            self._installed = installation
        self._plane.forget_audit()
        return self._plane

    def give_back(self) -> None:
        """Put everything back; where that fails, or something does not run any more, nobody else has this one."""
        plane = self._plane
        assert plane is not None, "it was taken"
        try:
            if plane.runs:
                plane.store.put_back()
                return
            why = "not all of it runs"
        except (LeftError, OSError) as error:
            why = str(error)
        warnings.warn(f"this control plane is used no more: {why}", stacklevel=2)
        self.close()

    def close(self) -> None:
        """End it."""
        if self._plane is not None:
            self._plane.stop()
            self._plane = None

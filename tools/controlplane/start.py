"""Starts a control plane by hand and prints the path of its kubeconfig; it ends with Ctrl-C, or with this process.

python tools/controlplane/start.py --nodes 4 --tenure
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import threading
from pathlib import Path

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools.controlplane.build import NoGoError
from tools.controlplane.plane import ControlPlane, Options
from tools.controlplane.process import StartError

NODE = {"cpu": "32", "memory": "256Gi", "nvidia.com/gpu": "8"}


def main() -> int:
    """Start, print, wait, end."""
    given = _arguments()
    folder = given.folder.resolve() if given.folder else Path(tempfile.mkdtemp(prefix="tenure-control-plane-"))
    options = Options(scheduler=given.scheduler, audit=given.audit, gates=tuple(given.gate), apis=tuple(given.api))
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    try:
        with ControlPlane(folder, options) as plane:
            _fill(plane, given)
            _link(plane.folder / "kubectl", plane.programs / "kubectl")
            print(plane.kubeconfig, flush=True)
            print(f"logs in {folder}; kubectl is {plane.programs / 'kubectl'}; Ctrl-C ends it", file=sys.stderr)
            ended.wait()
    except (NoGoError, StartError) as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        if given.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    return 0


def _fill(plane: ControlPlane, given: argparse.Namespace) -> None:
    for index in range(given.nodes):
        plane.add_node(f"node-{index}", NODE)
    if given.tenure:
        plane.install_tenure()
        account = plane.kubeconfig_for(plane.token_of("tenure", "tenure-system"), "tenure")
        print(f"kubeconfig of Tenure's service account: {account}", file=sys.stderr)


def _link(place: Path, program: Path) -> None:
    """Put a program into the folder too, where there is not yet one of an earlier start."""
    place.unlink(missing_ok=True)
    place.symlink_to(program)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A real Kubernetes control plane on loopback, with simulated nodes.")
    parser.add_argument("--folder", type=Path, help="where its data and logs go, kept afterwards (default: temporary)")
    parser.add_argument("--nodes", type=int, default=0, help="how many nodes to create (32 CPUs, 8 GPUs each)")
    parser.add_argument("--tenure", action="store_true", help="apply what `tenure install` prints")
    parser.add_argument("--scheduler", action="store_true", help="run the default kube-scheduler as well")
    parser.add_argument("--audit", action="store_true", help="write audit.log")
    parser.add_argument("--gate", action="append", default=[], help="a feature gate to switch on")
    parser.add_argument("--api", action="append", default=[], help="an API to switch on, such as group/version")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

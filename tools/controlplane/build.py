"""Builds the control plane's programs from the Go modules that go.mod pins, once a machine.

They are kept under the user's cache folder by the hash of what they are made of. The first build takes eight minutes on
two cores and downloads 400 MB of modules through Go's module proxy; it says how far it is. Later ones find them there.

    python tools/controlplane/build.py          # builds what is missing and prints the folder
    python tools/controlplane/build.py --if-go  # the same; where there is no Go it says so and is content
    python tools/controlplane/build.py --earlier --helm --krew --kueue --frameworks     # also these
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TextIO

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools.controlplane.progress import LongStep

HERE: Final = Path(__file__).resolve().parent
KUBERNETES: Final = "v1.37.1"
PROGRAMS: Final = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kwok": "sigs.k8s.io/kwok/cmd/kwok",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
}
"""The programs by name and their packages; the quick ones first."""

EARLIER_KUBERNETES: Final = "v1.35.4"
_OF_KUBERNETES: Final = ("kube-apiserver", "kubectl", "kube-controller-manager", "kube-scheduler")
HELM_VERSION: Final = "v4.3.1"
_STAGES: Final = ("kustomize/stage/node/fast/node-initialize.yaml", "kustomize/stage/pod/fast/pod-ready.yaml")
"""What of KWOK's own stages is used, by its path in the module."""

_KUEUE_KINDS: Final = (
    "admissionchecks", "clusterqueues", "cohorts", "localqueues", "multikueueclusters", "multikueueconfigs",
    "provisioningrequestconfigs", "resourceflavors", "topologies", "workloadpriorityclasses", "workloads",
)  # fmt: skip

_ENVIRONMENT: Final = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}


@dataclass(frozen=True)
class GoPrograms:
    """Programs that are built of one go.mod. ``stamps`` are variables that the linker sets, by their names.

    ``files`` of modules, by module, are copied into the folder ``beside`` them.
    """

    source: Path
    packages: dict[str, str]
    stamps: dict[str, str]
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    beside: str = ""

    @property
    def folder(self) -> Path:
        """The folder where they are, built or not."""
        digest = hashlib.sha256()
        for name in ("go.mod", "go.sum"):
            digest.update((self.source / name).read_bytes())
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return cache / "tenure" / "controlplane" / digest.hexdigest()[:16]

    @property
    def is_built(self) -> bool:
        """Whether everything is there."""
        here = self.folder
        made = [here / name for name in self.packages]
        made += [here / self.beside / Path(path).name for paths in self.files.values() for path in paths]
        return all(path.exists() for path in made)


def _kubernetes(version: str) -> dict[str, str]:
    """Say which Kubernetes this is: clients parse the server's version."""
    major, minor, _ = version.removeprefix("v").split(".")
    stamps = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    return {f"k8s.io/component-base/version.{key}": text for key, text in stamps.items()}


NEWEST: Final = GoPrograms(
    HERE, PROGRAMS, _kubernetes(KUBERNETES), files={"sigs.k8s.io/kwok": _STAGES}, beside="stages"
)
EARLIER: Final = GoPrograms(
    HERE / "earlier", {name: PROGRAMS[name] for name in _OF_KUBERNETES}, _kubernetes(EARLIER_KUBERNETES)
)
"""Kubernetes two minors back; etcd and KWOK are those of the newest."""

HELM: Final = GoPrograms(
    HERE.parent / "deploy",
    {"helm": "helm.sh/helm/v4/cmd/helm"},
    {"helm.sh/helm/v4/internal/version.version": HELM_VERSION},
)

KREW: Final = GoPrograms(
    HERE.parent / "krew",
    {name: f"sigs.k8s.io/krew/cmd/{name}" for name in ("krew", "validate-krew-manifest")},
    {},
)


KUEUE: Final = GoPrograms(
    HERE.parent / "kueue",
    {"kueue": "sigs.k8s.io/kueue/cmd/kueue"},
    {},
    files={
        "sigs.k8s.io/kueue": tuple(f"config/components/crd/bases/kueue.x-k8s.io_{kind}.yaml" for kind in _KUEUE_KINDS)
    },
    beside="crds",
)
"""Kueue's controllers and the definitions of its kinds, for the test of what becomes of its workloads."""

FRAMEWORKS: Final = GoPrograms(
    HERE.parent / "kueue",
    {},
    {},
    files={
        "github.com/kubeflow/training-operator": tuple(
            f"manifests/base/crds/kubeflow.org_{kind}.yaml" for kind in ("pytorchjobs", "tfjobs", "xgboostjobs")
        ),
        "github.com/kubeflow/mpi-operator": ("manifests/base/kubeflow.org_mpijobs.yaml",),
        "github.com/kubeflow/trainer/v2": tuple(
            f"manifests/base/crds/trainer.kubeflow.org_{kind}.yaml" for kind in ("trainjobs", "trainingruntimes")
        ),
        "github.com/ray-project/kuberay/ray-operator": tuple(
            f"config/crd/bases/ray.io_{kind}.yaml" for kind in ("rayclusters", "rayjobs", "rayservices")
        ),
        "sigs.k8s.io/jobset": ("config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml",),
        "sigs.k8s.io/lws": ("config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml",),
        "github.com/project-codeflare/appwrapper": ("config/crd/bases/workload.codeflare.dev_appwrappers.yaml",),
        "github.com/kubeflow/spark-operator/v2": ("config/crd/bases/sparkoperator.k8s.io_sparkapplications.yaml",),
    },
    beside="frameworks",
)
"""The definitions of frameworks' kinds, of the modules that Kueue's go.mod pins."""


class NoGoError(RuntimeError):
    """The programs are not there, and there is no Go to build them with."""


def is_built() -> bool:
    """Tell whether the newest control plane is there."""
    return NEWEST.is_built


def build(wanted: GoPrograms = NEWEST) -> Path:
    """Build what is missing and give the folder with the programs, the newest's with ``stages/``.

    Several processes may call this at once: one builds, the others wait.

    Raises
    ------
    NoGoError
        If something is missing and Go is not installed.
    subprocess.CalledProcessError
        If Go fails; it has said why on standard error.
    """
    target = wanted.folder
    if wanted.is_built:
        return target
    if shutil.which("go") is None:
        raise NoGoError("the control plane's programs are not built, and there is no 'go' on the PATH to build them")
    target.mkdir(parents=True, exist_ok=True)
    with (target / "lock").open("w") as lock:
        _wait_for(lock)
        if not wanted.is_built:
            for number, (name, package) in enumerate(wanted.packages.items(), 1):
                if not (target / name).exists():
                    with LongStep(f"building {name} ({number} of {len(wanted.packages)})"):
                        _compile(target / name, package, wanted)
            _copy_files(wanted)
    return target


def _wait_for(lock: TextIO) -> None:
    """Take the lock, and say so where another process has it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with LongStep("waiting for another process that builds"):
            fcntl.flock(lock, fcntl.LOCK_EX)


def _compile(program: Path, package: str, wanted: GoPrograms) -> None:
    made = program.with_suffix(".new")
    flags = ["-s", "-w", *(f"-X {name}={text}" for name, text in wanted.stamps.items())]
    _go("build", "-trimpath", "-ldflags", " ".join(flags), "-o", str(made), package, source=wanted.source)
    made.rename(program)


def _copy_files(wanted: GoPrograms) -> None:
    """Copy from modules what is used of them as it is: how nodes and pods become ready, definitions of kinds."""
    target = wanted.folder / wanted.beside
    target.mkdir(exist_ok=True)
    for module, paths in wanted.files.items():
        _go("mod", "download", module, source=wanted.source)
        where = Path(_go("list", "-m", "-f", "{{.Dir}}", module, source=wanted.source).strip())
        for path in paths:
            shutil.copyfile(where / path, target / Path(path).name)


def _go(*arguments: str, source: Path = HERE) -> str:
    run = subprocess.run(
        ["go", *arguments], cwd=source, env=os.environ | _ENVIRONMENT, stdout=subprocess.PIPE, text=True, check=True
    )
    return run.stdout


def main(arguments: list[str]) -> int:
    """Build, and print where the programs are."""
    try:
        further = {"--earlier": EARLIER, "--helm": HELM, "--krew": KREW, "--kueue": KUEUE, "--frameworks": FRAMEWORKS}
        for wanted in (NEWEST, *(programs for word, programs in further.items() if word in arguments)):
            print(build(wanted))
    except NoGoError as missing:
        print(f"{missing}: the tests on Kubernetes will be skipped", file=sys.stderr)
        return 0 if "--if-go" in arguments else 1
    except subprocess.CalledProcessError as failed:
        print(f"Go failed (exit code {failed.returncode}); it says why above", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

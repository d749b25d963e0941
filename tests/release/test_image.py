"""The image, built without an engine, and run as a container: no root, nothing to write to, the real API server."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
import time
import urllib.request
from contextlib import contextmanager
from io import BytesIO

import pytest
from tests.kubernetes.stage import wait_until
from tests.release.conftest import ROOT
from tools.image import base, config
from tools.image.build import build
from tools.image.oci import pack

ARCHITECTURE = "amd64"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    if not base.is_possible():
        pytest.skip("the image is built on Debian, by root")
    folder = tmp_path_factory.mktemp("image")
    return folder, build(folder / "image", [ARCHITECTURE, "arm64"])


def read(layout, described):
    return json.loads((layout / "blobs/sha256" / described["digest"].removeprefix("sha256:")).read_text())


def manifest_of(layout, architecture):
    """Give the manifest of the image for an architecture."""
    (named,) = json.loads((layout / "index.json").read_text())["manifests"]
    (entry,) = [m for m in read(layout, named)["manifests"] if m["platform"]["architecture"] == architecture]
    return read(layout, entry)


def layers_of(folder, architecture):
    """Give the files of the layers, the lower one first."""
    layout = folder / "image" / "layout"
    found = manifest_of(layout, architecture)["layers"]
    return [layout / "blobs/sha256" / layer["digest"].removeprefix("sha256:") for layer in found]


@pytest.fixture(scope="module")
def bundle(built):
    """Give a folder with the root file system as the layers have it, and how the image says that it is run."""
    folder, _ = built
    for layer in layers_of(folder, ARCHITECTURE):
        with tarfile.open(layer) as tar:
            tar.extractall(folder / "bundle/rootfs", filter="fully_trusted")
    layout = folder / "image" / "layout"
    return folder / "bundle", read(layout, manifest_of(layout, ARCHITECTURE)["config"])["config"]


@contextmanager
def container(bundle, *arguments, binds=()):
    """Run the image as a kubelet would: its user, no capabilities, a read-only root, and a volume at /tmp."""
    if shutil.which("crun") is None:
        pytest.skip("no crun here to run a container with")
    folder, said = bundle
    user, group = map(int, said["User"].split(":"))
    mounts = [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
        {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "mode=1777"]},
        *({"destination": to, "type": "bind", "source": str(of), "options": ["ro", "bind"]} for of, to in binds),
    ]
    spec = {
        "ociVersion": "1.0.0",
        "root": {"path": "rootfs", "readonly": True},
        "process": {
            "user": {"uid": user, "gid": group}, "args": [*said["Entrypoint"], *arguments], "env": said["Env"],
            "cwd": said["WorkingDir"], "noNewPrivileges": True, "capabilities": {},
        },
        "mounts": mounts,
        "linux": {"namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts")]},
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(spec))
    here = 'umount -R /sys/fs/cgroup 2>/dev/null; mount -t cgroup2 none /sys/fs/cgroup; exec "$@"'
    run = ["crun", "--cgroup-manager=disabled", "run", "--bundle", str(folder), f"tenure-{time.monotonic_ns()}"]
    log = folder / "log"
    with log.open("wb") as written:
        process = subprocess.Popen(["unshare", "--mount", "sh", "-c", here, "sh", *run], stdout=written, stderr=written)
    try:
        yield process, log
    finally:
        process.terminate()
        process.wait(30)


def test_built_twice_it_has_the_same_layers(built):
    """The digests of layers, index and bill of materials are those of the first time."""
    folder, first = built
    again = build(folder / "again", [ARCHITECTURE])
    assert again.layers[ARCHITECTURE] == first.layers[ARCHITECTURE]
    bills = [(folder / name / f"{ARCHITECTURE}.cdx.json").read_text() for name in ("image", "again")]
    assert bills[0] == bills[1]
    purls = {component["purl"].partition("@")[0] for component in json.loads(bills[0])["components"]}
    assert {"pkg:pypi/tenure", "pkg:pypi/numpy", "pkg:deb/debian/libc6"} <= purls


def test_the_steps_of_the_containerfile_make_the_same_files(bundle, tmp_path):
    """What its first stage copies and runs, in a folder instead of a container; it needs nothing else."""
    source, builder, image = (tmp_path / name for name in ("src", "builder", "image"))
    source.mkdir()
    first = (ROOT / "Containerfile").read_text().partition("FROM scratch")[0]
    for line in first.splitlines():
        word, _, rest = line.partition(" ")
        if word == "COPY":
            *names, to = rest.split()
            for name in names:
                target = source / to / ("" if (ROOT / name).is_dir() else name)
                (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, target)
        elif word == "RUN" and not rest.startswith("apt-get"):
            for old, new in (("/builder", str(builder)), ("/image", str(image))):
                rest = re.sub(rf"(?<![\w.]){old}\b", new, rest)
            run = subprocess.run(rest, shell=True, cwd=source, env={**os.environ, "TARGETARCH": ARCHITECTURE},
                                 capture_output=True, text=True, check=False)  # fmt: skip
            assert run.returncode == 0, run.stderr
    assert packed(image) == packed(bundle[0] / "rootfs")


def packed(folder):
    """Give what a layer has of a folder."""
    with tarfile.open(fileobj=BytesIO(pack(folder))) as tar:
        return {m.name: (m.type, m.mode, m.linkname, hashlib.sha256(tar.extractfile(m).read()).hexdigest() if m.isreg()
                         else "") for m in tar}  # fmt: skip


def test_there_is_no_shell_in_it_and_nothing_that_the_user_may_write(bundle):
    """Of programs there is Python alone; every file belongs to root, and none is for others to write or sets a user."""
    folder, said = bundle
    root = folder / "rootfs"
    programs = {p.name for where in ("bin", "sbin", "usr/bin", "usr/sbin") for p in (root / where).glob("*")}
    assert programs == {"python3.11"}
    for path in root.rglob("*"):
        mode = path.lstat().st_mode
        assert path.is_symlink() or not mode & 0o6000, path
        assert path.is_symlink() or not mode & 0o002 or path == root / "tmp", path
    assert said["User"] == config.USER_AND_GROUP


def test_both_architectures_have_the_same_python_files(built):
    """The wheel for arm64 is built beside: the same packages in the same versions, but for compiled libraries."""
    folder, _ = built
    names = []
    for architecture in (ARCHITECTURE, "arm64"):
        components = json.loads((folder / "image" / f"{architecture}.cdx.json").read_text())["components"]
        names.append({(c["name"], c["version"]) for c in components})
    assert names[0] == names[1]


@pytest.mark.parametrize(("architecture", "machine"), [("amd64", 62), ("arm64", 183)])
def test_its_programs_and_libraries_are_for_its_processor(built, architecture, machine):
    """Each file of machine code says so itself: Python, what it links to, and what packages were compiled to."""
    found = {}
    for layer in layers_of(built[0], architecture):
        with tarfile.open(layer) as tar:
            for member in tar:
                head = tar.extractfile(member).read(20) if member.isreg() else b""
                if head[:4] == b"\x7fELF":
                    found[member.name] = int.from_bytes(head[18:20], "little")
    assert "usr/bin/python3.11" in found
    assert any("numpy" in name for name in found)
    assert set(found.values()) == {machine}


def test_it_serves_its_probes_on_a_real_control_plane(bundle, plane, helm):
    """As a container with the rights of the chart it leads, says that it is healthy, and ends when it is told to."""
    helm.chart("install", "--create-namespace", "--set", "replicas=1")
    kubeconfig = plane.kubeconfig_for(plane.token_of("tenure", "tenure-system"), "container")
    for path in (kubeconfig, plane.authority):
        path.chmod(0o644)
    binds = [(kubeconfig.parent, str(kubeconfig.parent))]
    given = ["scheduler", "--listen", "127.0.0.1:0", "--kubeconfig", str(kubeconfig)]
    (bundle[0] / "rootfs" / str(kubeconfig.parent).removeprefix("/")).mkdir(parents=True, exist_ok=True)
    for above in kubeconfig.parents:
        if str(above).startswith("/tmp/"):
            above.chmod(0o755)
    with container(bundle, *given, binds=binds) as (process, log):
        wait_until(lambda: b"scheduler starts" in log.read_bytes() or process.poll() is not None, "it does not start")
        assert process.poll() is None, log.read_text()
        ports = [json.loads(line)["port"] for line in log.read_text().splitlines() if "scheduler starts" in line]
        wait_until(lambda: page(ports[0], "/readyz") == "leads", "it does not lead")
        assert page(ports[0], "/healthz") == "ok"
    assert process.returncode == 0
    assert "scheduler ends" in log.read_text().splitlines()[-1]


def page(port, path):
    """Give what it serves under a path; empty where it does not."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.read().decode().strip()
    except OSError:
        return ""


def test_it_runs_the_command_line_as_well(bundle):
    """Without a cluster: the version, and a plan of a file that is mounted; it can write to /tmp and nowhere else."""
    with container(bundle, "--version") as (process, log):
        assert process.wait(60) == 0, log.read_text()
        assert log.read_text().splitlines()[-1].startswith("tenure ")
    (bundle[0] / "rootfs/mnt").mkdir(exist_ok=True)
    examples = [(ROOT / "examples", "/mnt")]
    for target, code, said in (("/tmp/out.yaml", 0, "14 bindings"), ("/usr/out.yaml", 3, "Read-only file system")):
        with container(bundle, "plan", "/mnt/cluster.yaml", "--output", target, binds=examples) as (process, log):
            assert process.wait(60) == code, log.read_text()
            assert said.lower() in log.read_text().lower()

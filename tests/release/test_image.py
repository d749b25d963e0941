"""The image, built without an engine, and run as a container: no root, nothing to write to, the real API server."""

import json
import shutil
import subprocess
import tarfile
import time
from contextlib import contextmanager

import pytest
from tests.kubernetes.stage import wait_until
from tools.image import base, config
from tools.image.build import build

ARCHITECTURE = "amd64"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    if not base.is_possible():
        pytest.skip("the image is built on Debian, by root")
    folder = tmp_path_factory.mktemp("image")
    return folder, build(folder / "image", [ARCHITECTURE, "arm64"])


def read(layout, described):
    return json.loads((layout / "blobs/sha256" / described["digest"].removeprefix("sha256:")).read_text())


@pytest.fixture(scope="module")
def bundle(built):
    """Give a folder with the root file system as the layers have it, and how the image says that it is run."""
    folder, _ = built
    layout = folder / "image" / "layout"
    (named,) = json.loads((layout / "index.json").read_text())["manifests"]
    (entry,) = [m for m in read(layout, named)["manifests"] if m["platform"]["architecture"] == ARCHITECTURE]
    manifest = read(layout, entry)
    root = folder / "bundle" / "rootfs"
    for layer in manifest["layers"]:
        with tarfile.open(layout / "blobs/sha256" / layer["digest"].removeprefix("sha256:")) as tar:
            tar.extractall(root, filter="fully_trusted")
    return folder / "bundle", read(layout, manifest["config"])["config"]


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
        health = f"http://127.0.0.1:{ports[0]}/healthz"
        wait_until(lambda: subprocess.run(["curl", "-sf", health], capture_output=True, check=False).returncode == 0,
                   "it does not serve /healthz")  # fmt: skip


def test_it_runs_the_command_line_as_well(bundle):
    """Without a cluster: the version, and a plan of a file that is mounted."""
    with container(bundle, "--version") as (process, log):
        assert process.wait(60) == 0, log.read_text()
        assert log.read_text().splitlines()[-1].startswith("tenure ")

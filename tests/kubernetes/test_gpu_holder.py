"""The pod that holds a GPU runs in Tenure's own image, which has Python and no shell: its commands are run here."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest
from tests.kubernetes.pods import node, thing, watching

from tenure.clusters.kubernetes import keys
from tenure.clusters.kubernetes.gpus.own_pod import HolderOptions, of_spec
from tenure.clusters.kubernetes.gpus.reservations import reservation_name, reservation_pod

POD = reservation_pod(("node-0", 3), HolderOptions("tenure:test"), "tenure-system")["spec"]
TELLS, HOLDS = POD["initContainers"][0]["command"], POD["containers"][0]["command"]


def tell(folder, nvidia_smi=None, **environment):
    """Run what the first container runs, perhaps where there is such a program; gives its end and what it told."""
    programs, told = folder / "bin", folder / "told"
    programs.mkdir(exist_ok=True)
    if nvidia_smi is not None:
        (programs / "nvidia-smi").write_text(f"#!/bin/sh\n{nvidia_smi}\n")
        (programs / "nvidia-smi").chmod(0o755)
    assert TELLS[-1] == "/dev/termination-log"
    sources = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    done = subprocess.run([*TELLS[:-1], str(told)], env={"PATH": str(programs), **sources, **environment}, check=False,
                          capture_output=True, text=True)  # fmt: skip
    return done, told.read_text() if told.exists() else None


@pytest.mark.parametrize("given", ["GPU-1234", " GPU-1234\n"])
def test_it_tells_the_device_that_the_node_gave(tmp_path, given):
    """The variable that the device plugin sets names it."""
    assert tell(tmp_path, NVIDIA_VISIBLE_DEVICES=given)[1] == "GPU-1234"


@pytest.mark.parametrize("given", ["", "void", "none", "all"])
def test_where_the_variable_names_none_the_driver_is_asked(tmp_path, given):
    """With devices by CDI the variable says nothing; nvidia-smi sees what the container has."""
    assert tell(tmp_path, "echo GPU-5678", NVIDIA_VISIBLE_DEVICES=given)[1] == "GPU-5678"


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (None, "No such file"),
        ("exit 9", "exit status 9"),
        ("echo", "0 devices"),
        ("echo GPU-1; echo GPU-2", "2 devices"),
    ],
)
def test_what_is_not_known_is_not_told(tmp_path, program, why):
    """It fails and says why, so that the kubelet tries again; a wrong name would give two pods one device."""
    done, told = tell(tmp_path, program)
    assert (done.returncode, told) == (1, None)
    assert why in done.stderr
    assert "Traceback" not in done.stderr


def test_it_is_made_like_the_pod_of_the_scheduler():
    """Image and policy of the scheduler's container, whatever was put before it, its secrets, and its PriorityClass."""
    secrets = [{"name": "registry"}]
    beside = {"name": "proxy", "image": "r.example/proxy:1"}
    own = {"name": "scheduler", "image": "r.example/tenure:1", "imagePullPolicy": "Never"}
    spec = {"containers": [beside, own], "imagePullSecrets": secrets, "priorityClassName": "tenure"}
    made = reservation_pod(("node-0", 3), of_spec(spec), "tenure-system")["spec"]
    assert (made["imagePullSecrets"], made["priorityClassName"]) == (secrets, "tenure")
    for one in (*made["initContainers"], *made["containers"]):
        assert (one["image"], one["imagePullPolicy"]) == ("r.example/tenure:1", "Never")
    assert not {"imagePullSecrets", "priorityClassName"} & POD.keys()


def held(node, number):
    """Give a reservation as the API server has it."""
    place = node, number
    body = reservation_pod(place, HolderOptions("tenure:test"), "tenure-system")
    labels = body["metadata"]["labels"]
    return thing(reservation_name(place), namespace="tenure-system", metadata={"labels": labels}, spec=body["spec"])


@pytest.mark.parametrize(("pool", "own"), [("default", "here"), ("gpu", "there")])
def test_what_is_held_on_nodes_of_another_pool_is_not_let_go(pool, own):
    """The pods that have parts of it are that pool's, and not known here."""
    nodes = node("here"), node("there", labels={keys.POOL: "gpu"})
    watch = watching(*nodes, pool=pool, gpu_reservations=[held("here", 0), held("there", 0)])
    assert [one.place for one in watch._shared_devices([]).unused()] == [(own, 0)]


def test_it_holds_until_it_is_ended():
    """SIGTERM ends it at once, so that the device is free within the grace period."""
    with subprocess.Popen(HOLDS) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.5)
        process.send_signal(signal.SIGTERM)
        assert process.wait(3) == 0

"""A Kubernetes control plane on loopback: etcd, API server, controllers, simulated nodes, perhaps the scheduler.

    with ControlPlane(folder) as plane:
        plane.kubectl("get", "nodes")
        plane.client().get("/api/v1/namespaces")

Everything is real but the nodes, which KWOK plays: a pod that is bound starts at once, and goes at once when it is
deleted. Annotations of a pod change that: ``simulated.tenure.dev/run-seconds`` (it ends by itself so long after its
start), ``.../exit-code``, and ``.../stop-seconds`` (how long it takes to go).
"""

from __future__ import annotations

import http.client
import json
import os
import random
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

import yaml

from tenure.clusters.kubernetes.install.crds import RESOURCES
from tenure.clusters.kubernetes.install.installation import Installation
from tenure.clusters.kubernetes.install.manifests import objects
from tenure.model.entries import API_VERSION
from tools.controlplane import build
from tools.controlplane.awaited import forget
from tools.controlplane.client import ApiError, Client
from tools.controlplane.credentials import make_credentials, write_kubeconfig
from tools.controlplane.process import HOST, SPARING, Process, wait_for
from tools.controlplane.store import Store

STAGES: Final = Path(__file__).resolve().parent / "stages"
_POLL: Final = 0.1
_KINDS_SECONDS: Final = 120.0
"""So long at most it takes until kinds that were defined are served."""

_JOB_KEYS: Final = "/registry/jobs/"
_NO_LIMIT: Final = ("--kube-api-qps=5000", "--kube-api-burst=10000")
_PORTS: Final = range(20_000, 32_000)
"""Below the ports that the kernel gives to outgoing connections, which could take one between choice and use."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What runs, and how. ``earlier``: Kubernetes two minors back instead of the newest.

    ``gates`` are feature gates, ``apis`` what ``--runtime-config`` switches on.
    """

    controllers: bool = True
    nodes: bool = True
    scheduler: bool = False
    audit: bool = False
    earlier: bool = os.environ.get("TENURE_KUBERNETES") == "earlier"
    gates: tuple[str, ...] = ()
    apis: tuple[str, ...] = ()

    @property
    def server(self) -> Options:
        """What of it the API server is started with; all else runs beside it."""
        return replace(self, controllers=False, nodes=False, scheduler=False)


class ControlPlane:
    """A control plane in a folder of its own. Client limits are off everywhere: what is slow is the server."""

    def __init__(self, folder: Path, options: Options | None = None) -> None:
        self.folder = folder
        self.options = options or Options()
        folder.mkdir(parents=True, exist_ok=True)
        self.programs = build.build()
        self.release = build.build(build.EARLIER) if self.options.earlier else self.programs
        self.credentials = make_credentials(folder)
        etcd, peer, api, kwok = _free_ports(4)
        self.store = Store(f"http://{HOST}:{etcd}")
        self.server = f"https://{HOST}:{api}"
        self.authority = self.credentials.authority
        self.audit_log = folder / "audit.log"
        self._audit_begins = 0
        self.kubeconfig = self.kubeconfig_for(self.credentials.tokens["admin"], "admin")
        self.etcd = self._process("etcd", *self._etcd_flags(etcd, peer))
        self.apiserver = self._process("kube-apiserver", *self._apiserver_flags(api, etcd))
        self.controllers = self._process("kube-controller-manager", *self._controller_flags())
        self.kwok = self._process("kwok", *self._kwok_flags(kwok))
        self.scheduler = self._process("kube-scheduler", *self._scheduler_flags())
        self._held = ExitStack()

    def __enter__(self) -> Self:
        """Start it."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self.stop()

    def start(self) -> None:
        """Start all that the options ask for, and wait until pods can be created.

        Raises
        ------
        StartError
            If a program does not come up.
        """
        try:
            self.etcd.start()
            self.apiserver.start()
            self.apiserver.wait_until(self.is_ready)
            self._start_clients()
        except BaseException:
            self.stop()
            raise

    def run_beside(self, options: Options) -> None:
        """Have that run beside the API server for which these options ask, and nothing else; it goes on meanwhile."""
        assert options.server == self.options.server, "the API server runs with other flags"
        for process in self._clients():
            process.kill()
        self.options = options
        self._start_clients()

    def _start_clients(self) -> None:
        """Start what runs beside the API server, and wait until pods can be created."""
        for process in self._clients():
            process.start()
        if self.options.controllers:
            self.controllers.wait_until(lambda: self._has_account("default"))

    def stop(self) -> None:
        """End everything, the API server's clients first."""
        for process in [*self._clients(), self.apiserver, self.etcd]:
            process.kill()  # nothing of it is needed any more, and orderly ends take seconds
        self._held.close()

    def put_back(self) -> None:
        """Have the store hold what was kept and nothing else, and the controller of Jobs await nothing that went.

        Raises
        ------
        LeftError
            If the store does not stay as it was.
        TimeoutError
            If the controllers do not go on.
        """
        went = sorted(key.removeprefix(_JOB_KEYS) for key in self.store.put_back() if key.startswith(_JOB_KEYS))
        if self.options.controllers:
            forget(self.client(), went, lambda _: self.store.put_back())

    def restart_apiserver(self) -> None:
        """Kill the API server and start it again: all watches break, and old resource versions may have gone."""
        self._restart(self.apiserver)

    def restart_etcd(self) -> None:
        """Kill etcd and start it again, with what it held."""
        self._restart(self.etcd)

    def revive(self) -> str:
        """Start what has ended by itself again, with what etcd held; say how each ended, nothing where all runs."""
        said = []
        for process in (self.etcd, self.apiserver, *self._clients()):
            if process.has_ended:
                said.append(f"{process.name} has ended by itself ({process.wait()}):\n{process.last_words()}")
                process.start()
        if said:
            self._resume()
        return "\n".join(said)

    def _restart(self, process: Process) -> None:
        process.kill()
        process.start()
        self._resume()

    def _resume(self) -> None:
        """Wait until the API server serves again, and have KWOK begin anew."""
        self.apiserver.wait_until(lambda: self.is_ready() and self._serves_all())
        if self.options.nodes:  # a kubelet tries again what failed meanwhile; KWOK does when it starts
            self.kwok.kill()
            self.kwok.start()

    def is_ready(self) -> bool:
        """Tell whether the API server says that it is ready, and reads from etcd."""
        try:
            client = self.client()
            return client.get("/readyz") == "ok" and bool(client.get("/api/v1/namespaces?limit=1")["items"])
        except (ApiError, OSError):
            return False

    def _serves_all(self) -> bool:
        """Tell whether the kinds that were installed are served again: that takes longer than to be ready."""
        client = self.client()
        try:
            for item in client.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]:
                spec = item["spec"]
                client.get(f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}?limit=1")
        except (ApiError, OSError):
            return False
        return True

    def client(self, token: str | None = None) -> Client:
        """Give a client with a connection of its own, for the administrator or for whom the token is."""
        client = Client(self.server, token or self.credentials.tokens["admin"], str(self.authority))
        self._held.callback(client.close)
        return client

    def kubectl(self, *arguments: str, given: str | None = None, kubeconfig: Path | None = None) -> str:
        """Run ``kubectl`` as the administrator, or by another kubeconfig, and give what it prints.

        Raises
        ------
        KubectlError
            If it fails, with what it says.
        """
        command = [str(self.release / "kubectl"), f"--kubeconfig={kubeconfig or self.kubeconfig}", *arguments]
        environment = {**SPARING, **os.environ}
        run = subprocess.run(command, input=given, capture_output=True, text=True, check=False, env=environment)
        if run.returncode:
            raise KubectlError(run.stderr.strip() or run.stdout.strip())
        return run.stdout

    def apply(self, *objects: Mapping[str, Any]) -> None:
        """Create or change objects, in their order, by requests of its own.

        ``kubectl`` has the API server describe all of its kinds, and takes as long as all else.

        Raises
        ------
        ApiError
            If one is refused.
        """
        client, path_of = self.client(), Paths(self.client())
        for one in objects:
            path = f"{path_of(one)}/{one['metadata']['name']}"
            client.patch(f"{path}?fieldManager=tests&force=true&fieldValidation=Strict", one, "apply")

    def install_tenure(self, installation: Installation | None = None) -> None:
        """Apply what ``tenure install`` prints, and wait until the API server serves the new kinds."""
        self.apply(*objects(installation or Installation(image="tenure:test")))
        self._wait_served([f"/apis/{API_VERSION}/{resource.plural}" for resource in RESOURCES])

    def define(self, *definitions: Mapping[str, Any]) -> None:
        """Create definitions of further kinds, and wait until the API server serves these."""
        client, paths, names = self.client(), [], []
        for one in definitions:  # too long for what kubectl keeps in an annotation
            client.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", one)
            names.append(f"crd/{one['metadata']['name']}")
            spec = one["spec"]
            served = next(version["name"] for version in spec["versions"] if version["served"])
            paths.append(f"/apis/{spec['group']}/{served}/{spec['names']['plural']}")
        if names:
            self.kubectl("wait", "--for=condition=Established", "--timeout=120s", *names)
        self._wait_served(paths)

    def _wait_served(self, paths: Sequence[str]) -> None:
        """Wait until the kinds at some paths are served."""
        client, until = self.client(), time.monotonic() + _KINDS_SECONDS
        while not all(_is_served(client, path) for path in paths):
            if time.monotonic() > until:
                raise TimeoutError(f"not served after {_KINDS_SECONDS:.0f} s: {', '.join(paths)}")
            time.sleep(_POLL)

    def kubeconfig_for(self, token: str, name: str, server: str | None = None) -> Path:
        """Write a kubeconfig for whom the token is, perhaps by way of another server (a proxy), and give its path."""
        return write_kubeconfig(self.folder / f"{name}.kubeconfig", server or self.server, token, self.authority)

    def token_of(self, account: str, namespace: str, *, seconds: int = 86_400) -> str:
        """Get a token of a service account, as its pods would have it."""
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds},
        }
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        token: str = self.client().create(path, body)["status"]["token"]
        return token

    def add_namespace(self, name: str) -> None:
        """Create a namespace and wait until pods can be created in it."""
        self.client().create(
            "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        )
        if self.options.controllers:
            wait_for(lambda: self._has_account(name), f"the default service account of {name}")

    def add_node(
        self,
        name: str,
        allocatable: Mapping[str, str],
        *,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Mapping[str, str]] = (),
    ) -> None:
        """Create a node; if KWOK runs it is ready soon."""
        amounts = {"pods": "110", **allocatable}
        body = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
            "spec": {"taints": list(taints)},
            "status": {"allocatable": amounts, "capacity": amounts},
        }
        self.client().create("/api/v1/nodes", body)

    def audit(self, user: str | None = None) -> Iterator[dict[str, Any]]:
        """Give the events of the audit log, of one user or of all; the log has to be switched on.

        An event whose line is being written comes next time.
        """
        assert self.options.audit, "the audit log is off; start with Options(audit=True)"
        written, _, _ = self.audit_log.read_bytes()[self._audit_begins :].rpartition(b"\n")
        for line in written.splitlines():
            event = json.loads(line)
            if user is None or event["user"]["username"] == user:
                yield event

    def forget_audit(self) -> None:
        """Have the audit log begin here, with the line that is being written."""
        self._audit_begins = self.audit_log.read_bytes().rfind(b"\n") + 1 if self.audit_log.exists() else 0

    @property
    def runs(self) -> bool:
        """Whether all that the options ask for runs, and the API server answers."""
        return all(process.is_running for process in (self.etcd, self.apiserver, *self._clients())) and self.is_ready()

    def _has_account(self, namespace: str) -> bool:
        return self.client().exists(f"/api/v1/namespaces/{namespace}/serviceaccounts/default")

    def _clients(self) -> list[Process]:
        asked = self.options
        wanted = ((asked.scheduler, self.scheduler), (asked.nodes, self.kwok), (asked.controllers, self.controllers))
        return [process for is_wanted, process in wanted if is_wanted]

    def _process(self, name: str, *flags: str) -> Process:
        program = self.release / name
        return Process(
            name, [program if program.exists() else self.programs / name, *flags], self.folder / f"{name}.log"
        )

    def _etcd_flags(self, port: int, peer: int) -> list[str]:
        client, peers = f"http://{HOST}:{port}", f"http://{HOST}:{peer}"
        return [
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def _apiserver_flags(self, port: int, etcd: int) -> list[str]:
        made = self.credentials
        flags = [
            f"--etcd-servers=http://{HOST}:{etcd}",
            f"--bind-address={HOST}",
            "--endpoint-reconciler-type=none",  # which refuses loopback; nothing here asks the Service for endpoints
            f"--secure-port={port}",
            f"--tls-cert-file={made.certificate}",
            f"--tls-private-key-file={made.key}",
            f"--token-auth-file={made.token_file}",
            f"--service-account-key-file={made.service_account_public}",
            f"--service-account-signing-key-file={made.service_account_key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--authorization-mode=RBAC",
            "--enable-priority-and-fairness=false",
            "--max-requests-inflight=0",
            "--max-mutating-requests-inflight=0",
        ]
        if self.options.gates:
            flags.append("--feature-gates=" + ",".join(f"{gate}=true" for gate in self.options.gates))
        if self.options.apis:
            flags.append("--runtime-config=" + ",".join(f"{api}=true" for api in self.options.apis))
        if self.options.audit:
            policy = {
                "apiVersion": "audit.k8s.io/v1",
                "kind": "Policy",
                "omitStages": ["RequestReceived"],
                "rules": [{"level": "Metadata"}],
            }
            path = self._write("audit-policy.yaml", policy)
            flags += [f"--audit-policy-file={path}", f"--audit-log-path={self.audit_log}", "--audit-log-mode=blocking"]
        return flags

    def _controller_flags(self) -> list[str]:
        return [
            f"--kubeconfig={self.kubeconfig_for(self.credentials.tokens['controllers'], 'controllers')}",
            f"--service-account-private-key-file={self.credentials.service_account_key}",
            f"--root-ca-file={self.authority}",
            "--leader-elect=false",
            "--secure-port=0",
            "--node-monitor-grace-period=24h",  # simulated nodes do not beat: that would be most of the load
            *_NO_LIMIT,
        ]

    def _kwok_flags(self, port: int) -> list[str]:
        stages = sorted([*(self.programs / "stages").glob("*.yaml"), *STAGES.glob("*.yaml")])
        objects = [yaml.safe_load(path.read_text()) for path in stages]
        return [
            f"--kubeconfig={self.kubeconfig_for(self.credentials.tokens['kwok'], 'kwok')}",
            f"--config={self._write('stages.yaml', *objects)}",
            f"--server-address={HOST}:{port}",
            "--manage-all-nodes=true",
            "--node-lease-duration-seconds=0",
        ]

    def _scheduler_flags(self) -> list[str]:
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {
                "kubeconfig": str(self.kubeconfig_for(self.credentials.tokens["scheduler"], "scheduler")),
                "qps": 5000,
                "burst": 10_000,
            },
        }
        return [f"--config={self._write('kube-scheduler.yaml', config)}", "--secure-port=0"]

    def _write(self, name: str, *objects: Mapping[str, Any]) -> Path:
        path = self.folder / name
        path.write_text(yaml.safe_dump_all(objects))
        return path


def _is_served(client: Client, path: str) -> bool:
    """Tell whether objects are listed: not while their kind is not known, or its storage is being made."""
    try:
        client.get(path)
    except ApiError as error:
        if error.status in (http.client.NOT_FOUND, http.client.TOO_MANY_REQUESTS):
            return False
        raise
    return True


class Paths:
    """Where objects of a kind are created, as the API server says; each of its groups is asked about once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._groups: dict[str, dict[str, dict[str, Any]]] = {}

    def __call__(self, one: Mapping[str, Any]) -> str:
        """Give the path of the collection that an object belongs to."""
        group = one["apiVersion"]
        at = f"/apis/{group}" if "/" in group else f"/api/{group}"
        if group not in self._groups:
            listed = self._client.get(at)["resources"]
            self._groups[group] = {entry["kind"]: entry for entry in listed if "/" not in entry["name"]}
        kind = self._groups[group][one["kind"]]
        inside = f"/namespaces/{one['metadata'].get('namespace', 'default')}" if kind["namespaced"] else ""
        return f"{at}{inside}/{kind['name']}"


class KubectlError(Exception):
    """``kubectl`` failed; the message is what it said."""


def _free_ports(count: int) -> list[int]:
    """Choose ports of loopback that nobody listens on; all are held until all are chosen."""
    with ExitStack() as held:
        ports: list[int] = []
        while len(ports) < count:
            port = random.choice(_PORTS)
            tried = held.enter_context(socket.socket())
            try:
                tried.bind((HOST, port))
            except OSError:
                continue
            ports.append(port)
        return ports

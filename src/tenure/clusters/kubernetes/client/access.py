"""Where the API server is and who asks: a kubeconfig, or the service account of a pod."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from tenure.model.problems import InputProblem, InvalidInputError, nearest
from tenure.model.source import read_document

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
REREAD_SECONDS = 60.0
"""A service account's token is renewed on disk; it is read again this often."""


@dataclass(frozen=True, slots=True)
class Access:
    """The address of an API server, and the credentials to reach it with.

    ``token`` gives the bearer token to send now, None for none.

    Files hold PEM; ``namespace`` is where commands look by default.
    """

    server: str
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    verify: bool = True
    server_name: str | None = None
    namespace: str = "default"
    token: Callable[[], str | None] = field(default=lambda: None)
    scratch: tempfile.TemporaryDirectory[str] | None = None
    """Keeps files made of what a kubeconfig holds inline for as long as this lives."""


def find_access(kubeconfig: str | None = None, context: str | None = None) -> Access:
    """Find the API server: the named kubeconfig, else ``$KUBECONFIG``, else a pod's own, else ``~/.kube/config``.

    Raises
    ------
    InvalidInputError
        There is none, or it says too little or something wrong.
    """
    named = kubeconfig or os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]
    if not named and context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
        return _in_cluster()
    path = Path(named) if named else Path.home() / ".kube" / "config"
    if not named and not path.exists():
        raise _fault(str(path), "there is no kubeconfig; name one with --kubeconfig or KUBECONFIG")
    return _Kubeconfig(path).access(context)


def _in_cluster() -> Access:
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not (SERVICE_ACCOUNT / "token").exists():
        raise _fault(str(SERVICE_ACCOUNT / "token"), "is missing; mount the service account's token into the pod")
    namespace = SERVICE_ACCOUNT / "namespace"
    return Access(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        ca_file=str(SERVICE_ACCOUNT / "ca.crt"),
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
        token=_FileToken(SERVICE_ACCOUNT / "token"),
    )


class _FileToken:
    """A token in a file that is renewed now and then."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._text = ""
        self._read_at = -REREAD_SECONDS

    def __call__(self) -> str | None:
        now = time.monotonic()
        if now - self._read_at >= REREAD_SECONDS:
            self._text, self._read_at = self.path.read_text().strip(), now
        return self._text


class _Plugin:
    """A credential plugin (client.authentication.k8s.io): a program that prints a token."""

    def __init__(self, spec: Mapping[str, Any], file: str) -> None:
        self.spec, self.file = spec, file
        self._token: str | None = None
        self._until = 0.0

    def __call__(self) -> str | None:
        if self._token is None or time.time() >= self._until:
            self._ask()
        return self._token

    def _ask(self) -> None:
        spec = self.spec
        version = spec.get("apiVersion", "client.authentication.k8s.io/v1")
        asked = {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}
        extra = {e["name"]: e["value"] for e in spec.get("env") or ()}
        environment = {**os.environ, **extra, "KUBERNETES_EXEC_INFO": json.dumps(asked)}
        command = [spec["command"], *(spec.get("args") or ())]
        try:
            done = subprocess.run(command, env=environment, capture_output=True, timeout=60, check=True)  # noqa: S603  what the user's own kubeconfig names
            status = json.loads(done.stdout)["status"]
            self._token = status["token"]
        except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
            raise _fault(self.file, f"its credential plugin {command[0]} gave no token: {error}") from None
        expires = status.get("expirationTimestamp")
        until = datetime.fromisoformat(expires).timestamp() if expires else time.time() + 600
        self._until = until - 30


class _Kubeconfig:
    """Reads one kubeconfig."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.value = read_document(path).value
        self.scratch: tempfile.TemporaryDirectory[str] | None = None

    def access(self, context: str | None) -> Access:
        """Give the access that a context describes, the current one if none is named."""
        wanted = context or self._mapping(self.value).get("current-context")
        if not wanted:
            raise _fault(str(self.path), "names no current-context; choose one with --context")
        chosen = self._named("contexts", "context", str(wanted))
        cluster = self._named("clusters", "cluster", chosen.get("cluster", ""))
        user = self._named("users", "user", chosen["user"]) if chosen.get("user") else {}
        if not cluster.get("server"):
            raise _fault(str(self.path), f"cluster {chosen.get('cluster')} has no server")
        return Access(
            server=str(cluster["server"]).rstrip("/"),
            ca_file=self._file(cluster, "certificate-authority"),
            cert_file=self._file(user, "client-certificate"),
            key_file=self._file(user, "client-key"),
            verify=not cluster.get("insecure-skip-tls-verify", False),
            server_name=cluster.get("tls-server-name"),
            namespace=chosen.get("namespace", "default"),
            token=self._token(user),
            scratch=self.scratch,
        )

    def _token(self, user: Mapping[str, Any]) -> Callable[[], str | None]:
        if user.get("token"):
            text = str(user["token"])
            return lambda: text
        if user.get("tokenFile"):
            return _FileToken(self.path.parent / user["tokenFile"])
        if user.get("exec"):
            return _Plugin(user["exec"], str(self.path))
        return lambda: None

    def _named(self, section: str, key: str, name: str) -> Mapping[str, Any]:
        entries = [e for e in self._mapping(self.value).get(section) or () if isinstance(e, dict)]
        for entry in entries:
            if entry.get("name") == name:
                return self._mapping(entry.get(key))
        hint = nearest(name, [str(e.get("name")) for e in entries])
        raise _fault(str(self.path), f"there is no {key} {name!r}{hint}")

    def _mapping(self, value: Any) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise _fault(str(self.path), "is no kubeconfig; it has clusters, users and contexts")
        return value

    def _file(self, entry: Mapping[str, Any], key: str) -> str | None:
        """Give the file that holds a certificate or key; what stands in the kubeconfig itself is written to one."""
        inline = entry.get(f"{key}-data")
        if inline:
            if self.scratch is None:
                self.scratch = tempfile.TemporaryDirectory(prefix="tenure-")
            target = Path(self.scratch.name) / key
            target.write_bytes(base64.b64decode(inline))
            target.chmod(0o600)
            return str(target)
        return str(self.path.parent / entry[key]) if entry.get(key) else None


def _fault(file: str, message: str) -> InvalidInputError:
    return InvalidInputError([InputProblem(file, 0, "", message)])

"""Where the API server is and who asks: a kubeconfig, or the service account of a pod."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from tenure.model.documents.source import read_document
from tenure.model.values.problems import InputProblem, InvalidInputError, nearest

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_MOST_SAID: Final = 300
"""Letters of what a credential plugin said that are told."""

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
    acts_as: tuple[tuple[str, str], ...] = ()
    """Headers that say as which other user the requests are made."""
    token: Callable[[], str | None] = field(default=lambda: None)
    scratch: tempfile.TemporaryDirectory[str] | None = None
    """Keeps files made of what a kubeconfig holds inline for as long as this lives."""


def find_access(kubeconfig: str | None = None, context: str | None = None) -> Access:
    """Find the API server: the named kubeconfig, else ``$KUBECONFIG``, else a pod's own, else ``~/.kube/config``.

    Of several files in ``$KUBECONFIG`` the first that says something counts, as for kubectl.

    Raises
    ------
    InvalidInputError
        There is none, or it says too little or something wrong.
    """
    named = kubeconfigs(kubeconfig, context)
    if not named:
        return _in_cluster()
    if not (kubeconfig or os.environ.get("KUBECONFIG")) and not named[0].exists():
        raise _fault(str(named[0]), "there is no kubeconfig; name one with --kubeconfig or KUBECONFIG")
    said = [path for path in named if path.exists() and not (path.is_file() and path.stat().st_size == 0)]
    if not said and named[0].exists():
        raise _fault(str(named[0]), "is empty; a kubeconfig has clusters, users and contexts")
    return _Kubeconfig(said or named[:1]).access(context)


def kubeconfigs(kubeconfig: str | None = None, context: str | None = None) -> list[Path]:
    """Give the kubeconfig files that count, whether they are there or not; none where a pod's own account does."""
    listed = [kubeconfig] if kubeconfig else list(filter(None, os.environ.get("KUBECONFIG", "").split(os.pathsep)))
    if not listed and context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
        return []
    return [Path(one) for one in listed] or [Path.home() / ".kube" / "config"]


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
            self._text, self._read_at = _token(str(self.path), self.path.read_text(errors="replace")), now
        return self._text


class _Plugin:
    """A credential plugin (client.authentication.k8s.io): a program that prints a token.

    It is asked by one thread at a time, and all of them use what it said.
    """

    def __init__(self, spec: _Section) -> None:
        self.file = spec.file
        program = spec.text("command")
        if not program:
            raise spec.fault("names no command; name the program that prints a token")
        if os.sep in program:
            program = str(Path(spec.file).parent / program)
        self.command = [program, *spec.texts("args")]
        self.environment = {entry.text("name"): entry.text("value") for entry in spec.sections("env")}
        self.version = spec.text("apiVersion") or "client.authentication.k8s.io/v1"
        self._lock = threading.Lock()
        self._token: str | None = None
        self._until = 0.0

    def __call__(self) -> str | None:
        with self._lock:
            if self._token is None or time.time() >= self._until:
                self._ask()
            return self._token

    def _ask(self) -> None:
        asked = {"apiVersion": self.version, "kind": "ExecCredential", "spec": {"interactive": False}}
        environment = {**os.environ, **self.environment, "KUBERNETES_EXEC_INFO": json.dumps(asked)}
        try:
            done = subprocess.run(self.command, env=environment, capture_output=True, timeout=60, check=False)  # noqa: S603  what the user's own kubeconfig names
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            raise self._failed(_reason(error)) from None
        if done.returncode:
            last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            raise self._failed(f"it ended with {done.returncode}: {last[:_MOST_SAID]}")
        self._token, self._until = self._read(done.stdout)

    def _read(self, answer: bytes) -> tuple[str, float]:
        """Give the token that it printed, and until when it is sent."""
        try:
            status = json.loads(answer)["status"]
            token, expires = status["token"], status.get("expirationTimestamp")
            until = datetime.fromisoformat(expires).timestamp() if expires else time.time() + 600
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
            raise self._failed("what it printed is no ExecCredential with a token in its status") from None
        if not isinstance(token, str):
            raise self._failed("its token is no text")
        return _token(self.file, token), until - 30

    def _failed(self, why: str) -> InvalidInputError:
        return _fault(self.file, f"its credential plugin {self.command[0]} gave no token: {why}")


def _reason(error: Exception) -> str:
    """Say what kept a program from being run, without its arguments, which may be secrets."""
    if isinstance(error, subprocess.TimeoutExpired):
        return f"it did not answer within {error.timeout:.0f}s"
    return str(getattr(error, "strerror", None) or error).lower()


class _Section:
    """A mapping in a kubeconfig whose values are read by what they have to be; ``where`` says which it is."""

    def __init__(self, file: str, value: Any, where: str) -> None:
        self.file, self.where = file, where
        if not isinstance(value, dict):
            raise self.fault("is no mapping; a kubeconfig has clusters, users and contexts")
        self._value = value

    def fault(self, message: str, key: str = "") -> InvalidInputError:
        """Say what is wrong with it, or with one of its values."""
        return _fault(self.file, message, ".".join(filter(None, (self.where, key))))

    def has(self, key: str) -> bool:
        """Whether something is said under a key."""
        return self._value.get(key) not in (None, "", [], {})

    def text(self, key: str) -> str:
        """Give a text, empty where there is none."""
        found = self._value.get(key)
        if found is not None and not isinstance(found, str):
            raise self.fault("is no text; write it in quotes", key)
        return found or ""

    def beside(self, key: str) -> Path:
        """Give the file that is named, from where the kubeconfig is."""
        return Path(self.file).parent / self.text(key)

    def texts(self, key: str) -> list[str]:
        """Give a list of texts."""
        found = self._value.get(key) or []
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise self.fault("is no list of texts", key)
        return found

    def flag(self, key: str) -> bool:
        """Give true or false; a text is neither, whatever it says."""
        found = self._value.get(key)
        if found is not None and not isinstance(found, bool):
            raise self.fault("is neither true nor false; write it without quotes", key)
        return bool(found)

    def section(self, key: str) -> _Section:
        """Give what stands under a key."""
        return _Section(self.file, self._value.get(key) or {}, ".".join(filter(None, (self.where, key))))

    def sections(self, key: str) -> list[_Section]:
        """Give the entries of a list."""
        found = self._value.get(key) or []
        if not isinstance(found, list):
            raise self.fault("is no list", key)
        where = ".".join(filter(None, (self.where, key)))
        return [_Section(self.file, entry, f"{where}[{number}]") for number, entry in enumerate(found)]


_UNSUPPORTED: Final = {
    "auth-provider": "which Kubernetes has taken out; name its credential plugin under exec",
    "username": "which API servers take no more; use a token, a certificate or a credential plugin",
    "as-uid": "which is not read; name the other user by as and as-groups",
    "as-user-extra": "which is not read; name the other user by as and as-groups",
}
"""What a user of a kubeconfig may have and is not heeded: to leave it out would ask as another user."""


class _Kubeconfig:
    """Reads kubeconfigs, of which the earlier come first."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.path = paths[0]
        self.values = [_Section(str(path), read_document(path).value, "") for path in paths]
        self.scratch: tempfile.TemporaryDirectory[str] | None = None

    def access(self, context: str | None) -> Access:
        """Give the access that a context describes, the current one if none is named."""
        wanted = context or next(filter(None, (value.text("current-context") for value in self.values)), "")
        if not wanted:
            raise _fault(str(self.path), "names no current-context; choose one with --context")
        chosen = self._named("contexts", "context", wanted)
        cluster = self._named("clusters", "cluster", chosen.text("cluster"))
        user = self._named("users", "user", chosen.text("user")) if chosen.has("user") else None
        if cluster.has("proxy-url"):
            raise cluster.fault("is not supported; name a server that is reached without a proxy", "proxy-url")
        certificate, key = (None, None) if user is None else self._certificate(user)
        return Access(
            server=_server(cluster),
            ca_file=self._file(cluster, "certificate-authority"),
            cert_file=certificate,
            key_file=key,
            verify=not cluster.flag("insecure-skip-tls-verify"),
            server_name=cluster.text("tls-server-name") or None,
            namespace=chosen.text("namespace") or "default",
            token=_no_token if user is None else self._token(user),
            acts_as=() if user is None else _acts_as(user),
            scratch=self.scratch,
        )

    def _certificate(self, user: _Section) -> tuple[str | None, str | None]:
        """Give the files of a certificate and of its key, which go together."""
        certificate, key = self._file(user, "client-certificate"), self._file(user, "client-key")
        if (certificate is None) != (key is None):
            raise user.fault("has one of client-certificate and client-key; name both")
        return certificate, key

    def _token(self, user: _Section) -> Callable[[], str | None]:
        for key, why in _UNSUPPORTED.items():
            if user.has(key):
                raise user.fault(f"stands there, {why}", key)
        if user.has("tokenFile"):
            return _FileToken(user.beside("tokenFile"))
        if user.has("token"):
            text = _token(user.file, user.text("token"))
            return lambda: text
        if user.has("exec"):
            return _Plugin(user.section("exec"))
        return _no_token

    def _named(self, section: str, key: str, name: str) -> _Section:
        entries = [entry for value in self.values for entry in value.sections(section)]
        for entry in entries:
            if entry.text("name") == name:
                return entry.section(key)
        hint = nearest(name, [entry.text("name") for entry in entries])
        raise _fault(str(self.path), f"there is no {key} {name!r}{hint}")

    def _file(self, entry: _Section, key: str) -> str | None:
        """Give the file that holds a certificate or key; what stands in the kubeconfig itself is written to one."""
        inline = entry.text(f"{key}-data")
        if inline:
            try:
                data = base64.b64decode("".join(inline.split()), validate=True)
            except ValueError:
                raise entry.fault("is not base64", f"{key}-data") from None
            if self.scratch is None:
                self.scratch = tempfile.TemporaryDirectory(prefix="tenure-")
            target = Path(self.scratch.name) / key
            target.write_bytes(data)
            target.chmod(0o600)
            return str(target)
        return str(entry.beside(key)) if entry.has(key) else None


def _no_token() -> None:
    return None


def _server(cluster: _Section) -> str:
    """Give the address of the API server."""
    text = cluster.text("server").rstrip("/")
    if not text:
        raise cluster.fault("has no server; name the API server, such as https://127.0.0.1:6443")
    try:
        parts = urlsplit(text)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_address = False
    if not is_address or not text.isprintable() or " " in text:
        raise cluster.fault(f"is {text!r}, which is no address, such as https://127.0.0.1:6443", "server")
    return text


def _acts_as(user: _Section) -> tuple[tuple[str, str], ...]:
    """Give the headers by which a user acts as another one, by rights of its own to do so."""
    name, groups = user.text("as"), user.texts("as-groups")
    if not name:
        if groups:
            raise user.fault("says as-groups and not as; name the user to act as", "as-groups")
        return ()
    found = (("Impersonate-User", name), *(("Impersonate-Group", group) for group in groups))
    if not all(text.isprintable() and text.isascii() for _, text in found):
        raise user.fault("has letters that no header takes", "as")
    return found


def _token(file: str, text: str) -> str:
    """Give a token that can be sent."""
    text = text.strip()
    if not (text.isprintable() and text.isascii()):
        raise _fault(file, "has a token with letters that no header takes; copy it anew, in one line")
    return text


def _fault(file: str, message: str, path: str = "") -> InvalidInputError:
    return InvalidInputError([InputProblem(file, 0, path, message)])

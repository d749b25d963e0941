"""How the API server is found: kubeconfigs with tokens, certificates, plugins, and a pod's own account."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path

import pytest

from tenure.clusters.kubernetes.client import access
from tenure.clusters.kubernetes.client.access import find_access
from tenure.model.problems import InvalidInputError


def kubeconfig(folder, user, cluster=None, **extra):
    """Write a kubeconfig of one context."""
    value = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "shop"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1/", **(cluster or {})}}],
        "users": [{"name": "u", "user": user}],
        **extra,
    }
    path = folder / "config"
    path.write_text(json.dumps(value))
    return str(path)


def test_a_token_and_a_server(tmp_path):
    """The plain case: who asks whom."""
    found = find_access(kubeconfig(tmp_path, {"token": "secret"}))
    assert (found.server, found.token(), found.namespace) == ("https://127.0.0.1:1", "secret", "shop")


def test_files_are_named_from_where_the_kubeconfig_is_and_what_is_inline_is_kept_for_as_long(tmp_path):
    """A relative name is one beside the kubeconfig; inline data go into a file that only the owner reads."""
    inline = base64.b64encode(b"pem").decode()
    found = find_access(kubeconfig(tmp_path, {"client-key-data": inline}, {"certificate-authority": "ca.crt"}))
    assert found.ca_file == str(tmp_path / "ca.crt")
    key = Path(found.key_file)
    assert (key.read_bytes(), key.stat().st_mode & 0o777) == (b"pem", 0o600)


def test_a_plugin_is_asked_for_a_token(tmp_path):
    """A program that the kubeconfig names prints the token."""
    said = json.dumps({"status": {"token": "fresh"}})
    plugin = {"command": sys.executable, "args": ["-c", f"print({said!r})"]}
    assert find_access(kubeconfig(tmp_path, {"exec": plugin})).token() == "fresh"


def test_a_plugin_that_fails_says_so(tmp_path):
    """What a plugin does wrong is told with its name, and is no traceback."""
    found = find_access(kubeconfig(tmp_path, {"exec": {"command": sys.executable, "args": ["-c", "1/0"]}}))
    with pytest.raises(InvalidInputError, match="gave no token"):
        found.token()


def test_a_pod_uses_its_own_account(tmp_path, monkeypatch):
    """Inside a cluster nothing has to be named."""
    for name, text in (("token", "own\n"), ("namespace", "tenure-system"), ("ca.crt", "")):
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(access, "SERVICE_ACCOUNT", tmp_path)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    found = find_access()
    assert (found.server, found.token(), found.namespace) == ("https://10.0.0.1:443", "own", "tenure-system")


WRONG = {
    "no such context": ({"current-context": "ther"}, "there is no context 'ther'"),
    "no context": ({"current-context": ""}, "names no current-context"),
    "no such cluster": ({"clusters": []}, "there is no cluster 'c'"),
    "no server": ({"clusters": [{"name": "c", "cluster": {}}]}, "has no server"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_with_a_kubeconfig_is_said(what, tmp_path):
    """Each mistake is told with the file, in words."""
    extra, message = WRONG[what]
    with pytest.raises(InvalidInputError, match=message):
        find_access(kubeconfig(tmp_path, {}, **extra))


def test_no_kubeconfig_at_all_is_said(tmp_path, monkeypatch):
    """Who has none is told how to name one."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(InvalidInputError, match="there is no kubeconfig"):
        find_access()

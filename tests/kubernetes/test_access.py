"""How the API server is found: kubeconfigs with tokens, certificates, plugins, and a pod's own account."""

from __future__ import annotations

import base64
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tenure.clusters.kubernetes.client import access
from tenure.clusters.kubernetes.client.access import find_access
from tenure.clusters.kubernetes.client.requests import Client
from tenure.model.values.problems import InvalidInputError


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
    user = {"client-key-data": inline, "client-certificate-data": inline}
    found = find_access(kubeconfig(tmp_path, user, {"certificate-authority": "ca.crt"}))
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


@pytest.mark.parametrize(
    ("user", "cluster", "extra", "place"),
    [
        ({}, {}, {"contexts": 5}, "contexts: is no list"),
        ({}, {}, {"contexts": [{"name": "here", "context": [1]}]}, "contexts[0].context: is no mapping"),
        ({}, {}, {"current-context": [1]}, "current-context: is no text"),
        ({}, {"server": 5}, {}, "clusters[0].cluster.server: is no text"),
        ({}, {"server": ""}, {}, "clusters[0].cluster: has no server"),
        ({}, {"server": "127.0.0.1:6443"}, {}, "no address, such as https://"),
        ({}, {"server": "https://127.0.0.1:99999"}, {}, "no address, such as https://"),
        ({}, {"server": "https://a\nb"}, {}, "no address, such as https://"),
        ({}, {"certificate-authority-data": "!!!"}, {}, "certificate-authority-data: is not base64"),
        ({}, {"certificate-authority": ["a"]}, {}, "certificate-authority: is no text"),
        ({}, {"insecure-skip-tls-verify": "false"}, {}, "insecure-skip-tls-verify: is neither true nor false"),
        ({}, {"proxy-url": "http://127.0.0.1:2"}, {}, "proxy-url: is not supported"),
        ({"client-key-data": "cGVt"}, {}, {}, "has one of client-certificate and client-key"),
        ({"username": "a", "password": "b"}, {}, {}, "users[0].user.username: stands there"),
        ({"auth-provider": {"name": "gcp"}}, {}, {}, "users[0].user.auth-provider: stands there"),
        ({"token": "t", "as": "x", "as-uid": "1"}, {}, {}, "users[0].user.as-uid: stands there"),
        ({"token": "t", "as-groups": ["g"]}, {}, {}, "says as-groups and not as"),
        ({"token": "a\nb: c"}, {}, {}, "letters that no header takes"),
        ({"token": "t\u2603"}, {}, {}, "letters that no header takes"),
        ({"exec": "program"}, {}, {}, "users[0].user.exec: is no mapping"),
        ({"exec": {"args": ["x"]}}, {}, {}, "names no command"),
        ({"exec": {"command": "true", "args": 5}}, {}, {}, "args: is no list of texts"),
        ({"exec": {"command": "true", "env": [{"name": "A", "value": 5}]}}, {}, {}, "env[0].value: is no text"),
    ],
)
def test_what_is_wrong_is_told_with_its_place_and_nothing_is_left_out(tmp_path, user, cluster, extra, place):
    """What is not heeded is refused: to ask as somebody else, or without a certificate, is no way to go on."""
    with pytest.raises(InvalidInputError) as told:
        find_access(kubeconfig(tmp_path, user, cluster, **extra))
    assert place in str(told.value)


@pytest.mark.parametrize(
    "printed",
    ["[]", "{", "null", '{"status": null}', '{"status": {}}', '{"status": {"token": 5}}', "[" * 100_000,
     '{"status": {"token": "x", "expirationTimestamp": "soon"}}',
     '{"status": {"token": "x", "expirationTimestamp": 5}}',
     '{"status": {"token": "a\\nb"}}', '{"status": {"clientCertificateData": "x", "clientKeyData": "y"}}'],
)  # fmt: skip
def test_a_plugin_that_prints_no_token_is_told_of(tmp_path, printed):
    """Whatever a program prints, the kubeconfig is named and nothing breaks."""
    (tmp_path / "printed").write_text(printed)
    plugin = {"command": "cat", "args": [str(tmp_path / "printed")]}
    found = find_access(kubeconfig(tmp_path, {"exec": plugin}))
    with pytest.raises(InvalidInputError, match="token"):
        found.token()


def test_a_plugin_that_fails_is_told_by_what_it_said_and_not_by_its_arguments(tmp_path):
    """It says what to do; its arguments may be secrets."""
    plugin = {"command": "sh", "args": ["-c", "echo log in first >&2; exit 3 # secret"]}
    found = find_access(kubeconfig(tmp_path, {"exec": plugin}))
    with pytest.raises(InvalidInputError) as told:
        found.token()
    assert str(told.value).endswith("it ended with 3: log in first")


def test_a_plugin_is_asked_once_whoever_needs_its_token(tmp_path):
    """All watches begin at once; a program that takes a second is not run thirty times for it."""
    script = f"echo >> {tmp_path}/asked; sleep 0.3; echo '{json.dumps({'status': {'token': 'x'}})}'"
    (tmp_path / "plugin").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "plugin").chmod(0o755)
    found = find_access(kubeconfig(tmp_path, {"exec": {"command": "./plugin"}}))  # beside the kubeconfig
    with ThreadPoolExecutor(10) as threads:
        assert set(threads.map(lambda _: found.token(), range(10))) == {"x"}
    assert (tmp_path / "asked").read_text() == "\n"


@pytest.mark.parametrize(
    ("user", "cluster", "file"),
    [
        ({}, {"certificate-authority": "gone.crt"}, "gone.crt"),
        ({}, {"certificate-authority": "config"}, "config"),
        ({"client-certificate": "config", "client-key": "config"}, {}, "config"),
    ],
)
def test_a_certificate_that_cannot_be_read_is_named(tmp_path, user, cluster, file):
    """Its file is in the sentence, as OpenSSL says neither which nor what of it is missing."""
    with pytest.raises((OSError, InvalidInputError)) as told:
        Client(find_access(kubeconfig(tmp_path, user, cluster)))
    assert str(tmp_path / file) in str(told.value)


def test_a_user_acts_as_somebody_else(tmp_path):
    """With what is written there, and no more: the rights are those of whom it acts as."""
    found = find_access(kubeconfig(tmp_path, {"token": "t", "as": "viewer", "as-groups": ["a", "b"]}))
    headers = Client(found)._headers("", "")
    assert (headers["Impersonate-User"], headers.getlist("Impersonate-Group")) == ("viewer", ["a", "b"])


def test_of_several_kubeconfigs_the_first_that_says_something_counts(tmp_path, monkeypatch):
    """As for kubectl: one has the context and another the user; what is not there or empty is passed over."""
    paths = [tmp_path / name / "config" for name in ("first", "second")]
    for path in paths:
        path.parent.mkdir()
    kubeconfig(paths[0].parent, {}, users=[])
    kubeconfig(paths[1].parent, {"tokenFile": "token"}, **{"current-context": "elsewhere"})
    (paths[1].parent / "token").write_text("beside\n")
    (tmp_path / "empty").write_text("")
    listed = (tmp_path / "gone", tmp_path / "empty", *paths)
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, listed)))
    assert find_access().token() == "beside"
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "empty"))
    with pytest.raises(InvalidInputError, match="is empty; a kubeconfig has"):
        find_access()

"""An API server that takes connections and says nothing, or half of it, keeps no command from ending."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
from contextlib import suppress

import pytest
from tests import preloaded

from tenure.clusters.kubernetes.client.access import find_access
from tenure.clusters.kubernetes.client.requests import ApiError, Client

HALF = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
CLOSING = HALF.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
ANSWERS = {"nothing": b"", "half": HALF, "half, and closes": CLOSING, "a status line": b"HTTP/1.1 200 OK\r\n"}


class SilentServer:
    """Takes every connection, answers what is asked with the same words, and then says nothing for ever."""

    def __init__(self, answer, *, closes=False):
        self.answer, self.closes = answer, closes
        self.asked = threading.Event()
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.connections = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with suppress(OSError):
            while True:
                connection, _ = self.listening.accept()
                self.connections.append(connection)
                threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

    def talk(self, connection):
        with suppress(OSError):
            connection.recv(65_536)
            connection.sendall(self.answer)
            self.asked.set()
            if self.closes:
                connection.close()

    def close(self):
        for one in (self.listening, *self.connections):
            one.close()


@pytest.fixture
def silent(request):
    made = SilentServer(ANSWERS[request.param])
    yield made
    made.close()


def kubeconfig_of(server, folder, scheme="http"):
    """Write how the server is reached; gives the file."""
    address = f"{scheme}://127.0.0.1:{server.listening.getsockname()[1]}"
    config = {"current-context": "c", "clusters": [{"name": "c", "cluster": {"server": address}}],
              "contexts": [{"name": "c", "context": {"cluster": "c"}}]}  # fmt: skip
    (folder / "kubeconfig").write_text(json.dumps(config), encoding="utf-8")
    return str(folder / "kubeconfig")


def started(words, server, folder, scheme="http", module="tenure"):
    """Start a command that asks the server; gives its process once it does."""
    kubeconfig = kubeconfig_of(server, folder, scheme)
    around = {name: value for name, value in os.environ.items() if name not in ("KUBECONFIG", "TENURE_HISTORY")}
    process = preloaded.start([*words.split(), "--kubeconfig", kubeconfig], env=around, module=module, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    assert server.asked.wait(120), process.stderr.read()
    return process


def end_of(process, number):
    """Send a signal; gives the exit code and the lines on standard error. An answer is waited for for 30 s and more."""
    process.send_signal(number)
    try:
        _, errors = process.communicate(timeout=25)
    finally:
        process.kill()
    return process.returncode, errors.splitlines()


@pytest.mark.parametrize(("silent", "scheme", "number"), [
    ("nothing", "http", signal.SIGINT), ("half", "http", signal.SIGTERM), ("half, and closes", "http", signal.SIGINT),
    ("a status line", "http", signal.SIGTERM), ("nothing", "https", signal.SIGTERM),
], indirect=["silent"])  # fmt: skip
def test_a_scheduler_ends_in_order(silent, scheme, number, tmp_path):
    process = started("scheduler --listen 127.0.0.1:0", silent, tmp_path, scheme)
    code, errors = end_of(process, number)
    said = [json.loads(line) for line in errors]
    assert code == 0
    assert [line["message"] for line in said if line["level"] == "warning"] == [
        "the API server did not answer in time; the last requests were given up, and what came of them is not known"
    ]


@pytest.mark.parametrize("silent", ["half"], indirect=True)
@pytest.mark.parametrize(("module", "words"), [
    ("tenure", "plan --live"), ("tenure", "snapshot"), ("tenure.cli.plugin", "plan"), ("tenure.cli.plugin", "queues"),
])  # fmt: skip
def test_a_command_that_asks_ends_at_once(silent, module, words, tmp_path):
    process = started(words, silent, tmp_path, module=module)
    assert end_of(process, signal.SIGINT) == (130, ["interrupted"])


def test_a_server_that_says_nothing_is_not_asked_again_and_again(tmp_path):
    """Whoever waits hears of it after the seconds that one request may take, and not after five times as many."""
    server = SilentServer(b"")
    client = Client(find_access(kubeconfig_of(server, tmp_path)), timeout=0.5)
    with pytest.raises(ApiError, match="cannot be reached"):
        client.get("/api/v1/nodes")
    assert len(server.connections) == 1
    server.close()


@pytest.mark.parametrize("answer", ["half", "a status line"])
def test_an_answer_that_is_cut_off_is_no_answer(answer, tmp_path, run_command):
    server = SilentServer(ANSWERS[answer], closes=True)
    code, out, errors = run_command("queues", "--kubeconfig", kubeconfig_of(server, tmp_path))
    server.close()
    assert (code, out) == (3, "")
    assert errors.startswith("API server: cannot be reached: ")

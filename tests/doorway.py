"""A program on a PATH that stands for Tenure's: the command is run by a process that has loaded all already.

What is tested with it is what commands do, one after the other as somebody types them, and not how one comes to be
loaded.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from pathlib import Path
from typing import Self

from tests import preloaded

PROGRAM = """#!{python} -IS
import json, os, socket, sys
door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
door.connect({address!r})
asked = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(door, [asked], [0, 1, 2])
sys.exit(int(door.recv(16)))
"""


class Doorway:
    """A folder with the program, and who answers it until this is closed: by the ``main`` of a module."""

    def __init__(self, folder: Path, name: str = "tenure", module: str = "tenure") -> None:
        self.folder = folder
        self._module = module
        address = str(folder / "door")
        self._door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._door.bind(address)
        self._door.listen()
        program = folder / name
        program.write_text(PROGRAM.format(python=sys.executable, address=address))
        program.chmod(0o755)
        threading.Thread(target=self._serve, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()

    def _serve(self) -> None:
        while True:
            try:
                asking, _ = self._door.accept()
            except OSError:
                return
            threading.Thread(target=_run, args=(asking, self._module), daemon=True).start()


def _run(asking: socket.socket, module: str) -> None:
    """Have a command run on the streams of who asks, and say how it ended."""
    with asking:
        asked, streams, _, _ = socket.recv_fds(asking, 1 << 20, 3)
        words, folder, environment = json.loads(asked)
        given = dict(zip(_STREAMS, streams, strict=True))
        command = preloaded.start(words, cwd=folder, env=environment, module=module, **given)
        for one in streams:
            os.close(one)
        asking.send(str(command.wait() & 0xFF).encode())


_STREAMS = ("stdin", "stdout", "stderr")

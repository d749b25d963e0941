"""An OCI image layout, written as the specification has it: layers, configurations, manifests and an index."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tools.deploy.chart import version
from tools.deploy.wheel import epoch
from tools.image import config

_TYPE: Final = "application/vnd.oci.image"
Descriptor = dict[str, Any]


def pack(folder: Path) -> bytes:
    """Pack a folder as a layer: in order of names, of one owner and one time, so that the same is packed the same."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in _below(folder):
            info = tar.gettarinfo(str(path), str(path.relative_to(folder)))
            info.uid = info.gid = 0
            info.uname = info.gname = ""
            info.mtime = epoch()
            info.type = tarfile.REGTYPE if info.islnk() else info.type
            if info.isreg():
                info.size = path.stat().st_size
                with path.open("rb") as content:
                    tar.addfile(info, content)
            else:
                tar.addfile(info)
    return packed.getvalue()


def _below(folder: Path) -> Iterator[Path]:
    return iter(sorted(folder.rglob("*"), key=lambda path: path.parts))


class ImageLayout:
    """A folder with an OCI image layout."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._manifests: list[Descriptor] = []
        (folder / "blobs" / "sha256").mkdir(parents=True)
        (folder / "oci-layout").write_text(json.dumps({"imageLayoutVersion": "1.0.0"}))

    def add(self, architecture: str, layers: list[Path]) -> list[str]:
        """Add the image for an architecture and give the digests of its layers, unpacked."""
        packed = [pack(layer) for layer in layers]
        digests = [_digest(layer) for layer in packed]
        blobs = [self._write(gzip.compress(layer, mtime=0), f"{_TYPE}.layer.v1.tar+gzip") for layer in packed]
        described = self._write(_json(configuration(architecture, digests)), f"{_TYPE}.config.v1+json")
        manifest = {
            "schemaVersion": 2,
            "mediaType": f"{_TYPE}.manifest.v1+json",
            "config": described,
            "layers": blobs,
        }
        platform = {"architecture": architecture, "os": "linux"}
        self._manifests.append({**self._write(_json(manifest), manifest["mediaType"]), "platform": platform})
        return digests

    def close(self) -> str:
        """Write the index, under the name of the version, and give its digest."""
        kind = f"{_TYPE}.index.v1+json"
        together = self._write(_json({"schemaVersion": 2, "mediaType": kind, "manifests": self._manifests}), kind)
        named = {**together, "annotations": {"org.opencontainers.image.ref.name": version()}}
        (self.folder / "index.json").write_bytes(_json({"schemaVersion": 2, "mediaType": kind, "manifests": [named]}))
        digest: str = together["digest"]
        return digest

    def _write(self, content: bytes, kind: str) -> Descriptor:
        digest = _digest(content)
        (self.folder / "blobs" / "sha256" / digest.removeprefix("sha256:")).write_bytes(content)
        return {"mediaType": kind, "digest": digest, "size": len(content)}


def configuration(architecture: str, digests: list[str]) -> dict[str, Any]:
    """Give the configuration of an image: how it is run, and of what it consists."""
    return {
        "created": datetime.fromtimestamp(epoch(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "architecture": architecture,
        "os": "linux",
        "config": {
            "User": config.USER_AND_GROUP,
            "Env": [f"{name}={value}" for name, value in config.ENVIRONMENT.items()],
            "Entrypoint": config.ENTRYPOINT,
            "Cmd": config.COMMAND,
            "WorkingDir": config.WORK_FOLDER,
            "Labels": {**config.LABELS, "org.opencontainers.image.version": version()},
        },
        "rootfs": {"type": "layers", "diff_ids": digests},
    }


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"

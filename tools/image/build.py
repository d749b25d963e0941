"""Builds the image for one architecture or several."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.image.oci import ImageLayout
from tools.image.rootfs import make_layers
from tools.image.sbom import bill


@dataclass(frozen=True)
class BuiltImage:
    """An image that was built: the digest of its index, and of the layers for each architecture."""

    digest: str
    layers: dict[str, list[str]]


def build(folder: Path, architectures: list[str]) -> BuiltImage:
    """Build into a folder: ``layout`` is the image, ``ARCHITECTURE.cdx.json`` what it consists of."""
    shutil.rmtree(folder, ignore_errors=True)
    layout = ImageLayout(folder / "layout")
    found = {}
    for architecture in architectures:
        with TemporaryDirectory(prefix="tenure-image-") as scratch:
            layers = make_layers(Path(scratch) / "layers", architecture)
            found[architecture] = layout.add(architecture, layers)
            (folder / f"{architecture}.cdx.json").write_text(bill(layers, architecture, found[architecture]))
    built = BuiltImage(layout.close(), found)
    (folder / "digests.json").write_text(json.dumps({"image": built.digest, "layers": built.layers}, indent=1) + "\n")
    return built

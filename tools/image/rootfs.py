"""The root file system of the image, in two layers."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tools.image import application, base
from tools.image.config import APPLICATION, PYTHON

LAYERS: Final = ("base", "application")
_LIBRARY: Final = f"/usr/lib/python{PYTHON[0]}.{PYTHON[1]}"


def make_layers(folder: Path, architecture: str) -> list[Path]:
    """Make a folder for each layer, the lower one first, and give them."""
    made = [folder / name for name in LAYERS]
    with TemporaryDirectory(prefix="tenure-image-") as scratch:
        lower, upper = made
        lower.mkdir(parents=True)
        base.unpack(base.download(Path(scratch) / "apt", architecture), lower)
        application.compile_all(lower / _LIBRARY.removeprefix("/"), _LIBRARY)
        application.install(upper, architecture, Path(scratch))
        application.compile_all(upper / APPLICATION.removeprefix("/"), APPLICATION)
    return made


def make_root(folder: Path, architecture: str) -> None:
    """Make the whole in one folder: what the Containerfile copies."""
    with TemporaryDirectory(prefix="tenure-image-") as scratch:
        for layer in make_layers(Path(scratch) / "layers", architecture):
            shutil.copytree(layer, folder, symlinks=True, dirs_exist_ok=True)

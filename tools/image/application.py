"""The upper layer: the project's wheel and what it needs, compiled, for a processor that need not be this one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tools.deploy.wheel import ROOT, build_wheel
from tools.image.config import APPLICATION, EXTRAS, PLATFORMS, PYTHON

_OF_THE_INSTALLER: Final = ("INSTALLER", "REQUESTED", "RECORD", "direct_url.json", "uv_cache.json", "uv_build.json")


def install(root: Path, architecture: str, scratch: Path) -> None:
    """Install into a root file system.

    Raises
    ------
    RuntimeError
        If this is another Python than the image's: what it compiles could not be read there.
    subprocess.CalledProcessError
        If uv fails; it has said why on standard error.
    """
    if sys.version_info[:2] != PYTHON:
        wanted = ".".join(map(str, PYTHON))
        raise RuntimeError(f"the image has Python {wanted}, so it is built by Python {wanted}")
    target = root / APPLICATION.removeprefix("/")
    target.mkdir(parents=True)
    wheel = build_wheel(scratch / "wheel")
    command = [
        sys.executable, "-m", "uv", "pip", "install", "--quiet", "--target", str(target),
        "--python-platform", PLATFORMS[architecture], "--python-version", ".".join(map(str, PYTHON)),
        "--only-binary", ":all:", "--link-mode", "copy", "--constraint", str(ROOT / "requirements.txt"),
        f"{wheel}[{','.join(EXTRAS)}]",
    ]  # fmt: skip
    subprocess.run(command, check=True)
    shutil.rmtree(target / "bin", ignore_errors=True)
    for folder in target.glob("*.dist-info"):
        for name in _OF_THE_INSTALLER:
            (folder / name).unlink(missing_ok=True)
    (target / ".lock").unlink(missing_ok=True)


def compile_all(folder: Path, shown: str) -> None:
    """Compile all modules below a folder; compiled files say nothing of when or where that was.

    A process of its own does so, in which sets of texts have one order and nothing else holds the constants: both show
    in compiled files. ``shown``: the folder's path in the image, which tracebacks name.
    """
    command = [
        sys.executable, "-S", "-m", "compileall", "-qq", "-f", "-s", str(folder), "-p", shown,
        "--invalidation-mode", "unchecked-hash", str(folder),
    ]  # fmt: skip
    subprocess.run(command, check=False, env={"PYTHONHASHSEED": "0"})  # what packages have as templates is no Python

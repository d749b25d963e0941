"""Runs tests on each supported Python that is to be had here, in an environment of its own, and says which are not.

python tools/pythons.py tests/model tests/engine
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
ROOT: Final = Path(__file__).resolve().parents[1]
CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tenure" / "pythons"
_UV: Final = [sys.executable, "-m", "uv"]


def environment(version: str) -> Path | None:
    """Give the Python of an environment with the project, made if need be; None where there is no such Python."""
    folder = CACHE / version
    interpreter = _of_pyenv(version) or version
    found = subprocess.run(
        [*_UV, "python", "find", "--no-project", interpreter], capture_output=True, text=True, check=False
    )
    if found.returncode and subprocess.run([*_UV, "python", "install", "--quiet", version], check=False).returncode:
        return None
    subprocess.run([*_UV, "venv", "--quiet", "--allow-existing", "--python", interpreter, str(folder)], check=True)
    python = folder / "bin" / "python"
    needed = ["--requirement", str(ROOT / "requirements.txt"), "--editable", f"{ROOT}[dev]"]
    subprocess.run([*_UV, "pip", "install", "--quiet", "--python", str(python), *needed], check=True)
    return python


def _of_pyenv(version: str) -> str:
    """Give a Python that pyenv has installed; its shims on the PATH only run those that it has switched on."""
    installed = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    return max(map(str, installed.glob(f"{version}.*/bin/python{version}")), default="")


def main(tests: list[str]) -> int:
    """Run the tests on each, and print a line for each."""
    said, failed = [], False
    for version in PYTHONS:
        python = environment(version)
        if python is None:
            said.append(f"Python {version}: not to be had here")
            continue
        began = time.monotonic()
        run = subprocess.run([str(python), "-m", "pytest", "-q", *tests], cwd=ROOT, check=False)
        failed = failed or run.returncode != 0
        word = "passed" if run.returncode == 0 else f"failed with exit code {run.returncode}"
        said.append(f"Python {version}: {word} after {time.monotonic() - began:.0f} s")
    print("\n".join(said))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Makes what krew installs ``kubectl tenure`` from: an archive, and the manifest that names it with its digest.

python -m tools.deploy.krew dist --url https://example.org/kubectl-tenure.tar.gz
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import sys
import tarfile
from pathlib import Path
from typing import Any, Final

from tenure.cli.plugin import SUMMARIES
from tenure.clusters.kubernetes.install.manifests import write
from tools.deploy.chart import PARTS, version
from tools.deploy.wheel import ROOT, build_wheel, epoch

ARCHIVE: Final = "kubectl-tenure.tar.gz"
MANIFEST: Final = "tenure.yaml"
LAUNCHER: Final = "kubectl-tenure"


def make(folder: Path, url: str) -> None:
    """Write the archive and the manifest into a folder; ``url`` is where the archive will be had."""
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / ARCHIVE
    archive.write_bytes(_archive([PARTS / LAUNCHER, build_wheel(folder), ROOT / "LICENSE"]))
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    (folder / MANIFEST).write_text(write([manifest(url, digest)]).removeprefix("---\n"), encoding="utf-8")


def manifest(url: str, digest: str) -> dict[str, Any]:
    """Give the manifest."""
    systems = {"matchExpressions": [{"key": "os", "operator": "In", "values": ["linux", "darwin"]}]}
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "tenure"},
        "spec": {
            "version": f"v{version()}",
            "homepage": url.rpartition("/")[0],
            "shortDescription": "Ask Tenure why workloads wait",
            "description": "What Tenure does with this cluster:\n"
            + "".join(f"* {name}: {said}\n" for name, said in SUMMARIES.items()),
            "caveats": "It needs Python 3.11 or later, or uv; the first call installs it into your cache folder.\n",
            "platforms": [
                {
                    "selector": systems,
                    "uri": url,
                    "sha256": digest,
                    "bin": LAUNCHER,
                    "files": [{"from": "*", "to": "."}],
                }
            ],
        },
    }


def _archive(files: list[Path]) -> bytes:
    """Pack files, the same each time."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", filename="", mtime=epoch()) as squeezed,
        tarfile.open(fileobj=squeezed, mode="w") as tar,
    ):
        for file in sorted(files, key=lambda file: file.name):
            info = tarfile.TarInfo(file.name)
            info.size, info.mtime = file.stat().st_size, epoch()
            info.mode = 0o755 if file.name == LAUNCHER else 0o644
            with file.open("rb") as content:
                tar.addfile(info, content)
    return packed.getvalue()


def main() -> int:
    """Make both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path, help="where both are written")
    parser.add_argument("--url", required=True, help="where the archive will be had")
    asked = parser.parse_args()
    make(asked.folder, asked.url)
    return 0


if __name__ == "__main__":
    sys.exit(main())

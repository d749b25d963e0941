"""The commands of `tools.image`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.image import base
from tools.image.config import PLATFORMS


def main() -> int:
    """Build an image, or a root file system."""
    parser = argparse.ArgumentParser(prog="python -m tools.image")
    parser.add_argument("what", choices=["build", "rootfs"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--arch", choices=list(PLATFORMS), action="append", help="default: all of them")
    asked = parser.parse_args()
    if not base.is_possible():
        print("the image is built on Debian, by root: apt-get and dpkg-deb fetch and unpack packages", file=sys.stderr)
        return 3
    architectures = asked.arch or list(PLATFORMS)
    if asked.what == "rootfs":
        from tools.image.rootfs import make_root  # noqa: PLC0415  the other needs what this one does not

        if len(architectures) != 1:
            parser.error("a root file system is for one architecture; name it with --arch")
        make_root(asked.folder, architectures[0])
        return 0
    from tools.image.build import build  # noqa: PLC0415

    built = build(asked.folder, architectures)
    print(built.digest)
    for architecture, digests in built.layers.items():
        print(architecture, *digests)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The lower layer: packages of Debian, unpacked. Their scripts are not run; what these would make is made here."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from tools.image.config import PACKAGES, USER_AND_GROUP

_APT_FOLDERS: Final = ("state/lists/partial", "cache/archives/partial", "debs")
_LEFT_OUT: Final = ("usr/share/man", "usr/share/locale", "usr/share/lintian", "usr/share/bug", "usr/share/info",
                    "usr/share/pixmaps", "usr/share/applications", "usr/share/binfmts", "usr/sbin", "etc/cron.daily",
                    "etc/update-motd.d", "etc/apt", "var/lib/dpkg/info")  # fmt: skip
_NOT_KEPT: Final = 0o6002
"""Bits of a mode: others may write, and a program sets its user or group."""

_EMPTY: Final = ("tmp", "run", "proc", "sys", "dev", "etc", "var/lib/dpkg/status.d")


def download(folder: Path, architecture: str) -> list[Path]:
    """Download the packages for an architecture and give their files; what the machine itself has is not changed.

    Raises
    ------
    subprocess.CalledProcessError
        If apt fails; it has said why on standard error.
    """
    for name in _APT_FOLDERS:
        (folder / name).mkdir(parents=True, exist_ok=True)
    options = [
        "-qq", "-o", f"Dir::State={folder / 'state'}", "-o", f"Dir::Cache={folder / 'cache'}",
        "-o", f"APT::Architecture={architecture}", "-o", f"APT::Architectures={architecture}",
        "-o", "Dir::State::status=/dev/null", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Languages=none",
    ]  # fmt: skip
    subprocess.run(["apt-get", *options, "update"], check=True)
    names = [f"{name}:{architecture}" if name not in _OF_ALL else name for name in PACKAGES]
    subprocess.run(["apt-get", *options, "download", *names], check=True, cwd=folder / "debs")
    return sorted((folder / "debs").glob("*.deb"))


_OF_ALL: Final = frozenset({"ca-certificates", "tzdata"})


def unpack(packages: list[Path], root: Path) -> None:
    """Unpack them into a root file system, without what nobody reads there, and make what their scripts would."""
    for folder in _EMPTY:
        (root / folder).mkdir(parents=True, exist_ok=True)
    for package in packages:
        subprocess.run(["dpkg-deb", "--extract", str(package), str(root)], check=True)
        told = subprocess.run(["dpkg-deb", "--field", str(package)], check=True, capture_output=True, text=True).stdout
        (root / "var/lib/dpkg/status.d" / package.name.partition("_")[0]).write_text(told)
    for path in _LEFT_OUT:
        shutil.rmtree(root / path, ignore_errors=True)
    for path in (root / "usr/share/doc").rglob("*"):
        if path.is_file() and path.name != "copyright":
            path.unlink()
    _certificates(root)
    _people(root)
    for path in root.rglob("*"):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~_NOT_KEPT)
    (root / "tmp").chmod(0o1777)


def _certificates(root: Path) -> None:
    """Write all certificates of authorities into the one file that OpenSSL reads."""
    bundle = root / "etc/ssl/certs/ca-certificates.crt"
    bundle.parent.mkdir(parents=True, exist_ok=True)
    found = sorted((root / "usr/share/ca-certificates/mozilla").glob("*.crt"))
    bundle.write_text("".join(path.read_text().rstrip("\n") + "\n" for path in found))


def _people(root: Path) -> None:
    user, group = USER_AND_GROUP.split(":")
    nobody = "/nonexistent:/usr/sbin/nologin"
    (root / "etc/passwd").write_text(f"root:x:0:0:root:/:/usr/sbin/nologin\ntenure:x:{user}:{group}:tenure:{nobody}\n")
    (root / "etc/group").write_text(f"root:x:0:\ntenure:x:{group}:\n")


def is_possible() -> bool:
    """Tell whether this machine has what this takes."""
    return all(shutil.which(name) for name in ("apt-get", "dpkg-deb")) and os.geteuid() == 0

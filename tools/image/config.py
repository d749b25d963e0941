"""What is said of the image, whoever builds it."""

from __future__ import annotations

from typing import Final

from tenure.clusters.kubernetes.install.installation import USER

APPLICATION: Final = "/usr/lib/tenure"
"""Where the wheel and what it needs are."""

ENTRYPOINT: Final = ["/usr/bin/python3.11", "-m", "tenure"]
COMMAND: Final = ["--help"]
ENVIRONMENT: Final = {
    "PATH": "/usr/bin",
    "LANG": "C.UTF-8",
    "SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt",
    "PYTHONPATH": APPLICATION,
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
}
WORK_FOLDER: Final = "/tmp"  # noqa: S108  the only place that a pod may write to
USER_AND_GROUP: Final = f"{USER}:{USER}"
LABELS: Final = {
    "org.opencontainers.image.title": "tenure",
    "org.opencontainers.image.description": "A batch scheduler and rescheduler for Kubernetes",
    "org.opencontainers.image.licenses": "Apache-2.0",
}

PACKAGES: Final = (
    "base-files", "ca-certificates", "libbz2-1.0", "libc6", "libcrypt1", "libexpat1", "libffi8", "libgcc-s1",
    "liblzma5", "libpython3.11-minimal", "libpython3.11-stdlib", "libsqlite3-0", "libssl3", "libstdc++6", "libuuid1",
    "python3.11-minimal", "tzdata", "zlib1g",
)  # fmt: skip
"""Packages of Debian 12, and all that is taken of it: a Python, what it links to, certificates and time zones."""

EXTRAS: Final = ("console", "kubernetes", "postgresql")
PYTHON: Final = (3, 11)
PLATFORMS: Final = {"amd64": "x86_64-manylinux_2_28", "arm64": "aarch64-manylinux_2_28"}
"""Architectures as containers call them, and what wheels are called for them."""

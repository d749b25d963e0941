"""The bill of materials of an image, in CycloneDX: each package of Debian and of Python that is in it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from email.parser import HeaderParser
from pathlib import Path

from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from tools.deploy.chart import version
from tools.deploy.wheel import epoch
from tools.image.config import APPLICATION


def bill(layers: list[Path], architecture: str, digests: list[str]) -> str:
    """Give the bill as JSON, the same for the same layers.

    Raises
    ------
    ValueError
        If it is not what the schema of CycloneDX has.
    """
    made = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_URL, " ".join(digests)))
    made.metadata.timestamp = datetime.fromtimestamp(epoch(), UTC)
    made.metadata.component = Component(
        type=ComponentType.CONTAINER, name="tenure", version=version(), bom_ref=f"image-{architecture}"
    )
    for root in layers:
        for component in (*_debian(root), *_python(root)):
            made.components.add(component)
    made.register_dependency(made.metadata.component, made.components)
    text = JsonV1Dot6(made).output_as_string(indent=1)
    wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if wrong is not None:
        raise ValueError(f"the bill of materials is not valid: {wrong}")
    return text + "\n"


def _debian(root: Path) -> Iterator[Component]:
    for path in sorted((root / "var/lib/dpkg/status.d").glob("*")):
        told = HeaderParser().parsestr(path.read_text())
        name, number, of = told["Package"], told["Version"], told["Architecture"]
        where = PackageURL("deb", "debian", name, number, {"arch": of, "distro": "debian-12"})
        yield Component(type=ComponentType.LIBRARY, name=name, version=number, purl=where, bom_ref=str(where))


def _python(root: Path) -> Iterator[Component]:
    for path in sorted((root / APPLICATION.removeprefix("/")).glob("*.dist-info/METADATA")):
        told = HeaderParser().parsestr(path.read_text())
        name, number = told["Name"], told["Version"]
        where = PackageURL("pypi", None, name.lower().replace("_", "-"), number)
        yield Component(type=ComponentType.LIBRARY, name=name, version=number, purl=where, bom_ref=str(where))

"""What the image is made of, looked at without building one; `tests/release` builds and runs it."""

import json
import os
import tarfile
from io import BytesIO
from pathlib import Path

from tools.image import config
from tools.image.oci import ImageLayout, configuration, pack

ROOT = Path(__file__).parents[2]
CONTAINERFILE = (ROOT / "Containerfile").read_text()


def instructions(word):
    """Give what stands behind an instruction of the Containerfile's last stage."""
    last = CONTAINERFILE.rpartition("FROM ")[2]
    return [line.removeprefix(word).strip() for line in last.splitlines() if line.startswith(f"{word} ")]


def test_the_containerfile_says_what_the_builder_without_an_engine_says():
    """User, command, environment and labels are those of the configuration, and the files are made by the same step."""
    assert instructions("USER") == [config.USER_AND_GROUP]
    assert [json.loads(text) for text in instructions("ENTRYPOINT")] == [config.ENTRYPOINT]
    assert [json.loads(text) for text in instructions("CMD")] == [config.COMMAND]
    assert instructions("WORKDIR") == [config.WORK_FOLDER]
    assert dict(text.split("=", 1) for text in instructions("ENV")) == config.ENVIRONMENT
    labels = {name: text.strip('"') for name, text in (line.split("=", 1) for line in instructions("LABEL"))}
    assert labels == config.LABELS
    assert instructions("COPY") == ["--from=build /image /"]
    assert "-m tools.image rootfs /image --arch" in CONTAINERFILE


def test_the_same_files_are_packed_the_same(tmp_path):
    """A layer does not say when, by whom or in which order its files were written, and keeps modes and links."""
    packed = []
    for number, names in enumerate((["b", "a/x", "c"], ["c", "a/x", "b"])):
        folder = tmp_path / str(number)
        for name in names:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)
            os.utime(path, (number, number))
        (folder / "b").chmod(0o755)
        (folder / "link").symlink_to("b")
        packed.append(pack(folder))
    assert packed[0] == packed[1]
    with tarfile.open(fileobj=BytesIO(packed[0])) as tar:
        assert [(m.name, oct(m.mode), m.uid, m.linkname) for m in tar if not m.isdir()] == [
            ("a/x", "0o644", 0, ""), ("b", "0o755", 0, ""), ("c", "0o644", 0, ""), ("link", "0o777", 0, "b"),
        ]  # fmt: skip


def test_a_layout_has_an_image_for_each_architecture(tmp_path):
    """The index leads to a manifest, that to configuration and layers, all under their digests."""
    (tmp_path / "layer").mkdir()
    (tmp_path / "layer" / "file").write_text("x")
    layout = ImageLayout(tmp_path / "layout")
    digests = {name: layout.add(name, [tmp_path / "layer"]) for name in ("amd64", "arm64")}
    layout.close()

    def read(described):
        return json.loads((tmp_path / "layout/blobs/sha256" / described["digest"].removeprefix("sha256:")).read_text())

    (named,) = json.loads((tmp_path / "layout/index.json").read_text())["manifests"]
    for entry in read(named)["manifests"]:
        architecture = entry["platform"]["architecture"]
        assert read(read(entry)["config"]) == configuration(architecture, digests[architecture])


def test_the_bill_of_materials_names_every_package_and_is_always_the_same(tmp_path):
    """Packages of Debian and of Python are in it with their versions."""
    debian = tmp_path / "var/lib/dpkg/status.d"
    python = tmp_path / config.APPLICATION.removeprefix("/") / "some_thing-1.0.dist-info"
    for folder in (debian, python):
        folder.mkdir(parents=True)
    (debian / "libc6").write_text("Package: libc6\nVersion: 2.36-9\nArchitecture: amd64\n")
    (python / "METADATA").write_text("Metadata-Version: 2.1\nName: some_thing\nVersion: 1.0\n")
    from tools.image.sbom import bill  # noqa: PLC0415  what it imports takes two seconds, of every worker

    made = bill([tmp_path], "amd64", ["sha256:1"])
    found = {component["purl"] for component in json.loads(made)["components"]}
    assert found == {"pkg:deb/debian/libc6@2.36-9?arch=amd64&distro=debian-12", "pkg:pypi/some-thing@1.0"}
    assert made == bill([tmp_path], "amd64", ["sha256:1"])

"""The configuration reference says what the code says."""

import re
from pathlib import Path

from tests.docs.scripts import load

from tenure.clusters.kubernetes.install.crds import custom_resource_definitions
from tenure.live.tables import ALL_EVENTS, METRICS
from tenure.model.fields.descriptions import FIELDS
from tenure.model.file.schema import json_schema

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "tenure"
NO_KEYS = {"tenure.dev/v1beta1", "tenure.dev/v1alpha1", "tenure.dev/scheduler"}


MADE = load("make_configuration")


def kind_schema():
    """Give the fields of kinds of owners: they are no part of a cluster file, but of a custom resource."""
    kind = next(crd for crd in custom_resource_definitions() if crd["spec"]["names"]["kind"] == "WorkloadKind")
    spec = kind["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    items = {"PodRole": "roles", "RoleGroup": "roleGroups"}
    found = {name: spec["properties"][field]["items"] for name, field in items.items()}
    return {"WorkloadKind": spec, "EndedParts": found["PodRole"]["properties"]["ended"], **found}


def test_the_page_is_what_the_code_says():
    """The page is up to date; if this fails, run: python docs/make_configuration.py."""
    assert MADE.TARGET.read_text(encoding="utf-8") == MADE.generate()


def test_every_setting_is_described_and_nothing_else_is():
    """Each field of settings, queues and rules has its sentence; none is about a field that is gone."""
    definitions = json_schema()["$defs"] | kind_schema()
    for name, sentences in FIELDS.items():
        fields = set(definitions.get(name, {}).get("properties", ()))
        if name == "Workload":
            assert set(sentences) <= fields | {"priorityClassName"}
        elif name != "NodePoolSpec":
            assert set(sentences) == fields, name
    described = set(FIELDS) | {name for name in definitions if not name.endswith("Settings")}
    assert set(definitions) <= described


def test_every_label_and_annotation_is_listed():
    """Each key under tenure.dev/ that stands in the source is on the page, and the page names no other."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    found = set(re.findall(r'"(tenure\.dev/[a-z][a-z0-9-]*)"', text)) - NO_KEYS
    found |= {f"tenure.dev/{name}" for name in ("expected-runtime", "requeue-delay", "requeue-not-before")}
    listed = {key for key in MADE.ON_PODS | MADE.WRITTEN if key.startswith("tenure.dev/")}
    assert found == listed


def test_every_event_and_metric_is_listed():
    """Each event and metric is on one of the pages about them."""
    others = [ROOT / "docs" / name for name in ("metrics-and-events.md", "live-cluster.md")]
    files = [path for path in SOURCE.rglob("*.py") if "history" not in path.parts]  # its tables have such names as well
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    found = set(re.findall(r'"(tenure_[a-z_]+)"', text)) | set(METRICS)
    page = MADE.generate() + "".join(path.read_text(encoding="utf-8") for path in others)
    assert [name for name in sorted(found | ALL_EVENTS) if f"`{name}`" not in page] == []


def test_documents_name_files_that_are_there():
    """Links between the documents lead somewhere."""
    for document in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name}: {target}"

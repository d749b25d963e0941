"""Where a policy comes from: files of any kind, or folders of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from tenure.model.cluster import Cluster
from tenure.model.documents.document import Document
from tenure.model.documents.source import read_documents
from tenure.model.entries import CLUSTER_KIND, SETTINGS_KIND
from tenure.model.file.load import Loaded, load_document
from tenure.model.policy import Policy
from tenure.model.settings import Settings
from tenure.model.values.problems import InputProblem, InvalidInputError

SUFFIXES = (".yaml", ".yml", ".json")
"""Names of what is read in a folder."""


def files_in(paths: Iterable[str]) -> list[str]:
    """Give files as they are, and in place of a folder what is YAML or JSON in it, at any depth, by name.
    A folder without any stands for itself, so that whatever reads it refuses it.
    """
    found: list[str] = []
    for path in paths:
        if not Path(path).is_dir():
            found.append(path)
            continue
        inside = sorted(str(file) for file in Path(path).rglob("*") if file.suffix in SUFFIXES and file.is_file())
        found += inside or [path]
    return found


def may_be_manifest(value: Any) -> bool:
    """Tell quickly whether a document has to be looked at as the manifest of an object."""
    return isinstance(value, dict) and value.get("kind") not in (None, CLUSTER_KIND, SETTINGS_KIND)


class PolicySource(NamedTuple):
    """A policy as it was given: ``cluster`` is there where it came as a cluster file, with nodes and workloads."""

    name: str
    policy: Policy
    cluster: Cluster | None = None
    warnings: tuple[InputProblem, ...] = ()


def read_policy(path: str, pool: str, queues: Policy | None = None) -> PolicySource:
    """Read a policy: a cluster file, settings, YuniKorn's ``queues.yaml``, manifests, or a folder of any of these.

    ``pool`` says which ``NodePool`` counts where there are several; ``queues`` those that stand in for queues of a
    cluster file, and for those of a policy that has none.

    Raises
    ------
    InvalidInputError
        With all problems of all files.
    """
    files = files_in([path])
    read = {file: read_documents(file) for file in files}
    only = read[files[0]] if len(files) == 1 else ()
    if len(only) == 1 and not may_be_manifest(only[0].value):
        return _single(path, only[0], queues)
    from tenure.clusters.kubernetes.policies import PolicyManifests  # noqa: PLC0415  only for manifests

    manifests = PolicyManifests()
    for file, documents in read.items():
        manifests.read(file, documents)
    manifests.finish()
    policy = manifests.policy(pool)
    if policy == Policy():
        message = "holds no policy: no queues, settings or budgets of Tenure's, nor YuniKorn's queues"
        raise InvalidInputError([InputProblem(path, 0, "", message)])
    policy = policy if queues is None else policy.without_queues_on(queues)
    return PolicySource(path, policy, warnings=tuple(w for warned in manifests.warnings.values() for w in warned))


def _single(path: str, document: Document, queues: Policy | None) -> PolicySource:
    loaded = load_document(document, queues)
    if isinstance(loaded, Settings):
        only = Policy(settings=loaded)
        return PolicySource(path, only if queues is None else only.without_queues_on(queues))
    if not isinstance(loaded, Loaded):
        return PolicySource(path, loaded.policy, warnings=loaded.warnings)
    cluster = loaded.cluster
    stated = document.value if isinstance(document.value, dict) else {}
    policy = Policy(
        queues=cluster.queues if "queues" in stated or queues is not None else None,
        settings=cluster.settings if "scheduler" in stated else None,
    )
    return PolicySource(path, policy, cluster if cluster.nodes else None, loaded.warnings)

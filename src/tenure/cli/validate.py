"""``tenure validate``: all problems of all files at once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from tenure.cli.input.policy_input import files_in, may_be_manifest
from tenure.cli.terminal.errors import WRONG_INPUT
from tenure.cli.terminal.progress import reading
from tenure.model.cluster import DEFAULT_QUEUE
from tenure.model.documents.document import Document
from tenure.model.documents.source import read_documents
from tenure.model.file.load import Loaded, load_document
from tenure.model.settings import Settings
from tenure.model.values.problems import InputProblem, InvalidInputError, printable
from tenure.model.yunikorn.convert import is_yunikorn, queues_of

if TYPE_CHECKING:
    from tenure.model.cluster import Cluster
    from tenure.model.policy import Policy
    from tenure.model.queue import Queue
    from tenure.model.yunikorn.convert import YuniKornQueues


@click.command()
@click.argument("files", nargs=-1, type=click.Path())
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Form of the output.",
)
@click.option("--schema", is_flag=True, help="Print the JSON schema of cluster files, for editors, and nothing else.")
def validate(files: tuple[str, ...], form: str, schema: bool) -> int:
    """Check FILES: cluster files, settings, YuniKorn's queues.yaml, manifests; '-' is standard input.

    Of a folder all YAML and JSON files are checked. Manifests (Queue, NodePool, DisruptionBudget, …) of all files are
    checked together, and a cluster file without queues with those of a queues.yaml; objects that are not Tenure's are
    passed over and counted. Prints what each file holds. Every problem is printed with file, line and path; the exit
    code is 1 if there are any. Warnings do not change it.
    """
    if schema:
        from tenure.model.file.schema import json_schema  # noqa: PLC0415  only needed here

        click.echo(json.dumps(json_schema(), indent=2, ensure_ascii=False))
        return 0
    if not files:
        raise click.UsageError("Missing argument 'FILES...'")
    with reading():
        results = _examine_all(files_in(files))
    if form == "json":
        click.echo(json.dumps({"files": results}, indent=2, ensure_ascii=False))
    else:
        for result in results:
            _print(result)
    return 0 if all(result["valid"] for result in results) else WRONG_INPUT


def _examine_all(files: Sequence[str]) -> list[dict[str, Any]]:
    """Examine files: manifests of all of them together, every other file by itself."""
    results: dict[str, dict[str, Any]] = {}
    single: dict[str, Document] = {}
    manifests: dict[str, tuple[Document, ...]] = {}
    for file in dict.fromkeys(files):
        try:
            documents = read_documents(file)
        except InvalidInputError as error:
            results[file] = _refused(file, error.problems)
            continue
        if len(documents) == 1 and not may_be_manifest(documents[0].value):
            single[file] = documents[0]
        else:
            manifests[file] = documents
    results |= _examine_single(single)
    if manifests:
        results |= _examine_manifests(manifests)
    return [results[file] for file in dict.fromkeys(files)]


def _examine_single(files: dict[str, Document]) -> dict[str, dict[str, Any]]:
    """Check files of one document each: a cluster file without queues with those of the one ``queues.yaml``."""
    given = [document for document in files.values() if is_yunikorn(document.value)]
    policy = _policy(given[0]) if len(given) == 1 else None
    return {
        file: _examine(file, document, None if _has_queues(document) else policy) for file, document in files.items()
    }


def _has_queues(document: Document) -> bool:
    return isinstance(document.value, dict) and "queues" in document.value


def _policy(document: Document) -> Policy | None:
    """Give the queues of a ``queues.yaml``; None where something is wrong with it, which is told of it alone."""
    try:
        return queues_of(document).policy
    except InvalidInputError:
        return None


def _examine(file: str, document: Document, policy: Policy | None) -> dict[str, Any]:
    """Load the one document of a file and give what it holds and what is wrong with it, as plain values."""
    try:
        loaded = load_document(document, policy)
    except InvalidInputError as error:
        return _refused(file, error.problems)
    warnings = () if isinstance(loaded, Settings) else loaded.warnings
    if isinstance(loaded, Loaded):
        warnings += _unsaved(document, loaded.cluster) + _misstated(document, loaded.cluster)
    return {"file": file, "valid": True, **_content(loaded), "problems": [], "warnings": _plain(warnings)}


def _unsaved(document: Document, cluster: Cluster) -> tuple[InputProblem, ...]:
    """Say at which queues minimum runtimes shield work that does not save itself."""
    from tenure.shields.unsaved import unsaved_of  # noqa: PLC0415  the engine, which is not needed for other files

    place = {queue.name: number for number, queue in enumerate(cluster.queues if _has_queues(document) else ())}
    found = unsaved_of(cluster)
    return document.problems([(("queues", place[u.queue]) if u.queue in place else (), u.message) for u in found])


def _misstated(document: Document, cluster: Cluster) -> tuple[InputProblem, ...]:
    """Say which annotations cannot be read; a plan says so only once they would count."""
    from tenure.engine.expectation import problems_of  # noqa: PLC0415  the engine, which is not needed for other files
    from tenure.model.values.report import ProblemReport  # noqa: PLC0415

    queues = {queue.name: queue for queue in cluster.queues}
    report = ProblemReport()
    for workload in cluster.workloads:
        above: list[Queue] = []
        name = workload.queue or DEFAULT_QUEUE
        while name in queues:
            above.append(queues[name])
            name = queues[name].parent or ""
        for problem in problems_of(workload, above, cluster.settings):
            report.warn((None, "workloads"), f"{workload.key}: {problem}")
    return document.warnings(report)


def _examine_manifests(files: dict[str, tuple[Document, ...]]) -> dict[str, dict[str, Any]]:
    """Check manifests together: a queue may stand in one file and its parent in another."""
    from tenure.clusters.kubernetes.policies import PolicyManifests  # noqa: PLC0415  only for manifests

    read = PolicyManifests()
    for file, documents in files.items():
        read.read(file, documents)
    read.finish()
    return {
        file: {
            "file": file,
            "valid": not read.problems[file],
            "kind": "Manifests",
            "objects": dict(sorted(read.kinds[file].items())),
            "passedOver": dict(sorted(read.passed_over[file].items())),
            "problems": _plain(read.problems[file]),
            "warnings": _plain(read.warnings[file]),
        }
        for file in files
    }


def _refused(file: str, problems: Iterable[InputProblem]) -> dict[str, Any]:
    return {"file": file, "valid": False, "problems": _plain(problems), "warnings": []}


def _content(loaded: Loaded | Settings | YuniKornQueues) -> dict[str, Any]:
    if isinstance(loaded, Settings):
        return {"kind": "SchedulerConfig"}
    if not isinstance(loaded, Loaded):
        return {"kind": "YuniKornQueues", "partitions": loaded.partitions, "queues": len(loaded.queues)}
    cluster = loaded.cluster
    return {
        "kind": "Cluster",
        "nodes": len(cluster.nodes),
        "queues": len(cluster.queues),
        "workloads": len(cluster.workloads),
        "tasks": sum(len(workload.tasks) for workload in cluster.workloads),
    }


def _plain(problems: Iterable[InputProblem]) -> list[dict[str, Any]]:
    return [asdict(problem) for problem in problems]


def _print(result: dict[str, Any]) -> None:
    for problem in result["problems"]:
        click.echo(str(InputProblem(**problem)), err=True)
    for warning in result["warnings"]:
        click.echo(str(InputProblem(**{**warning, "message": f"warning: {warning['message']}"})), err=True)
    if result["valid"]:
        click.echo(f"{printable(result['file'])}: valid, {_summary(result)}")


def _summary(result: dict[str, Any]) -> str:
    if result["kind"] == "Manifests":
        return _summary_of_manifests(result["objects"], result["passedOver"])
    if result["kind"] == "SchedulerConfig":
        return "settings of the scheduler"
    if result["kind"] == "YuniKornQueues":
        return f"YuniKorn's queues, {_count(result['partitions'], 'partition')}, {_count(result['queues'], 'queue')}"
    counted = [_count(result[f"{noun}s"], noun) for noun in ("node", "queue", "workload")]
    return f"{', '.join(counted)} ({_count(result['tasks'], 'task')})"


def _summary_of_manifests(objects: dict[str, int], passed_over: dict[str, int]) -> str:
    read = ", ".join(_count(number, kind) for kind, number in objects.items()) or "nothing of Tenure's"
    if not passed_over:
        return read
    others = ", ".join(f"{number} {kind}" for kind, number in passed_over.items())
    return f"{read}; {_count(sum(passed_over.values()), 'other object')} passed over ({others})"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

"""``tenure validate``: all problems of all files at once."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from tenure.cli.errors import WRONG_INPUT
from tenure.model.load import Loaded, load_file
from tenure.model.problems import InputProblem, InvalidInputError
from tenure.model.settings import Settings

if TYPE_CHECKING:
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
    """Check cluster files, the scheduler's configuration and YuniKorn's queues.yaml FILES; '-' is standard input.

    Prints what each file holds. Every problem is printed with file, line and path; the exit code is 1 if there are any.
    Warnings do not change it.
    """
    if schema:
        from tenure.model.schema import json_schema  # noqa: PLC0415  only needed here

        click.echo(json.dumps(json_schema(), indent=2, ensure_ascii=False))
        return 0
    if not files:
        raise click.UsageError("Missing argument 'FILES...'")
    results = [_examine(file) for file in files]
    if form == "json":
        click.echo(json.dumps({"files": results}, indent=2, ensure_ascii=False))
    else:
        for result in results:
            _print(result)
    return 0 if all(result["valid"] for result in results) else WRONG_INPUT


def _examine(file: str) -> dict[str, Any]:
    """Load a file and give what it holds and what is wrong with it, as plain values."""
    try:
        loaded = load_file(file)
    except InvalidInputError as error:
        return {"file": file, "valid": False, "problems": _plain(error.problems), "warnings": []}
    warnings = () if isinstance(loaded, Settings) else loaded.warnings
    return {"file": file, "valid": True, **_content(loaded), "problems": [], "warnings": _plain(warnings)}


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


def _plain(problems: tuple[InputProblem, ...]) -> list[dict[str, Any]]:
    return [asdict(problem) for problem in problems]


def _print(result: dict[str, Any]) -> None:
    for problem in result["problems"]:
        click.echo(str(InputProblem(**problem)), err=True)
    for warning in result["warnings"]:
        click.echo(str(InputProblem(**{**warning, "message": f"warning: {warning['message']}"})), err=True)
    if result["valid"]:
        click.echo(f"{result['file']}: valid, {_summary(result)}")


def _summary(result: dict[str, Any]) -> str:
    if result["kind"] == "SchedulerConfig":
        return "settings of the scheduler"
    if result["kind"] == "YuniKornQueues":
        return f"YuniKorn's queues, {_count(result['partitions'], 'partition')}, {_count(result['queues'], 'queue')}"
    counted = [_count(result[f"{noun}s"], noun) for noun in ("node", "queue", "workload")]
    return f"{', '.join(counted)} ({_count(result['tasks'], 'task')})"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

"""What several commands read: a cluster file with changes and additions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from tenure.cli.input.queues_option import read_queues
from tenure.model.cluster import Cluster
from tenure.model.file.load import load_cluster
from tenure.model.values.duration import parse_duration
from tenure.model.values.problems import InputProblem

if TYPE_CHECKING:
    from tenure.cli.input.live_cluster import ClusterAddress


def cluster_from(
    file: str,
    overrides: Sequence[str] = (),
    additions: Sequence[str] = (),
    queues: str | None = None,
    live: ClusterAddress | None = None,
) -> tuple[Cluster, tuple[InputProblem, ...]]:
    """Load a cluster file, change it, and add to it; gives the warnings too.

    ``live`` says which cluster to look at instead of a file. ``queues`` names a YuniKorn ``queues.yaml`` whose queues
    are taken instead of the others.

    Raises
    ------
    InvalidInputError
        With all problems of the first of these steps that fails.
    """
    policy, found = read_queues(queues)
    warnings = list(found)
    if live is not None:
        from tenure.cli.input.live_cluster import look  # noqa: PLC0415  only where a live cluster is looked at

        cluster = look(live)
        if policy is not None:
            cluster = policy.over(cluster)
    else:
        loaded = load_cluster(file, policy)
        cluster = loaded.cluster
        warnings += loaded.warnings
    if overrides:
        from tenure.model.file.override import apply_overrides  # noqa: PLC0415  only where something is changed

        changed = apply_overrides(cluster, overrides)
        cluster = changed.cluster
        warnings += changed.warnings
    for addition in additions:
        from tenure.model.file.added import load_additions  # noqa: PLC0415  only where something is added

        cluster = replace(cluster, workloads=(*cluster.workloads, *load_additions(addition, cluster)))
    return cluster, tuple(warnings)


def duration_of(text: str, option: str) -> int:
    """Parse the duration of an option, in µs; wrong usage if it is none."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise click.UsageError(f"{option}: {error}") from None


def warn(warnings: Iterable[InputProblem]) -> None:
    """Print warnings to standard error, one per line."""
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)

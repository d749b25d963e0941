"""The option by which every command that reads a cluster file takes queues from another file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tenure.model.policy import Policy
    from tenure.model.values.problems import InputProblem

queues_option = click.option(
    "--queues", type=click.Path(), metavar="FILE",
    help="Queues from a YuniKorn queues.yaml instead of the cluster file's.",
)  # fmt: skip


def read_queues(queues: str | None) -> tuple[Policy | None, tuple[InputProblem, ...]]:
    """Give the queues of the file that was named, as a policy, and what deserves a look there; None without a file.

    Raises
    ------
    InvalidInputError
        With all problems of the file.
    """
    if queues is None:
        return None, ()
    from tenure.model.yunikorn.convert import load_queues  # noqa: PLC0415  only where such a file is named

    read = load_queues(queues)
    return read.policy, read.warnings

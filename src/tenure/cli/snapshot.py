"""``tenure snapshot``: write a live cluster as a cluster file."""

from __future__ import annotations

import sys

import click

from tenure.cli.input.live_cluster import ClusterAddress, cluster_options
from tenure.cli.terminal.errors import DONE


@click.command()
@click.option("--output", "-o", type=click.Path(), help="The file; JSON if its name ends so. Else standard output.")
@click.option("--format", "form", type=click.Choice(["yaml", "json"]), help="Form of what is written.")
@cluster_options(runs=True)
def snapshot(output: str | None, form: str | None, where: ClusterAddress) -> int:
    """Write the live cluster, as the scheduler sees it now, as a cluster file for `tenure plan` and the others."""
    from io import StringIO  # noqa: PLC0415  loaded when it runs

    from tenure.cli.input.live_cluster import look  # noqa: PLC0415
    from tenure.cli.terminal.targets import check_targets  # noqa: PLC0415
    from tenure.model.documents.files import write_atomically  # noqa: PLC0415
    from tenure.model.file.dump import dump_cluster  # noqa: PLC0415

    check_targets({"--output": output}, where.files())
    cluster = look(where)
    if output is None:
        dump_cluster(cluster, sys.stdout, format="json" if form == "json" else "yaml")
        return DONE
    text = StringIO()
    dump_cluster(cluster, text, format="json" if form == "json" or (not form and output.endswith(".json")) else "yaml")
    write_atomically(output, text.getvalue())
    return DONE

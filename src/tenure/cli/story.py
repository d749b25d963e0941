"""``tenure story``: everything that happened to one workload, in order."""

from __future__ import annotations

import json

import click

from tenure.cli.errors import DONE
from tenure.cli.history_option import opened, reads_history


@click.command()
@click.argument("workload", metavar="NS/NAME")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
              help="Form of the output.")  # fmt: skip
@click.option("--limit", type=click.IntRange(1, 1_000_000), default=10_000, show_default=True, metavar="N",
              help="At most so many records.")  # fmt: skip
@reads_history
def story(workload: str, form: str, limit: int, history: str | None) -> int:
    """Tell what happened to a workload and why, in order: who took its room, and whose room was taken for it."""
    from tenure.history.story import sentence, story_json  # noqa: PLC0415  loaded when it runs
    from tenure.model.duration import format_time  # noqa: PLC0415
    from tenure.model.problems import InputProblem, InvalidInputError  # noqa: PLC0415

    name = workload if "/" in workload else f"default/{workload}"
    with opened(history) as store:
        records = store.story(name, limit=limit)
    if not records:
        what = f"nothing happened to a workload {name}; write it as NAMESPACE/NAME"
        raise InvalidInputError([InputProblem(store.place, 0, "", what)])
    if form == "json":
        click.echo(json.dumps(story_json(name, records), indent=1, ensure_ascii=False))
        return DONE
    from tenure.report.tables import TableColumn, table, terminal  # noqa: PLC0415

    rows = [[format_time(r.at), r.kind, sentence(r, name)] for r in records]
    click.echo(
        table([TableColumn("at"), TableColumn("what"), TableColumn("how", wrap=True)], rows, terminal()), nl=False
    )
    return DONE

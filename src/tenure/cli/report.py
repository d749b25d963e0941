"""``tenure report``: what was used, lost, caused and gained, from a history."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tenure.cli.input.history_option import of_one_cluster, opened, reads_history
from tenure.cli.terminal.errors import DONE

if TYPE_CHECKING:
    from tenure.history.scope import Scope
    from tenure.history.store import HistoryStore


@click.command()
@click.option("--since", metavar="D|TIME", help="From when: such as 30d before the end, or a time; default: all.")
@click.option("--until", metavar="D|TIME", help="Until when: a time, or so long before the last record.")
@click.option("--by", type=click.Choice(["team", "queue", "cause", "beneficiary", "workload", "user"]),
              default="cause", show_default=True, help="What a row is of.")  # fmt: skip
@click.option("--prices", type=click.Path(), metavar="FILE",
              help="Prices for a whole unit and hour, by resource, e.g. nvidia.com/gpu: 2.5.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(["text", "json", "csv", "html"]), default="text",
              show_default=True, help="Form of the output.")  # fmt: skip
@of_one_cluster
@reads_history
def report(
    since: str | None, until: str | None, by: str, prices: str | None, form: str, history: str | None, whose: Scope
) -> int:
    """Print what was used, lost to evictions and idle, by cause, queue or workload, and whether evictions paid.

    used + lost + idle is the capacity, and what was lost is what was caused.
    """
    from tenure.cli.input.inputs import warn  # noqa: PLC0415  loaded when it runs
    from tenure.history.reading.prices import load_prices, unused_prices  # noqa: PLC0415
    from tenure.history.reading.statement import statement_of  # noqa: PLC0415
    from tenure.report.statement_json import statement_csv, statement_text_json  # noqa: PLC0415

    paid = None if prices is None else load_prices(prices)
    with opened(history, whose) as store:
        begin, end = window(store, since, until)
        found = statement_of(store, begin, end, by)
    if prices is not None:
        warn(unused_prices(prices, paid or (), {*found.capacity, *found.used, *found.lost}))
    if form == "json":
        click.echo(statement_text_json(found, paid))
    elif form == "csv":
        click.echo(statement_csv(found, paid), nl=False)
    else:
        from tenure.report.statement_text import statement_page, statement_text  # noqa: PLC0415
        from tenure.report.tables import terminal  # noqa: PLC0415

        text = statement_page(found, paid) if form == "html" else statement_text(found, terminal(), paid)
        click.echo(text, nl=False)
    return DONE


def window(store: HistoryStore, since: str | None, until: str | None) -> tuple[int | None, int | None]:
    """Read the options that say from when until when; a duration counts back from the last record.

    Raises
    ------
    click.UsageError
        One is no time, or they are in the wrong order.
    """
    from tenure.history.window import instant  # noqa: PLC0415  loaded when it runs

    span = store.span()
    last = 0 if span is None else span[1]
    try:
        end = None if until is None else instant(until, last)
    except ValueError as error:
        raise click.UsageError(f"--until {error}") from None
    try:
        begin = None if since is None else instant(since, last if end is None else end)
    except ValueError as error:
        raise click.UsageError(f"--since {error}") from None
    if begin is not None and end is not None and begin >= end:
        raise click.UsageError(f"--since {since} is not before --until {until}")
    return begin, end

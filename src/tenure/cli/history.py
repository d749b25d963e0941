"""``tenure history``: export, import, prune and forget."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from tenure.cli.input.history_option import given, of_one_cluster, opened, reads_history, recorded_name, retention_of
from tenure.cli.terminal.errors import DONE

if TYPE_CHECKING:
    from tenure.history.scope import Scope


@click.group()
def history() -> None:
    """Look after a history: take it elsewhere, bring it back, take out what is old or personal."""


@history.command("export")
@click.argument("target", metavar="FILE", type=click.Path(dir_okay=False))
@click.option("--format", "form", type=click.Choice(["parquet", "jsonl", "otlp"]),
              help="Default: by the name: .parquet, .jsonl or .otlp.json; with .gz they are packed.")  # fmt: skip
@click.option("--since", metavar="D|TIME", help="Only from then on.")
@click.option("--until", metavar="D|TIME", help="Only until then.")
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only records of this kind; any number of times.")
@of_one_cluster
@reads_history
def export(
    target: str, form: str | None, since: str | None, until: str | None, kinds: tuple[str, ...], history: str | None,
    whose: Scope,
) -> int:  # fmt: skip
    """Write records into FILE, for DuckDB, pandas, or a collector of OpenTelemetry."""
    from tenure.cli.report import window  # noqa: PLC0415  loaded when it runs
    from tenure.cli.terminal.targets import check_targets  # noqa: PLC0415
    from tenure.history import exchange  # noqa: PLC0415
    from tenure.history.address import written_file  # noqa: PLC0415
    from tenure.history.query import Query  # noqa: PLC0415
    from tenure.history.record import KINDS  # noqa: PLC0415
    from tenure.model.documents.files import is_stream  # noqa: PLC0415
    from tenure.model.values.problems import nearest, printable  # noqa: PLC0415

    for kind in kinds:
        if kind not in KINDS:
            raise click.UsageError(
                f"--kind: there is no kind {kind!r}{nearest(kind, KINDS)}; there are {', '.join(KINDS)}"
            )
    check_targets({"the export": target}, [written_file(history)])
    with opened(history, whose) as store:
        begin, end = window(store, since, until)
        count = exchange.export(
            store, target, form or exchange.format_of(target), Query(kinds=kinds, since=begin, until=end)
        )
    click.echo(f"{count:,} records written to {printable(target)}", err=is_stream(target))
    return DONE


@history.command("import")
@click.argument("source", metavar="FILE", type=click.Path())
@reads_history
def bring(source: str, history: str | None) -> int:
    """Read an export (Parquet or lines of JSON) into the history; what is there already is not there twice."""
    from tenure.cli.terminal.targets import check_targets  # noqa: PLC0415  loaded when it runs
    from tenure.history import open_history  # noqa: PLC0415
    from tenure.history.address import written_file  # noqa: PLC0415
    from tenure.history.exchange import check_export, import_file  # noqa: PLC0415
    from tenure.model.values.problems import printable  # noqa: PLC0415

    address = given(history)
    check_targets({"--history": written_file(address)}, [source])
    check_export(source)
    with open_history(address, write=True) as store:
        found, new = import_file(store, source)
    where = f"; {printable(store.place)} is a new history" if store.is_new else ""
    click.echo(f"{found:,} records read, {new:,} of them new{where}")
    return DONE


@history.command()
@click.option("--keep", default=None, metavar="D", help="Keep what is younger than this; default: 13 months.")
@click.option("--keep-kind", "kinds", multiple=True, metavar="KIND=D",
              help="Keep records of one kind for another time, e.g. usage=90d; any number of times.")  # fmt: skip
@click.option("--now", metavar="TIME", help="Count ages from then; default: the last record, at the latest now.")
@reads_history
def prune(keep: str | None, kinds: tuple[str, ...], now: str | None, history: str | None) -> int:
    """Take out records that are older than they are to be kept."""
    from tenure.history import open_history, retention  # noqa: PLC0415  loaded when it runs
    from tenure.history.window import instant  # noqa: PLC0415

    kept = retention_of(keep, kinds, "--keep")
    with open_history(given(history), write=True, new=False) as store:
        span = store.span()
        last = 0 if span is None else span[1]
        try:
            at = min(last, time.time_ns() // 1000) if now is None else instant(now, last)
        except ValueError as error:
            raise click.UsageError(f"--now {error}") from None
        count = retention.prune(store, at, kept)
    click.echo(f"{count:,} records taken out")
    return DONE


@history.command()
@click.option("--user", required=True, metavar="NAME", help="Whose name is taken out.")
@reads_history
def forget(user: str, history: str | None) -> int:
    """Take a user's name out of all records. What happened stays, without the name."""
    from tenure.history import open_history  # noqa: PLC0415  loaded when it runs
    from tenure.history.retention import forget_user  # noqa: PLC0415
    from tenure.model.values.problems import printable  # noqa: PLC0415

    recorded_name(user, "--user")
    with open_history(given(history), write=True, new=False) as store:
        count = forget_user(store, user)
    click.echo(f"{count:,} records no longer name {printable(user)}")
    return DONE


@history.command()
@reads_history
def migrate(history: str | None) -> int:
    """Bring a history that an earlier Tenure wrote to the present form."""
    from tenure.history import open_history  # noqa: PLC0415  loaded when it runs

    with open_history(given(history), write=True, new=False) as store:
        found = store.info()
    click.echo(f"{found.records:,} records, schema {found.schema}")
    return DONE

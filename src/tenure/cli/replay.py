"""``tenure replay``: recorded days again, under other settings, beside what happened."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from tenure.cli.input.history_option import of_one_cluster, opened
from tenure.cli.terminal.errors import DONE

if TYPE_CHECKING:
    from tenure.history.reading.statement import Statement
    from tenure.history.scope import Scope
    from tenure.model.cluster import Cluster
    from tenure.simulator.traces.records import Trace


@click.command()
@click.option("--from", "source", required=True, metavar="FILE|URL", help="The history whose days are played again.")
@click.option("--since", metavar="D|TIME", help="From when; default: its beginning.")
@click.option("--until", metavar="D|TIME", help="Until when; default: its end.")
@click.option("--set", "overrides", multiple=True, metavar="PATH=VALUE",
              help="Change a value first, as for plan; any number of times.")  # fmt: skip
@of_one_cluster
@click.option("--history", metavar="FILE|URL", help="Also write what happens now, as a history of its own.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
              help="Form of the output.")  # fmt: skip
def replay(
    source: str, since: str | None, until: str | None, overrides: tuple[str, ...], history: str | None, form: str,
    whose: Scope,
) -> int:  # fmt: skip
    """Play recorded days again under other settings, and put what happens beside what happened."""
    from tenure.cli.input.inputs import warn  # noqa: PLC0415  loaded when it runs
    from tenure.cli.report import window  # noqa: PLC0415
    from tenure.cli.terminal.targets import check_targets  # noqa: PLC0415
    from tenure.history.address import written_file  # noqa: PLC0415
    from tenure.history.reading.replaying import recorded_days  # noqa: PLC0415
    from tenure.history.reading.statement import statement_of  # noqa: PLC0415
    from tenure.model.file.override import apply_overrides  # noqa: PLC0415
    from tenure.report.statement_json import statement_json  # noqa: PLC0415

    check_targets({"--history": written_file(history)}, [written_file(source)])
    with opened(source, whose, alone=True) as store:
        begin, end = window(store, since, until)
        first, last = store.span() or (0, 0)
        begin, end = begin if begin is not None else first, end if end is not None else last + 1
        cluster, trace = recorded_days(store, begin, end)
        happened = statement_of(store, begin, end)
    changed = apply_overrides(cluster, overrides)
    warn(changed.warnings)
    for note in trace.notes:
        click.echo(f"warning: {note}", err=True)
    now = _play(changed.cluster, trace, history)
    if form == "json":
        both = {"happened": statement_json(happened), "replayed": statement_json(now)}
        click.echo(json.dumps(both, indent=1, ensure_ascii=False, allow_nan=False))
        return DONE
    from tenure.report.statement_text import comparison_text  # noqa: PLC0415
    from tenure.report.tables import terminal  # noqa: PLC0415

    click.echo(comparison_text(happened, now, terminal()), nl=False)
    return DONE


def _play(cluster: Cluster, trace: Trace, history: str | None) -> Statement:
    """Simulate, and make the statement of it."""
    from tempfile import TemporaryDirectory  # noqa: PLC0415  loaded when it runs

    from tenure.history import open_history  # noqa: PLC0415
    from tenure.history.reading.statement import statement_of  # noqa: PLC0415
    from tenure.history.writing.simulation import PlanListener, write_simulation  # noqa: PLC0415
    from tenure.simulator.outcomes import outcomes_of  # noqa: PLC0415
    from tenure.simulator.run import Simulation  # noqa: PLC0415
    from tenure.simulator.whole_run import setup_of  # noqa: PLC0415

    simulation = Simulation(setup_of(cluster, arrivals_only=False), trace)
    simulation.heard = listener = PlanListener(cluster.now)
    result: Any = simulation.run()
    outcomes = outcomes_of(result.log, trace, cluster.settings)
    with (
        TemporaryDirectory(prefix="tenure-") as folder,
        open_history(history or f"{folder}/replay.db", write=True) as store,
    ):
        write_simulation(store, "replay", result.setup.cluster, result.log, outcomes, listener)
        return statement_of(store)

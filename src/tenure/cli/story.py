"""``tenure story``: everything that happened to one workload, in order, and what its waits would have taken."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from tenure.cli.input.history_option import of_one_cluster, opened, reads_history, recorded_name
from tenure.cli.terminal.errors import DONE

if TYPE_CHECKING:
    from tenure.explanation.explain import Story
    from tenure.history.reading.takers import Taker
    from tenure.history.reading.waits import StoryWait
    from tenure.history.record import HistoryRecord
    from tenure.history.scope import Scope
    from tenure.history.store import HistoryStore

MOST_TAKERS = 20


@click.command()
@click.argument("workload", metavar="NS/NAME")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
              help="Form of the output.")  # fmt: skip
@click.option("--limit", type=click.IntRange(1, 1_000_000), default=10_000, show_default=True, metavar="N",
              help="At most so many records.")  # fmt: skip
@click.option("--waits", "most_waits", type=click.IntRange(0, 100), default=1, show_default=True, metavar="N",
              help="Play a cycle for the N longest waits, to say what it would have taken.")  # fmt: skip
@of_one_cluster
@reads_history
def story(workload: str, form: str, limit: int, most_waits: int, history: str | None, whose: Scope) -> int:
    """Tell what happened to a workload and why, in order, who took its room, and what it would have taken."""
    from tenure.cli.terminal.progress import busy  # noqa: PLC0415  loaded when it runs
    from tenure.history.reading.waits import waits_of  # noqa: PLC0415
    from tenure.model.values.problems import InputProblem, InvalidInputError  # noqa: PLC0415

    name = recorded_name(workload if "/" in workload else f"default/{workload}", "NS/NAME")
    with opened(history, whose) as store:
        _choose_cluster(store, name, whose)
        records = store.story(name, limit=limit)
        if not records:
            what = f"nothing happened to a workload {name}; write it as NAMESPACE/NAME"
            raise InvalidInputError([InputProblem(store.place, 0, "", what)])
        last = (store.span() or (0, records[-1].at))[1]
        waits = waits_of(records, name)
        longest = sorted(waits, key=lambda wait: -wait.length(last))[:most_waits]
        with busy("working out what it would have taken"):
            told = {wait: found for wait in longest if (found := _in_hindsight(store, name, wait)) is not None}
        takers = _takers(store, name, records, waits, last)
    if form == "json":
        _print_json(name, records, waits, takers, told, last)
    else:
        _print_text(name, records, takers, told, last)
    return DONE


def _choose_cluster(store: HistoryStore, name: str, whose: Scope) -> None:
    """See the one cluster that had a workload of the name; its story may lead through several node pools."""
    from tenure.history.scope import names_of  # noqa: PLC0415  loaded when it runs
    from tenure.model.values.problems import InputProblem, InvalidInputError  # noqa: PLC0415

    there = store.origins(name)
    if len({origin.cluster for origin in there}) > 1:
        what = f"several clusters had a workload {name}: {names_of(there)}; name one with --cluster-name"
        raise InvalidInputError([InputProblem(store.place, 0, "", what)])
    if there:
        store.see(whose._replace(cluster=there[0].cluster))


def _in_hindsight(store: HistoryStore, name: str, wait: StoryWait) -> Story | None:
    """Play the cluster as it was when a wait began, and say why the workload waited; None where that is not known."""
    from tenure.explanation.explain import explain_workload  # noqa: PLC0415  loaded when it runs
    from tenure.history.reading.views import cluster_then  # noqa: PLC0415
    from tenure.playthrough import play  # noqa: PLC0415

    cluster = cluster_then(store, wait.since)
    model = None if cluster is None else next((w for w in cluster.workloads if w.key == name), None)
    return None if cluster is None or model is None else explain_workload(play(cluster, about=name), model)


def _takers(
    store: HistoryStore, name: str, records: list[HistoryRecord], waits: list[StoryWait], last: int
) -> list[Taker]:
    """Give the workloads for which it was evicted, and those that had room while it waited for its first start.

    Of a workload that came again under its name this is about its newest life.
    """
    from tenure.history.reading.lives import lives_around  # noqa: PLC0415  loaded when it runs
    from tenure.history.reading.takers import causes_of, takers_among  # noqa: PLC0415

    own = [record for record in records if record.workload == name]
    came = next((r.at for r in reversed(own) if r.kind == "submitted"), (own or records)[0].at)
    causes = causes_of(own, name, came)
    if not waits and not causes:
        return []
    first = next((r.at for r in own if r.kind in {"started", "ended"} and r.at >= came), last)
    with store.reading() as connection:
        lives = lives_around(store, connection, came, first + 1, causes)
    life = lives.newest.get(name)
    return [] if life is None else takers_among(lives.of_all(), name, life, causes, last, MOST_TAKERS)


def _print_json(
    name: str, records: list[HistoryRecord], waits: list[StoryWait], takers: list[Taker],
    told: dict[StoryWait, Story], last: int,
) -> None:  # fmt: skip
    from tenure.cli.story_text import taker_json, wait_json  # noqa: PLC0415
    from tenure.history.reading.story import story_json  # noqa: PLC0415  loaded when it runs

    plain = story_json(name, records)
    plain["waits"] = [wait_json(wait, last, told.get(wait)) for wait in waits]
    plain["takers"] = [taker_json(taker) for taker in takers]
    click.echo(json.dumps(plain, indent=1, ensure_ascii=False))


def _print_text(
    name: str, records: list[HistoryRecord], takers: list[Taker], told: dict[StoryWait, Story], last: int
) -> None:
    from tenure.cli.story_text import takers_text, wait_text  # noqa: PLC0415
    from tenure.history.reading.story import sentence, told_together  # noqa: PLC0415  loaded when it runs
    from tenure.model.values.duration import format_time  # noqa: PLC0415
    from tenure.report.tables import TableColumn, table, terminal  # noqa: PLC0415

    where = terminal()
    rows = [[format_time(r.at), r.kind, sentence(r, name)] for r in told_together(records)]
    parts = [table([TableColumn("at"), TableColumn("what"), TableColumn("how", wrap=True)], rows, where)]
    if takers or told:
        parts.append(takers_text(takers, where))
    parts += [wait_text(wait, last, found, where) for wait, found in told.items()]
    click.echo("\n".join(parts), nl=False)

"""The option ``--history``, and what is written where it is given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click

from tenure.cli.input.inputs import duration_of

if TYPE_CHECKING:
    from tenure.history.retention import Retention
    from tenure.history.scope import Scope
    from tenure.history.store import HistoryStore

F = TypeVar("F", bound=Callable[..., Any])

VARIABLE: Final = "TENURE_HISTORY"
"""The environment variable that stands for ``--history`` where that is not given."""


def writes_history(command: F) -> F:
    """Give a command the option to write what happened."""
    option = click.option(
        "--history", metavar="FILE|URL", envvar=VARIABLE,
        help=f"Also write what happened and why: a file, or postgresql://…; default: ${VARIABLE}.",
    )  # fmt: skip
    return option(command)


def reads_history(command: F) -> F:
    """Give a command the option that says where its history is."""
    option = click.option(
        "--history", metavar="FILE|URL", envvar=VARIABLE,
        help=f"The history: a file, an export of one, or postgresql://…; default: ${VARIABLE}.",
    )  # fmt: skip
    return option(command)


def of_one_cluster(command: F) -> F:
    """Give a command the options that say what of a history is read, as its argument ``whose``."""

    @wraps(command)
    def together(**values: Any) -> Any:
        from tenure.history.scope import Scope  # noqa: PLC0415  loaded when it runs

        return command(whose=Scope(values.pop("cluster_name"), values.pop("pool")), **values)

    cluster = click.option("--cluster-name", metavar="NAME", help="Of a history of several clusters, only this one.")
    pool = click.option("--pool", metavar="NAME", help="Of a history of several node pools, only this one.")
    return cast("F", cluster(pool(together)))


def retention_of(keep: str | None, kinds: Sequence[str], option: str) -> Retention:
    """Read how long records are kept: the values of ``option`` and of the option for single kinds (``KIND=D``).

    Raises
    ------
    click.UsageError
        One is no duration, or there is no such kind of record.
    """
    from tenure.history.record import KINDS  # noqa: PLC0415  loaded when a command reads them
    from tenure.history.retention import Retention  # noqa: PLC0415
    from tenure.model.values.problems import nearest  # noqa: PLC0415

    limits = {}
    for text in kinds:
        kind, sign, length = text.partition("=")
        if not sign:
            raise click.UsageError(f"{option}-kind: {text!r} is not KIND=D, such as usage=90d")
        if kind not in KINDS:
            raise click.UsageError(
                f"{option}-kind: there is no kind {kind!r}{nearest(kind, KINDS)}; there are {', '.join(KINDS)}"
            )
        limits[kind] = duration_of(length, f"{option}-kind")
    return Retention(kinds=limits) if keep is None else Retention(duration_of(keep, option), limits)


def given(history: str | None) -> str:
    """Give the address of the history that a command needs.

    Raises
    ------
    click.UsageError
        There is none.
    """
    if not history:
        raise click.UsageError(f"which history? name it with --history FILE (or URL), or in {VARIABLE}")
    return history


def recorded_name(name: str, what: str) -> str:
    """Give a name that is looked for in a history.

    Raises
    ------
    click.UsageError
        It is no text, so no history has it.
    """
    if any("\ud800" <= letter <= "\udfff" for letter in name):
        raise click.UsageError(f"{what}: {name!r} is no text in UTF-8, so no history names it")
    return name


@contextmanager
def opened(history: str | None, whose: Scope | None = None, *, alone: bool = False) -> Iterator[HistoryStore]:
    """Open the history that a command reads: a store, or an export, which is read into a store of its own first.

    ``whose``: what of it is seen; ``alone``: that must be one node pool of one cluster.
    """
    with _whole(history) as store:
        if whose is not None:
            store.see(whose, alone=alone)
        yield store


@contextmanager
def _whole(history: str | None) -> Iterator[HistoryStore]:
    """Open a history with all that is in it."""
    from tenure.history import open_history  # noqa: PLC0415  SQLAlchemy takes long to import
    from tenure.history.exchange import import_file, is_export  # noqa: PLC0415

    address = given(history)
    if not is_export(address):
        with open_history(address) as store:
            yield store
        return
    with TemporaryDirectory(prefix="tenure-") as folder, open_history(f"{folder}/history.db", write=True) as store:
        import_file(store, address)
        store.place = address  # errors name what the user named
        yield store

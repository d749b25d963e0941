"""B18, PostgreSQL: reports of a month and a story out of ten million records.

Run: python benchmarks/b18_postgresql.py [--records N] [--address postgresql://USER@HOST/DATABASE]. The database has to
be empty; without an address a server is started on this machine, where ``make postgresql`` has installed one. A month
is written as Tenure writes it, and the server itself repeats it until there are thirteen.
"""

from __future__ import annotations

import argparse
import sys
import time

from sqlalchemy import insert, text

from b18_history import BEGIN, DAY, HERE, MINUTE, MONTHS, RECORDS, records, timed
from common import ROOT, print_table
from results import Results
from tenure.history import open_history
from tenure.history.months import month_of, month_start, next_month
from tenure.history.reading.statement import BY, statement_of
from tenure.history.schema import MONTHS as MONTHS_TABLE
from tenure.history.schema import records_table
from tenure.history.store import HistoryStore

sys.path.insert(0, str(ROOT))
from tests.history.postgres import PROGRAMS, Postgres

COLUMNS = "source, plan, sequence, version, kind, workload, queue, cause, beneficiary, value, payload"


def repeat_month(store: HistoryStore) -> None:
    """Copy the first thirty days again and again, each time thirty days later; what is new is indexed afterwards."""
    first = f"tenure_records_{month_of(BEGIN)}"
    there = {month_of(BEGIN)}
    for turn in range(1, MONTHS):
        shift = turn * 30 * DAY
        for month in sorted({month_of(BEGIN + shift + day * DAY) for day in range(30)}):
            table = records_table(month)
            with store.writing() as connection:
                connection.execute(text("SET LOCAL statement_timeout = 0"))
                if month not in there:
                    there.add(month)
                    table.create(connection)
                    connection.execute(insert(MONTHS_TABLE).values(month=month))
                connection.execute(
                    text(
                        f"INSERT INTO {table.name} (key, at, {COLUMNS}) "
                        f"SELECT decode(md5(key || '{turn}'::bytea), 'hex'), at + :shift, {COLUMNS} FROM {first} "
                        "WHERE at < :end AND at + :shift >= :since AND at + :shift < :until ORDER BY id"
                    ),
                    {
                        "shift": shift, "end": BEGIN + 30 * DAY, "since": month_start(month),
                        "until": month_start(next_month(month)),
                    },
                )  # fmt: skip
        with store.writing() as connection:
            copied = (
                "SELECT source, since + :shift, queue, until + :shift, payload FROM tenure_usage WHERE since < :end"
            )
            columns = "source, since, queue, until, payload"
            connection.execute(
                text(f"INSERT INTO tenure_usage ({columns}) {copied}"), {"shift": shift, "end": BEGIN + 30 * DAY}
            )


def main() -> None:
    """Measure on the server that is named, or on one of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--address", help="of an empty database")
    given = parser.parse_args()
    if given.address:
        measure(given.address, given.records)
    elif not PROGRAMS:
        print("SKIPPED: there is no PostgreSQL; make postgresql installs one")
    else:
        server = Postgres(PROGRAMS[-1]).start()
        try:
            measure(server.database(), given.records)
        finally:
            server.close()


def measure(address: str, count: int) -> None:
    """Write, then ask."""
    with open_history(address, write=True) as store:
        began, written = time.perf_counter(), 0
        for drafts in records(30, -(-count // (30 * MONTHS))):
            written += store.append(HERE, drafts)
        wrote = time.perf_counter() - began
        repeat_month(store)
    with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("SET statement_timeout = 0"))
        connection.execute(text("VACUUM ANALYZE"))  # as autovacuum does in time
    store.close()
    results = Results("B18")
    rows = [["write, µs a record", f"{wrote / written * 1e6:.1f}", "", ""]]
    with open_history(address) as store:
        end = BEGIN + MONTHS * 30 * DAY
        total = store.info().records
        for by in BY:
            takes, _ = timed(lambda by=by: statement_of(store, end - 30 * DAY - 17 * MINUTE, end - 5 * MINUTE, by))
            results.add(f"PostgreSQL: report of a month by {by}", takes, "s by the clock", at_most=2)
            rows.append([f"report of a month by {by}, cut edges", f"{takes:.2f} s", "2 s", f"{takes / 2:.2f}"])
        story, found = timed(lambda: store.story("team/job-123"))
        page, _ = timed(lambda: store.records(limit=100, newest=True))
    results.add(f"PostgreSQL: story of {len(found)} records", 1000 * story, "ms by the clock", at_most=50)
    results.write()
    rows.append([f"story of {len(found)} records", f"{story * 1000:.1f} ms", "50 ms", f"{story / 0.05:.2f}"])
    rows.append(["the newest 100 records", f"{page * 1000:.1f} ms", "", ""])
    speed, _ = timed(lambda: sum(range(10**7)))
    title = f"{total:,} records of {MONTHS} months on PostgreSQL; sum(range(10**7)): {speed:.2f} s"
    print_table(title, ["B18", "takes", "allowed", "ratio"], rows)


if __name__ == "__main__":
    main()

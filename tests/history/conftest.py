"""Stores for tests of the history: SQLite in a folder, and a real PostgreSQL server."""

from __future__ import annotations

import pytest
from tests.history import postgres


@pytest.fixture(scope="session")
def server():
    """Give a server that all tests share."""
    made = postgres.started()
    yield made
    made.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request, tmp_path):
    """Give the address of an empty store, of either kind."""
    if request.param == "sqlite":
        return str(tmp_path / "history.db")
    return request.getfixturevalue("server").database()

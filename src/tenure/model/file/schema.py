"""The JSON schema of cluster files, for editors: made of the same definitions that files are read by."""

from __future__ import annotations

from typing import Any

from tenure.model.entries import file_entry, settings_entry
from tenure.model.fields.descriptions import add_descriptions

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """Give the JSON schema (draft 2020-12) of cluster files and of the scheduler's own configuration.

    What goes beyond single values (unknown queues, sums, devices given away twice) is for ``tenure validate``.
    """
    definitions: dict[str, Any] = {}
    roots = [entry.schema(definitions) for entry in (file_entry(), settings_entry())]
    title = "Tenure cluster file or configuration"
    return {"$schema": DIALECT, "title": title, "anyOf": roots, "$defs": add_descriptions(definitions)}

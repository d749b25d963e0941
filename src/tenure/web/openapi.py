"""The OpenAPI document of the console's API."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any, Final

from tenure.web.sources.picture import STATES
from tenure.web.sources.source import HOW, PAID, SORTS
from tenure.web.views.look import MOST_PER_PAGE
from tenure.web.views.nodes import NODE_SORTS, NODE_STATES
from tenure.web.views.workloads import WORKLOAD_SORTS

Plain = dict[str, Any]

_AT: Final = ("at", {"type": "string", "format": "date-time"}, "The moment; the newest that is known without it.")
_LIMIT: Final = (
    "limit", {"type": "integer", "minimum": 1, "maximum": MOST_PER_PAGE, "default": 100}, "How many at most."
)  # fmt: skip
_OFFSET: Final = (
    "offset", {"type": "integer", "minimum": 0, "maximum": 10_000_000, "default": 0}, "How many to leave out first."
)  # fmt: skip
_WAIT: Final = (
    "wait", {"type": "integer", "minimum": 0, "maximum": 30},
    "Seconds to wait for what has to be played; without it 30, of more than 5,000 workloads none.",
)  # fmt: skip
_TEXT: Final = {"type": "string", "maxLength": 300}
_AMOUNTS: Final = {"type": "object", "additionalProperties": {"type": "integer"}}
_SUMS: Final = {"type": "object", "additionalProperties": {"type": "number"}}
_TIME: Final = {"type": "string"}
_MAYBE_TIME: Final = {"type": ["string", "null"]}
_MAYBE_TEXT: Final = {"type": ["string", "null"]}
_NUMBER: Final = {"type": "integer"}

Parameter = tuple[str, Plain, str]


def document() -> Plain:
    """Give the document."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Tenure console", "version": version("tenure"), "license": {"name": "Apache-2.0"},
                 "description": "A cluster, why workloads wait, and what was evicted for which workload. Read-only."},
        "paths": _paths(),
        "components": {"schemas": _schemas()},
    }  # fmt: skip


def _paths() -> Plain:
    paged = (_AT, _LIMIT, _OFFSET)
    nodes = (("state", _choice(NODE_STATES), "Only these."), ("q", _TEXT, "Part of the name."),
             ("sort", _choice(NODE_SORTS), "In which order."))  # fmt: skip
    workloads = (("state", _choice(STATES), "Only these."), ("queue", _TEXT, "Only of this queue."),
                 ("q", _TEXT, "Part of the name."), ("sort", _choice(WORKLOAD_SORTS), "In which order."))  # fmt: skip
    evictions = (
        ("cause", _TEXT, "By this cause."), ("queue", _TEXT, "From this queue."), ("workload", _TEXT, "Of this one."),
        ("beneficiary", _TEXT, "For this one."), ("paid", _choice(PAID), "Whether it paid."),
        ("how", _choice(HOW), "Whether it was made."), ("sort", _choice(SORTS), "In which order."),
        ("order", _choice(("up", "down")), "Which end first."),
        ("since", _AT[1], "From then on."), ("until", _AT[1], "Before then."),
    )  # fmt: skip
    points = ("points", {"type": "integer", "minimum": 2, "maximum": 2000, "default": 500}, "Moments at most.")
    name = {"type": "string", "minLength": 1, "pattern": r"^[^/\s]+$"}
    return {
        "/healthz": {"get": {"summary": "Whether this lives", "operationId": "healthz", "responses": {
            "200": {"description": "It does.", "content": {"text/plain": {"schema": {"type": "string"}}}}}}},
        "/api/v1/overview": _get("Everything at a glance", "Overview", (_AT, _WAIT)),
        "/api/v1/queues": _get("The tree of queues", "Queues", (*paged, _WAIT)),
        "/api/v1/workloads": _get("Workloads", "Workloads", (*paged, *workloads)),
        "/api/v1/workloads/{namespace}/{name}": _get(
            "One workload: where it stands, why, its story, who took its room", "WorkloadStory", (_AT, _WAIT),
            (("namespace", name), ("name", name)), missing=True),
        "/api/v1/nodes": _get("Nodes", "Nodes", (*paged, *nodes)),
        "/api/v1/nodes/{name}": _get(
            "One node, device by device", "NodeDetail", (_AT,), (("name", name),), missing=True),
        "/api/v1/moves": _get(
            "What making room, or emptying a node, would move", "Moves",
            (_AT, _WAIT, ("drain", _TEXT, "The node to empty; room is made for what waits without it.")), missing=True),
        "/api/v1/evictions": _get("Evictions, and their sums by cause", "Evictions", (*paged, *evictions)),
        "/api/v1/series": _get("Use over time by queue", "Series", (_AT, points)),
        "/api/v1/plan": {"post": _plan()},
    }  # fmt: skip


def _choice(words: tuple[str, ...]) -> Plain:
    return {"type": "string", "enum": list(words)}


def _get(
    summary: str, schema: str, parameters: tuple[Parameter, ...], path: tuple[tuple[str, Plain], ...] = (),
    *, missing: bool = False,
) -> Plain:  # fmt: skip
    listed = [{"name": n, "in": "path", "required": True, "schema": s} for n, s in path]
    listed += [{"name": n, "in": "query", "required": False, "schema": s, "description": d} for n, s, d in parameters]
    return {"get": {"summary": summary, "operationId": schema[0].lower() + schema[1:], "parameters": listed,
                    "responses": _responses(schema, (400, *((404,) if missing else ())))}}  # fmt: skip


def _responses(schema: str, refusals: tuple[int, ...]) -> Plain:
    words = {400: "A parameter does not do.", 401: "No user is logged in.", 403: "From another origin, or not allowed.",
             404: "There is none of that name.", 413: "The body is too large.", 415: "The body is no JSON.",
             422: "What is to be changed or added does not do.", 429: "Too many wrong tokens came from there.",
             503: "Too much is asked for at once, or it cannot be asked who asks."}  # fmt: skip
    found: Plain = {"200": {"description": "Done.", "content": _json(schema)}}
    for status in (*refusals, 401, 403, 429, 503):
        found[str(status)] = {"description": words[status], "content": _json("Error")}
    return found


def _json(schema: str) -> Plain:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}


def _plan() -> Plain:
    return {
        "summary": "Play a cycle on a changed copy; nothing is carried out", "operationId": "plan",
        "requestBody": {"required": True, "content": _json("PlanRequest")},
        "responses": _responses("Plan", (400, 413, 415, 422)),
    }  # fmt: skip


def _object(required: Plain, **optional: Plain) -> Plain:
    return {"type": "object", "required": list(required), "properties": {**required, **optional}}


def _list(items: Plain) -> Plain:
    return {"type": "array", "items": items}


def _schemas() -> Plain:
    where: Plain = {"now": _TIME, "source": {"type": "string"}, "kind": {"type": "string"}, "live": {"type": "boolean"},
             "from": _TIME, "to": _TIME, "note": {"type": "string"}, "failed": _MAYBE_TEXT}  # fmt: skip
    page: Plain = {**where, "total": _NUMBER, "limit": _NUMBER, "offset": _NUMBER}
    queue = _object({"name": {"type": "string"}, "parent": _MAYBE_TEXT, "depth": _NUMBER, "allocated": _AMOUNTS,
                     "fairShare": {**_AMOUNTS, "type": ["object", "null"]}, "guaranteed": _AMOUNTS, "max": _AMOUNTS,
                     "asked": _AMOUNTS})  # fmt: skip
    workload: Plain = {"workload": {"type": "string"}, "queue": {"type": "string"}, "state": {"type": "string"}}
    counted: Plain = {"priority": _NUMBER, "tasks": _NUMBER, "running": _NUMBER, "waiting": _NUMBER,
               "createdAt": _MAYBE_TIME, "startedAt": _MAYBE_TIME, "waited_s": {"type": ["number", "null"]},
               "allocated": _AMOUNTS, "asked": _AMOUNTS}  # fmt: skip
    node = _object({"name": {"type": "string"}, "state": _choice(NODE_STATES), "remark": {"type": "string"},
                    "used": {"type": "number"}, "tasks": _NUMBER, "allocatable": _AMOUNTS,
                    "allocated": _AMOUNTS})  # fmt: skip
    eviction = _object({
        "at": _TIME, "workload": {"type": "string"}, "queue": {"type": "string"}, "task": _MAYBE_TEXT,
        "cause": {"type": "string"}, "for": _MAYBE_TEXT, "forQueue": _MAYBE_TEXT, "node": _MAYBE_TEXT,
        "to": _MAYBE_TEXT,
        "cost": {"type": ["number", "null"], "description": "Disruption cost in weighted resource-seconds; the weights "
                 "are disruption.cost."}, "lost": {**_SUMS, "type": ["object", "null"]},
        "gained": {**_SUMS, "type": ["object", "null"]}, "paid": {"type": ["boolean", "null"]},
        "how": _choice(HOW), "reason": {"type": "string"}})  # fmt: skip
    sums = _object({"cause": {"type": "string"}, "evictions": _NUMBER, "paid": _NUMBER, "unpaid": _NUMBER,
                    "lost": _SUMS, "gained": _SUMS})  # fmt: skip
    anything: Plain = {"type": "object"}
    return {
        "Error": _object({"error": {"type": "string"}}, problems=_list({"type": "string"})),
        "Overview": _object({**where, "workloads": _AMOUNTS, "nodes": {"type": ["object", "null"]},
                             "capacity": _AMOUNTS,
                             "allocated": _AMOUNTS, "waits": _list(anything), "evictions": anything,
                             "over": _list(anything), "under": _list(anything), "alerts": _list(anything),
                             "settled": {"type": "boolean"}}),
        "Queues": _object({**page, "queues": _list(queue), "settled": {"type": "boolean"}}),
        "Workloads": _object({**page, "workloads": _list(_object({**workload, **counted}))}),
        "WorkloadStory": _object({**where, **workload, "settled": {"type": "boolean"}, "reasons": _list(anything),
                                  "whatItTakes": _list({"type": "string"}), "estimatedStart": _MAYBE_TIME,
                                  "placement": _list(anything), "story": _list(anything), "takers": _list(anything)},
                                 **counted, placeInOrder={"type": ["object", "null"]}),
        "Nodes": _object({**page, "nodes": _list(node), "states": _AMOUNTS}),
        "NodeDetail": _object({**where, **node["properties"], "labels": {"type": "object"},
                               "devices": _list(_list(anything)), "tasksHere": _list(anything)}),
        "Moves": _object({**where, "settled": {"type": "boolean"}, "drain": _MAYBE_TEXT, "moves": _list(anything),
                          "warnings": _list({"type": "string"})}),
        "Evictions": _object({**page, "evictions": _list(eviction), "sums": _list(sums)}),
        "Series": _object({**where, "resource": {"type": "string"}, "capacity": _AMOUNTS, "moments": _list(_TIME),
                           "queues": {"type": "object"}, "waiting": _list({"type": "number"}),
                           "evictions": _list({"type": "number"})}),
        "PlanRequest": {"type": "object", "additionalProperties": False, "properties": {
            "set": {**_list({"type": "string"}), "maxItems": 100}, "add": {**_list(anything), "maxItems": 1000}}},
        "Plan": _object({"now": _TIME, "steps": _list(anything), "pending": _list(anything),
                         "refused": _list(anything), "queues": _list(anything)}),
    }  # fmt: skip

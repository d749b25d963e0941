"""The HTML pages: each is a template over what `views` give, and each is an address of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from tenure.history.reading.takers import TAKER_WAYS
from tenure.model.values.resources import CPU, GPU
from tenure.report.plans.plan_rows import headline, move_aim, move_sentence
from tenure.web import views
from tenure.web.access.asked import RequestParameters
from tenure.web.drawn import bars, colors_of, difference, drawn_waves, stack, utilization
from tenure.web.playing.player import WrongError
from tenure.web.playing.whatif import Change, changes_of
from tenure.web.sources.picture import STATES, WAITING, shown_resources
from tenure.web.sources.source import HOW, PAID, SORTS, EvictionQuery
from tenure.web.views.look import MOST_PER_PAGE, Looked, moment
from tenure.web.views.nodes import NODE_SORTS, NODE_STATES, NodeQuery
from tenure.web.views.plans import narrowed
from tenure.web.views.workloads import WORKLOAD_SORTS, WorkloadQuery
from tenure.web.words import FILTERS

HERE: Final = Path(__file__).parent
_STEPS: Final = 200
"""Steps of a plan that a page shows."""

_MOVES: Final = 1000
"""Moves that a page shows, and plans of moves."""

_NAMED: Final = 20
"""Workloads that are named for which moves make room."""

Context = dict[str, Any]
View = Callable[[Looked, Mapping[str, str], list[tuple[str, str]]], tuple[str, Context] | None]


def environment() -> Environment:
    """Give the templates, in which everything is escaped."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    made.filters.update(FILTERS)
    return made


NAVIGATION: Final = (
    ("/", "Overview"), ("/queues", "Queues"), ("/workloads", "Workloads"), ("/nodes", "Nodes"),
    ("/evictions", "Evictions"), ("/timeline", "Time line"), ("/whatif", "What if"),
)  # fmt: skip


def overview(look: Looked, given: Mapping[str, str], _: object) -> tuple[str, Context]:
    """Everything at a glance."""
    RequestParameters(given, {"at"})
    found = views.overview.page(look)
    picture = look.picture
    main = picture.main
    queues = views.queues.page(look, limit=MOST_PER_PAGE)["queues"]
    colors = colors_of(picture)
    return "overview.html", {
        "found": found, "main": main, "colors": colors, "stack": stack(picture, main, colors),
        "queue_bars": bars([queue for queue in queues if not queue["depth"]], main), "settled": found["settled"],
    }  # fmt: skip


def queues(look: Looked, given: Mapping[str, str], _: object) -> tuple[str, Context]:
    """The tree of queues, and what happens next."""
    asked = RequestParameters(given, {"at", "resource", "offset"})
    picture = look.picture
    main = asked.choice("resource", resources(look), picture.main)
    offset = asked.number("offset", 0, 10_000_000)
    found = views.queues.page(look, limit=100, offset=offset)
    outlook = look.played("outlook")
    plan = None if outlook is None else narrowed(outlook, look)
    return "queues.html", {
        "found": found, "main": main, "resources": resources(look), "colors": colors_of(picture),
        "bars": bars(found["queues"], main), "plan": plan, "most": _STEPS,
        "headline": "" if plan is None else headline(plan).partition(": ")[2],
    }  # fmt: skip


def resources(look: Looked) -> list[str]:
    """Give the resources that nodes have, GPUs first."""
    return shown_resources({name for name, amount in look.picture.nodes.size.items() if amount})


def queue(look: Looked, given: Mapping[str, str], _: object) -> tuple[str, Context] | None:
    """One queue."""
    asked = RequestParameters(given, {"at", "name"})
    name = asked.text("name")
    found = views.queues.page(look, limit=MOST_PER_PAGE * 10)
    mine = next((one for one in found["queues"] if one["name"] == name), None)
    if mine is None:
        return None
    names = WorkloadQuery(queue=name, limit=50)
    evicted = views.evictions.page(look, EvictionQuery(queue=name, limit=10))
    main = look.picture.main
    rows = [one for resource in resources(look) for one in bars([mine], resource) if one["shown"]]
    return "queue.html", {
        "found": found, "queue": mine, "rows": rows, "main": main, "colors": colors_of(look.picture),
        "workloads_found": views.workloads.page(look, names), "evictions_found": evicted,
        "children": [one for one in found["queues"] if one["parent"] == name],
    }  # fmt: skip


def workloads(look: Looked, given: Mapping[str, str], _: object) -> tuple[str, Context]:
    """A table of workloads."""
    asked = RequestParameters(given, {"at", "state", "queue", "q", "sort", "offset"})
    query = workload_query(asked, 100)
    return "workloads.html", {
        "found": views.workloads.page(look, query), "query": query, "states": STATES, "sorts": WORKLOAD_SORTS,
        "queues": [name for name, _, _ in views.queues.tree(look.picture)][:_STEPS], "colors": colors_of(look.picture),
    }  # fmt: skip


def workload_query(asked: RequestParameters, limit: int) -> WorkloadQuery:
    """Read which workloads are asked for."""
    return WorkloadQuery(
        state=asked.choice("state", STATES), queue=asked.text("queue"), text=asked.text("q"),
        sort=asked.choice("sort", WORKLOAD_SORTS, "waited"), limit=limit,
        offset=asked.number("offset", 0, 10_000_000),
    )  # fmt: skip


def workload(look: Looked, given: Mapping[str, str], _: object) -> tuple[str, Context] | None:
    """One workload."""
    asked = RequestParameters(given, {"at", "name"})
    found = views.workloads.one(look, asked.text("name"))
    if found is None:
        return None
    return "workload.html", {
        "found": found, "colors": colors_of(look.picture), "main": look.picture.main, "ways": TAKER_WAYS,
        "waits": _begins_of_waits(found["story"]) if look.console.source.kind == "history" else (),
    }  # fmt: skip


def _begins_of_waits(story: Sequence[Mapping[str, Any]]) -> list[str]:
    """Give the times at which a workload began to wait, by its story: when it came, or was evicted."""
    begins, since = [], ""
    for line in story:
        if line["kind"] in {"started", "ended"}:
            begins += [since] if since and since != line["at"] else []
            since = ""
        elif line["kind"] in {"submitted", "evicted"}:
            since = line["at"]
    return [*begins, since] if since else begins


def nodes(look: Looked, given: Mapping[str, str], _: object) -> tuple[str, Context]:
    """A heat map of nodes."""
    asked = RequestParameters(given, {"at", "q", "state", "sort", "offset"})
    query = node_query(asked, 1000)
    found = views.nodes.page(look, query)
    return "nodes.html", {"found": found, "query": query, "states": NODE_STATES, "sorts": NODE_SORTS,
                          "squares": utilization(found["nodes"]), "main": look.picture.main}  # fmt: skip


def node_query(asked: RequestParameters, limit: int) -> NodeQuery:
    """Read which nodes are asked for."""
    return NodeQuery(
        text=asked.text("q"), state=asked.choice("state", NODE_STATES),
        sort=asked.choice("sort", NODE_SORTS, "name"), limit=limit, offset=asked.number("offset", 0, 10_000_000),
    )  # fmt: skip


def node(look: Looked, given: Mapping[str, str], _: object) -> tuple[str, Context] | None:
    """One node."""
    asked = RequestParameters(given, {"at", "name"})
    found = views.nodes.one(look, asked.text("name"))
    if found is None:
        return None
    return "node.html", {"found": found, "colors": colors_of(look.picture)}


def moves(look: Looked, given: Mapping[str, str], _: object) -> tuple[str, Context] | None:
    """What emptying a node, or making room, would move."""
    asked = RequestParameters(given, {"at", "drain"})
    drain = asked.text("drain") or None
    found = views.plans.moves(look, drain)
    if found is None:
        return None
    shown, left = [], _MOVES
    asked_first = sorted(found["moves"], key=lambda move: drain is not None and move["trigger"] != "drain")
    for move in asked_first[:_MOVES]:
        waves = drawn_waves(move, left)
        left -= sum(len(wave["moves"]) for wave in waves)
        shown.append({"sentence": move_sentence(move), "aim": move_aim(move), "move": move, "waves": waves})
    count = sum(len(wave) for move in found["moves"] for wave in move.get("waves") or ())
    cut = {"moves": count - (_MOVES - left), "plans": len(found["moves"]) - len(shown)}
    return "moves.html", {"found": found, "drain": drain, "moves": shown, "cut": cut, "named": _NAMED}


def evictions(look: Looked, given: Mapping[str, str], _: object) -> tuple[str, Context]:
    """A table of evictions, and what they come to by cause."""
    asked = RequestParameters(
        given,
        {"at", "cause", "queue", "beneficiary", "workload", "paid", "how", "sort", "order", "since", "until", "offset"},
    )  # fmt: skip
    query = eviction_query(asked, 100)
    plan = None if look.console.source.kind == "history" else look.played("outlook")
    plan = None if plan is None else narrowed(plan, look)
    planned = [] if plan is None else [*plan["steps"], *({**one, "shadow": True} for one in plan["shadow"])]
    return "evictions.html", {
        "found": views.evictions.page(look, query), "query": query, "sorts": SORTS, "paid": PAID, "how": HOW,
        "causes": CAUSES, "planned": [one for one in planned if one["action"] in ("evict", "notice")][:_STEPS],
        "colors": colors_of(look.picture),
    }  # fmt: skip


CAUSES: Final = ("reclaim", "preempt", "consolidate", "requeue", "reschedule", "quota", "stale-gang")


def eviction_query(asked: RequestParameters, limit: int) -> EvictionQuery:
    """Read which evictions are asked for."""
    sort = asked.choice("sort", SORTS, "at")
    return EvictionQuery(
        since=asked.time("since"), until=asked.time("until"), cause=asked.text("cause"), queue=asked.text("queue"),
        beneficiary=asked.text("beneficiary"), workload=asked.text("workload"), paid=asked.choice("paid", PAID),
        how=asked.choice("how", HOW), sort=sort,  # type: ignore[arg-type]  # one of them, as was just checked
        descending=asked.choice("order", ("up", "down"), "up" if sort in ("workload", "cause") else "down") == "down",
        limit=limit, offset=asked.number("offset", 0, 10_000_000),
    )  # fmt: skip


def timeline(look: Looked, given: Mapping[str, str], _: object) -> tuple[str, Context]:
    """Use over time, and the cluster at a moment of it."""
    RequestParameters(given, {"at"})
    picture = look.picture
    colors = colors_of(picture)
    begin, end = look.console.source.span()
    every = views.queues.page(look, limit=MOST_PER_PAGE)["queues"] if look.at is None else []
    return "timeline.html", {
        "found": moment(look), "begin": begin // 1_000_000, "end": -(-end // 1_000_000),
        "at_second": min(max(picture.now // 1_000_000, begin // 1_000_000), -(-end // 1_000_000)),
        "states": picture.states if look.viewer.sees_all else {}, "main": picture.main, "colors": colors,
        "stack": stack(picture, picture.main, colors), "queues": every,
        "squares": utilization(views.nodes.page(look, NodeQuery(limit=1000))["nodes"]),
        "workloads": views.workloads.page(look, WorkloadQuery(state=WAITING, limit=10)),
        "evictions": views.evictions.page(look, EvictionQuery(until=picture.now + 1, limit=10)),
    }  # fmt: skip


def whatif(look: Looked, _: object, pairs: list[tuple[str, str]]) -> tuple[str, Context]:
    """A changed copy of the cluster, played."""
    changes = changes_of(pairs)
    result, wrong, late = None, [], False
    base = look.played("outlook")
    if changes:
        try:
            result = look.plan([c.text for c in changes if c.kind == "set"],
                               [c.workload for c in changes if c.kind == "add"])  # fmt: skip
            late = result is None
        except WrongError as error:
            wrong = [look.told(line) for line in error.lines]
    shown = None if result is None or base is None else difference(
        narrowed(base, look), narrowed(result, look))  # fmt: skip
    picture = look.picture
    return "whatif.html", {
        "found": moment(look), "changes": changes, "wrong": wrong, "late": late, "shown": shown,
        "result": None if result is None else narrowed(result, look), "most": _STEPS,
        "queues": [name for name, _, _ in views.queues.tree(picture)][:1000], "resources": resources(look),
        "bars": [] if shown is None else bars(shown["queues"], picture.main), "main": picture.main,
        "colors": colors_of(picture), "without": without, "GPU": GPU, "CPU": CPU,
    }  # fmt: skip


def without(changes: list[Change], left: Change, at: str | None) -> str:
    """Give the address of the same page without one of the changes."""
    pairs = [(c.kind, c.written) for c in changes if c is not left] + ([("at", at)] if at else [])
    return "/whatif" + (f"?{urlencode(pairs)}" if pairs else "")


VIEWS: Final[dict[str, View]] = {
    "/": overview, "/queues": queues, "/queue": queue, "/workloads": workloads, "/workload": workload,
    "/nodes": nodes, "/node": node, "/moves": moves, "/evictions": evictions, "/timeline": timeline, "/whatif": whatif,
}  # fmt: skip

"""No module imports another that imports it, be it inside a function or for types alone."""

from __future__ import annotations

import grimp


def reached(graph, module):
    """Give everything that a module imports, directly or not."""
    found, todo = set(), [module]
    while todo:
        for other in graph.find_modules_directly_imported_by(todo.pop()) - found:
            found.add(other)
            todo.append(other)
    return found


def test_there_are_no_import_circles():
    graph = grimp.build_graph("tenure", exclude_type_checking_imports=False)
    assert [module for module in sorted(graph.modules) if module in reached(graph, module)] == []

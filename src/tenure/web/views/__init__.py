"""What the views show, as plain data: the JSON API gives it as it is, pages make HTML of it.

A view with several entries has a ``page`` of them, and ``one`` of them with all that is known of it.
"""

from tenure.web.views import evictions, nodes, overview, plans, queues, workloads

__all__ = ["evictions", "nodes", "overview", "plans", "queues", "workloads"]

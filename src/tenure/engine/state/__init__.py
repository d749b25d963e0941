"""The session: nodes, queues, workloads and what is decided about them, with every change and its undo."""

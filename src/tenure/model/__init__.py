"""Plain data: quantities, durations, nodes, queues, workloads, settings and the cluster file, with their validation."""

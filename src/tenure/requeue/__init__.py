"""Requeue: nominated work is evicted if, and only if, a more deserving workload then runs."""

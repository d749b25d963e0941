"""Quota preemption: when a queue that uses more than its max is brought back under it, and what is evicted for that."""

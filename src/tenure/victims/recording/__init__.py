"""What is written down: the evictions of a cycle so far, the steps of a set in the plan, and what is said of a search.

Rooms that evict by other ways than the search (requeue, quota, the rescheduler, notices) write by it as well. It reads
what `tenure.victims.search` and `tenure.victims.dry_run` found, and searches for nothing.
"""

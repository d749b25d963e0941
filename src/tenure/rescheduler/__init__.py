"""The rescheduler: which running tasks to move, where to, and in which order."""

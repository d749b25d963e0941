"""Evictions that were announced: whether they still pay, and when their time is over (spec: the cycle, "Notice")."""

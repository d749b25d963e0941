"""Nominators: plugins that name candidates for requeue and change nothing."""

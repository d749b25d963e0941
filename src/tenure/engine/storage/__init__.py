"""Volumes, as far as they depend on what else is placed."""

"""Rules that a cluster as a whole obeys."""

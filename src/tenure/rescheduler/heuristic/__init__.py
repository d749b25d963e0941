"""Heuristic plans: beam search, local search and repair."""

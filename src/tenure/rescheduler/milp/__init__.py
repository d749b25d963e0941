"""Exact plans: the mixed-integer program, its bounds and the solver's process."""

"""Constraints that look at other tasks: what specs ask for, what is counted of it, and which nodes admit a task."""

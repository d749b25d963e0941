"""Aftermath: what enabled causes would do once a set of victims has gone (spec: the cycle, "Causes add up").

The highest room of victims: it makes passes in scenarios. Those below know it as `Consequences` alone.
"""

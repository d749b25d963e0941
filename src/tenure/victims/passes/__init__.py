"""Passes: all contenders of one cause in turn, from the bounds to the steps of the plan.

The actions reclaim, preempt and consolidate are a pass each. It talks to every room of victims but the aftermath,
which makes passes in scenarios.
"""

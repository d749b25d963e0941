"""The search for the best set of one contender: greedily, then among all subsets of the pieces that matter.

It chooses from `tenure.victims.candidates`, within `tenure.victims.bounds`, and asks `tenure.victims.dry_run` whether a
set pays. Nothing is written into a plan here.
"""

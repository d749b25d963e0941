"""The rules of sets of victims: what of a workload may be taken, which cause takes from which, which set is best.

All policy of the choice stands here; the rooms above say how a set is found that follows it. It talks to
`tenure.shields`, `tenure.fairness` and below, and to no other room of victims.
"""

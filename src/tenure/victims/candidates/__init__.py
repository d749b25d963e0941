"""Candidates: which pieces there are for a contender, and what preemptible work holds in all.

It asks `tenure.victims.rules` and the shields who may go, and knows nothing of room, sets or searches.
"""

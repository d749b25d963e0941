"""Dry runs: what a set of victims leads to, played through in a scenario of the session.

A set goes in, and a verdict comes out. What enabled causes do next is asked of a judge that the room above hands in
(`Consequences`); it talks to `tenure.victims.bounds` and `tenure.victims.rules`.
"""

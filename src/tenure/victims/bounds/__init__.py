"""Bounds: what no set can do or cost less than, so that most contenders need no search.

They look at room, queues and prices of candidates. A bound never asks what is played through: it talks to
`tenure.victims.candidates` and `tenure.victims.rules`.
"""

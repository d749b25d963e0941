"""Cycles that a viewer asks for are played in a process beside the console."""

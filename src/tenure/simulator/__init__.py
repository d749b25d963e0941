"""Replays traces on virtual time with the same engine that decides for a live cluster."""

"""Trace readers, one file per format, and their registry."""

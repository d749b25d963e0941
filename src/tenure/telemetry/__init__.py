"""What a cycle tells of itself, as plain data: counters and gauges, events, and records for the log."""

"""Writing to the API server: plans, events, conditions, and the eviction log."""

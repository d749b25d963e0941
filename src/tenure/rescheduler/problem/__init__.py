"""The rescheduler's problem: a session as plain arrays, and what can be told without a search."""

"""The single checks of the independent checker: each looks at the event log and knows nothing of the engine."""

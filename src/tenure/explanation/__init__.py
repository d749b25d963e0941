"""Why one workload waits or runs, and what would help it: the story, the remedies, the causes that do not act."""

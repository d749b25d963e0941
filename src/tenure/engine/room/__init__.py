"""What room nodes have, and which tasks it is for: the arrays, labels, classes of tasks, fit and score."""

"""Independent checkers of plans: they share no code with what makes plans."""

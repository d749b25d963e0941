"""Records that are made of plans, of cycles that were played, and of simulations."""

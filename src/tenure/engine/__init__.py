"""What every decision stands on: the session, its transaction, fit, score, placement, order and plan."""

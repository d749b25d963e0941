"""Sending nominated work back to the queue, if and only if something more deserving then runs."""

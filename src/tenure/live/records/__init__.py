"""What happens on a live cluster becomes records of its history, beside the loop."""

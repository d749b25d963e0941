"""What commands do at a terminal: streams, progress, signals, errors, and files that they write."""

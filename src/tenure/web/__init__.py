"""The console: a read-only page and a JSON API over a cluster file, a history store or a live cluster."""

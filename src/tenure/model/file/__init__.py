"""The cluster file: loading, writing, overriding, and its schema."""

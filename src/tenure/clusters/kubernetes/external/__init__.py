"""External schedulers: rooms kept for pods that another scheduler binds."""

"""What views are made of: one cluster, a watched one, a history, or a cluster with its history."""

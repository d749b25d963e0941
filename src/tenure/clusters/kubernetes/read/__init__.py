"""Reading the informer cache: from Kubernetes' objects to a cluster as the engine decides about it."""
